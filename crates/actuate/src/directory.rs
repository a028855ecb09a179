//! Lists the files in the directory of an open file, and in the directories that follow it in its
//! parent, so that they can be prefetched before they are opened.
//!
//! Paths are not trusted, because the holder of the file may replace any part of them. No symbolic
//! link is followed. A directory is used only if it contains the open file under its name, and a
//! file only if it still has the inode that was listed.
//!
//! No directory stays open, because its file system could not be unmounted. It is opened by a file
//! handle each time. On a file system without file handles, no directory is found.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::{DevNo, Root};
use observe::{Holder, OpenFile};
use policy::{ListedFile, next_directories, reading_orders};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat,
};
use sys::file_handle::FileHandle;
use units::Bytes;

use crate::actuator::{Actuator, largest_piece, read_ahead};
use crate::mounted::{MountedFileSystem, reopen};
use crate::reach::holders;
use crate::{AccessRules, ActuateFailure};

/// Directories with more entries are ignored, because listing them takes too long.
const MAX_ENTRIES: usize = 1 << 16;
/// Limits on the directories that are listed in addition to that of the file, and on their files.
const MAX_NEXT: usize = 128;
const MAX_NEXT_FILES: usize = 1 << 14;
/// How long a positive check of the access rules stays valid after the process has exited: a
/// program may start one process for each file.
const GRANT_LIFETIME: Duration = Duration::from_secs(2);

/// The directory of an open file with its regular files. For a reader that walks through a tree, it
/// includes the directories that follow in the parent directory.
#[derive(Debug)]
pub struct Directory {
    /// The open file through which the directory was found.
    file: OpenFile,
    /// The user id of the owner of that file, and its device as `stat(2)` reports it.
    owner: (u32, u64),
    file_system: MountedFileSystem,
    /// The directory of the file, then those that the reader reads next.
    directories: Vec<WalkedDirectory>,
    /// For each inode, the index of its directory and its index in that directory.
    places: BTreeMap<u64, (usize, usize)>,
    readers: Mutex<Readers>,
}

/// A directory that a reader walks through.
#[derive(Debug)]
struct WalkedDirectory {
    files: Vec<ListedFile>,
    handle: FileHandle,
}

impl WalkedDirectory {
    fn list(descriptor: &OwnedFd) -> Option<Self> {
        let handle = FileHandle::of(descriptor.as_fd()).ok()?;
        Some(Self { files: list(descriptor)?, handle })
    }
}

/// The last reader of the files of a directory.
#[derive(Debug)]
struct Readers {
    /// The open file of the directory that was seen last.
    last: OpenFile,
    /// When the access rules last allowed a process that had one of the files open.
    granted: Instant,
}

impl Directory {
    /// Lists the directory of an open file; `path` is the path as its holder sees it. For a reader
    /// that came from the directory `before` in the same parent, adds those that follow. Too large
    /// a directory has no files. `None` if the directory no longer exists, or the access rules
    /// exclude the file.
    pub fn find(
        root: &Root,
        limits: &AccessRules,
        file: &OpenFile,
        path: &str,
        before: Option<&OsStr>,
    ) -> Option<Self> {
        let allowed = holders(root, limits, file).ok()?;
        Self::find_with_holder(root, allowed.first()?.holder, file, path, before)
    }

    fn find_with_holder(
        root: &Root,
        holder: &Holder,
        file: &OpenFile,
        path: &str,
        before: Option<&OsStr>,
    ) -> Option<Self> {
        let (parent, name) = (Path::new(path).parent()?, Path::new(path).file_name()?);
        let top = root.path(format!("/proc/{}/root", holder.pid));
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(&top, flags | OFlags::PATH, Mode::empty()).ok()?;
        // A symbolic link could lead to a file system on which a system call blocks.
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::NONBLOCK;
        let descriptor = openat2(&top, parent, flags, Mode::empty(), within).ok()?;
        let stat = statat(&descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if !is_same_file(root, holder, file, &stat) {
            return None;
        }
        let file_system = MountedFileSystem::find(root, file.device)?;
        let owner = (stat.st_uid, stat.st_dev);
        let next = before.zip(parent.parent()).and_then(|(before, above)| {
            let above = openat2(&top, above, flags, Mode::empty(), within).ok()?;
            Some(next_in_parent(&above, before, parent.file_name()?, owner))
        });
        let mut directories = vec![WalkedDirectory::list(&descriptor)?];
        directories.extend(next.unwrap_or_default());
        let mut places = BTreeMap::new();
        for (directory, number) in directories.iter().zip(0..) {
            let inodes = directory.files.iter().map(|(inode, _)| *inode).zip(0..);
            places.extend(inodes.map(|(inode, place)| (inode, (number, place))));
        }
        let readers = Readers { last: file.clone(), granted: Instant::now() };
        let (file, readers) = (file.clone(), Mutex::new(readers));
        Some(Self { file, owner, file_system, directories, places, readers })
    }

    /// Updates the last reader: the last of these open files that is in the directory.
    pub fn seen<'a>(&self, files: impl IntoIterator<Item = &'a OpenFile>) {
        let is_here = |file: &&OpenFile| {
            file.device == self.file.device && self.places.contains_key(&file.inode)
        };
        if let Some(file) = files.into_iter().filter(is_here).last() {
            self.readers.lock().unwrap_or_else(PoisonError::into_inner).last = file.clone();
        }
    }

