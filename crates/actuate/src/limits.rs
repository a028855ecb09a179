//! Decides which open files foreread may act on.
//!
//! The rules use only properties that a process cannot forge, so they ignore its name. They compare
//! its executable by device and inode, because a path may belong to its mount namespace.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::{DevNo, MountInfo, Root, cgroup, parse_mountinfo};
use observe::Holder;

use crate::outcome::ActuateFailure;
use crate::rule::AccessRule;

/// File systems on which a system call may wait for another host or process.
const REMOTE: &[&str] =
    &["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "orangefs", "gfs2", "ocfs2", "virtiofs"];

/// The processes and mounts whose open files foreread may act on. A denied file is never allowed.
/// If `allow` is not empty, everything else is excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// If not empty, only these are included.
    pub allow: Vec<AccessRule>,
    /// These are excluded, including files that one of these processes shares with others.
    pub deny: Vec<AccessRule>,
}

impl AccessRules {
    /// Checks the rules for the mounts of these devices, which are those of one open file.
    pub(crate) fn check_mount(&self, root: &Root, devices: &[DevNo]) -> Result<(), ActuateFailure> {
        let table = root.read("/proc/self/mountinfo").unwrap_or_default();
        let mut mounts = parse_mountinfo(&table);
        mounts.retain(|info| devices.contains(&info.device));
        let is_at = |path: &Path| mounts.iter().any(|info| info.mount.point == path);
        let named = |rules: &[AccessRule]| {
            let hit = |rule: &&AccessRule| matches!(rule, AccessRule::Mount(path) if is_at(path));
            rules.iter().find(hit).cloned()
        };
        if let Some(rule) = named(&self.deny) {
            return Err(ActuateFailure::Denied(rule));
        }
        let by_name = named(&self.allow).is_some();
        if !by_name && let Some(fstype) = mounts.iter().find_map(remote) {
            return Err(ActuateFailure::Remote { fstype });
        }
        // If there are rules for mounts, one of them must match, in addition to the rules for
        // processes.
        let chosen = self.allow.iter().any(|rule| matches!(rule, AccessRule::Mount(_)));
        if chosen && !by_name { Err(ActuateFailure::NotAllowed) } else { Ok(()) }
    }

    /// Returns whether any rule selects processes.
    pub fn select_processes(&self) -> bool {
        let mut rules = self.allow.iter().chain(&self.deny);
        rules.any(|rule| !matches!(rule, AccessRule::Mount(_)))
    }

    /// Returns the rule that excludes this holder, if there is one.
    pub(crate) fn denies(&self, root: &Root, holder: &Holder) -> Option<AccessRule> {
        self.deny.iter().find(|rule| rule.matches(root, holder, true)).cloned()
    }

    /// Returns whether the rules include this holder.
    pub(crate) fn allows(&self, root: &Root, holder: &Holder) -> bool {
        let mut rules =
            self.allow.iter().filter(|rule| !matches!(rule, AccessRule::Mount(_))).peekable();
        rules.peek().is_none() || rules.any(|rule| rule.matches(root, holder, false))
    }
}

/// Returns the type of the file system, if it is remote or served by a process.
fn remote(info: &MountInfo) -> Option<String> {
    let fstype = &info.mount.fstype;
    // `fuseblk`, for example of ntfs-3g, is also served by a process.
    let is_remote = fstype.starts_with("fuse") || REMOTE.contains(&fstype.as_str());
    is_remote.then(|| fstype.clone())
}

impl AccessRule {
    /// Returns whether the rule matches this holder. If that is unknown, a rule that denies matches
    /// and a rule that allows does not.
    fn matches(&self, root: &Root, holder: &Holder, denies: bool) -> bool {
        match self {
            Self::Pid(pid) => *pid == holder.pid,
            Self::User(uid) => *uid == holder.uid,
            Self::Cgroup(path) => match root.read(format!("/proc/{}/cgroup", holder.pid)) {
                Ok(text) => cgroup::groups(&text).any(|(_, group)| is_below(group, path)),
                Err(_) => denies,
            },
            Self::Executable(path) => runs(root, holder.pid, path, denies),
            Self::Mount(_) => false,
        }
    }
}

