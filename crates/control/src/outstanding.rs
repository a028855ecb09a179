//! Pages that were read ahead, and how many of them readers have reached.
//!
//! A read of a cached page triggers no probe, which makes observation cheap. Usage is therefore
//! inferred from the next place where a reader is seen: a mark, a miss, or the position of the open
//! file. The pages before that place in the same run of windows were used. Pages that no reader
//! reaches for some time count as wasted. This is an estimate that errs towards waste.

use std::collections::VecDeque;
use std::sync::Arc;

use units::Nanos;

use crate::tuning::Tuning;

#[derive(Clone, Copy, Debug)]
struct Ahead {
    start: u64,
    end: u64,
    /// Pages before this one were used.
    reached: u64,
    since: Nanos,
    /// Whether these are the pages of a prefetched call, whose reader uses all of them.
    is_call: bool,
}

/// Windows that were submitted and are not used up yet.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    windows: VecDeque<Ahead>,
    /// Pages known to have been used.
    pub used: u64,
    pub wasted: u64,
    tuning: Arc<Tuning>,
}

impl Outstanding {
    pub(super) fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Adds a window, of which a reader requested `asked` pages from `at` on.
    pub fn submit(&mut self, start: u64, end: u64, at: u64, asked: u64, now: Nanos) {
        // The kernel's windows pass through the pages of a prefetched call.
        let holds = |one: &&Ahead| one.is_call && one.start <= start && start < one.end;
        let start = self.windows.iter().rfind(holds).map_or(start, |call| call.end);
        if start >= end {
            return;
        }
        let reached = if start <= at { at.saturating_add(asked).min(end) } else { start };
        // In a window around a fault, only the faulting page was requested.
        let reached = if start < at { start.saturating_add(asked).min(end) } else { reached };
        self.add(Ahead { start, end, reached, since: now, is_call: false });
    }

    /// Adds the pages of a call that is prefetched as a whole.
    pub fn submit_call(&mut self, start: u64, end: u64, now: Nanos) {
        self.add(Ahead { start, end, reached: end, since: now, is_call: true });
    }

    fn add(&mut self, window: Ahead) {
        while self.windows.len() >= self.tuning.max_remembered
            && let Some(oldest) = self.windows.pop_front()
        {
            self.give_up(oldest);
        }
        self.windows.push_back(window);
    }

    /// Records a reader at `page`. The pages that lead up to it without a gap were used.
    pub fn reader_at(&mut self, page: u64) {
        let mut place = page;
        let past = |one: &Ahead| {
            one.end < page
                && page - one.end <= self.tuning.min_piece_pages
                && one.start < one.reached
        };
        if let Some(at) = self.windows.iter().rposition(past)
            && let Some(one) = self.windows.remove(at)
        {
            self.used = self.used.saturating_add(one.end - one.start);
        }
        // Follows adjacent windows backward; no window is visited twice.
        for _ in 0..self.tuning.max_remembered {
            let holds = |one: &Ahead| one.start < place && place <= one.end;
            let Some(at) = self.windows.iter().rposition(holds) else { break };
            let one = &mut self.windows[at];
            one.reached = one.reached.max(place);
            let is_over = one.reached == one.end && (!one.is_call || place == one.end);
            place = one.start;
            if is_over {
                self.used = self.used.saturating_add(one.end - one.start);
                self.windows.remove(at);
            }
        }
    }

    /// Records that a reader went from `end` to `to`: the pages between them were read in vain.
    pub fn skip(&mut self, end: u64, to: u64) {
        self.reader_at(end);
        for one in std::mem::take(&mut self.windows) {
            let (from, until) = (end.max(one.reached), to.min(one.end));
            if from >= until {
                self.windows.push_back(one);
                continue;
            }
            self.wasted = self.wasted.saturating_add(until - from);
            if one.start < from {
                self.windows.push_back(Ahead { end: from, ..one });
            }
            if until < one.end {
                self.windows.push_back(Ahead { start: until, reached: until, ..one });
            }
        }
    }

    /// Returns whether the page was read ahead and no reader has reached it yet.
    pub fn awaits(&self, page: u64) -> bool {
        self.windows.iter().any(|one| one.reached <= page && page < one.end)
    }

