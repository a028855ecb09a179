//! Reduces the window of an active stream.
//!
//! Linux 6.18 never makes a window of a run smaller than the previous one (`page_cache_async_ra()`:
//! `ra->size = max(ra->size, …)`), whatever the limit of the open file. A run restarts when its
//! reader misses a page, and the reader misses if its last mark triggered nothing because the limit
//! was 0. So the open file gets the limit 0 until its reader has missed, and then the smaller
//! window. Until then it is read page by page: mostly until the next decision, and at most for 0.5
//! s.

use crate::tuning::Tuning;
use units::{Nanos, Pages};

/// The pending reduction of the window of one open file.
#[derive(Clone, Debug)]
pub(super) struct Shrink {
    /// The new window, and the reason for it.
    to: Pages,
    why: String,
    since: Nanos,
    missed: bool,
}

impl Shrink {
    /// Starts a reduction: the open file has no window from `now` on.
    pub fn new(to: Pages, why: String, now: Nanos) -> Self {
        Self { to, why, since: now, missed: false }
    }

    pub fn missed(&mut self) {
        self.missed = true;
    }

    /// Returns the new window and the reason once the reader has missed or 0.5 s have passed.
    pub fn over(&self, now: Nanos, tuning: &Tuning) -> Option<(Pages, String)> {
        let over = self.missed || now.saturating_sub(self.since) > tuning.observation_time;
        over.then(|| (self.to, self.why.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_comes_back_when_its_reader_has_missed_or_rests() {
        let (to, why) = (Pages::new(32), "it won nothing".to_owned());
        let mut shrink = Shrink::new(to, why.clone(), Nanos::ZERO);
        assert_eq!(shrink.over(Nanos::from_millis(100), &Tuning::DEFAULT), None);
        assert_eq!(shrink.over(Nanos::from_millis(501), &Tuning::DEFAULT), Some((to, why.clone())));
        shrink.missed();
        assert_eq!(shrink.over(Nanos::from_millis(1), &Tuning::DEFAULT), Some((to, why)));
    }
}
