//! Priming: reads all of a file once, in order, if random reads are going to cover it and it fits
//! into memory.
//!
//! The start follows the rent-or-buy (ski rental) rule: buying once the rent paid equals the price
//! costs at most twice the optimum, whatever happens later. The rent is the time that readers wait
//! for a file, the price the time to read the rest of it in order. However, priming reads little at
//! first: readers must not become slower, so each wait may grow only as far as the number of waits
//! falls because part of the file is cached (`PrimingController`). Priming therefore starts when
//! the waits have reached half of the price. A program that exits earlier loses nothing; if it
//! exits when the waits reach the price, little was read in vain. Once they have reached it, bursts
//! find out how fast the device can prime, or the rest is read at once if that takes at most
//! `observation_time`, or twice that while the rate is only assumed. Only waits count that reading
//! the same pages in order would have avoided. Of those while streams wait, too, only the random
//! reads' share counts.
//!
//! For random reads, no first pass starts if the last of them took less than `min_random_cost`
//! times as long as reading their pages in order. It could then save less than twice the time that
//! is lost if readers need none of the rest.

use std::sync::Arc;

use units::{Bytes, Nanos, Pages};

use crate::tuning::Tuning;
use policy::{Extent, Page};

/// The largest file that is tracked, one bit for each page. Bounds memory.
const MAX_FILE_PAGES: u64 = 1 << 22;

/// Waits of readers for the pages of a file: their number and their total time in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rent {
    pub stalls: u64,
    pub stalled: f64,
}

impl Rent {
    pub fn and(self, other: Self) -> Self {
        Self { stalls: self.stalls + other.stalls, stalled: self.stalled + other.stalled }
    }

