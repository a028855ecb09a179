//! Times that readers of mappings wait for faults.

use std::collections::{BTreeMap, VecDeque};

use crate::tuning::SINGLE_PAGE;
use crate::what_if::DeviceTimes;
use units::{Nanos, Pages};

/// One in this many waits does not count: the longest ones.
const TRIMMED_PART: usize = 16;

/// The last waits for faults of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentWaits(VecDeque<Nanos>);

impl RecentWaits {
    /// Adds a wait; only the last `most` count.
    pub fn add(&mut self, wait: Nanos, most: usize) {
        if self.0.len() == most {
            self.0.pop_front();
        }
        self.0.push_back(wait);
    }

    /// Returns the mean without the longest sixteenth, because the first reads of a program also
    /// wait for metadata. A median would hide that one fault of each piece is slow: some arrays
    /// read ahead after the second.
    pub fn trimmed_mean(&self) -> Option<Nanos> {
        let mut waits: Vec<Nanos> = self.0.iter().copied().collect();
        waits.sort_unstable();
        waits.truncate(waits.len() - waits.len() / TRIMMED_PART);
        let sum: Nanos = waits.iter().copied().sum();
        (!waits.is_empty()).then(|| sum.scaled(1.0 / waits.len() as f64))
    }
}

/// A wait for a fault, with the window in use then. `is_adjacent` is true if the fault directly
/// follows the pages that the previous fault read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FaultWait {
    pub window: Pages,
    pub is_adjacent: bool,
    pub wait: Nanos,
}

/// The waits for faults of all mappings of a device. The waits of a single mapping vary too much if
/// several readers queue for a disk: each depends on the requests of the others.
#[derive(Clone, Debug, Default)]
pub(super) struct FaultWaits(BTreeMap<(Pages, bool), RecentWaits>);

impl FaultWaits {
    /// Adds a wait; only the last `most` of each kind count.
    pub fn add(&mut self, one: FaultWait, most: usize) {
        self.0.entry((one.window, one.is_adjacent)).or_default().add(one.wait, most);
    }

    pub fn mean(&self, window: Pages, is_adjacent: bool) -> Option<Nanos> {
        self.0.get(&(window, is_adjacent))?.trimmed_mean()
    }

    /// Estimates service times from the waits with the original window and with one page.
    pub fn device(&self, original: Pages, parallel: usize) -> Option<DeviceTimes> {
        let whole = self.mean(original, false)?;
        let (first, adjacent) = (self.mean(SINGLE_PAGE, false), self.mean(SINGLE_PAGE, true));
        let single = first.or(adjacent)?;
        let more = (original.get() - 1).max(1) as f64;
        let page = whole.saturating_sub(single).scaled(1.0 / more);
        let fixed = |wait: Nanos| wait.saturating_sub(page);
        let adjacent = fixed(adjacent.unwrap_or(single).min(single));
        Some(DeviceTimes { fixed: fixed(single), adjacent, page, parallel })
    }
}
