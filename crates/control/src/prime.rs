//! Finishing what random reads have begun: where they will read all of a file that fits into
//! memory, it is read once, in order.
//!
//! The rule is that of renting or buying: who buys once the rent has cost as much pays at most
//! twice what the best decision would have cost, whatever comes. Here the rent is what readers wait
//! for a file, and the price what it takes to read the rest of it in order. But it is not bought at
//! once: the readers must not suffer, so their waits may grow only as far as there are fewer of
//! them, because part of the file is there already (`PrimingController`): little is read at first.
//! So it begins when half of the price has been waited for. Programs that end sooner lose nothing,
//! and whoever stops when it has cost all of the price has let little be read in vain. Of the waits
//! only those count that reading the same pages in order would have saved.

use units::{Bytes, Nanos, Pages};

use crate::tuning::device::MIN_STREAM_BYTES_PER_SECOND;
use crate::tuning::priming as tuning;
use policy::{Extent, Page};

#[derive(Clone, Debug, Default)]
pub(super) struct FilePriming {
    /// A bit for each page that was asked for or primed.
    touched: Vec<u64>,
    count: u64,
    /// How many of them were primed before a reader asked for them.
    primed: u64,
    /// How long readers waited in all, in seconds, and how often.
    stalled: f64,
    stalls: u64,
    /// How long they wait of late, before anything is primed, in seconds for each second.
    waits: f64,
    /// Waits while nothing was primed, and how long they took in all.
    alone: (u64, f64),
    /// The next page, while it is at work.
    at: Option<u64>,
    /// How often it was read to its end.
    times: i32,
    /// Since how long nobody has asked for anything.
    quiet: Nanos,
}

impl FilePriming {
    pub fn touch(&mut self, start: u64, pages: u64) {
        let end = start.saturating_add(pages).min(tuning::MAX_FILE_PAGES);
        for page in start..end {
            let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
            if self.touched.len() <= word {
                self.touched.resize(word + 1, 0);
            }
            if self.touched[word] & bit == 0 {
                self.touched[word] |= bit;
                self.count += 1;
            }
        }
    }

    /// Readers waited so often and so long over an interval. Where several wait at once, the time
    /// that is lost is no longer than the interval.
    pub fn waited(&mut self, stalls: u64, stalled: Nanos, elapsed: Nanos) {
        if self.at.is_none() {
            // What they do not wait for any more is won, for whatever else is primed.
            let won = self.waits
                * 0.5_f64.powf(elapsed.as_secs_f64() / tuning::GAIN_HALF_LIFE.as_secs_f64());
            let won = if self.times > 0 { won } else { 0.0 };
            self.waits = lately(self.waits, stalled, elapsed).max(won);
        }
        self.quiet = if stalls == 0 { self.quiet + elapsed } else { Nanos::ZERO };
        self.stalls += stalls;
        self.stalled += stalled.min(elapsed).as_secs_f64();
    }

    /// Readers waited so often and so long over an interval, and nothing is primed.
    pub fn waited_alone(&mut self, stalls: u64, stalled: Nanos) {
        self.alone = (self.alone.0 + stalls, self.alone.1 + stalled.as_secs_f64());
    }

    /// How many waits for it were seen while nothing was primed, and how long one took, in seconds,
    /// if there were enough to tell.
    pub fn alone(&self) -> Option<(u64, f64)> {
        (self.alone.0 >= tuning::MIN_WAITS)
            .then(|| (self.alone.0, self.alone.1 / self.alone.0 as f64))
    }

    /// How long readers waited for it before it was primed, in seconds for each second, and the
    /// share of that for which they still have to. What they read themselves is no merit of
    /// priming: it would be cached without.
    pub fn waits(&self, file: Pages) -> (f64, f64) {
        let missing = file.get().saturating_sub(self.count);
        (self.waits, missing as f64 / (missing + self.primed).max(1) as f64)
    }

