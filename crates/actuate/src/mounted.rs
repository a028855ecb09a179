//! A mounted file system, through which the directories of prefetched files are opened.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use host::{DevNo, Root, parse_mountinfo};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags, open, openat2, statx};
use rustix::io::Errno;

/// Whose mounts are used. In a container that shows the host's processes, process 1 has the host's.
const PROCESSES: [&str; 2] = ["self", "1"];

/// A mount of a file system. Keeps nothing open, so that it can be unmounted.
#[derive(Debug)]
pub(crate) struct MountedFileSystem {
    process: &'static str,
    point: PathBuf,
    mount: u64,
}

impl MountedFileSystem {
    /// Finds a mount of the file system with this device that can be opened.
    pub(crate) fn find(root: &Root, device: DevNo) -> Option<Self> {
        let mut mounts = PROCESSES.into_iter().flat_map(|process| {
            let table = root.read(format!("/proc/{process}/mountinfo")).unwrap_or_default();
            let mounts = parse_mountinfo(&table).into_iter();
            let mounts = mounts.filter(|info| info.device == device);
            mounts.map(move |info| Self { process, point: info.mount.point, mount: info.id })
        });
        mounts.find(|mount| mount.open(root).is_some())
    }

    /// Opens the directory at which it is mounted. `None` if it was unmounted, or if another mount
    /// hides it. Since Linux 5.12, no server is queried on the way, so this does not block.
    pub(crate) fn open(&self, root: &Root) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = root.path(format!("/proc/{}/root", self.process));
        let top = open(&top, flags, Mode::empty()).ok()?;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
        let open_point = |within| openat2(&top, &self.point, flags, Mode::empty(), within);
        let found = match open_point(within | ResolveFlags::CACHED) {
            Err(Errno::INVAL) => open_point(within), // before Linux 5.12
            found => found,
        };
        let found = found.ok()?;
        let asked = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let status = statx(&found, "", asked, StatxFlags::MNT_ID).ok()?;
        let is_it =
            status.stx_mask & StatxFlags::MNT_ID.bits() != 0 && status.stx_mnt_id == self.mount;
        if is_it { reopen(root, found.as_fd(), OFlags::DIRECTORY).ok() } else { None }
    }
}

/// Opens the file of an `O_PATH` descriptor for reading.
pub(crate) fn reopen(root: &Root, file: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = root.path(format!("/proc/self/fd/{}", file.as_raw_fd()));
    // O_NONBLOCK, so as not to wait for the holder of a lease.
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty())
}
