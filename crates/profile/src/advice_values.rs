//! Values of `posix_fadvise(2)` and `madvise(2)`, the same on all architectures except s390.

use observe::AdviceCallKind;

pub(crate) const RANDOM_VALUE: u32 = 1;
pub(crate) const SEQUENTIAL_VALUE: u32 = 2;
pub(crate) const WILLNEED_VALUE: u32 = 3;
pub(crate) const DONTNEED_VALUE: u32 = 4;

/// Returns whether an advice call sets a lasting access pattern (`NORMAL`, `RANDOM`, `SEQUENTIAL`)
/// or is a failed fadvise or madvise. Other advice reads or drops pages at once.
pub(crate) fn lasts(call: AdviceCallKind, advice: u32, result: i64) -> bool {
    call != AdviceCallKind::Readahead && (advice <= SEQUENTIAL_VALUE || result < 0)
}