    /// What a page of it saves, in seconds of waiting for each second; nothing while it is not at
    /// work or nobody asks for it.
    pub fn worth(&self, file: Pages) -> Option<f64> {
        self.is_wanted().then(|| self.waits / (file.get() as f64).max(1.0))
    }

    /// Whether it is at work.
    pub fn is_at_work(&self) -> bool {
        self.at.is_some()
    }

    /// Whether it is at work, and somebody asks for the file.
    pub fn is_wanted(&self) -> bool {
        self.at.is_some() && self.quiet <= tuning::IDLE_TIMEOUT
    }

    /// Nobody has the file open any more.
    pub fn stop(&mut self) {
        self.at = None;
    }

    /// How many pages are to be read if it begins; `None` if it may not: it is at work, nothing is
    /// missing, or what is missing does not fit.
    fn missing(&self, file: Pages, room: Pages) -> Option<u64> {
        // Who still waits for what was read once has lost it again.
        let present = if self.times > 0 { 0 } else { self.count };
        let missing = file.get().saturating_sub(present);
        let fits = file.get() <= tuning::MAX_FILE_PAGES && missing <= room.get();
        (self.at.is_none() && missing > 0 && fits).then_some(missing)
    }

    /// Begins, if it fits and the operator has asked for it, the first time that a reader waits.
    pub fn begin_as_asked(&mut self, file: Pages, room: Pages) -> Option<String> {
        if self.times > 0 {
            return None;
        }
        self.missing(file, room)?;
        self.at = Some(0);
        Some("it is read, and --prime names it".to_owned())
    }

    /// Whether it is worth while to begin, and why.
    pub fn begin(&mut self, file: Pages, page: Bytes, rate: Bytes, room: Pages) -> Option<String> {
        if self.stalls < tuning::MIN_WAITS {
            return None;
        }
        let missing = self.missing(file, room)?;
        let in_order = |pages| {
            (pages * page.get()) as f64 / (rate.get() as f64).max(MIN_STREAM_BYTES_PER_SECOND)
        };
        let cost = in_order(missing);
        // What was read may be lost as often as it is read: each time it must have cost twice as
        // much.
        let again = self.times > 0;
        let is_worth = if again {
            self.stalled >= cost * 2_f64.powi(self.times)
        } else {
            // Where readers ask for large pieces, they get them almost as fast as in order.
            self.stalled - in_order(self.count) >= tuning::START_COST_SHARE * cost
        };
        if !is_worth {
            return None;
        }
        if again {
            self.touched.clear();
            (self.count, self.primed) = (0, 0);
        }
        self.at = Some(0);
        Some(format!(
            "its readers waited {:.1} s for random reads; the {} that they have not read yet come \
             in {cost:.1} s if read in order",
            self.stalled,
            Bytes::new(missing * page.get())
        ))
    }

    /// What is to be read now of so many pages that may be, from which it is taken.
    pub fn due(&mut self, file: Pages, owed: &mut f64) -> Vec<Extent> {
        let Some(mut at) = self.at else { return Vec::new() };
        let mut due = Vec::new();
        while *owed >= tuning::PIECE_PAGES as f64 && at < file.get() {
            let end = (at + tuning::PIECE_PAGES).min(file.get());
            let untouched = (at..end).filter(|page| !self.has(*page)).count() as u64;
            if untouched > 0 {
                due.push(Extent::new(Page::new(at), Pages::new(end - at)));
                self.touch(at, end - at);
                self.primed += untouched;
                *owed -= untouched as f64;
            }
            at = end;
        }
        let finished = at >= file.get();
        self.at = (!finished).then_some(at);
        if finished {
            (self.stalls, self.stalled, self.times) = (0, 0.0, self.times + 1);
        }
        due
    }

    fn has(&self, page: u64) -> bool {
        self.touched.get((page / 64) as usize).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }
}

