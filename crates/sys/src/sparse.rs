//! A large memory area in which only written pages consume memory.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use units::Bytes;

/// Unit of allocation, in bytes.
const PAGE_BYTES: usize = 4096;
/// Unit of locking and maximum length of a read or write, in bytes.
const CHUNK_BYTES: usize = 2 << 20;
/// Number of locks. Chunks whose numbers differ by a multiple of this share a lock.
const LOCK_COUNT: usize = 64;
/// `MADV_DONTNEED` for locked memory (Linux 5.18).
const MADV_DONTNEED_LOCKED: libc::c_int = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The range exceeds the end or is longer than a chunk of 2 MiB.
    Range,
    /// `grant` denied the required memory.
    Memory,
}

/// Zeroes of a fixed length that several threads may overwrite. Writing zeroes to untouched pages
/// consumes no memory.
#[derive(Debug)]
pub struct SparseMemory {
    base: NonNull<u8>,
    length: usize,
    /// One bit per page: whether it has been written.
    written: Box<[AtomicU64]>,
    pages: AtomicU64,
    stripes: Box<[RwLock<()>]>,
}

// SAFETY: the mapping belongs to this value alone, is not tied to a thread, and is only accessed
// under the stripes' locks.
unsafe impl Send for SparseMemory {}
// SAFETY: as above; readers hold the read lock and writers the write lock of the range that they
// access.
unsafe impl Sync for SparseMemory {}

/// The locks of the one or two chunks that a range touches.
type Locks<Guard> = (Guard, Option<Guard>);

impl SparseMemory {
    /// Reserves `length` zeroes. Fails without overcommit (`vm.overcommit_memory=2`).
    pub fn new(length: Bytes) -> io::Result<Self> {
        let length = usize::try_from(length.get())
            .ok()
            .filter(|length| *length > 0)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address that the kernel chooses affects no existing
        // memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        let words = length.div_ceil(PAGE_BYTES).div_ceil(64);
        Ok(Self {
            base,
            length,
            written: (0..words).map(|_| AtomicU64::new(0)).collect(),
            pages: AtomicU64::new(0),
            stripes: (0..LOCK_COUNT).map(|_| RwLock::new(())).collect(),
        })
    }

    pub fn length(&self) -> Bytes {
        Bytes::new(self.length as u64)
    }

    pub fn stored(&self) -> Bytes {
        Bytes::new(self.pages.load(Ordering::Relaxed) * PAGE_BYTES as u64)
    }

