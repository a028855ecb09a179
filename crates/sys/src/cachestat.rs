//! Counts a file's pages in the page cache: `cachestat(2)` since Linux 6.5, otherwise `mincore(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use units::{Bytes, Pages};

use crate::mapping::FileMapping;

/// System call number, the same on all architectures; libc lacks it on some.
const SYS_CACHESTAT: libc::c_long = 451;

/// Maximum number of bytes that are mapped at once for `mincore(2)`.
const MINCORE_PIECE: u64 = 1 << 30;

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

const _: () = assert!(size_of::<Range>() == 16 && size_of::<Counts>() == 40);

/// Page cache statistics of a part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    pub cached: Pages,
    /// Cached pages that have not been written back yet.
    pub dirty: Pages,
    pub writeback: Pages,
    /// Pages that the kernel reclaimed and that are not cached again; excludes dropped pages.
    pub evicted: Pages,
}

/// Counts the cached pages from `offset` on; a `length` of 0 extends to the end. Fails with
/// `ENOSYS` before Linux 6.5 and with `EOPNOTSUPP` for huge pages.
pub fn cachestat(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<CacheStat> {
    let range = Range { offset: offset.get(), length: length.get() };
    let mut counts = Counts::default();
    // SAFETY: the borrowed descriptor is open. The kernel reads one Range, writes one Counts (sizes
    // asserted above), and keeps neither.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(CacheStat {
        cached: Pages::new(counts.cached),
        dirty: Pages::new(counts.dirty),
        writeback: Pages::new(counts.writeback),
        evicted: Pages::new(counts.evicted),
    })
}

/// Counts the cached pages of a part of a file by mapping it; `offset` must be page-aligned. For a
/// user who neither owns the file nor may write to it, the kernel reports all pages as cached
/// (since Linux 5.2).
pub fn mincore(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<Pages> {
    let (mut at, end) = (offset.get(), offset.get() + length.get());
    let mut cached = Pages::ZERO;
    while at < end {
        let piece = (end - at).min(MINCORE_PIECE);
        let mapping = FileMapping::new(file, Bytes::new(at), Bytes::new(piece))?;
        cached += mapping.resident()?;
        at += piece;
    }
    Ok(cached)
}

#[cfg(test)]
mod tests {
    use crate::page_size;
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    /// Creates a file whose pages are in the page cache because they were just written.
    fn written(pages: usize) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; pages * page_size().bytes().get() as usize]).unwrap();
        file
    }

    #[test]
    fn both_ways_count_written_pages() {
        let file = written(5);
        let fd = file.as_file().as_fd();
        let page = page_size().bytes();
        assert_eq!(mincore(fd, Bytes::ZERO, page * 5).unwrap(), Pages::new(5));
        assert_eq!(mincore(fd, page * 3, page * 2).unwrap(), Pages::new(2));
        match cachestat(fd, Bytes::ZERO, Bytes::ZERO) {
            Ok(stat) => {
                assert_eq!(stat.cached, Pages::new(5));
                assert_eq!(cachestat(fd, page, page * 2).unwrap().cached, Pages::new(2));
            }
            Err(problem) if problem.raw_os_error() == Some(libc::ENOSYS) => {
                eprintln!("SKIP cachestat: this kernel is older than 6.5");
            }
            Err(problem) => panic!("{problem}"),
        }
    }

    #[test]
    fn an_empty_part_has_no_pages() {
        let file = written(1);
        assert_eq!(mincore(file.as_file().as_fd(), Bytes::ZERO, Bytes::ZERO).unwrap(), Pages::ZERO);
    }
}
