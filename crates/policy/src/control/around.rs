//! Whether what the kernel reads around random faults of a mapping is worth its time.
//!
//! Each fault brings as much as the window allows around itself: in vain, mostly, so a mapping that
//! is read at random gets a window of a page. But while the rest of its file is read anyway, what
//! comes around a fault is the same work done in passing. On a disk that seeks it comes nearly
//! free. So while its file is primed a mapping has its own window, unless the faults' own times say
//! that a smaller one serves its reader sooner.

use units::{Nanos, Pages};

/// Faults that must have been waited for with a window before it is judged.
const KNOWN: u64 = 8;
/// A fault that still takes at least this part of what it took has won too little.
const LITTLE: f64 = 0.7;

/// Faults that were waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    count: u64,
    waited: Nanos,
}

impl Faults {
    fn mean(&self) -> Option<f64> {
        (self.count >= KNOWN).then(|| self.waited.as_secs_f64() / self.count as f64)
    }
}

/// What is known of random faults of one mapping: with the window that it had when it was met, and
/// with a smaller one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    own: Faults,
    smaller: Faults,
    is_smaller: bool,
}

impl Around {
    /// A fault was waited for.
    pub fn waited(&mut self, wait: Nanos) {
        let faults = if self.is_smaller { &mut self.smaller } else { &mut self.own };
        faults.count += 1;
        faults.waited += wait;
    }

    /// It has this window, where its own is that one.
    pub fn has(&mut self, window: Pages, own: Pages) {
        self.is_smaller = window < own;
    }

    /// Whether it is to have its own window while its file is primed. Where one of both windows was
    /// not tried yet, that is tried.
    pub fn wants_own(&self) -> bool {
        match (self.own.mean(), self.smaller.mean()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(smaller)) => smaller >= LITTLE * own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults that take so many microseconds with the own window, and with a page.
    fn tried(own: u64, smaller: u64) -> bool {
        let mut around = Around::default();
        for (window, wait) in [(32, own), (1, smaller)] {
            around.has(Pages::new(window), Pages::new(32));
            assert_eq!(around.wants_own(), window == 32, "first its own window, then a page");
            (0..KNOWN).for_each(|_| around.waited(Nanos::from_micros(wait)));
        }
        around.wants_own()
    }

    #[test]
    fn where_seeks_take_the_time_it_has_its_own_window() {
        assert!(tried(9500, 8300));
    }

    #[test]
    fn where_the_window_takes_the_time_it_has_a_page() {
        for (own, smaller) in [(88_000, 8300), (350, 100), (2100, 1000)] {
            assert!(!tried(own, smaller));
        }
    }
}