    fn since(self, before: Self) -> Self {
        Self { stalls: self.stalls - before.stalls, stalled: self.stalled - before.stalled }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct FilePriming {
    /// A bitmap of the pages that readers requested or that were prefetched.
    touched: Vec<u64>,
    count: u64,
    /// The number of pages that were primed before a reader requested them.
    primed: u64,
    /// All waits of readers, and those until the last complete pass.
    rent: Rent,
    rent_before: Rent,
    /// The part of these waits that counts towards the start, in seconds, since the last complete
    /// pass.
    paid: f64,
    /// The waits since the last sample of them; of their time, the part that counts.
    sample: Rent,
    /// The number of pages that readers had requested then.
    pages_before_sample: u64,
    /// The wait time for each page of the last sample, in seconds. Readers may have read in order
    /// before, so earlier waits do not count.
    page_wait: f64,
    /// The recent wait time before priming, in seconds per second.
    waits: f64,
    /// The number of waits while nothing was primed, and their total time in seconds.
    alone: (u64, f64),
    /// The next page to prime; `None` while priming is inactive.
    at: Option<u64>,
    /// The number of complete passes.
    times: i32,
    /// The time from the first to the last wait of a reader for the file, and since the last one.
    active: Nanos,
    quiet: Nanos,
    tuning: Arc<Tuning>,
}

impl FilePriming {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    pub fn touch(&mut self, start: u64, pages: u64) {
        let end = start.saturating_add(pages).min(MAX_FILE_PAGES);
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

    /// Returns the number of pages at the start of the file, without a gap, that readers requested
    /// or that were prefetched.
    pub fn touched_from_start(&self) -> u64 {
        let whole = self.touched.iter().take_while(|word| **word == u64::MAX).count();
        let rest = self.touched.get(whole).map_or(0, |word| word.trailing_ones());
        64 * whole as u64 + u64::from(rest)
    }

    /// Adds the number and the total time of waits over an interval. If several readers wait at
    /// once, the lost time is at most the interval. `share` of it counts towards the start: the
    /// part that random reads have of all waits for the device. The other waits are streams', which
    /// priming does not shorten.
    pub fn waited(&mut self, stalls: u64, stalled: Nanos, share: f64, elapsed: Nanos) {
        if self.at.is_none() {
            // After a pass, avoided waits decay slowly and raise the rate for other files.
            let won = self.waits
                * 0.5_f64.powf(elapsed.as_secs_f64() / self.tuning.fade_time.as_secs_f64());
            let won = if self.times > 0 { won } else { 0.0 };
            // Before its first wait, the file was not read.
            let span = (self.active + self.quiet + elapsed).max(self.tuning.observation_time);
            self.waits = lately(self.waits, stalled, elapsed, span).max(won);
        }
        if stalls > 0 {
            let between = if self.rent.stalls > 0 { self.quiet } else { Nanos::ZERO };
            (self.active, self.quiet) = (self.active + between + elapsed, Nanos::ZERO);
        } else {
            self.quiet += elapsed;
        }
        let stalled = stalled.min(elapsed).as_secs_f64();
        self.rent = self.rent.and(Rent { stalls, stalled });
        self.paid += share * stalled;
        self.sample = self.sample.and(Rent { stalls, stalled: share * stalled });
        let (pages, before) = (self.requested(), self.pages_before_sample);
        // Waits for pages that were read before say nothing about the rest.
        if self.sample.stalls >= self.tuning.few_samples && pages > before {
            self.page_wait = self.sample.stalled / (pages - before) as f64;
            (self.sample, self.pages_before_sample) = (Rent::default(), pages);
        }
    }

    /// Returns the waits so far; none if readers waited for other files for most of the time
    /// between the first and the last of these.
    pub fn dense_rent(&self) -> Rent {
        let is_dense = self.rent.stalled >= self.tuning.minority_share * self.active.as_secs_f64();
        if is_dense { self.rent } else { Rent::default() }
    }

    /// Adds the number and the total time of waits over an interval without priming.
    pub fn waited_alone(&mut self, stalls: u64, stalled: Nanos) {
        self.alone = (self.alone.0 + stalls, self.alone.1 + stalled.as_secs_f64());
    }

    /// Returns the number of waits while nothing was primed, and their mean in seconds; `None` if
    /// there were too few.
    pub fn alone(&self) -> Option<(u64, f64)> {
        (self.alone.0 >= self.tuning.few_samples)
            .then(|| (self.alone.0, self.alone.1 / self.alone.0 as f64))
    }

    /// Returns the wait time before priming, in seconds per second, and the share of it that
    /// remains. Pages that readers read themselves do not count for priming: they would be cached
    /// without it.
    pub fn waits(&self, file: Pages) -> (f64, f64) {
        let missing = file.get().saturating_sub(self.count);
        let others = missing + self.primed;
        (self.waits, if others > 0 { missing as f64 / others as f64 } else { 1.0 })
    }

    /// Returns the wait time that a page of the file saves, in seconds per second; `None` while
    /// priming is inactive or no reader waits for the file.
    pub fn worth(&self, file: Pages) -> Option<f64> {
        self.is_wanted().then(|| self.waits / (file.get() as f64).max(1.0))
    }

    /// Returns the waits that count, beyond the time to read the same pages in order, and the
    /// time to read the rest in order, in seconds. `rate` is in bytes per second.
    pub fn paid_and_price(&self, file: Pages, page: Bytes, rate: Bytes) -> (f64, f64) {
        let in_order = |pages: u64| in_order(pages, page, rate);
        let paid = self.paid - in_order(self.requested());
        (paid, in_order(file.get().saturating_sub(self.count)))
    }

    /// Returns the number of pages that readers requested themselves.
    fn requested(&self) -> u64 {
        self.count - self.primed
    }

    /// Returns whether priming is active.
    pub fn is_at_work(&self) -> bool {
        self.at.is_some()
    }

    /// Returns whether priming is active and readers have recently waited for the file.
    pub fn is_wanted(&self) -> bool {
        self.at.is_some() && self.quiet <= self.tuning.idle_timeout
    }

    /// Stops priming, as no process has the file open any more.
    pub fn stop(&mut self) {
        self.at = None;
    }

    /// Returns the number of pages that priming would read; `None` if it cannot start: it is
    /// active, nothing is missing, or the file does not fit.
    fn missing(&self, file: Pages, room: Pages) -> Option<u64> {
        // If readers still wait after a complete pass, its pages were evicted.
        let present = if self.times > 0 { 0 } else { self.count };
        let missing = file.get().saturating_sub(present);
        let fits = file.get() <= MAX_FILE_PAGES && missing <= room.get();
        (self.at.is_none() && missing > 0 && fits).then_some(missing)
    }

    /// Starts priming at the operator's request, once, if the file fits. Returns the reason.
    pub fn begin_as_asked(&mut self, file: Pages, room: Pages) -> Option<String> {
        if self.times > 0 {
            return None;
        }
        self.missing(file, room)?;
        self.at = Some(0);
        Some("it is read, and --prime names it".to_owned())
    }

    /// Starts priming if that is worth the cost. Returns the reason; `None` if it does not start.
    /// `forward`: whether a reader reads the file forward, and will need the rest.
    pub fn begin(
        &mut self,
        file: Pages,
        page: Bytes,
        rate: Bytes,
        room: Pages,
        forward: bool,
    ) -> Option<String> {
        let Rent { stalls, stalled } = self.rent.since(self.rent_before);
        if stalls < self.tuning.few_samples {
            return None;
        }
        let missing = self.missing(file, room)?;
        let cost = in_order(missing, page, rate);
        // The pages may be evicted after each pass, so each further pass requires twice the wait
        // time.
        let again = self.times > 0;
        let is_worth = if again {
            stalled >= cost * 2_f64.powi(self.times)
        } else {
            let (paid, _) = self.paid_and_price(file, page, rate);
            // Large random reads are almost as fast as reading in order.
            (forward || self.page_wait >= self.tuning.min_random_cost * in_order(1, page, rate))
                && paid >= self.tuning.start_cost_share * cost
        };
        if !is_worth {
            return None;
        }
        if again {
            self.touched.clear();
            (self.count, self.primed, self.pages_before_sample) = (0, 0, 0);
        }
        self.at = Some(0);
        Some(format!(
            "readers waited {stalled:.2} s for its pages; the {} that they have not read yet come \
             in {cost:.2} s if read in order",
            Bytes::new(missing * page.get()).rounded()
        ))
    }

    /// Returns the extents to read now, and subtracts their pages from `budget_pages`.
    pub fn due(&mut self, file: Pages, budget_pages: &mut f64) -> Vec<Extent> {
        let Some(mut at) = self.at else { return Vec::new() };
        let mut due = Vec::new();
        while *budget_pages >= self.tuning.piece_pages as f64 && at < file.get() {
            let end = (at + self.tuning.piece_pages).min(file.get());
            let untouched = (at..end).filter(|page| !self.has(*page)).count() as u64;
            if untouched > 0 {
                due.push(Extent::new(Page::new(at), Pages::new(end - at)));
                self.touch(at, end - at);
                self.primed += untouched;
                *budget_pages -= untouched as f64;
            }
            at = end;
        }
        let finished = at >= file.get();
        self.at = (!finished).then_some(at);
        if finished {
            (self.rent_before, self.paid, self.times) = (self.rent, 0.0, self.times + 1);
        }
        due
    }

    /// Returns whether a reader requested this page, or it was prefetched.
    pub fn has(&self, page: u64) -> bool {
        self.touched.get((page / 64) as usize).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }
}

/// Returns the time to read these pages in order, in seconds.
fn in_order(pages: u64, page: Bytes, rate: Bytes) -> f64 {
    (pages * page.get()) as f64 / rate.get().max(1) as f64
}

/// Returns the updated mean of the wait time over about `span`, at most a second, in seconds per
/// second.
pub(super) fn lately(before: f64, stalled: Nanos, elapsed: Nanos, span: Nanos) -> f64 {
    let seconds = elapsed.as_secs_f64().max(1e-6);
    let weight = (seconds / span.as_secs_f64().min(1.0)).min(1.0);
    before + weight * (stalled.as_secs_f64() / seconds - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Bytes = Bytes::from_kib(4);
    const RATE: Bytes = Bytes::new(40_000_000);

    /// `share`: see [`FilePriming::waited`].
    fn waited(seconds: u64, share: f64) -> FilePriming {
        let mut priming = FilePriming::default();
        for page in 0..seconds * 100 {
            priming.touch(page * 7 % 10_000, 1);
            priming.waited(1, Nanos::from_millis(10), share, Nanos::from_millis(10));
        }
        priming
    }

    #[test]
    fn it_begins_when_waiting_has_cost_a_part_of_it() {
        let file = Pages::new(204_800); // 800 MiB: 21 s
        let begin = |seconds, share, room| {
            waited(seconds, share).begin(file, PAGE, RATE, Pages::new(room), false).is_some()
        };
        assert!(!begin(9, 1.0, 1 << 20) && begin(12, 1.0, 1 << 20));
        assert!(!begin(12, 1.0, 1000), "it would not fit");
        assert!(!begin(18, 0.5, 1 << 20) && begin(24, 0.5, 1 << 20), "half is a stream's");
    }

    /// Reads `pieces` pieces of 64 pages at random, behind page `start`; each takes 2.5 ms.
    fn read_pieces(priming: &mut FilePriming, start: u64, pieces: u64) {
        for piece in 0..pieces {
            priming.touch(start + piece * 7 % 1000 * 64, 64);
            priming.waited(2, Nanos::from_micros(2500), 1.0, Nanos::from_micros(2500));
        }
    }

    /// Returns whether a file of this many pages is primed, if it is read in order at this rate.
    fn begins(priming: &FilePriming, pages: u64, mib_per_second: u64) -> bool {
        let (file, rate) = (Pages::new(pages), Bytes::from_mib(mib_per_second));
        priming.clone().begin(file, PAGE, rate, file, false).is_some()
    }

    #[test]
    fn pieces_that_come_almost_as_fast_as_in_order_are_no_reason() {
        let mut priming = FilePriming::default();
        read_pieces(&mut priming, 0, 900);
        assert!(!begins(&priming, 64_000, 100), "64 pages come in 2.5 ms in order");
        assert!(!begins(&priming, 64_000, 280), "64 pages come in 0.89 ms");
        assert!(begins(&priming, 64_000, 320), "64 pages come in 0.78 ms");
        assert!(begins(&priming, 64_000, 1000), "64 pages come in 0.25 ms");
    }

    #[test]
    fn what_was_read_in_order_before_does_not_make_random_reads_seem_fast() {
        let mut priming = FilePriming::default();
        // In order, 50,000 pages come in 0.39 s.
        priming.touch(0, 50_000);
        priming.waited(100, Nanos::from_millis(800), 1.0, Nanos::from_millis(800));
        assert!(!begins(&priming, 128_000, 500), "reads take only twice as long as in order");
        read_pieces(&mut priming, 50_000, 40);
        assert!(begins(&priming, 128_000, 500));
    }

    #[test]
    fn pages_that_are_read_again_do_not_make_reads_seem_slow() {
        let mut priming = FilePriming::default();
        // The same 100 pieces again and again, as if they were evicted.
        for _ in 0..9 {
            read_pieces(&mut priming, 0, 100);
        }
        assert!(!begins(&priming, 64_000, 180));
    }

    #[test]
    fn pages_that_are_primed_are_not_paid_for() {
        let (file, rate) = (Pages::new(10_000), Bytes::from_mib(100));
        let mut priming = waited(1, 1.0);
        let cost = |priming: &FilePriming| {
            let (paid, price) = priming.paid_and_price(file, PAGE, rate);
            [paid, price].map(|seconds| (1e4 * seconds).round() / 1e4)
        };
        // 100 pages take 3.9 ms in order.
        assert_eq!(cost(&priming), [0.9961, 0.3867]);
        priming.begin(file, PAGE, rate, file, false).expect("a beginning");
        priming.due(file, &mut 5000.0);
        assert_eq!(cost(&priming)[0], 0.9961);
        assert!(cost(&priming)[1] < 0.3);
    }

    #[test]
    fn what_the_operator_asked_for_is_read_once_if_it_fits() {
        let file = Pages::new(204_800);
        let mut priming = waited(1, 1.0);
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
        let mut priming = waited(9, 1.0);
        assert_eq!(priming.worth(file), None, "it has not begun");
        priming
            .begin(file, PAGE, Bytes::from_mib(100), Pages::new(1 << 20), false)
            .expect("a beginning");
        assert!((0.9..=1.0).contains(&(priming.worth(file).expect("a worth") * 10_000.0)));
        assert_eq!(priming.due(file, &mut (Tuning::DEFAULT.piece_pages as f64 - 1.0)), []);
        let mut read = 0;
        while priming.is_at_work() {
            let due = priming.due(file, &mut 2500.0);
            read += due.iter().map(|piece| piece.pages.get()).sum::<u64>();
        }
        assert!((9_000..=10_000).contains(&read), "{read}");
        assert!(priming.waits(file).1 < 0.01);
        let again = |priming: &mut FilePriming| {
            priming.begin(file, PAGE, RATE, Pages::new(1 << 20), false).is_some()
        };
        assert!(!again(&mut priming), "once");
        // Reading all of it in order takes 1.02 s.
        for _ in 0..2 {
            priming.waited(100, Nanos::from_secs(1), 1.0, Nanos::from_secs(1));
        }
        assert!(!again(&mut priming));
        priming.waited(100, Nanos::from_secs(1), 1.0, Nanos::from_secs(1));
        assert!(again(&mut priming), "it was evicted");
    }

    #[test]
    fn only_the_pages_at_the_start_are_without_a_gap() {
        let mut priming = FilePriming::default();
        let mut after = |start, pages| {
            priming.touch(start, pages);
            priming.touched_from_start()
        };
        assert_eq!([after(3, 200), after(0, 2), after(2, 1), after(300, 9)], [0, 2, 203, 203]);
    }

    #[test]
    fn what_readers_read_themselves_was_not_won() {
        let mut priming = waited(1, 1.0);
        assert_eq!(priming.waits(Pages::new(10_000)).1, 1.0);
        priming.touch(0, 10_000);
        assert_eq!(priming.waits(Pages::new(10_000)).1, 1.0);
    }

    #[test]
    fn waits_of_a_new_file_are_averaged_over_less_than_a_second() {
        let mut priming = FilePriming::default();
        priming.waited(1, Nanos::from_millis(100), 1.0, Nanos::from_millis(25));
        assert!(priming.waits <= 0.21, "100 ms in half a second");
        let mut priming = FilePriming::default();
        for _ in 0..40 {
            priming.waited(1, Nanos::from_millis(10), 1.0, Nanos::from_millis(25));
        }
        assert!((0.32..0.4).contains(&priming.waits), "{}", priming.waits);
    }

    #[test]
    fn what_was_won_counts_for_a_while() {
        let file = Pages::new(10_000);
        let mut priming = waited(9, 1.0);
        priming
            .begin(file, PAGE, Bytes::from_mib(100), Pages::new(1 << 20), false)
            .expect("a beginning");
        while priming.is_at_work() {
            priming.due(file, &mut 2500.0);
        }
        let waits = |priming: &FilePriming| (100.0 * priming.waits(file).0).round();
        for _ in 0..10 {
            assert!(waits(&priming) > 49.0);
            priming.waited(0, Nanos::ZERO, 1.0, Nanos::from_secs(1));
        }
        assert_eq!(waits(&priming), 50.0);
    }
}
