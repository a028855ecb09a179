//! Predicts the effect of a window or a prefetch on the recent accesses of an open file.
//!
//! [`predict`] replays the accesses through the algorithm of Linux 6.18, a page cache and a device
//! model with a few parameters ([`DeviceTimes`]), once for each [`Candidate`]. The idea is that of
//! miniature simulations (Waldspurger and others, ATC'17): instead of classifying the pattern and
//! applying a rule for each class, the controller computes the outcome of each action.
//!
//! The replay has one reader. Accesses of several readers of an open file are replayed one after
//! another, because kernel events do not identify the reader.

mod replay;

use std::sync::Arc;

use units::{Nanos, Pages};

use crate::tuning::{SINGLE_PAGE, Tuning};
use replay::WhatIfReplay;

/// One access of the past: a read call, or a fault of a mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastAccess {
    pub first: u64,
    /// At least 1. A mapped access touches these pages one after another.
    pub pages: u64,
    /// Time between the end of the previous access and the start of this one.
    pub think: Nanos,
    pub mapped: bool,
}

/// The service times of a device, as far as they matter to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTimes {
    /// The part of a read's time that does not depend on its size.
    pub fixed: Nanos,
    /// The same for a read that starts where the previous one ended: less on a disk that seeks.
    pub adjacent: Nanos,
    pub page: Nanos,
    /// Reads that are served at the same time. They share the transfer rate.
    pub parallel: usize,
}

/// A file and its share of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileView {
    pub pages: Pages,
    /// The largest folio order of the file; `None` for single pages only.
    pub folio_limit: Option<u8>,
    /// The largest request to the device.
    pub max_request: Pages,
    /// Pages of this file that the cache can hold.
    pub cache: Pages,
}

/// Prefetching in addition to the kernel's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    Nothing,
    /// The rest of a run of this length, this long after its first miss.
    AfterMiss(Pages, Nanos),
    /// The pages along the trend of the accesses, decided in intervals of this length.
    AlongTrend(Nanos),
}

/// A possible action for an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub window: Pages,
    pub extra: Extra,
}

impl Candidate {
    /// Returns a candidate with this kernel window and no prefetching.
    pub const fn window(pages: Pages) -> Self {
        Self { window: pages, extra: Extra::Nothing }
    }

    /// Returns a candidate that completes runs of this length after their first miss.
    pub fn after_miss(run: Pages, tuning: &Tuning) -> Self {
        Self { window: SINGLE_PAGE, extra: Extra::AfterMiss(run, tuning.wake_time) }
    }
}

/// The outcome of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictedOutcome {
    /// Number of waits of the reader, and their total time.
    pub waits: u64,
    pub waited: Nanos,
    /// From the start of the replay to the end of the last access.
    pub elapsed: Nanos,
    /// Requests to the device, and their pages.
    pub reads: u64,
    pub read: Pages,
    /// Pages that were evicted before the reader reached them.
    pub evicted_unused: Pages,
}

impl PredictedOutcome {
    /// Returns the cost in seconds: the waits, and `overhead` for each of them, which is the
    /// processor time of a fault or a wake-up. Measured waits do not include it.
    pub fn cost(&self, overhead: Nanos) -> f64 {
        self.waited.as_secs_f64() + self.waits as f64 * overhead.as_secs_f64()
    }

    /// Returns how many times as fast the reader is as with `other`.
    pub fn gain_over(&self, other: &Self) -> f64 {
        other.elapsed.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Replays the accesses with a candidate from a cold cache. Pages still in flight at the end count
/// as read.
pub fn predict(
    history: impl IntoIterator<Item = PastAccess>,
    file: &FileView,
    device: &DeviceTimes,
    candidate: Candidate,
    tuning: &Arc<Tuning>,
) -> PredictedOutcome {
    let mut replay = WhatIfReplay::new(file, device, candidate, tuning);
    for access in history {
        replay.access(access);
    }
    replay.finish()
}
