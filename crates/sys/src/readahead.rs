//! Explicit read-ahead: `readahead(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use units::Bytes;

/// Asks the kernel to read a part of a file into the cache, without waiting.
///
/// The kernel silently stops at the larger of the device's largest request and the open file's
/// window (`force_page_cache_ra()`), so larger amounts need several calls. `EBADF` for a file that
/// is not open for reading, `EINVAL` for one without a page cache.
pub fn readahead(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<()> {
    let (offset, length) = (offset.get().cast_signed(), length.get());
    let Ok(length) = usize::try_from(length) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: the descriptor is open as long as it is borrowed; the call touches no memory of ours.
    let result = unsafe { libc::readahead(file.as_raw_fd(), offset, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
