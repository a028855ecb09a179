//! Finishing what random reads have begun: where they will read all of a file that fits into
//! memory, it is read once, in order.
//!
//! The rule is that of renting or buying: once readers have waited as long for a file as it would
//! take to read the rest of it in order, it is read. That costs at most twice what the best
//! decision would have, whatever they read next. And the readers must not suffer: their waits may
//! grow only as far as there are fewer of them, because part of the file is there already.

use units::{Bytes, Nanos, Pages};

use crate::page::{Extent, Page};

/// The largest file whose pages are kept account of.
const MOST_PAGES: u64 = 1 << 22;
/// What is read at once.
const PIECE: u64 = 512;
/// A device is taken to stream at this rate at least.
const LEAST_RATE: f64 = 40e6;
/// How much of the readers' time may be lost.
const LOSS: f64 = 1.05;
/// The rate at first, and its bounds, in pages a second.
const RATES: (f64, f64, f64) = (2048.0, 256.0, 1e6);
/// Waits that tell how long one takes without priming.
const KNOWN: u64 = 8;
/// At the lowest rate for so long, and waits are what they would be without priming.
const LOWEST: Nanos = Nanos::from_secs(1);
/// Whoever has asked for nothing for so long may not want the rest.
const RESTS: Nanos = Nanos::from_secs(2);

/// The priming of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Priming {
    /// A bit for each page that was asked for or primed.
    touched: Vec<u64>,
    count: u64,
    /// How long readers waited in all, how often, and how long one wait takes without priming.
    stalled: f64,
    stalls: u64,
    alone: f64,
    /// How long one wait takes now.
    wait: f64,
    /// The next page, while it is at work.
    at: Option<u64>,
    rate: f64,
    owed: f64,
    finished: bool,
    /// How long it is at the lowest rate, and since how long nobody has asked for anything.
    lowest: Nanos,
    quiet: Nanos,
}

impl Priming {
    /// Pages were asked for.
    pub fn touch(&mut self, start: u64, pages: u64) {
        let end = start.saturating_add(pages).min(MOST_PAGES);
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

    /// Readers waited so often and so long over an interval.
    pub fn waited(&mut self, stalls: u64, stalled: Nanos) {
        if stalls == 0 {
            return;
        }
        self.quiet = Nanos::ZERO;
        let mean = stalled.as_secs_f64() / stalls as f64;
        self.stalls += stalls;
        self.stalled += stalled.as_secs_f64();
        self.wait = if self.wait == 0.0 { mean } else { 0.7 * self.wait + 0.3 * mean };
        if self.at.is_none() {
            self.alone = self.wait;
        }
    }

    /// Whether it is at work.
    pub fn is_at_work(&self) -> bool {
        self.at.is_some()
    }

    /// Whether it is worth while to begin, and why.
    pub fn begin(&mut self, file: Pages, page: Bytes, rate: Bytes, room: Pages) -> Option<String> {
        let missing = file.get().saturating_sub(self.count);
        let fits = file.get() <= MOST_PAGES && missing <= room.get();
        if self.finished || self.at.is_some() || !fits || missing == 0 || self.stalls < KNOWN {
            return None;
        }
        let cost = (missing * page.get()) as f64 / (rate.get() as f64).max(LEAST_RATE);
        if self.stalled < cost {
            return None;
        }
        self.at = Some(0);
        self.rate = RATES.0;
        Some(format!(
            "its readers waited {:.1} s for random reads; the {} that they have not read yet come \
             in {cost:.1} s if read in order",
            self.stalled,
            Bytes::new(missing * page.get())
        ))
    }

    /// What is to be read now. `hurt`: memory became tight.
    pub fn due(&mut self, file: Pages, elapsed: Nanos, hurt: bool) -> Vec<Extent> {
        let Some(mut at) = self.at else { return Vec::new() };
        self.quiet += elapsed;
        if self.quiet > RESTS {
            return Vec::new();
        }
        self.adapt(file, elapsed, hurt);
        self.owed = (self.owed + self.rate * elapsed.as_secs_f64()).min(self.rate);
        let mut due = Vec::new();
        while self.owed >= PIECE as f64 && at < file.get() {
            let end = (at + PIECE).min(file.get());
            let untouched = (at..end).filter(|page| !self.has(*page)).count() as u64;
            if untouched > 0 {
                due.push(Extent::new(Page::new(at), Pages::new(end - at)));
                self.touch(at, end - at);
                self.owed -= untouched as f64;
            }
            at = end;
        }
        self.finished = at >= file.get();
        self.at = (!self.finished).then_some(at);
        due
    }

    fn has(&self, page: u64) -> bool {
        self.touched.get((page / 64) as usize).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Readers that find more in the cache may wait longer for the rest.
    fn adapt(&mut self, file: Pages, elapsed: Nanos, hurt: bool) {
        let missing = 1.0 - self.count as f64 / (file.get() as f64).max(1.0);
        let allowed = self.alone * LOSS / missing.max(0.01);
        let factor = if hurt || self.wait > allowed { 0.7 } else { 1.5 };
        self.rate = (self.rate * factor).clamp(RATES.1, RATES.2);
        self.lowest = if self.rate > RATES.1 { Nanos::ZERO } else { self.lowest + elapsed };
        if self.lowest > LOWEST && !hurt {
            // Others read more than before: waits are long without priming, too.
            (self.alone, self.lowest) = (self.wait, Nanos::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Bytes = Bytes::from_kib(4);

    fn waited(seconds: u64) -> Priming {
        let mut priming = Priming::default();
        for page in 0..seconds * 100 {
            priming.touch(page * 7 % 10_000, 1);
            priming.waited(1, Nanos::from_millis(10));
        }
        priming
    }

    #[test]
    fn it_begins_when_waiting_has_cost_as_much() {
        let file = Pages::new(25_600); // 100 MiB: 2.5 s
        let begin = |seconds, room| {
            waited(seconds).begin(file, PAGE, Bytes::from_mib(1), Pages::new(room)).is_some()
        };
        assert!(!begin(1, 1 << 20) && begin(4, 1 << 20));
        assert!(!begin(4, 1000), "it would not fit");
    }

    #[test]
    fn all_that_is_missing_is_read_once() {
        let file = Pages::new(10_000);
        let mut priming = waited(9);
        priming.begin(file, PAGE, Bytes::from_mib(100), Pages::new(1 << 20)).expect("a beginning");
        let (mut read, mut ticks) = (0, 0);
        while priming.is_at_work() && ticks < 1000 {
            let due = priming.due(file, Nanos::from_millis(100), false);
            read += due.iter().map(|piece| piece.pages.get()).sum::<u64>();
            ticks += 1;
        }
        assert!((9_000..=10_000).contains(&read) && ticks < 100, "{read} in {ticks}");
        assert_eq!(priming.begin(file, PAGE, Bytes::ZERO, Pages::new(1 << 20)), None, "once");
    }

    #[test]
    fn readers_that_suffer_slow_it_down() {
        let mut priming = waited(9);
        priming.begin(Pages::new(100_000), PAGE, Bytes::from_mib(100), Pages::new(1 << 20));
        for _ in 0..30 {
            priming.waited(10, Nanos::from_millis(10_000));
            priming.due(Pages::new(100_000), Nanos::from_millis(1), false);
        }
        assert!((priming.rate - RATES.1).abs() < 1.0);
    }
}
