//! A smaller window for a stream that runs.
//!
//! Linux 6.18 makes no window of a run smaller than the one before
//! (`page_cache_async_ra()`: `ra->size = max(ra->size, …)`), whatever the open file may have. A
//! run begins anew where its reader misses a page, and it misses one where the mark before it led
//! to nothing, which is so while the open file may have no window at all. So it gets none until
//! its reader has missed, and then the smaller one. Until then it reads page by page: until the
//! next decision mostly, and for half a second at most.

use crate::tuning::shrink as tuning;
use units::{Nanos, Pages};

/// The window of one open file on its way down.
#[derive(Clone, Debug)]
pub(super) struct Shrink {
    /// The one that it is to have, and why.
    to: Pages,
    why: String,
    since: Nanos,
    missed: bool,
}

impl Shrink {
    /// It has none from now on.
    pub fn new(to: Pages, why: String, now: Nanos) -> Self {
        Self { to, why, since: now, missed: false }
    }

    pub fn missed(&mut self) {
        self.missed = true;
    }

    /// The window that it may have now, if it may, and why.
    pub fn over(&self, now: Nanos) -> Option<(Pages, String)> {
        let over = self.missed || now.saturating_sub(self.since) > tuning::MAX_MISS_WAIT;
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
        assert_eq!(shrink.over(Nanos::from_millis(100)), None);
        assert_eq!(shrink.over(Nanos::from_millis(501)), Some((to, why.clone())));
        shrink.missed();
        assert_eq!(shrink.over(Nanos::from_millis(1)), Some((to, why)));
    }
}