    /// Checks the access rules for the last reader. If this reader has exited, its last check stays
    /// valid for [`GRANT_LIFETIME`].
    fn check(&self, root: &Root, limits: &AccessRules) -> Result<(), ActuateFailure> {
        limits.check_mount(root, &self.file.mounted_devices())?;
        if !limits.select_processes() {
            return Ok(());
        }
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        match holders(root, limits, &readers.last).map(drop) {
            Ok(()) => readers.granted = Instant::now(),
            Err(ActuateFailure::Gone) if readers.granted.elapsed() < GRANT_LIFETIME => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Returns the open file through which the directory was found.
    pub fn file(&self) -> &OpenFile {
        &self.file
    }

    /// Returns the inodes of the files in each order in which a program may read them.
    pub fn orders(&self) -> Vec<Vec<u64>> {
        let files: Vec<&[ListedFile]> =
            self.directories.iter().map(|it| it.files.as_slice()).collect();
        reading_orders(&files)
    }

    /// Opens the file system, through which the files are opened.
    fn open<'a>(&'a self, root: &'a Root) -> Option<OpenDirectories<'a>> {
        let file_system = self.file_system.open(root)?;
        Some(OpenDirectories { root, directory: self, file_system, last: None })
    }
}

/// Opens the files of a directory. While it exists, their file system cannot be unmounted, so it
/// must be dropped soon.
struct OpenDirectories<'a> {
    root: &'a Root,
    directory: &'a Directory,
    file_system: OwnedFd,
    /// The directory of the last file: its index, and its descriptor if it could be opened.
    last: Option<(usize, Option<OwnedFd>)>,
}

impl OpenDirectories<'_> {
    /// Opens the file with this inode, if it is still the listed one and the owner of the original
    /// open file may read it.
    fn file(&mut self, inode: u64) -> Option<(OwnedFd, Bytes)> {
        let (index, place) = *self.directory.places.get(&inode)?;
        let directory = &self.directory.directories[index];
        if self.last.as_ref().is_none_or(|(last, _)| *last != index) {
            let opened = directory.handle.open_directory(self.file_system.as_fd()).ok();
            self.last = Some((index, opened));
        }
        let descriptor = self.last.as_ref()?.1.as_ref()?;
        let (_, name) = &directory.files[place];
        // Only a regular file is opened for reading: opening a device may have effects.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let within = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let file = openat2(descriptor, name.as_os_str(), flags, Mode::empty(), within).ok()?;
        let stat = fstat(&file).ok()?;
        let (owner, device) = self.directory.owner;
        let same = stat.st_ino == inode && stat.st_dev == device && is_regular(&stat);
        let readable = stat.st_uid == owner || stat.st_mode & 0o004 != 0;
        let size = Bytes::new(stat.st_size.max(0).unsigned_abs());
        if !same || !readable {
            return None;
        }
        Some((reopen(self.root, file.as_fd(), OFlags::empty()).ok()?, size))
    }
}

/// Returns the directories in `above` that follow `own` for a reader that came from `before`, and
/// that the owner of the open file may search. Skips mount points.
fn next_in_parent(
    above: &OwnedFd,
    before: &OsStr,
    own: &OsStr,
    owner: (u32, u64),
) -> Vec<WalkedDirectory> {
    let Ok(entries) = Dir::read_from(above) else { return Vec::new() };
    let names: Vec<OsString> = entries
        .filter_map(Result::ok)
        .take(MAX_ENTRIES)
        .filter(|entry| entry.file_type() == FileType::Directory)
        .map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()))
        .filter(|name| name != "." && name != "..")
        .collect();
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let (mut found, mut files) = (Vec::new(), 0);
    for name in next_directories(names, before, own).into_iter().take(MAX_NEXT) {
        let opened = openat2(above, name.as_os_str(), flags, Mode::empty(), within).ok();
        let Some(descriptor) = opened.filter(|descriptor| may_be_searched(descriptor, owner))
        else {
            continue;
        };
        let Some(listed) = WalkedDirectory::list(&descriptor) else { continue };
        files += listed.files.len();
        if files > MAX_NEXT_FILES {
            break;
        }
        found.push(listed);
    }
    found
}

