//! Mounting and unmounting.

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags};

/// Mounts `source` at `target` without access times, so that reads cause no writes. `options` are
/// the options of the file system, comma-separated.
pub fn mount(source: &Path, target: &Path, fstype: &str, options: &str) -> io::Result<()> {
    let flags = MountFlags::NOATIME | MountFlags::NODEV | MountFlags::NOSUID;
    let options = CString::new(options)?;
    rustix::mount::mount(source, target, fstype, flags, Some(options.as_c_str()))?;
    Ok(())
}

/// Unmounts the file system at `target`; fails with `EBUSY` while it is in use.
pub fn unmount(target: &Path) -> io::Result<()> {
    rustix::mount::unmount(target, UnmountFlags::NOFOLLOW).map_err(Into::into)
}

/// Detaches the file system at `target`; the kernel unmounts it when it is no longer in use.
pub fn detach(target: &Path) -> io::Result<()> {
    rustix::mount::unmount(target, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)
        .map_err(Into::into)
}