/// How long readers wait of late, in seconds for each second.
pub(super) fn lately(before: f64, stalled: Nanos, elapsed: Nanos) -> f64 {
    let seconds = elapsed.as_secs_f64().max(1e-6);
    let weight = seconds.min(1.0);
    before + weight * (stalled.as_secs_f64() / seconds - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Bytes = Bytes::from_kib(4);

    fn waited(seconds: u64) -> FilePriming {
        let mut priming = FilePriming::default();
        for page in 0..seconds * 100 {
            priming.touch(page * 7 % 10_000, 1);
            priming.waited(1, Nanos::from_millis(10), Nanos::from_millis(10));
        }
        priming
    }

    #[test]
    fn it_begins_when_waiting_has_cost_a_part_of_it() {
        let file = Pages::new(204_800); // 800 MiB: 21 s
        let begin = |seconds, room| {
            waited(seconds).begin(file, PAGE, Bytes::from_mib(1), Pages::new(room)).is_some()
        };
        assert!(!begin(9, 1 << 20) && begin(12, 1 << 20));
        assert!(!begin(12, 1000), "it would not fit");
    }

    #[test]
    fn pieces_that_come_as_fast_as_in_order_are_no_reason() {
        let mut priming = FilePriming::default();
        for piece in 0..900_u64 {
            priming.touch(piece * 7 % 1000 * 64, 64);
            priming.waited(2, Nanos::from_micros(2500), Nanos::from_micros(2500));
        }
        let file = Pages::new(64_000);
        let begin = |rate| priming.clone().begin(file, PAGE, Bytes::from_mib(rate), file).is_some();
        assert!(!begin(100), "64 pages come in 2.5 ms in order");
        assert!(begin(1000), "64 pages come in 0.25 ms");
    }

    #[test]
    fn what_the_operator_asked_for_is_read_once_if_it_fits() {
        let file = Pages::new(204_800);
        let mut priming = waited(1);
        assert_eq!(priming.begin_as_asked(file, Pages::new(100_000)), None, "it would not fit");
        assert!(priming.begin_as_asked(file, file).is_some());
        while priming.is_at_work() {
            priming.due(file, &mut 1e6);
        }
        assert_eq!(priming.begin_as_asked(file, file), None);
    }

    #[test]
    fn all_that_is_missing_is_read_once() {
        let file = Pages::new(10_000);
        let mut priming = waited(9);
        assert_eq!(priming.worth(file), None, "it has not begun");
        priming.begin(file, PAGE, Bytes::from_mib(100), Pages::new(1 << 20)).expect("a beginning");
        assert!((0.9..=1.0).contains(&(priming.worth(file).expect("a worth") * 10_000.0)));
        assert_eq!(priming.due(file, &mut (tuning::PIECE_PAGES as f64 - 1.0)), []);
        let mut read = 0;
        while priming.is_at_work() {
            let due = priming.due(file, &mut 2500.0);
            read += due.iter().map(|piece| piece.pages.get()).sum::<u64>();
        }
        assert!((9_000..=10_000).contains(&read), "{read}");
        assert!(priming.waits(file).1 < 0.01);
        let again = |priming: &mut FilePriming| {
            priming.begin(file, PAGE, Bytes::ZERO, Pages::new(1 << 20)).is_some()
        };
        assert!(!again(&mut priming), "once");
        // All of it comes in 1.02 s.
        for _ in 0..2 {
            priming.waited(100, Nanos::from_secs(1), Nanos::from_secs(1));
        }
        assert!(!again(&mut priming));
        priming.waited(100, Nanos::from_secs(1), Nanos::from_secs(1));
        assert!(again(&mut priming), "it was evicted");
    }

    #[test]
    fn what_was_won_counts_for_a_while() {
        let file = Pages::new(10_000);
        let mut priming = waited(9);
        priming.begin(file, PAGE, Bytes::from_mib(100), Pages::new(1 << 20)).expect("a beginning");
        while priming.is_at_work() {
            priming.due(file, &mut 2500.0);
        }
        let waits = |priming: &FilePriming| (100.0 * priming.waits(file).0).round();
        for _ in 0..10 {
            assert!(waits(&priming) > 49.0);
            priming.waited(0, Nanos::ZERO, Nanos::from_secs(1));
        }
        assert_eq!(waits(&priming), 50.0);
    }
}
