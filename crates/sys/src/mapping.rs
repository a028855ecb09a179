//! Files mapped for reading; missing pages are an error instead of terminating the process.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags};
use units::{Bytes, Pages};

use crate::page_size;
use crate::sigbus;

/// A mapped part of a file, for reading.
#[derive(Debug)]
pub struct FileMapping {
    address: *mut u8,
    length: usize,
}

// SAFETY: the mapping is only read, by copying; the pointer belongs to this value alone.
unsafe impl Send for FileMapping {}
// SAFETY: as above; any number of threads may copy out of it at once.
unsafe impl Sync for FileMapping {}

/// Why nothing could be copied from a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The first missing byte, from the start of the mapping: the file has become shorter, or its
    /// storage could not be read.
    pub at: Bytes,
}

/// Advice to the kernel on the use of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingAdvice {
    /// It will be read sequentially.
    Sequential,
    /// It will be read at random: no read-ahead.
    Random,
}

impl FileMapping {
    /// Maps `length` bytes from `offset` on, which must be page-aligned.
    pub fn new(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<Self> {
        sigbus::install()?;
        let too_long = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let length = usize::try_from(length.get()).map_err(too_long)?;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced; `copy_to`
        // handles changes of the file while it is mapped.
        let address = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                offset.get(),
            )?
        };
        Ok(Self { address: address.cast(), length })
    }

    pub fn length(&self) -> Bytes {
        Bytes::new(self.length as u64)
    }

    /// Copies data at `offset` into `buffer`; both must be within the mapping. Pages are copied in
    /// the order of the file, so that they fault in that order: the order in which
    /// `memcpy` reads a long range differs between processors.
    #[inline]
    pub fn copy_to(&self, offset: usize, buffer: &mut [u8]) -> Result<(), Torn> {
        let end = offset.checked_add(buffer.len());
        assert!(end.is_some_and(|end| end <= self.length), "copy outside of the mapping");
        let start = self.address as usize;
        let page = page_size().bytes().get() as usize;
        sigbus::guarded(start, start + self.length, || {
            // SAFETY: the source lies inside the mapping (asserted above), which lives as long as
            // `self`; the target is exclusively borrowed. If a page cannot be read, the handler
            // maps zeros in its place and the copy continues. If another process writes the file
            // meanwhile, the bytes are mixed, but no code interprets them.
            unsafe {
                let (mut from, target) = (offset, buffer.as_mut_ptr());
                let end = offset + buffer.len();
                while from < end {
                    let length = (page - from % page).min(end - from);
                    let (source, target) = (self.address.add(from), target.add(from - offset));
                    ptr::copy_nonoverlapping(source, target, length);
                    from += length;
                }
            }
        })
        .map_err(|at| Torn { at: Bytes::new((at - start) as u64) })
    }

    /// Advises the kernel of the use of the mapping.
    pub fn advise(&self, advice: MappingAdvice) -> io::Result<()> {
        let advice = match advice {
            MappingAdvice::Sequential => Advice::Sequential,
            MappingAdvice::Random => Advice::Random,
        };
        // SAFETY: the range is the mapping's own, and neither advice changes its content.
        Ok(unsafe { rustix::mm::madvise(self.address.cast(), self.length, advice) }?)
    }

    /// How many of its pages are in the page cache.
    pub fn resident(&self) -> io::Result<Pages> {
        let present = self.residency()?;
        Ok(Pages::new(present.iter().filter(|present| **present).count() as u64))
    }

    /// Which of its pages are in the page cache.
    pub(crate) fn residency(&self) -> io::Result<Vec<bool>> {
        let pages = self.length().to_pages_ceil(page_size()).get() as usize;
        let mut present = vec![0u8; pages];
        // SAFETY: the range is the mapping's own, and the vector has a byte for each page of it.
        let result =
            unsafe { libc::mincore(self.address.cast(), self.length, present.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(present.iter().map(|page| page & 1 == 1).collect())
    }

    /// Maps these pages, counted from its start, reading them first if they are not cached.
    /// `EINVAL` before Linux 5.14.
    pub(crate) fn populate(&self, pages: Range<usize>) -> io::Result<()> {
        let page = page_size().bytes().get() as usize;
        let end = (pages.end * page).min(self.length);
        let start = pages.start * page;
        assert!(start <= end, "pages outside of the mapping");
        // SAFETY: the range lies inside the mapping (asserted above); the advice does not
        // change its content.
        let result = unsafe {
            rustix::mm::madvise(
                self.address.add(start).cast(),
                end - start,
                Advice::LinuxPopulateRead,
            )
        };
        Ok(result?)
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the range, and it is not used after this. (Zero pages that the
        // handler mapped into it are unmapped, too.)
        let result = unsafe { rustix::mm::munmap(self.address.cast(), self.length) };
        debug_assert!(result.is_ok(), "munmap of our own mapping");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_mapping_has_the_file_s_content() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
        file.write_all(&content).unwrap();
        let mapping = FileMapping::new(file.as_fd(), Bytes::ZERO, Bytes::new(10_000)).unwrap();
        let mut buffer = [0; 5000];
        mapping.copy_to(3000, &mut buffer).unwrap();
        assert_eq!(buffer, content[3000..8000]);
        mapping.advise(MappingAdvice::Random).unwrap();
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        let page = page_size().bytes().get() as usize;
        file.write_all(&vec![1; 8 * page]).unwrap();
        let whole = Bytes::new(8 * page as u64);
        let mapping = FileMapping::new(file.as_fd(), Bytes::ZERO, whole).unwrap();
        let mut buffer = vec![9; 4 * page];
        mapping.copy_to(4 * page, &mut buffer).unwrap();
        file.set_len(5 * page as u64).unwrap();
        let torn = mapping.copy_to(4 * page, &mut buffer).unwrap_err();
        // memcpy(3) chooses which of the missing bytes it reads first.
        let missing = Bytes::new(5 * page as u64)..whole;
        assert!(missing.contains(&torn.at), "{}", torn.at);
        // What is still there can still be had, and another thread sees the same.
        mapping.copy_to(0, &mut buffer).unwrap();
        assert!(buffer.iter().all(|byte| *byte == 1));
    }

    #[test]
    fn each_thread_meets_its_own_error() {
        let mut file = tempfile::tempfile().unwrap();
        let page = page_size().bytes().get();
        file.write_all(&vec![1; page as usize]).unwrap();
        let length = Bytes::new(64 * page);
        let mapping = FileMapping::new(file.as_fd(), Bytes::ZERO, length).unwrap();
        std::thread::scope(|scope| {
            for place in 1..32u64 {
                let mapping = &mapping;
                scope.spawn(move || {
                    let mut buffer = [0; 16];
                    let torn = mapping.copy_to((place * page) as usize, &mut buffer).unwrap_err();
                    assert_eq!(torn.at, Bytes::new(place * page));
                    mapping.copy_to(0, &mut buffer).unwrap();
                });
            }
        });
    }
}
