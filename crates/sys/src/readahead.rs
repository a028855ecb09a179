//! Explicit read-ahead with `readahead(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use units::Bytes;

/// Requests that the kernel read a part of a file into the page cache, without waiting.
///
/// The kernel silently truncates the request to the larger of the device's largest request and the
/// open file's window (`force_page_cache_ra()`), so larger amounts need several calls. Fails with
/// `EBADF` if the file is not open for reading and with `EINVAL` if it has no page cache.
pub fn readahead(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<()> {
    let (offset, length) = (offset.get().cast_signed(), length.get());
    let Ok(length) = usize::try_from(length) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: the borrowed descriptor is open, and the call accesses no memory of this process.
    let result = unsafe { libc::readahead(file.as_raw_fd(), offset, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
