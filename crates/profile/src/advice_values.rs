//! Values of `posix_fadvise(2)` and `madvise(2)`, the same on all machines but s390.

pub(crate) const RANDOM_VALUE: u32 = 1;
pub(crate) const SEQUENTIAL_VALUE: u32 = 2;
pub(crate) const WILLNEED_VALUE: u32 = 3;
pub(crate) const DONTNEED_VALUE: u32 = 4;
