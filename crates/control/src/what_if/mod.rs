//! What a window or a prefetch would have done to the recent accesses of an open file.
//!
//! [`predict`] replays the accesses through the algorithm of Linux 6.18, a page cache and a device
//! of which only a few numbers are known ([`DeviceTimes`]), once for each [`Candidate`]. The idea
//! is that of miniature simulations (Waldspurger and others, ATC'17): instead of classifying the
//! pattern and having a rule for each class, the controller computes the outcome of each action.
//!
//! The replay has one reader. Accesses of several readers of an open file are replayed one after
//! another, as the events of a kernel do not name the reader.

mod replay;

use units::{Nanos, Pages};

use replay::WhatIfReplay;

/// One access of the past: a read call, or a fault of a mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastAccess {
    pub first: u64,
    /// At least 1. A mapped access touches these pages one after another.
    pub pages: u64,
    /// The time between the end of the access before and the beginning of this one.
    pub think: Nanos,
    pub mapped: bool,
}

/// The service times of a device, as far as they matter to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTimes {
    /// The part of a read's time that does not depend on its size.
    pub fixed: Nanos,
    /// The same for a read that begins where the one before it ended: less on a disk that seeks.
    pub adjacent: Nanos,
    pub page: Nanos,
    /// Reads that are served at the same time. They share the transfer rate.
    pub parallel: usize,
}

/// The file, its open file and its cache before any candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileView {
    pub pages: Pages,
    /// The largest folio order of the file; `None` for single pages only.
    pub folio_limit: Option<u8>,
    /// The largest request to the device.
    pub max_request: Pages,
    /// What the cache holds of this file.
    pub cache: Pages,
}

/// What is prefetched in addition to the kernel's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    Nothing,
    /// The rest of a run of this length, this long after its first miss.
    AfterMiss(Pages, Nanos),
    /// The pages along the trend of the accesses, decided in intervals of this length.
    AlongTrend(Nanos),
}

/// An action that may be taken for an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub window: Pages,
    pub extra: Extra,
}

impl Candidate {
    /// A window of the kernel's and nothing else.
    pub const fn window(pages: Pages) -> Self {
        Self { window: pages, extra: Extra::Nothing }
    }
}

/// The outcome of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictedOutcome {
    /// How often, and how long, the reader waits.
    pub waits: u64,
    pub waited: Nanos,
    /// From the first access to the end of the last.
    pub elapsed: Nanos,
    /// Requests to the device, and their pages.
    pub reads: u64,
    pub read: Pages,
    /// Pages that were evicted before the reader came to them.
    pub evicted_unused: Pages,
}

impl PredictedOutcome {
    /// The time that counts, in seconds: each wait also costs the processor time of a fault or a
    /// wake-up, which a wait as it is measured does not include.
    pub fn cost(&self, overhead: Nanos) -> f64 {
        self.waited.as_secs_f64() + self.waits as f64 * overhead.as_secs_f64()
    }

    /// How many times as fast the reader is as with `other`.
    pub fn gain_over(&self, other: &Self) -> f64 {
        other.elapsed.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Replays the accesses with a candidate from a cold cache. What is still in flight at the end
/// counts as read.
pub fn predict(
    history: impl IntoIterator<Item = PastAccess>,
    file: &FileView,
    device: &DeviceTimes,
    candidate: Candidate,
) -> PredictedOutcome {
    let mut replay = WhatIfReplay::new(file, device, candidate);
    for access in history {
        replay.access(access);
    }
    replay.finish()
}
