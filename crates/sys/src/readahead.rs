//! Reading ahead by request: `readahead(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use units::Bytes;

/// Asks the kernel to bring a part of a file into the cache, and does not wait for it.
///
/// It silently stops at the larger of the device's largest request and the open file's window
/// (`force_page_cache_ra()` of the kernel), so whoever wants more asks again further on. `EBADF`
/// for a file that is not open for reading, `EINVAL` for what has no cache.
pub fn readahead(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<()> {
    let (offset, length) = (offset.get().cast_signed(), length.get());
    let Ok(length) = usize::try_from(length) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: the descriptor is open as long as it is borrowed; the call touches no memory of ours.
    let result = unsafe { libc::readahead(file.as_raw_fd(), offset, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
