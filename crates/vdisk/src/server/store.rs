//! The disk's data in memory.

use std::sync::Mutex;
use std::sync::PoisonError;

use sys::sparse::{Refused, SparseMemory};
use units::Bytes;

use crate::error::VdiskError;

/// Memory growth after which free memory is checked again.
const GROWTH_STEP: Bytes = Bytes::from_mib(64);

/// The disk's content and its memory budget.
#[derive(Debug)]
pub(crate) struct BlockStore {
    memory: SparseMemory,
    /// Bytes that may be used before the next check of free memory.
    granted: Mutex<u64>,
}

impl BlockStore {
    pub(crate) fn new(size: Bytes) -> Result<Self, VdiskError> {
        let memory =
            SparseMemory::new(size).map_err(VdiskError::system("reserving memory for the disk"))?;
        Ok(Self { memory, granted: Mutex::new(0) })
    }

    pub(crate) fn size(&self) -> Bytes {
        self.memory.length()
    }

    pub(crate) fn stored(&self) -> Bytes {
        self.memory.stored()
    }

    /// Calls `f` with the bytes at `offset`, up to `length` or the end of the disk.
    pub(crate) fn read<R>(
        &self,
        offset: Bytes,
        length: Bytes,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let length = length.min(self.size().saturating_sub(offset));
        self.memory.read(offset.min(self.size()), length, f)
    }

    pub(crate) fn write(&self, offset: Bytes, data: &[u8]) -> Result<(), Refused> {
        self.memory.write(offset, data, |bytes| self.grant(bytes.get(), free_memory))
    }

    pub(crate) fn punch(&self, offset: Bytes, length: Bytes) {
        self.memory.punch(offset, length);
    }

    /// Returns whether `bytes` more may be used. Grants memory in steps of [`GROWTH_STEP`], each
    /// only if enough memory is free.
    fn grant(&self, bytes: u64, free: impl Fn() -> Option<MemoryInfo>) -> bool {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if *granted < bytes {
            let step = GROWTH_STEP.get().max(bytes);
            // Without /proc, free memory is unknown; the kernel must refuse.
            if free().is_some_and(|free| !free.allows(step)) {
                return false;
            }
            *granted = step;
        }
        *granted -= bytes;
        true
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryInfo {
    total: u64,
    available: u64,
}

impl MemoryInfo {
    /// Returns the memory that stays free for the rest of the machine: 5 %, at least 256 MiB.
    fn reserve(self) -> u64 {
        (self.total / 20).max(256 << 20)
    }

    fn allows(self, bytes: u64) -> bool {
        self.available >= self.reserve() + bytes
    }

    /// Checks that memory suffices for a new disk.
    pub(crate) fn check(self) -> Result<(), VdiskError> {
        if self.allows(GROWTH_STEP.get()) {
            return Ok(());
        }
        let needed = Bytes::new(self.reserve()) + GROWTH_STEP;
        Err(VdiskError::Memory { needed, free: Bytes::new(self.available) })
    }
}

/// Reads total and available memory; `None` without `/proc`.
pub(crate) fn free_memory() -> Option<MemoryInfo> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    };
    Some(MemoryInfo { total: kib("MemTotal")? << 10, available: kib("MemAvailable")? << 10 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn memory_is_granted_until_the_reserve_is_reached() {
        let store = BlockStore::new(Bytes::from_gib(64)).unwrap();
        let plenty = || Some(MemoryInfo { total: 20 * GIB, available: 10 * GIB });
        let short = || Some(MemoryInfo { total: 20 * GIB, available: GIB + (64 << 20) - 1 });
        assert!(store.grant(4096, plenty));
        // Memory that was granted before may still be used.
        assert!(store.grant(32 << 20, short));
        assert!(!store.grant(64 << 20, short));
        assert!(store.grant(64 << 20, plenty));
        assert!(store.grant(4096, || None));
    }

    #[test]
    fn a_machine_without_memory_is_told_what_a_disk_needs() {
        let error =
            MemoryInfo { total: GIB, available: 256 << 20 }.check().unwrap_err().to_string();
        assert!(error.contains("256 MiB of free memory is too little"), "{error}");
        assert!(error.contains("at least 320 MiB"), "{error}");
        assert!(MemoryInfo { total: GIB, available: GIB }.check().is_ok());
    }

    #[test]
    fn reads_stop_at_the_end() {
        let store = BlockStore::new(Bytes::from_mib(1)).unwrap();
        let near_end = Bytes::from_mib(1) - Bytes::new(10);
        assert_eq!(store.read(near_end, Bytes::from_kib(4), <[u8]>::len), Some(10));
        assert_eq!(store.read(Bytes::from_gib(1), Bytes::from_kib(4), <[u8]>::len), Some(0));
    }
}