    /// Drops windows that are too old. `pages` is the size of the file, where windows are cut off.
    pub fn expire(&mut self, now: Nanos, pages: Option<u64>) {
        if let Some(pages) = pages {
            for one in &mut self.windows {
                one.end = one.end.min(pages.max(one.start));
                one.reached = one.reached.min(one.end);
            }
        }
        let timeout = self.tuning.fade_time;
        let old = |one: &Ahead| now.saturating_sub(one.since) > timeout;
        while let Some(at) = self.windows.iter().position(old) {
            if let Some(one) = self.windows.remove(at) {
                self.give_up(one);
            }
        }
    }

    /// Returns the number of pages that readers are known to have reached.
    pub fn progress(&self) -> u64 {
        let reached = self.windows.iter().map(|one| one.reached.saturating_sub(one.start));
        self.used.saturating_add(reached.sum())
    }

    /// Returns the number of pages that were read ahead and not reached.
    pub fn ahead(&self) -> u64 {
        self.windows.iter().map(|one| one.end.saturating_sub(one.reached)).sum()
    }

    fn give_up(&mut self, one: Ahead) {
        self.used = self.used.saturating_add(one.reached.saturating_sub(one.start));
        self.wasted = self.wasted.saturating_add(one.end.saturating_sub(one.reached));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_leads_up_to_a_reader_was_used() {
        let mut ahead = Outstanding::default();
        ahead.submit(0, 64, 0, 16, Nanos::ZERO);
        ahead.submit(64, 320, 64, 0, Nanos::ZERO);
        assert!(ahead.awaits(100) && !ahead.awaits(3) && !ahead.awaits(320));
        ahead.reader_at(100);
        assert_eq!((ahead.used, ahead.ahead()), (64, 220));
        ahead.reader_at(320);
        assert_eq!((ahead.used, ahead.wasted, ahead.ahead()), (320, 0, 0));
    }

    #[test]
    fn what_a_reader_skips_was_not_used() {
        let mut ahead = Outstanding::default();
        ahead.submit(0, 64, 0, 16, Nanos::ZERO);
        ahead.submit(64, 320, 64, 0, Nanos::ZERO);
        ahead.skip(40, 100);
        assert_eq!((ahead.progress(), ahead.wasted), (40, 60));
        ahead.reader_at(200);
        assert_eq!((ahead.progress(), ahead.wasted, ahead.ahead()), (140, 60, 120));
    }

    #[test]
    fn what_nobody_comes_to_is_wasted_up_to_the_end_of_the_file() {
        let mut ahead = Outstanding::default();
        ahead.submit(1000, 1032, 1016, 1, Nanos::ZERO);
        ahead.expire(Nanos::from_secs(5), None);
        assert_eq!(ahead.wasted, 0);
        ahead.expire(Nanos::from_secs(11), Some(1024));
        assert_eq!((ahead.used, ahead.wasted), (1, 23));
    }

    #[test]
    fn windows_of_the_kernel_within_a_prefetched_call_count_once() {
        let mut ahead = Outstanding::default();
        ahead.submit_call(0, 241, Nanos::ZERO);
        ahead.submit(0, 128, 0, 241, Nanos::ZERO);
        ahead.reader_at(64);
        ahead.submit(128, 256, 64, 0, Nanos::ZERO);
        assert_eq!((ahead.progress(), ahead.ahead()), (241, 15));
        ahead.reader_at(241);
        ahead.expire(Nanos::MAX, None);
        assert_eq!((ahead.used, ahead.wasted), (241, 15));
    }

    proptest! {
        #[test]
        fn no_page_is_counted_twice(
            steps in prop::collection::vec((0_u64..500, 1_u64..64), 1..80)
        ) {
            let (mut ahead, mut submitted) = (Outstanding::default(), 0);
            for (at, size) in steps {
                ahead.submit(at, at + size, at, 1, Nanos::ZERO);
                submitted += size;
                ahead.reader_at(at / 2);
                ahead.skip(at / 2, at / 2 + size / 2);
            }
            ahead.expire(Nanos::MAX, None);
            prop_assert_eq!(ahead.used + ahead.wasted, submitted);
        }
    }
}