fn may_be_searched(directory: &OwnedFd, (owner, device): (u32, u64)) -> bool {
    fstat(directory).is_ok_and(|stat| {
        stat.st_dev == device && (stat.st_uid == owner || stat.st_mode & 0o005 == 0o005)
    })
}

/// Lists the regular files of a directory with their inodes; none if it exceeds [`MAX_ENTRIES`].
fn list(descriptor: &OwnedFd) -> Option<Vec<ListedFile>> {
    let mut entries = Vec::new();
    for (entry, count) in Dir::read_from(descriptor).ok()?.zip(0..) {
        let entry = entry.ok()?;
        if count >= MAX_ENTRIES {
            return Some(Vec::new());
        }
        if matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown) {
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            entries.push((entry.ino(), name));
        }
    }
    Some(entries)
}

/// Returns whether the file that was found by its name is this open file. The inode is not enough:
/// the holder could mount another file system there that has a file with the same inode number.
fn is_same_file(root: &Root, holder: &Holder, file: &OpenFile, stat: &Stat) -> bool {
    if stat.st_ino != file.inode || !is_regular(stat) {
        return false;
    }
    let device = DevNo::from_raw(stat.st_dev);
    // On btrfs, stat(2) reports another device for each subvolume; then the stat(2) result of the
    // holder's descriptor must be the same.
    let link = || root.path(holder.link());
    let agrees = |open: Stat| (open.st_dev, open.st_ino) == (stat.st_dev, stat.st_ino);
    let is_unnamed = device.major == 0 && file.device.major == 0;
    device == file.device || is_unnamed && rustix::fs::stat(link()).is_ok_and(agrees)
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

impl Actuator {
    /// Starts reading files of a directory, each given by its inode, with the offset and the length
    /// of a range. Does not wait for the data, and skips files that no longer exist and those of a
    /// file system that is not mounted here. Returns the number of bytes requested.
    ///
    /// # Errors
    ///
    /// If the access rules exclude the reader, or the kernel refuses.
    pub fn prefetch_files(
        &self,
        directory: &Directory,
        wanted: &[(u64, (Bytes, Bytes))],
    ) -> Result<Bytes, ActuateFailure> {
        directory.check(&self.root, &self.limits)?;
        let piece = largest_piece(&self.root, directory.file.device, Bytes::ZERO);
        let mut asked = Bytes::ZERO;
        let Some(mut opener) = directory.open(&self.root) else { return Ok(asked) };
        for &(inode, (from, length)) in wanted {
            let Some((file, size)) = opener.file(inode) else { continue };
            asked += read_ahead(file.as_fd(), (from, size.min(from + length)), piece)?;
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::{FileKind, Handle, Holder, OpenFileId};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    /// An empty directory and its canonical path. In containers, /tmp may be on overlayfs, which
    /// has no file handles.
    fn directory() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let home = dir.path().canonicalize().expect("a path");
        (dir, home)
    }

    fn open_file(path: &Path) -> OpenFile {
        let stat = fs::metadata(path).expect("a file");
        OpenFile {
            id: OpenFileId::new(1),
            kind: FileKind::Regular,
            device: DevNo::from_raw(stat.dev()),
            overlay: None,
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
                handle: Handle::Descriptor { fd: 3 },
                comm: "test".to_owned(),
                uid: 0,
                cgroup: 1,
            }],
        }
    }

    fn find(path: &Path) -> Option<Directory> {
        find_with(&open_file(path), path, None)
    }

    fn find_with(file: &OpenFile, path: &Path, before: Option<&str>) -> Option<Directory> {
        let (text, before) = (path.to_str().expect("a name"), before.map(OsStr::new));
        Directory::find_with_holder(&Root::system(), &file.holders[0], file, text, before)
    }

    #[test]
    fn directories_that_follow_in_a_tree_are_listed() {
        let (_dir, home) = directory();
        for directory in ["a", "b", "c", "d"] {
            fs::create_dir(home.join(directory)).expect("a directory");
            for file in ["2", "1"] {
                fs::write(home.join(directory).join(file), file).expect("a file");
            }
        }
        std::os::unix::fs::symlink(home.join("a"), home.join("z")).expect("a link");
        let inode = |name: &Path| fs::metadata(home.join(name)).expect("a file").ino();
        let entries = fs::read_dir(&home).expect("entries").map(|entry| entry.expect("an entry"));
        let listed = entries.filter(|entry| entry.file_type().expect("a type").is_dir());
        let listed: Vec<OsString> = listed.map(|entry| entry.file_name()).collect();
        let path = home.join(&listed[1]).join("1");
        let found = find_with(&open_file(&path), &path, listed[0].to_str()).expect("found");
        let files = listed[1..]
            .iter()
            .flat_map(|directory| ["1", "2"].map(|file| inode(&Path::new(directory).join(file))));
        assert_eq!(found.orders()[1], files.collect::<Vec<_>>(), "its own first, without the link");
        assert_eq!(find(&path).expect("found").orders()[1].len(), 2, "only its own");
    }

    #[test]
    fn files_of_the_same_directory_are_listed_by_name_too() {
        let (_dir, home) = directory();
        for name in ["b", "a", "c"] {
            fs::write(home.join(name), name).expect("a file");
        }
        fs::create_dir(home.join("d")).expect("a directory");
        let found = find(&home.join("a")).expect("found");
        let inode = |name: &str| fs::metadata(home.join(name)).expect("a file").ino();
        let orders = found.orders();
        assert_eq!(orders[1], ["a", "b", "c"].map(inode), "by name, and no directories");
        assert_eq!(orders.last().expect("an order"), &["c", "b", "a"].map(inode), "backward");
        assert!(orders.iter().all(|order| order.len() == 3));
    }

    #[test]
    fn a_directory_of_another_file_system_or_behind_a_link_is_refused() {
        let (_dir, home) = directory();
        let path = |name: &str| home.join(name);
        fs::create_dir(path("real")).expect("a directory");
        fs::write(path("real/a"), "a").expect("a file");
        assert!(find(&path("real/a")).is_some());
        let elsewhere =
            OpenFile { device: "8:1000".parse().expect("a number"), ..open_file(&path("real/a")) };
        assert!(find_with(&elsewhere, &path("real/a"), None).is_none(), "another file system");
        std::os::unix::fs::symlink(path("real/a"), path("a")).expect("a link");
        assert!(find(&path("a")).is_none(), "a link is not the open file");
        std::os::unix::fs::symlink(path("real"), path("link")).expect("a link");
        assert!(find(&path("link/a")).is_none(), "no link is followed in the path");
    }

    #[test]
    fn a_denied_process_has_no_directory() {
        let (_dir, home) = directory();
        let path = home.join("a");
        fs::write(&path, "a").expect("a file");
        let rule = format!("pid:{}", std::process::id()).parse().expect("a rule");
        let limits = AccessRules { deny: vec![rule], ..AccessRules::default() };
        let text = path.to_str().expect("a name");
        assert!(Directory::find(&Root::system(), &limits, &open_file(&path), text, None).is_none());
    }

    #[test]
    fn the_access_rules_are_checked_for_the_last_reader() {
        let (_dir, home) = directory();
        for name in ["a", "b"] {
            fs::write(home.join(name), name).expect("a file");
        }
        let found = find(&home.join("a")).expect("found");
        let own = format!("pid:{}", std::process::id()).parse().expect("a rule");
        let limits = AccessRules { allow: vec![own], ..AccessRules::default() };
        let check = || found.check(&Root::system(), &limits);
        assert_eq!(check(), Ok(()));
        let by = |pid: u32| {
            let mut file = open_file(&home.join("b"));
            file.holders[0].pid = pid;
            file
        };
        // This process does not exist, but the last check is recent.
        let gone = by(i32::MAX.unsigned_abs());
        found.seen([&gone]);
        assert_eq!(check(), Ok(()));
        found.readers.lock().expect("a lock").granted -= GRANT_LIFETIME;
        assert_eq!(check(), Err(ActuateFailure::Gone));
        assert_eq!(found.check(&Root::system(), &AccessRules::default()), Ok(()), "no rules");
        found.seen([&by(1)]);
        assert_eq!(check(), Err(ActuateFailure::NotAllowed), "the new reader is not allowed");
        let elsewhere = OpenFile { inode: 1, ..by(std::process::id()) };
        found.seen([&elsewhere]);
        assert_eq!(check(), Err(ActuateFailure::NotAllowed), "that file is not in it");
        found.seen([&by(std::process::id())]);
        assert_eq!(check(), Ok(()));
    }
}
