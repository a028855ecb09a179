//! Reads and writes tunables.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use host::{HostError, Root};
use rustix::fs::Access;

use crate::{Tunable, TunableError, TunableScope, Value};

/// Reads the current value of a tunable; of several files in a stack, that of the first.
pub fn read(root: &Root, tunable: &Tunable, site: &TunableScope) -> Result<Value, TunableError> {
    let file = first(root, tunable, site)?;
    read_file(root, tunable, site, &file)
}

/// Reads all files of a tunable.
pub fn read_all(
    root: &Root,
    tunable: &Tunable,
    site: &TunableScope,
) -> Result<Vec<(PathBuf, Value)>, TunableError> {
    let files = files(root, tunable, site)?;
    let each = files.into_iter().map(|file| {
        let value = read_file(root, tunable, site, &file)?;
        Ok((file, value))
    });
    each.collect()
}

/// Returns the existing files of a tunable, or an error if there is none.
pub(crate) fn files(
    root: &Root,
    tunable: &Tunable,
    site: &TunableScope,
) -> Result<Vec<PathBuf>, TunableError> {
    if let Some(system) = tunable.other_os() {
        return Err(TunableError::OtherSystem { tunable: tunable.name(), system });
    }
    let files = tunable.files(root, site);
    if files.is_empty() {
        return Err(absent(root, tunable, site, &tunable.file(site)));
    }
    Ok(files)
}

/// Returns the first existing file of a tunable, or the only possible one without checking it.
fn first(root: &Root, tunable: &Tunable, site: &TunableScope) -> Result<PathBuf, TunableError> {
    match tunable.candidates(site).as_slice() {
        [only] => Ok(only.clone()),
        _ => Ok(files(root, tunable, site)?.swap_remove(0)),
    }
}

pub(crate) fn read_file(
    root: &Root,
    tunable: &Tunable,
    site: &TunableScope,
    file: &Path,
) -> Result<Value, TunableError> {
    let text = match root.read(file) {
        Ok(text) => text,
        // Without the feature, a device may have the file, but reading it fails, as wbt_lat_usec.
        Err(HostError::Read { source, .. }) if is_gone(&source) || is_unsupported(&source) => {
            return Err(absent(root, tunable, site, file));
        }
        Err(error) => return Err(error.into()),
    };
    tunable.decode(&text).ok_or_else(|| {
        let problem = format!("{text:?} is not a valid {}", tunable.name());
        HostError::Malformed { path: root.path(file), problem }.into()
    })
}

/// Checks that the process may write the tunable, before anything is changed.
pub fn check_writable(
    root: &Root,
    tunable: &Tunable,
    site: &TunableScope,
) -> Result<(), TunableError> {
    for file in files(root, tunable, site)? {
        let path = root.path(&file);
        rustix::fs::access(&path, Access::WRITE_OK).map_err(|errno| {
            let source = io::Error::from(errno);
            if is_gone(&source) {
                absent(root, tunable, site, &file)
            } else {
                not_permitted(path, source)
            }
        })?;
    }
    Ok(())
}

/// Writes a value that [`Tunable::validate`] has accepted, and reads it back. The caller,
/// [`crate::BdiLease`], journals the change.
pub(crate) fn write(
    root: &Root,
    tunable: &Tunable,
    site: &TunableScope,
    file: &Path,
    value: &Value,
) -> Result<Value, TunableError> {
    let path = root.path(file);
    let line = tunable.encode(value)? + "\n";
    // One call, so that the write happens entirely or not at all. The file is never created: if it
    // is missing, the device is gone.
    let written = OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(source) = written {
        return Err(match source.kind() {
            _ if is_gone(&source) => absent(root, tunable, site, file),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                not_permitted(path, source)
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                let (tunable, hint) = (tunable.name(), offered(root, tunable, file));
                TunableError::Rejected { tunable, value: value.clone(), path, hint }
            }
            _ => {
                TunableError::Write { tunable: tunable.name(), value: value.clone(), path, source }
            }
        });
    }
    let found = read_file(root, tunable, site, file)?;
    if found == *value {
        Ok(found)
    } else {
        Err(TunableError::DidNotStick { path, wanted: value.clone(), found })
    }
}

/// Returns a hint on the values that the kernel accepts, if it lists them.
fn offered(root: &Root, tunable: &Tunable, file: &Path) -> String {
    let beside = |name: &str| root.read(file.with_file_name(name)).ok();
    let words = match tunable.name() {
        "scheduler" => root.read(file).ok().map(|all| all.replace(['[', ']'], "")),
        "max_sectors" => beside("max_hw_sectors_kb").map(|most| format!("at most {most} KiB")),
        _ => None,
    };
    words.map(|words| format!(" (it offers: {words})")).unwrap_or_default()
}

fn absent(root: &Root, tunable: &Tunable, site: &TunableScope, file: &Path) -> TunableError {
    let path = root.path(file);
    let why = match tunable.needs() {
        Some(kind) if tunable.candidates(site).is_empty() => format!("it needs {kind}"),
        Some(kind) => format!("{} is not there; it needs {kind}", path.display()),
        None => format!("{} is not there", path.display()),
    };
    TunableError::Absent { tunable: tunable.name(), bdi: site.bdi.clone(), why }
}

/// Returns whether the device was removed; its files then fail even if they are open.
fn is_gone(error: &io::Error) -> bool {
    let gone = [rustix::io::Errno::NODEV, rustix::io::Errno::NXIO];
    error.kind() == io::ErrorKind::NotFound
        || gone.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

fn not_permitted(path: PathBuf, source: io::Error) -> TunableError {
    let need = if source.kind() == io::ErrorKind::ReadOnlyFilesystem {
        "/sys is mounted read-only, as in containers: run on the host, or give the container a \
         writable /sys"
    } else {
        "this needs root, or permission to write this file"
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

    fn site() -> TunableScope {
        TunableScope { bdi: BdiId::new("8:0").expect("a bdi"), ..TunableScope::nowhere() }
    }

    fn write(
        root: &Root,
        tunable: &Tunable,
        site: &TunableScope,
        value: &Value,
    ) -> Result<Value, TunableError> {
        super::write(root, tunable, site, &tunable.file(site), value)
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
        // This file returns the written number in hexadecimal.
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
    fn a_tunable_of_another_kind_of_storage_names_that_kind() {
        let (_dir, root) = tree("128\n");
        let of = |name: &str| {
            let tunable = find(name).expect("it");
            read_all(&root, tunable, &site()).expect_err("not here").to_string()
        };
        let member = of("member_read_ahead");
        assert_eq!(
            member,
            "member_read_ahead cannot be set on bdi 8:0: it needs an array, volume or multipath \
             device with members"
        );
        assert!(of("stripe_cache_size").ends_with("it needs an md array"), "md only");
    }

    #[test]
    fn nonsense_in_sysfs_is_said() {
        let (_dir, root) = tree("many\n");
        let error = read(&root, find("ra").expect("it"), &site()).expect_err("no number");
        assert!(error.to_string().contains("\"many\" is not a valid read_ahead"), "{error}");
    }
}
