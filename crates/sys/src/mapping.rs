//! File mappings for reading. A missing page is an error and does not terminate the process.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags};
use units::{Bytes, Pages};

use crate::page_size;
use crate::sigbus;

/// A part of a file that is mapped for reading.
#[derive(Debug)]
pub struct FileMapping {
    address: *mut u8,
    length: usize,
}

// SAFETY: the mapping is only copied from, and the pointer belongs to this value alone.
unsafe impl Send for FileMapping {}
// SAFETY: as above; several threads may copy from it at the same time.
unsafe impl Sync for FileMapping {}

/// The error for data that cannot be copied from a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingPage {
    /// Offset of the first missing byte in the mapping. The file became shorter, or the device
    /// returned an error.
    pub at: Bytes,
}

/// Advice to the kernel on the use of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingAdvice {
    /// Reads will be sequential.
    Sequential,
    /// Reads will be random: disables read-ahead.
    Random,
}

impl FileMapping {
    /// Maps `length` bytes from `offset` on. `offset` must be page-aligned.
    pub fn new(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<Self> {
        sigbus::install()?;
        let too_long = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let length = usize::try_from(length.get()).map_err(too_long)?;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced. `copy_to`
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

    /// Copies the data at `offset` into `buffer`. The range must be within the mapping. Pages are
    /// copied one by one, so that they fault in file order: `memcpy` reads a long range in an order
    /// that depends on the processor.
    #[inline]
    pub fn copy_to(&self, offset: usize, buffer: &mut [u8]) -> Result<(), MissingPage> {
        let end = offset.checked_add(buffer.len());
        assert!(end.is_some_and(|end| end <= self.length), "copy outside of the mapping");
        let start = self.address as usize;
        let page = page_size().bytes().get() as usize;
        sigbus::guarded(start, start + self.length, || {
            // SAFETY: the source is inside the mapping (asserted above), which lives as long as
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
        .map_err(|at| MissingPage { at: Bytes::new((at - start) as u64) })
    }

    /// Advises the kernel on the use of the mapping.
    pub fn advise(&self, advice: MappingAdvice) -> io::Result<()> {
        let advice = match advice {
            MappingAdvice::Sequential => Advice::Sequential,
            MappingAdvice::Random => Advice::Random,
        };
        // SAFETY: the range is this mapping, and neither advice changes its content.
        Ok(unsafe { rustix::mm::madvise(self.address.cast(), self.length, advice) }?)
    }

    /// Returns the number of mapped pages that are in the page cache.
    pub fn resident(&self) -> io::Result<Pages> {
        let present = self.residency()?;
        Ok(Pages::new(present.iter().filter(|present| **present).count() as u64))
    }

    /// Returns for each page of the mapping whether it is in the page cache.
    pub(crate) fn residency(&self) -> io::Result<Vec<bool>> {
        let pages = self.length().to_pages_ceil(page_size()).get() as usize;
        let mut present = vec![0u8; pages];
        // SAFETY: the range is this mapping, and the vector has one byte for each of its pages.
        let result =
            unsafe { libc::mincore(self.address.cast(), self.length, present.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(present.iter().map(|page| page & 1 == 1).collect())
    }

    /// Maps these pages, numbered from the start of the mapping. Reads pages that are not cached.
    /// Fails with `EINVAL` before Linux 5.14.
    pub(crate) fn populate(&self, pages: Range<usize>) -> io::Result<()> {
        let page = page_size().bytes().get() as usize;
        let end = (pages.end * page).min(self.length);
        let start = pages.start * page;
        assert!(start <= end, "pages outside of the mapping");
        // SAFETY: the range is inside the mapping (asserted above), and the advice does not change
        // its content.
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
        // SAFETY: `new` mapped the range, and this is its last use. munmap also removes the zero
        // pages that the handler mapped into it.
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
        // memcpy(3) determines which of the missing bytes is read first.
        let missing = Bytes::new(5 * page as u64)..whole;
        assert!(missing.contains(&torn.at), "{}", torn.at);
        // Existing data is still readable, also after the error.
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
