//! Files that nobody has open yet, found beside one that somebody has.
//!
//! Nothing here trusts a path: the directory counts only if the open file is found in it under its
//! name, and a file of it only if it is the one that was listed.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use host::Root;
use observe::OpenFile;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use units::Bytes;

use crate::actuator::{Actuator, SMALLEST_PIECE, largest_request, read_ahead};
use crate::reach::holders;
use crate::{ActuateError, Missed};

/// More files are not looked at: to go through them would take too long.
const MOST: usize = 1 << 16;

/// The directory of an open file, and the regular files in it.
#[derive(Debug)]
pub struct Directory {
    /// The open file by which it was found.
    file: OpenFile,
    descriptor: OwnedFd,
    /// Who owns that file, and on which device `stat(2)` has it.
    owner: (u32, u64),
    /// Inodes and names, as listed.
    entries: Vec<(u64, OsString)>,
}

impl Directory {
    /// The directory of an open file, of which `path` is the path as its holder has it; `None` if
    /// it is not there any more, or too large.
    pub fn of(root: &Root, file: &OpenFile, path: &str) -> Option<Self> {
        let holder = file.holders.first()?;
        let (parent, name) = (Path::new(path).parent()?, Path::new(path).file_name()?);
        let parent = root.path(format!("/proc/{}/root{}", holder.pid, parent.to_str()?));
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let descriptor = rustix::fs::open(&parent, flags, Mode::empty()).ok()?;
        let stat = statat(&descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if stat.st_ino != file.inode || !is_regular(&stat) {
            return None;
        }
        let mut entries = Vec::new();
        for entry in Dir::read_from(&descriptor).ok()? {
            let entry = entry.ok()?;
            if matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown) {
                let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
                entries.push((entry.ino(), name));
            }
            if entries.len() > MOST {
                return None;
            }
        }
        let owner = (stat.st_uid, stat.st_dev);
        Some(Self { file: file.clone(), descriptor, owner, entries })
    }

    /// The open file by which it was found.
    pub fn file(&self) -> &OpenFile {
        &self.file
    }

    /// The inodes of its files in the orders in which they may be read: as listed, by name, and by
    /// number.
    pub fn orders(&self) -> Vec<Vec<u64>> {
        let listed = self.entries.iter().map(|(inode, _)| *inode).collect::<Vec<_>>();
        let mut named: Vec<&(u64, OsString)> = self.entries.iter().collect();
        named.sort_by(|a, b| a.1.cmp(&b.1));
        let named = named.into_iter().map(|(inode, _)| *inode).collect();
        let mut numbered = listed.clone();
        numbered.sort_unstable();
        vec![listed, named, numbered]
    }

    /// Opens the file with this inode, if it still is what was listed, and the owner of the one by
    /// which the directory was found might read it.
    fn open(&self, inode: u64) -> Option<(OwnedFd, Bytes)> {
        let (_, name) = self.entries.iter().find(|(number, _)| *number == inode)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.descriptor, name.as_os_str(), flags, Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        let same = stat.st_ino == inode && stat.st_dev == self.owner.1 && is_regular(&stat);
        let readable = stat.st_uid == self.owner.0 || stat.st_mode & 0o004 != 0;
        let size = Bytes::new(stat.st_size.max(0).unsigned_abs());
        (same && readable).then_some((file, size))
    }
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

impl Actuator {
    /// Has the kernel read files of a directory, each by its inode and from an offset on, and does
    /// not wait for it. Gives how much was asked for; what is not there any more is left out.
    pub fn prefetch_files(
        &self,
        directory: &Directory,
        wanted: &[(u64, Bytes)],
    ) -> Result<Result<Bytes, Missed>, ActuateError> {
        if let Err(missed) = holders(&self.root, &self.limits, &directory.file) {
            return Ok(Err(missed));
        }
        let piece = largest_request(&self.root, directory.file.device).max(SMALLEST_PIECE);
        let mut asked = Bytes::ZERO;
        for (inode, from) in wanted {
            let Some((file, size)) = directory.open(*inode) else { continue };
            match read_ahead(file.as_fd(), (*from, size), piece) {
                Ok(bytes) => asked += bytes,
                Err(missed) => return Ok(Err(missed)),
            }
        }
        Ok(Ok(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::{FileKind, Holder, OpenFileId};
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    fn open_file(path: &Path) -> OpenFile {
        let stat = fs::metadata(path).expect("a file");
        OpenFile {
            id: OpenFileId::numbered(1),
            kind: FileKind::Regular,
            device: "8:1".parse().expect("a number"),
            inode: stat.ino(),
            bdi: None,
            size: Bytes::new(stat.len()),
            position: Bytes::ZERO,
            previous: None,
            readable: true,
            writable: false,
            direct: false,
            window: Bytes::from_kib(128),
            bdi_window: Bytes::from_kib(128),
            random: false,
            holders: vec![Holder {
                pid: std::process::id(),
                fd: 3,
                comm: "test".to_owned(),
                uid: 0,
                cgroup: 1,
            }],
        }
    }

    fn of(path: &Path) -> Option<Directory> {
        Directory::of(&Root::system(), &open_file(path), path.to_str().expect("a name"))
    }

    #[test]
    fn the_files_beside_one_are_listed_by_name_too() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["b", "a", "c"] {
            fs::write(dir.path().join(name), name).expect("a file");
        }
        fs::create_dir(dir.path().join("d")).expect("a directory");
        let found = of(&dir.path().join("a")).expect("it is there");
        let inode = |name: &str| fs::metadata(dir.path().join(name)).expect("a file").ino();
        let orders = found.orders();
        assert_eq!(orders[1], ["a", "b", "c"].map(inode), "by name, and no directories");
        assert!(orders.iter().all(|order| order.len() == 3));
        assert_eq!(found.open(inode("b")).map(|(_, size)| size), Some(Bytes::new(1)));
    }

    #[test]
    fn what_is_not_what_was_listed_is_not_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        for name in ["a", "b", "c"] {
            fs::write(path(name), name).expect("a file");
        }
        let found = of(&path("a")).expect("it is there");
        let inode = |name: &str| fs::metadata(path(name)).expect("a file").ino();
        let (b, c) = (inode("b"), inode("c"));
        fs::rename(path("a"), path("b")).expect("another file by that name");
        assert!(found.open(b).is_none());
        fs::rename(path("c"), path("real")).expect("a new name");
        std::os::unix::fs::symlink(path("real"), path("c")).expect("a link");
        assert!(found.open(c).is_none(), "no link is followed");
        assert!(of(&path("c")).is_none(), "a link is not the open file");
    }
}