    /// Calls `f` with `length` bytes from `offset` on, which do not change during the call. Returns
    /// `None` for a range beyond the end or longer than a chunk of 2 MiB.
    pub fn read<R>(&self, offset: Bytes, length: Bytes, f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let (start, length) = self.range(offset, length)?;
        let _locks = self.lock(start, length, |lock: &RwLock<()>| {
            lock.read().unwrap_or_else(PoisonError::into_inner)
        });
        // SAFETY: the range is within the mapping, whose bytes are always initialised, and the read
        // locks exclude writers while the slice lives.
        let bytes = unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(start), length) };
        Some(f(bytes))
    }

    /// Writes `data` at `offset` if `grant` allows the additional memory.
    pub fn write(
        &self,
        offset: Bytes,
        data: &[u8],
        grant: impl FnOnce(Bytes) -> bool,
    ) -> Result<(), Refused> {
        let length = Bytes::new(data.len() as u64);
        let (start, _) = self.range(offset, length).ok_or(Refused::Range)?;
        let _locks = self.lock(start, data.len(), |lock: &RwLock<()>| {
            lock.write().unwrap_or_else(PoisonError::into_inner)
        });
        let fresh: u64 = pages(start, data).map(|(page, part)| self.is_fresh(page, part)).sum();
        if fresh > 0 && !grant(Bytes::new(fresh * PAGE_BYTES as u64)) {
            return Err(Refused::Memory);
        }
        let mut at = start;
        for (page, part) in pages(start, data) {
            if self.is_written(page) || !is_zero(part) {
                self.mark(page);
                // SAFETY: the part is within the mapping, the write lock excludes all other
                // threads, and `data` cannot overlap memory without references.
                unsafe {
                    self.base.as_ptr().add(at).copy_from_nonoverlapping(part.as_ptr(), part.len());
                }
            }
            at += part.len();
        }
        Ok(())
    }

    /// Zeroes a range of any length and frees its memory. Ignores the part beyond the end.
    pub fn punch(&self, offset: Bytes, length: Bytes) {
        let end = offset.get().saturating_add(length.get()).min(self.length as u64) as usize;
        let mut start = (offset.get().min(self.length as u64)) as usize;
        while start < end {
            let chunk_end = ((start / CHUNK_BYTES + 1) * CHUNK_BYTES).min(end);
            self.punch_in_chunk(start, chunk_end);
            start = chunk_end;
        }
    }

    fn punch_in_chunk(&self, start: usize, end: usize) {
        let _lock = self.stripe(start).write().unwrap_or_else(PoisonError::into_inner);
        let first = start.next_multiple_of(PAGE_BYTES).min(end);
        let last = if end == self.length { end } else { (end - end % PAGE_BYTES).max(first) };
        self.zero(start, first);
        self.zero(last, end);
        if first < last {
            self.release_pages(first, last);
        }
    }

    /// Returns whole pages to the kernel; they read as zeroes afterwards.
    fn release_pages(&self, first: usize, last: usize) {
        let pages = first / PAGE_BYTES..last.div_ceil(PAGE_BYTES);
        if !pages.clone().any(|page| self.is_written(page)) {
            return;
        }
        for advice in [MADV_DONTNEED_LOCKED, libc::MADV_DONTNEED] {
            // SAFETY: the pages are within the private anonymous mapping, and the caller holds
            // their write lock. They read as zeroes afterwards.
            let result = unsafe {
                libc::madvise(self.base.as_ptr().add(first).cast(), last - first, advice)
            };
            if result == 0 {
                for page in pages {
                    self.unmark(page);
                }
                return;
            }
        }
        self.zero(first, last);
    }

    fn zero(&self, start: usize, end: usize) {
        for at in (start..end).step_by(PAGE_BYTES) {
            let until = (at - at % PAGE_BYTES + PAGE_BYTES).min(end);
            if self.is_written(at / PAGE_BYTES) {
                // SAFETY: the range is within the mapping, and the caller holds the write lock.
                unsafe { self.base.as_ptr().add(at).write_bytes(0, until - at) };
            }
        }
    }

    fn range(&self, offset: Bytes, length: Bytes) -> Option<(usize, usize)> {
        let start = usize::try_from(offset.get()).ok()?;
        let length = usize::try_from(length.get()).ok().filter(|length| *length <= CHUNK_BYTES)?;
        (start.checked_add(length)? <= self.length).then_some((start, length))
    }

    fn stripe(&self, at: usize) -> &RwLock<()> {
        &self.stripes[at / CHUNK_BYTES % LOCK_COUNT]
    }

    /// Locks the chunks of a range in a fixed order to avoid deadlocks.
    fn lock<'a, G>(
        &'a self,
        start: usize,
        length: usize,
        take: impl Fn(&'a RwLock<()>) -> G,
    ) -> Locks<G> {
        let first = start / CHUNK_BYTES % LOCK_COUNT;
        let last = (start + length.max(1) - 1) / CHUNK_BYTES % LOCK_COUNT;
        let low = take(&self.stripes[first.min(last)]);
        let high = (first != last).then(|| take(&self.stripes[first.max(last)]));
        (low, high)
    }

    fn is_written(&self, page: usize) -> bool {
        self.written[page / 64].load(Ordering::Relaxed) & (1 << (page % 64)) != 0
    }

    fn is_fresh(&self, page: usize, part: &[u8]) -> u64 {
        u64::from(!self.is_written(page) && !is_zero(part))
    }

    fn mark(&self, page: usize) {
        let bit = 1 << (page % 64);
        if self.written[page / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.pages.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn unmark(&self, page: usize) {
        let bit = 1 << (page % 64);
        if self.written[page / 64].fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
            self.pages.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for SparseMemory {
    fn drop(&mut self) {
        // SAFETY: `new` created the mapping with this length, and no reference into it outlives
        // this value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Splits `data` at page boundaries and returns each part with its page number.
fn pages(start: usize, data: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let head = (PAGE_BYTES - start % PAGE_BYTES).min(data.len());
    let (head, rest) = data.split_at(head);
    std::iter::once(head)
        .filter(|head| !head.is_empty())
        .chain(rest.chunks(PAGE_BYTES))
        .enumerate()
        .map(move |(index, part)| (start / PAGE_BYTES + index, part))
}

/// Checks 64 bytes at a time, which compiles to a few wide instructions. In data that is not zero,
/// the first chunk usually decides.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(64).all(|chunk| chunk.iter().fold(0, |seen, byte| seen | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(length: u64) -> SparseMemory {
        SparseMemory::new(Bytes::new(length)).unwrap()
    }

    fn contents(memory: &SparseMemory, offset: u64, length: u64) -> Vec<u8> {
        memory.read(Bytes::new(offset), Bytes::new(length), <[u8]>::to_vec).unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_the_rest_is_zero() {
        let memory = memory(1 << 40);
        let data: Vec<u8> = (0..10_000u32).map(|n| (n % 251) as u8).collect();
        let offset = (1 << 39) - 5_000;
        memory.write(Bytes::new(offset), &data, |_| true).unwrap();
        assert_eq!(contents(&memory, offset, 10_000), data);
        assert_eq!(contents(&memory, offset - 100, 100), [0; 100]);
        assert_eq!(memory.stored(), Bytes::from_kib(16));
    }

    #[test]
    fn zeroes_take_no_memory_but_overwrite_what_was_there() {
        let memory = memory(1 << 30);
        memory.write(Bytes::ZERO, &[0; 8192], |_| false).unwrap();
        assert_eq!(memory.stored(), Bytes::ZERO);
        memory.write(Bytes::ZERO, &[7; 8192], |_| true).unwrap();
        memory.write(Bytes::new(4096), &[0; 4096], |_| false).unwrap();
        assert_eq!(contents(&memory, 4095, 2), [7, 0]);
        assert_eq!(memory.stored(), Bytes::from_kib(8));
    }

    #[test]
    fn a_write_without_grant_changes_nothing() {
        let memory = memory(1 << 20);
        let refused = memory.write(Bytes::ZERO, &[1; 8192], |asked| {
            assert_eq!(asked, Bytes::from_kib(8));
            false
        });
        assert_eq!(refused, Err(Refused::Memory));
        assert_eq!(contents(&memory, 0, 8192), [0; 8192]);
        assert_eq!(memory.stored(), Bytes::ZERO);
    }

    #[test]
    fn punching_leaves_zeroes_and_gives_memory_back() {
        let memory = memory(8 << 20);
        for offset in (0..8 << 20).step_by(1 << 20) {
            memory.write(Bytes::new(offset), &[9; 1 << 20], |_| true).unwrap();
        }
        memory.punch(Bytes::new(100), Bytes::from_mib(5));
        assert_eq!(contents(&memory, 99, 2), [9, 0]);
        assert_eq!(contents(&memory, (5 << 20) + 99, 2), [0, 9]);
        assert_eq!(memory.stored(), Bytes::from_mib(8) - Bytes::from_mib(5) + Bytes::from_kib(4));
        memory.punch(Bytes::ZERO, Bytes::new(u64::MAX));
        assert_eq!(memory.stored(), Bytes::ZERO);
        assert_eq!(contents(&memory, (8 << 20) - 1, 1), [0]);
    }

    #[test]
    fn what_lies_beyond_the_end_is_refused() {
        let memory = memory(1 << 20);
        assert!(memory.read(Bytes::new(1 << 20), Bytes::new(1), |_| ()).is_none());
        assert!(memory.read(Bytes::new(u64::MAX), Bytes::new(2), |_| ()).is_none());
        assert_eq!(memory.write(Bytes::new((1 << 20) - 1), &[1, 2], |_| true), Err(Refused::Range));
        assert!(memory.read(Bytes::ZERO, Bytes::from_mib(4), |_| ()).is_none());
    }

    #[test]
    fn threads_see_whole_writes() {
        let memory = memory(8 << 20);
        let offset = Bytes::new((2 << 20) - 4096);
        std::thread::scope(|scope| {
            for value in 1..=3u8 {
                let memory = &memory;
                scope.spawn(move || {
                    for _ in 0..200 {
                        memory.write(offset, &[value; 8192], |_| true).unwrap();
                    }
                });
            }
            for _ in 0..200 {
                let seen = contents(&memory, offset.get(), 8192);
                assert!(seen.iter().all(|byte| *byte == seen[0]), "a torn write");
            }
        });
    }
}
