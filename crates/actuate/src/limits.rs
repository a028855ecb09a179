//! Whose open files may be touched.
//!
//! Nothing here rests on what a process can say of itself: its name is not looked at, and its
//! executable is known by device and inode, as the path could be one of its own mount namespace.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::{DevNo, MountInfo, Root, parse_mountinfo};
use observe::Holder;

use crate::outcome::ActuateFailure;
use crate::rule::AccessRule;

/// File systems on which a call may wait for somebody else than a disk.
const REMOTE: &[&str] =
    &["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "orangefs", "gfs2", "ocfs2", "virtiofs"];

/// Whose open files may be touched: denied is denied, and where anything is allowed by name,
/// nothing else is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// Only these, if there are any.
    pub allow: Vec<AccessRule>,
    /// Never these, and never a file that one of these holds together with others.
    pub deny: Vec<AccessRule>,
}

impl AccessRules {
    /// Whether a file may be touched, going by its file system alone.
    pub(crate) fn check_mount(&self, root: &Root, device: DevNo) -> Result<(), ActuateFailure> {
        let table = root.read("/proc/self/mountinfo").unwrap_or_default();
        let mounts: Vec<MountInfo> =
            parse_mountinfo(&table).into_iter().filter(|info| info.device == device).collect();
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
        // If there are rules for mounts, one of them must fit, whoever holds the file.
        let chosen = self.allow.iter().any(|rule| matches!(rule, AccessRule::Mount(_)));
        if chosen && !by_name { Err(ActuateFailure::NotAllowed) } else { Ok(()) }
    }

    /// Whether it matters who holds a file.
    pub(crate) fn are_about_holders(&self) -> bool {
        let mut rules = self.allow.iter().chain(&self.deny);
        rules.any(|rule| !matches!(rule, AccessRule::Mount(_)))
    }

    /// Whether a rule speaks against this holder.
    pub(crate) fn denies(&self, root: &Root, holder: &Holder) -> Option<AccessRule> {
        self.deny.iter().find(|rule| rule.fits(root, holder, true)).cloned()
    }

    /// Whether this holder makes the file one that may be touched.
    pub(crate) fn allows(&self, root: &Root, holder: &Holder) -> bool {
        let mut about_holders =
            self.allow.iter().filter(|rule| !matches!(rule, AccessRule::Mount(_))).peekable();
        about_holders.peek().is_none() || about_holders.any(|rule| rule.fits(root, holder, false))
    }
}

fn remote(info: &MountInfo) -> Option<String> {
    let fstype = &info.mount.fstype;
    // A disk formatted by ntfs-3g is `fuseblk`: a process all the same.
    let is_remote = fstype.starts_with("fuse") || REMOTE.contains(&fstype.as_str());
    is_remote.then(|| fstype.clone())
}

impl AccessRule {
    /// Whether a rule is about this holder; in doubt it is if it denies.
    fn fits(&self, root: &Root, holder: &Holder, denies: bool) -> bool {
        match self {
            Self::Pid(pid) => *pid == holder.pid,
            Self::User(uid) => *uid == holder.uid,
            Self::Cgroup(path) => match root.read(format!("/proc/{}/cgroup", holder.pid)) {
                Ok(text) => groups(&text).any(|group| is_below(group, path)),
                Err(_) => denies,
            },
            Self::Executable(path) => runs(root, holder.pid, path, denies),
            Self::Mount(_) => false,
        }
    }
}

/// The path of a process's cgroup in the unified hierarchy.
/// The groups of a process in `/proc/PID/cgroup`: one of version 2, one of each hierarchy of
/// version 1.
fn groups(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2))
}

fn is_below(cgroup: &str, path: &str) -> bool {
    cgroup.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a process runs the program at `path`. A program that was replaced while it ran is
/// another file now: it is denied as before, but not allowed.
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
    use proptest::prelude::*;

    use super::*;

    fn holder(pid: u32, uid: u32) -> Holder {
        Holder { pid, fd: 3, comm: "postgres".to_owned(), uid, cgroup: 1 }
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
    fn a_cgroup_holds_what_is_below_it_and_nothing_beside_it() {
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
    fn what_is_denied_stays_denied_and_a_list_allows_only_what_is_on_it() {
        let root = Root::system();
        let limits = AccessRules { allow: rules(&["user:7"]), deny: rules(&["pid:42"]) };
        assert_eq!(limits.denies(&root, &holder(42, 7)), Some(AccessRule::Pid(42)));
        assert_eq!(limits.denies(&root, &holder(43, 7)), None);
        assert!(limits.allows(&root, &holder(43, 7)));
        assert!(!limits.allows(&root, &holder(43, 8)));
        assert!(AccessRules::default().allows(&root, &holder(43, 8)));
        // A list of mounts alone says nothing of processes.
        let limits = AccessRules { allow: rules(&["mount:/srv"]), deny: Vec::new() };
        assert!(limits.allows(&root, &holder(43, 8)));
    }

    #[test]
    fn a_program_is_known_by_its_file_and_not_by_a_name_that_it_bears() {
        let root = Root::system();
        let own = std::process::id();
        let program = std::env::current_exe().expect("this test");
        assert!(runs(&root, own, &program, false));
        let dir = tempfile::tempdir().expect("a directory");
        let copy = dir.path().join("copy");
        fs::copy(&program, &copy).expect("a copy");
        assert!(!runs(&root, own, &copy, false), "another file with the same bytes");
        assert!(!runs(&root, u32::MAX, &program, false), "nobody is not allowed");
        assert!(runs(&root, u32::MAX, &program, true), "but denied in doubt");
    }

    #[test]
    fn a_file_system_that_a_process_serves_must_be_allowed_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("proc/self")).expect("directories");
        let mounts = "1 0 0:40 / /remote rw - fuse.sshfs host: rw\n\
                      2 0 8:1 / /data rw - ext4 /dev/sda1 rw\n";
        fs::write(dir.path().join("proc/self/mountinfo"), mounts).expect("a file");
        let root = Root::at(dir.path());
        let check = |device: &str, allow: &[&str], deny: &[&str]| {
            let limits = AccessRules { allow: rules(allow), deny: rules(deny) };
            limits.check_mount(&root, device.parse().expect("a device"))
        };
        let remote = ActuateFailure::Remote { fstype: "fuse.sshfs".to_owned() };
        assert_eq!(check("0:40", &[], &[]), Err(remote));
        assert_eq!(check("0:40", &["mount:/remote"], &[]), Ok(()));
        assert_eq!(check("8:1", &["mount:/remote"], &[]), Err(ActuateFailure::NotAllowed));
        assert_eq!(check("8:1", &["user:7"], &[]), Ok(()), "who holds it is another question");
        let rule = AccessRule::Mount("/data".into());
        assert_eq!(check("8:1", &[], &["mount:/data"]), Err(ActuateFailure::Denied(rule)));
    }

    proptest! {
        #[test]
        fn any_text_is_a_rule_or_refused(text in "\\PC{0,40}") {
            let _ = text.parse::<AccessRule>();
        }
    }
}
