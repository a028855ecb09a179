//! Rules for all files that a verb writes for its user.
//!
//! A regular file is never overwritten without `--force`; a device, pipe, symbolic link or
//! directory never is. Files are written atomically: under a temporary name, synced, then renamed.
//! `-` is standard output.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use report::clean;
use rustix::fs::Access;
use tempfile::NamedTempFile;

use crate::exit::Usage;
use crate::output;

/// A file that may be written, or standard output.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The option that names the file, for messages.
    option: &'static str,
    /// `None` for standard output.
    path: Option<PathBuf>,
    /// Permissions of the existing file, if it may be replaced.
    replaces: Option<Permissions>,
}

impl Destination {
    /// Checks a destination before any work is done for it.
    ///
    /// # Errors
    ///
    /// A usage error if the rules forbid the file or its directory does not exist; not permitted,
    /// if this user may not create files in the directory.
    pub fn check(option: &'static str, path: &Path, force: bool) -> anyhow::Result<Self> {
        Self::check_or_own(option, path, force, |_| false)
    }

    /// Like [`Self::check`], but a regular file that `own` accepts needs no `--force`.
    pub fn check_or_own(
        option: &'static str,
        path: &Path,
        force: bool,
        own: impl FnOnce(&Path) -> bool,
    ) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self { option, path: None, replaces: None });
        }
        let refused = |why: String| Usage(format!("{option} {}: {why}", shown(path)));
        let replaces = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error).with_context(|| format!("cannot write {}", shown(path)));
            }
            Err(error) => return Err(refused(error.to_string()).into()),
            Ok(metadata) => {
                if let Some(kind) = not_regular(&metadata) {
                    return Err(refused(kind.to_owned()).into());
                }
                if !force && !own(path) {
                    return Err(refused("the file exists; --force overwrites it".into()).into());
                }
                Some(metadata.permissions())
            }
        };
        let directory = directory(path);
        if path.file_name().is_none() || !directory.is_dir() {
            return Err(refused(format!("there is no directory {}", shown(&directory))).into());
        }
        rustix::fs::access(&directory, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(io::Error::from)
            .with_context(|| format!("cannot write {}", shown(path)))?;
        Ok(Self { option, path: Some(path.to_owned()), replaces })
    }

    /// Returns the path; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes the whole file. It is on stable storage when this returns.
    pub fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            return output::with_stdout(|out| out.write_all(bytes));
        };
        let mut file = self.temporary_file(path)?;
        let written = file.write_all(bytes).and_then(|()| file.as_file().sync_all());
        written.with_context(|| format!("cannot write {}", shown(path)))?;
        self.put(file, path).map(drop)
    }

    /// Creates an empty file at the destination, to be written in parts.
    pub fn create(&self) -> anyhow::Result<Box<dyn Write>> {
        match &self.path {
            None => Ok(Box::new(io::stdout())),
            Some(path) => Ok(Box::new(self.put(self.temporary_file(path)?, path)?)),
        }
    }

    /// Replaces the file by its next version, without sync: it need not survive a power loss.
    pub fn publish(&mut self, text: &str) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return output::print_document(text) };
        let mut file = self.temporary_file(path)?;
        let written = file.write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", shown(path)))?;
        let metadata = self.put(file, path)?.metadata();
        self.replaces = metadata.ok().map(|metadata| metadata.permissions());
        Ok(())
    }

    /// Creates a temporary file in the same directory.
    fn temporary_file(&self, path: &Path) -> anyhow::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        // A new file gets permissions from the umask; a replaced file keeps its own.
        let permissions = self.replaces.clone().unwrap_or_else(|| Permissions::from_mode(0o666));
        builder.prefix(".foreread-").permissions(permissions.clone());
        let file = builder.tempfile_in(directory(path));
        let file = file.with_context(|| format!("cannot write {}", shown(path)))?;
        if self.replaces.is_some() {
            let kept = file.as_file().set_permissions(permissions);
            kept.with_context(|| format!("cannot write {}", shown(path)))?;
        }
        Ok(file)
    }

    /// Renames the temporary file, unless another file has appeared there since the check.
    fn put(&self, file: NamedTempFile, path: &Path) -> anyhow::Result<File> {
        let refused = |why: &str| Usage(format!("{} {}: {why}", self.option, shown(path)));
        if let Ok(metadata) = path.symlink_metadata()
            && let Some(kind) = not_regular(&metadata)
        {
            return Err(refused(kind).into());
        }
        let put = match self.replaces {
            Some(_) => file.persist(path),
            None => file.persist_noclobber(path),
        };
        put.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => {
                refused("the file exists; --force overwrites it").into()
            }
            _ => anyhow::Error::new(error.error).context(format!("cannot write {}", shown(path))),
        })
    }
}

/// Returns why an existing file is never replaced; `None` for a regular file.
fn not_regular(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() {
        None
    } else if kind.is_symlink() {
        Some("is a symbolic link; name the file itself, or - for standard output")
    } else if kind.is_dir() {
        Some("is a directory; name a file in it")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("is a device; name a regular file, or - for standard output")
    } else if kind.is_fifo() {
        Some("is a pipe; name a regular file, or - for standard output")
    } else {
        Some("is not a regular file")
    }
}

/// Returns the directory of a file path.
fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn shown(path: &Path) -> String {
    clean::plain(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::exit::Exit;

    fn check(path: &Path, force: bool) -> anyhow::Result<Destination> {
        Destination::check("--output", path, force)
    }

    #[test]
    fn a_file_that_is_there_is_overwritten_by_force_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        check(&path, false).unwrap().write(b"one").unwrap();
        let error = check(&path, false).unwrap_err();
        assert!(error.to_string().contains("--force"), "{error}");
        assert_eq!(Exit::from_error(&error), Exit::Usage);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        check(&path, true).unwrap().write(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_no_regular_file_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "x").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["link", "dangling", "loop", "dir", "socket"] {
            let error = check(&at(name), true).unwrap_err();
            assert_eq!(Exit::from_error(&error), Exit::Usage, "{name}: {error}");
        }
        for path in ["/dev/null", "/dev/stdout", "/", "..", "", "/no/such/dir/x"] {
            let error = check(Path::new(path), true).unwrap_err();
            assert_eq!(Exit::from_error(&error), Exit::Usage, "{path}: {error}");
        }
    }

    #[test]
    fn what_comes_to_be_there_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let destination = check(&path, false).unwrap();
        fs::write(&path, "somebody's").unwrap();
        assert!(destination.write(b"ours").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
        let forced = check(&path, true).unwrap();
        fs::remove_file(&path).unwrap();
        symlink("/dev/null", &path).unwrap();
        assert!(forced.write(b"ours").is_err());
        assert!(path.is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_published_file_is_replaced_again_and_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.prom");
        let own = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.starts_with('#'));
        fs::write(&path, "not ours").unwrap();
        assert!(Destination::check_or_own("--metrics", &path, false, own).is_err());
        fs::write(&path, "# ours").unwrap();
        let mut destination = Destination::check_or_own("--metrics", &path, false, own).unwrap();
        destination.publish("# one").unwrap();
        destination.publish("# two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "# two");
    }
}
