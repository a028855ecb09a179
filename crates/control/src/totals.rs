//! Totals over readers.

use units::{Bytes, Nanos};

/// Sums over the readers of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderTotals {
    /// Number of waits for a page, and their total time.
    pub waits: u64,
    pub waited: Nanos,
    /// Bytes read ahead that a reader used, or none used: estimates that err towards waste.
    pub used: Bytes,
    pub wasted: Bytes,
}

impl ReaderTotals {
    pub(super) fn add(&mut self, more: &Self) {
        self.waits = self.waits.saturating_add(more.waits);
        self.waited += more.waited;
        self.used += more.used;
        self.wasted += more.wasted;
    }
}
