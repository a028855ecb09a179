//! Detects whether a program on this host reads the persisted files.
//!
//! A udev rule has no effect without udev, nor a unit if systemd is not the init process, as in
//! most containers. foreread writes the files on request nevertheless, because they may be for an
//! image, but warns the user.

use host::Root;

use super::PersistBackend;

const UDEV: &[&str] = &[
    "/usr/lib/systemd/systemd-udevd",
    "/lib/systemd/systemd-udevd",
    "/usr/lib/udev/udevd",
    "/lib/udev/udevd",
    "/usr/sbin/udevd",
    "/sbin/udevd",
];
const SYSTEMD: &[&str] = &["/usr/lib/systemd/systemd", "/lib/systemd/systemd"];
const SYSTEMD_SYSCTL: &[&str] = &["/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl"];
/// Scripts that read `/etc/sysctl.d` at boot under OpenRC and System V init.
const SYSCTL_SCRIPTS: &[&str] =
    &["/etc/init.d/procps", "/etc/init.d/procps.sh", "/etc/init.d/sysctl", "/etc/init.d/sysctl.sh"];
const NFSRAHEAD: &[&str] = &[
    "/usr/libexec/nfsrahead",
    "/usr/libexec/nfs-utils/nfsrahead",
    "/usr/lib/nfsrahead",
    "/usr/lib/nfs-utils/nfsrahead",
    "/usr/sbin/nfsrahead",
];
const TUNED: &[&str] = &["/usr/sbin/tuned", "/usr/bin/tuned", "/sbin/tuned"];
const LVCHANGE: &[&str] = &["/usr/sbin/lvchange", "/sbin/lvchange", "/usr/bin/lvchange"];

/// Returns why a file of this owner has no effect here; `None` if it has one from the next boot.
pub fn obstacle(root: &Root, backend: PersistBackend) -> Option<&'static str> {
    let any = |paths: &[&str]| paths.iter().any(|path| root.exists(path));
    let runs_systemd = root.exists("/run/systemd/system");
    let udev = || match (any(UDEV), root.exists("/run/udev/control")) {
        (_, true) => None,
        (true, false) => Some("udev is installed, but does not run on this host"),
        (false, false) => Some("udev is not installed on this host"),
    };
    match backend {
        PersistBackend::Udev => udev(),
        PersistBackend::Systemd => match (any(SYSTEMD), runs_systemd) {
            (_, true) => None,
            (true, false) => Some("systemd is installed, but is not the init of this host"),
            (false, false) => Some("systemd is not installed on this host"),
        },
        PersistBackend::Sysctl => match (any(SYSTEMD_SYSCTL), runs_systemd, any(SYSCTL_SCRIPTS)) {
            (true, true, _) | (_, _, true) => None,
            (true, false, false) => Some(
                "systemd-sysctl is installed, but systemd is not the init of this host, and no \
                 init script reads /etc/sysctl.d",
            ),
            (false, _, false) => {
                Some("neither systemd-sysctl nor an init script of procps is installed")
            }
        },
        PersistBackend::NfsConf if !any(NFSRAHEAD) => {
            Some("nfsrahead of nfs-utils, which reads it, is not installed on this host")
        }
        PersistBackend::NfsConf => udev(),
        PersistBackend::Tuned if !any(TUNED) => Some("TuneD is not installed on this host"),
        PersistBackend::Lvm if !any(LVCHANGE) => {
            Some("lvchange of LVM is not installed on this host")
        }
        PersistBackend::Tuned | PersistBackend::Lvm => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ALL: [PersistBackend; 6] = [
        PersistBackend::Udev,
        PersistBackend::Sysctl,
        PersistBackend::NfsConf,
        PersistBackend::Tuned,
        PersistBackend::Systemd,
        PersistBackend::Lvm,
    ];

    #[test]
    fn a_bare_host_reads_nothing_and_a_usual_one_all() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Root::at(dir.path());
        for backend in ALL {
            let why = obstacle(&root, backend).expect("nothing is there");
            assert!(why.contains("installed"), "{backend}: {why}");
        }
        let make = |path: &str| {
            let path = root.path(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, "").expect("a file");
        };
        for path in [UDEV[0], SYSTEMD[0], SYSTEMD_SYSCTL[0], NFSRAHEAD[0], TUNED[0], LVCHANGE[0]] {
            make(path);
        }
        // A container whose image contains all programs, none of which runs.
        for backend in [
            PersistBackend::Udev,
            PersistBackend::Sysctl,
            PersistBackend::NfsConf,
            PersistBackend::Systemd,
        ] {
            let why = obstacle(&root, backend).expect("nothing runs");
            assert!(why.contains("installed, but"), "{backend}: {why}");
        }
        make("/run/udev/control");
        make("/run/systemd/system/unit");
        for backend in ALL {
            assert_eq!(obstacle(&root, backend), None, "{backend}");
        }
    }

    #[test]
    fn an_init_script_reads_sysctls_without_systemd() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Root::at(dir.path());
        fs::create_dir_all(root.path("/etc/init.d")).expect("directories");
        fs::write(root.path("/etc/init.d/procps"), "").expect("a file");
        assert_eq!(obstacle(&root, PersistBackend::Sysctl), None);
        assert!(obstacle(&root, PersistBackend::Systemd).is_some());
    }
}
