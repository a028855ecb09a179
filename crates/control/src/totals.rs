//! What readers did.

use units::{Bytes, Nanos};

/// Sums over the readers of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderTotals {
    /// How often, and how long, readers waited for a page.
    pub waits: u64,
    pub waited: Nanos,
    /// What was read ahead, by whether a reader came to it. An estimate, which errs towards waste.
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