fn is_below(cgroup: &str, path: &str) -> bool {
    cgroup.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a process runs the program at `path`. If the file was replaced while the program
/// ran, rules that deny still match and rules that allow do not.
fn runs(root: &Root, pid: u32, path: &Path, denies: bool) -> bool {
    let link = root.path(format!("/proc/{pid}/exe"));
    let number = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let own = number(&link);
    if own.is_some() && own == number(&root.path(path)) {
        return true;
    }
    let replaced = || {
        let name = fs::read_link(&link).ok()?;
        Some(name.to_str()?.trim_end_matches(" (deleted)") == path.to_str()?)
    };
    denies && replaced().unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use observe::Handle;
    use proptest::prelude::*;

    use super::*;

    fn holder(pid: u32, uid: u32) -> Holder {
        Holder {
            pid,
            handle: Handle::Descriptor { fd: 3 },
            comm: "postgres".to_owned(),
            uid,
            cgroup: 1,
        }
    }

    fn rules(texts: &[&str]) -> Vec<AccessRule> {
        texts.iter().map(|text| text.parse().expect("a rule")).collect()
    }

    #[test]
    fn rules_are_read_as_printed() {
        for text in
            ["pid:7", "user:26", "cgroup:/", "cgroup:/a.slice/b", "exe:/usr/bin/x", "mount:/srv"]
        {
            assert_eq!(text.parse::<AccessRule>().expect("a rule").to_string(), text);
        }
        assert_eq!("user:root".parse(), Ok(AccessRule::User(0)));
        assert_eq!(
            "cgroup:/".parse::<AccessRule>().expect("all"),
            AccessRule::Cgroup(String::new())
        );
        for text in [
            "",
            "postgres",
            "pid:",
            "pid:-1",
            "pid:x",
            "exe:postgres",
            "uid:0",
            "mount:",
            "cgroup:a",
            "user:",
            "user:nobody-has-this-name",
            "exe:/a/../b",
        ] {
            assert!(text.parse::<AccessRule>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_cgroup_rule_matches_descendants_only() {
        assert!(is_below("/a/b", "/a"));
        assert!(is_below("/a", "/a"));
        assert!(is_below("/a", ""));
        assert!(!is_below("/ab", "/a"));
        assert!(!is_below("/", "/a"));
    }

    #[test]
    fn groups_of_version_1_count_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let proc = dir.path().join("proc/7");
        std::fs::create_dir_all(&proc).expect("directories");
        let text = "4:memory:/docker/a:b\n2:cpu,cpuacct:/\n1:name=systemd:/x.slice\n";
        std::fs::write(proc.join("cgroup"), text).expect("a file");
        let root = Root::at(dir.path());
        let allows = |rule: &str| {
            let limits = AccessRules { allow: rules(&[rule]), deny: Vec::new() };
            limits.allows(&root, &holder(7, 0))
        };
        assert!(
            allows("cgroup:/docker/a:b") && allows("cgroup:/docker") && allows("cgroup:/x.slice")
        );
        assert!(!allows("cgroup:/docker/a") && !allows("cgroup:/y.slice"));
    }

    #[test]
    fn deny_takes_precedence_and_a_nonempty_allow_list_is_exclusive() {
        let root = Root::system();
        let limits = AccessRules { allow: rules(&["user:7"]), deny: rules(&["pid:42"]) };
        assert_eq!(limits.denies(&root, &holder(42, 7)), Some(AccessRule::Pid(42)));
        assert_eq!(limits.denies(&root, &holder(43, 7)), None);
        assert!(limits.allows(&root, &holder(43, 7)));
        assert!(!limits.allows(&root, &holder(43, 8)));
        assert!(AccessRules::default().allows(&root, &holder(43, 8)));
        // A list of mounts allows all processes.
        let limits = AccessRules { allow: rules(&["mount:/srv"]), deny: Vec::new() };
        assert!(limits.allows(&root, &holder(43, 8)));
    }

    #[test]
    fn a_program_is_identified_by_its_inode_and_not_by_its_name() {
        let root = Root::system();
        let own = std::process::id();
        let program = std::env::current_exe().expect("this test");
        assert!(runs(&root, own, &program, false));
        let dir = tempfile::tempdir().expect("a directory");
        let copy = dir.path().join("copy");
        fs::copy(&program, &copy).expect("a copy");
        assert!(!runs(&root, own, &copy, false), "another file with the same bytes");
        assert!(!runs(&root, u32::MAX, &program, false), "an unknown process is not allowed");
        assert!(runs(&root, u32::MAX, &program, true), "an unknown process is denied");
    }

    #[test]
    fn a_remote_file_system_must_be_allowed_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("proc/self")).expect("directories");
        let mounts = "1 0 0:40 / /remote rw - fuse.sshfs host: rw\n\
                      2 0 8:1 / /data rw - ext4 /dev/sda1 rw\n";
        fs::write(dir.path().join("proc/self/mountinfo"), mounts).expect("a file");
        let root = Root::at(dir.path());
        let check = |device: &str, allow: &[&str], deny: &[&str]| {
            let limits = AccessRules { allow: rules(allow), deny: rules(deny) };
            let devices: Vec<DevNo> =
                device.split(' ').map(|one| one.parse().expect("a device")).collect();
            limits.check_mount(&root, &devices)
        };
        let remote = ActuateFailure::Remote { fstype: "fuse.sshfs".to_owned() };
        assert_eq!(check("0:40", &[], &[]), Err(remote));
        assert_eq!(check("0:40", &["mount:/remote"], &[]), Ok(()));
        assert_eq!(check("8:1", &["mount:/remote"], &[]), Err(ActuateFailure::NotAllowed));
        assert_eq!(check("8:1", &["user:7"], &[]), Ok(()), "processes are checked separately");
        let rule = AccessRule::Mount("/data".into());
        let denied = Err(ActuateFailure::Denied(rule));
        assert_eq!(check("8:1", &[], &["mount:/data"]), denied);
        assert_eq!(check("8:1 0:50", &[], &["mount:/data"]), denied, "the layer of an overlay");
        assert_eq!(check("8:2 8:1", &["mount:/data"], &[]), Ok(()), "an overlay");
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in "\\PC{0,40}") {
            let _ = text.parse::<AccessRule>();
        }
    }
}
