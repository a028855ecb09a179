//! File handles: `name_to_handle_at(2)` and `open_by_handle_at(2)`.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `MAX_HANDLE_SZ` in include/linux/exportfs.h of the kernel.
const MAX_BYTES: usize = 128;

/// Refers to a file of a file system, by what identifies it there. Unlike a descriptor, it does not
/// prevent the file system from being unmounted.
#[derive(Clone, Debug)]
pub struct FileHandle(RawHandle);

/// `struct file_handle` of the kernel, with the largest value.
#[repr(C)]
#[derive(Clone, Debug)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    value: [u8; MAX_BYTES],
}

impl FileHandle {
    /// Returns the handle of an open file.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the file system has no handles that can be opened, as overlayfs by default.
    pub fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        let mut handle = RawHandle { bytes: MAX_BYTES as u32, kind: 0, value: [0; MAX_BYTES] };
        let mut mount_id = 0;
        // SAFETY: the descriptor is open, the name ends with NUL, and the kernel writes at most
        // `handle.bytes` bytes of the value and one int.
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                file.as_raw_fd(),
                c"".as_ptr(),
                &raw mut handle,
                &raw mut mount_id as *mut libc::c_int,
                libc::AT_EMPTY_PATH,
            )
        };
        if result == 0 { Ok(Self(handle)) } else { Err(io::Error::last_os_error()) }
    }

    /// Opens the directory for reading. `file_system` is any open file of its file system.
    ///
    /// # Errors
    ///
    /// `ESTALE` if the directory is gone or `file_system` is on another file system. `EPERM`
    /// without `CAP_DAC_READ_SEARCH`.
    pub fn open_directory(&self, file_system: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: the descriptor is open, and the kernel reads `bytes` bytes of the value, which
        // has at least as many.
        let result = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                file_system.as_raw_fd(),
                &raw const self.0,
                flags,
            )
        };
        let opened = RawFd::try_from(result).ok().filter(|opened| *opened >= 0);
        let opened = opened.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just opened this descriptor, which nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(opened) })
    }
}

const _: () = assert!(offset_of!(RawHandle, value) == 8);
