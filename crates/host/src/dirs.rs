//! The directories of foreread's files.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories for persistent state and for state that lasts until reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// Journals and the store of runs: `/var/lib/foreread` for root.
    pub state: PathBuf,
    /// Locks and sockets: `/run/foreread` for root.
    pub runtime: PathBuf,
}

impl Dirs {
    /// Returns the current user's directories: `FOREREAD_STATE_DIR` and `FOREREAD_RUNTIME_DIR` if
    /// set; otherwise `/var/lib/foreread` and `/run/foreread` for root, and the XDG directories for
    /// other users and for root in a user namespace without write access to `/var/lib` and `/run`.
    pub fn of_user() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        let user_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let may_write = || ["/var/lib", "/run"].iter().all(is_writable);
        let root = is_root && (!maps_users(&user_map) || may_write());
        Self::choose(root, |name| env::var_os(name))
    }

    /// Returns both directories below `base`, for tests.
    pub fn under(base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        Self { state: base.join("state"), runtime: base.join("runtime") }
    }

    fn choose(root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        // XDG ignores relative paths: their meaning depends on the working directory.
        let absolute =
            |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let own = |name: &str| {
            let path = variable(name).filter(|value| !value.is_empty())?;
            std::path::absolute(path).ok()
        };
        let state = own("FOREREAD_STATE_DIR").unwrap_or_else(|| {
            if root {
                return PathBuf::from("/var/lib/foreread");
            }
            // A user without an entry in /etc/passwd, as in containers, has the home /.
            let home = absolute("HOME").filter(|home| home != Path::new("/"));
            let home = || home.map(|home| home.join(".local/state"));
            let base = absolute("XDG_STATE_HOME").or_else(home);
            base.unwrap_or_else(|| PathBuf::from("/var/tmp")).join("foreread")
        });
        let runtime = own("FOREREAD_RUNTIME_DIR").unwrap_or_else(|| {
            if root {
                return PathBuf::from("/run/foreread");
            }
            // Without a session there is no runtime directory; all users can write /tmp.
            absolute("XDG_RUNTIME_DIR")
                .map_or_else(|| state.join("run"), |dir| dir.join("foreread"))
        });
        Self { state, runtime }
    }
}

/// Returns whether `text` is the `uid_map` (user_namespaces(7)) of a user namespace below the
/// initial one. The initial namespace maps all 2³² − 1 users to themselves.
fn maps_users(text: &str) -> bool {
    let numbers: Vec<&str> = text.split_whitespace().collect();
    !numbers.is_empty() && numbers != ["0", "0", "4294967295"]
}

fn is_writable(directory: &&str) -> bool {
    rustix::fs::access(*directory, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(root: bool, variables: &[(&str, &str)]) -> (String, String) {
        let dirs = Dirs::choose(root, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        });
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        (text(dirs.state), text(dirs.runtime))
    }

    fn pair(state: &str, runtime: &str) -> (String, String) {
        (state.to_owned(), runtime.to_owned())
    }

    #[test]
    fn each_user_has_directories() {
        assert_eq!(chosen(true, &[]), pair("/var/lib/foreread", "/run/foreread"));
        assert_eq!(
            chosen(false, &[("HOME", "/home/a"), ("XDG_RUNTIME_DIR", "/run/user/7")]),
            pair("/home/a/.local/state/foreread", "/run/user/7/foreread")
        );
        assert_eq!(
            chosen(false, &[("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", "relative")]),
            pair("/s/foreread", "/s/foreread/run")
        );
        let nowhere = pair("/var/tmp/foreread", "/var/tmp/foreread/run");
        assert_eq!(
            (chosen(false, &[]), chosen(false, &[("HOME", "/")])),
            (nowhere.clone(), nowhere)
        );
    }

    #[test]
    fn only_the_initial_user_namespace_maps_all_users_to_themselves() {
        assert!(!maps_users("         0          0 4294967295\n"));
        assert!(maps_users("         0       1000          1\n"));
        assert!(maps_users("0 1000 1\n1 100000 65536\n"));
        assert!(!maps_users(""), "without /proc");
    }

    #[test]
    fn foreread_s_own_variables_come_first() {
        let own = [("FOREREAD_STATE_DIR", "/a"), ("FOREREAD_RUNTIME_DIR", "/b"), ("HOME", "/h")];
        assert_eq!(chosen(true, &own), pair("/a", "/b"));
        assert_eq!(chosen(false, &own), pair("/a", "/b"));
        assert_eq!(
            chosen(true, &[("FOREREAD_STATE_DIR", "")]),
            pair("/var/lib/foreread", "/run/foreread")
        );
    }
}
