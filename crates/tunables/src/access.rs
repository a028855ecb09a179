//! Reading and writing a tunable.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use host::{HostError, Root};
use rustix::fs::Access;

use crate::{Site, Tunable, TunableError, Value};

/// Reads what the tunable is now.
pub fn read(root: &Root, tunable: &dyn Tunable, site: &Site) -> Result<Value, TunableError> {
    let file = tunable.file(site);
    let text = match root.read(&file) {
        Ok(text) => text,
        Err(HostError::Read { source, .. }) if is_gone(&source) => {
            return Err(absent(root, tunable, site));
        }
        Err(error) => return Err(error.into()),
    };
    tunable.decode(&text).ok_or_else(|| {
        let problem = format!("{text:?} is no {}", tunable.name());
        HostError::Malformed { path: root.path(&file), problem }.into()
    })
}

/// Says, before anything is changed, whether [`write()`] would be allowed to.
pub fn check_writable(root: &Root, tunable: &dyn Tunable, site: &Site) -> Result<(), TunableError> {
    let path = root.path(tunable.file(site));
    rustix::fs::access(&path, Access::WRITE_OK).map_err(|errno| {
        let source = io::Error::from(errno);
        if is_gone(&source) { absent(root, tunable, site) } else { not_permitted(path, source) }
    })
}

/// Writes a value that [`Tunable::validate`] has passed, reads it back, and gives what was read.
/// This journals nothing: it is for [`crate::Tenure`], which does.
pub(crate) fn write(
    root: &Root,
    tunable: &dyn Tunable,
    site: &Site,
    value: &Value,
) -> Result<Value, TunableError> {
    let path = root.path(tunable.file(site));
    let line = tunable.encode(value)? + "\n";
    // One call, so that it happens wholly or not at all; and nothing is created: a file that is not
    // there is a device that has gone.
    let written = OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(source) = written {
        return Err(match source.kind() {
            _ if is_gone(&source) => absent(root, tunable, site),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                not_permitted(path, source)
            }
            _ => {
                TunableError::Write { tunable: tunable.name(), value: value.clone(), path, source }
            }
        });
    }
    let found = read(root, tunable, site)?;
    if found == *value {
        Ok(found)
    } else {
        Err(TunableError::DidNotStick { path, wanted: value.clone(), found })
    }
}

fn absent(root: &Root, tunable: &dyn Tunable, site: &Site) -> TunableError {
    let path = root.path(tunable.file(site));
    TunableError::Absent { tunable: tunable.name(), bdi: site.bdi.clone(), path }
}

/// A device that goes takes its files along, also while they are open.
fn is_gone(error: &io::Error) -> bool {
    let gone = [rustix::io::Errno::NODEV, rustix::io::Errno::NXIO];
    error.kind() == io::ErrorKind::NotFound
        || gone.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn not_permitted(path: PathBuf, source: io::Error) -> TunableError {
    let need = if source.kind() == io::ErrorKind::ReadOnlyFilesystem {
        "/sys is mounted read-only, as in containers: run on the host, or give the container a \
         writable /sys"
    } else {
        "it takes root, or the right to write this file"
    };
    TunableError::NotPermitted { path, need, source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use host::BdiId;
    use units::Bytes;

    use super::*;
    use crate::find;

    fn site() -> Site {
        Site { bdi: BdiId::new("8:0").expect("a bdi"), devices: Vec::new() }
    }

    fn tree(text: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().expect("a directory");
        let bdi = dir.path().join("sys/class/bdi/8:0");
        fs::create_dir_all(&bdi).expect("directories");
        fs::write(bdi.join("read_ahead_kb"), text).expect("a file");
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (_dir, root) = tree("128\n");
        let tunable = find("read_ahead").expect("it");
        assert_eq!(read(&root, tunable, &site()).expect("a value"), Bytes::from_kib(128).into());
        check_writable(&root, tunable, &site()).expect("writable");
        let value = Bytes::from_kib(8).into();
        assert_eq!(write(&root, tunable, &site(), &value).expect("written"), value);
    }

    #[test]
    fn a_value_that_does_not_stick_is_an_error_with_both() {
        let (_dir, root) = tree("128\n");
        let path = root.path("/sys/class/bdi/8:0/read_ahead_kb");
        fs::remove_file(&path).expect("gone");
        // The kernel gives back in hexadecimal digits what it is given here.
        std::os::unix::fs::symlink("/proc/self/coredump_filter", &path).expect("a link");
        let tunable = find("read_ahead").expect("it");
        let error =
            write(&root, tunable, &site(), &Bytes::from_kib(16).into()).expect_err("another");
        assert!(matches!(&error, TunableError::DidNotStick { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("set to 16 KiB but reads back as 10 KiB"), "{text}");
    }

    #[test]
    fn an_absent_file_is_not_made() {
        let (_dir, root) = tree("128\n");
        let path = root.path("/sys/class/bdi/8:0/read_ahead_kb");
        fs::remove_file(&path).expect("gone");
        let tunable = find("read_ahead").expect("it");
        let value = Bytes::from_kib(8).into();
        for error in [
            read(&root, tunable, &site()).map(drop),
            check_writable(&root, tunable, &site()),
            write(&root, tunable, &site(), &value).map(drop),
        ] {
            assert!(matches!(error, Err(TunableError::Absent { .. })), "{error:?}");
        }
        assert!(!path.exists());
    }

    #[test]
    fn nonsense_in_sysfs_is_said() {
        let (_dir, root) = tree("many\n");
        let error = read(&root, find("ra").expect("it"), &site()).expect_err("no number");
        assert!(error.to_string().contains("\"many\" is no read_ahead"), "{error}");
    }
}
