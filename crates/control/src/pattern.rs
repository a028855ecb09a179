//! How an open file is read, from the places where its readers missed or reached a mark.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use units::Pages;

use crate::tuning::Tuning;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessPattern {
    Unknown,
    Sequential,
    /// Several forward runs on one open file.
    Interleaved,
    Strided,
    Backward,
    Random,
    /// Random reads over so much of the file that all of it is likely to be read.
    RandomDense,
}

impl fmt::Display for AccessPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "?",
            Self::Sequential => "sequential",
            Self::Interleaved => "interleaved",
            Self::Strided => "strided",
            Self::Backward => "backward",
            Self::Random => "random",
            Self::RandomDense => "random, dense",
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first page of the run.
    first: u64,
    /// The page of the last miss or mark.
    last: u64,
    /// The page after the call that began it, or after the call before if it continues that one.
    call_end: u64,
    /// The page after the last requested one.
    end: u64,
    /// The page after the last requested or read-ahead one, up to which the run may continue.
    next: u64,
    /// The number of places seen when the run started or last continued.
    seen: u64,
}

/// Cumulative counts of places where readers were seen: misses and marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlaceCounts {
    /// Places that continued a run, and those of them that switched to another run.
    pub forward: u64,
    pub switched: u64,
    /// Places that continued no run.
    pub elsewhere: u64,
}

impl PlaceCounts {
    fn all(&self) -> u64 {
        self.forward + self.elsewhere
    }
}

/// Classifies access patterns. Older observations have less weight.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    runs: Vec<Run>,
    stride: i64,
    sequential: f64,
    switched: f64,
    strided: f64,
    backward: f64,
    random: f64,
    places: PlaceCounts,
    /// Runs that began, and runs that reached pages read before; recent runs have more weight.
    begun: f64,
    joined: f64,
    /// The usual length of a run; `None` until it is known.
    usual_run: Option<Pages>,
    /// The lengths in pages of runs through earlier open files of the same file.
    earlier_runs: Vec<u64>,
    tuning: Arc<Tuning>,
}

impl Classifier {
    pub(super) fn after(earlier_runs: &[u64], tuning: Arc<Tuning>) -> Self {
        Self { tuning, earlier_runs: earlier_runs.to_vec(), ..Self::default() }
    }

    /// Returns the lengths in pages of the runs that ended before `page`, the end of the file. Runs
    /// up to the end are left out, as nothing is read in vain after them.
    pub(super) fn runs_before(&self, page: u64) -> impl Iterator<Item = u64> + '_ {
        let ended = self.runs.iter().filter(move |run| run.end < page);
        ended.map(|run| run.end.saturating_sub(run.first))
    }

    /// Adds a place: a reader missed `pages` pages at `index`, or reached a mark there. Returns
    /// whether the place continues a run.
    pub fn reader_at(&mut self, index: u64, pages: u64) -> bool {
        self.reader_from(index, pages, None)
    }

    /// Like `reader_at`, with the page at which the previous read call ended, if it is known.
    pub fn reader_from(&mut self, index: u64, pages: u64, previous: Option<u64>) -> bool {
        let next = index.saturating_add(pages);
        // A mark may lie anywhere between the last place of its run and the end of its window.
        let goes_on = |run: &Run| run.last <= index && index <= run.next && run.next > run.last;
        if let Some(at) = self.runs.iter().rposition(goes_on) {
            if at + 1 != self.runs.len() {
                self.switched += 1.0;
                self.places.switched += 1;
            }
            self.places.forward += 1;
            let run = self.runs.remove(at);
            let (end, next) = (next.max(run.end), next.max(run.next));
            let seen = self.places.all();
            self.runs.push(Run { last: index, end, next, seen, ..run });
            self.sequential += 1.0;
            return true;
        }
        if previous == Some(index) && !self.runs.is_empty() {
            // The reader came through cached pages.
            self.sequential += 1.0;
            self.places.forward += 1;
            self.begin(index, next);
            if let Some(run) = self.runs.last_mut() {
                // It goes on where a call ended.
                run.call_end = index;
            }
            return true;
        }
        let before = self.runs.last().copied();
        let step = before.map_or(0, |run| index.wrapping_sub(run.last).cast_signed());
        match before {
            None => {}
            Some(run) if next == run.last => self.backward += 1.0,
            Some(_) if step == self.stride && step > 0 => self.strided += 1.0,
            Some(_) if step == self.stride && step < 0 => self.backward += 1.0,
            Some(_) => self.random += 1.0,
        }
        self.places.elsewhere += 1;
        self.stride = step;
        self.begin(index, next);
        false
    }

    /// Ends the run of a reader that went from page `end` to a page that was read ahead, without
    /// reading those between. Returns false if another run goes on there, or a miss shows the same.
    pub fn skip(&mut self, end: u64, to: u64) -> bool {
        let is_ahead = |run: &Run| run.first < end && end < to && to < run.next;
        let Some(run) = self.runs.last_mut().filter(|run| run.last <= end && is_ahead(run)) else {
            return false;
        };
        let next = std::mem::replace(&mut run.next, end);
        run.end = end;
        self.begin(to, to);
        self.window_to(to, next);
        true
    }

    /// Records whether the page after the request of the last miss, which is at `index`, had been
    /// read before.
    pub(super) fn record_join(&mut self, index: u64, joins: bool) {
        if self.runs.last().is_some_and(|run| run.first == index && run.last == index) {
            let kept = 1.0 - 1.0 / self.tuning.max_remembered as f64;
            (self.begun, self.joined) = (kept * self.begun + 1.0, kept * self.joined);
        }
        self.joined += f64::from(u8::from(joins));
    }

    /// Returns whether runs often end at pages that were read before: they fill a part of the
    /// file, so what is read beyond their ends is of use, or cached.
    pub(super) fn do_runs_join(&self) -> bool {
        self.begun >= self.tuning.few_samples as f64
            && self.joined > self.tuning.minority_share * self.begun
    }

    fn begin(&mut self, index: u64, next: u64) {
        if self.runs.len() == self.tuning.max_runs {
            self.runs.remove(0);
        }
        let seen = self.places.all();
        self.runs.push(Run { first: index, last: index, call_end: next, end: next, next, seen });
    }

    /// Returns whether streams take turns on the open file, so that the ends of runs are unknown.
    pub(super) fn is_in_turns(&self) -> bool {
        self.switched > self.tuning.min_effect * (self.sequential + self.random)
    }

    /// Returns the share of pages in runs of a single call of more than `window` and up to `most`
    /// pages: no reader was seen to go on where its call ended. 0 if few runs are known.
    pub(super) fn large_call_share(&self, window: Pages, most: Pages) -> f64 {
        if (self.runs.len() as u64) < self.tuning.min_repeats() {
            return 0.0;
        }
        let pages = |run: &Run| run.end.saturating_sub(run.first);
        let is_large = |pages: u64| window.get() < pages && pages <= most.get();
        let is_call = |run: &&Run| run.end <= run.call_end && is_large(pages(run));
        let calls: u64 = self.runs.iter().filter(is_call).map(pages).sum();
        calls as f64 / self.runs.iter().map(pages).sum::<u64>().max(1) as f64
    }

    /// Returns whether most pages are read in calls that are larger than a window.
    fn are_large_calls(&self, window: Pages) -> bool {
        self.large_call_share(window, Pages::new(u64::MAX)) > self.tuning.majority_share
    }

    /// Returns the mean length of the run that a page belongs to; `None` if too few runs have
    /// ended. If streams take turns, a silent run may still continue: it has ended if `max_runs`
    /// places were seen since. Where calls are larger than `window`, the original one, the end of
    /// each is taken for that of a run.
    pub(super) fn run_of_a_page(&self, window: Pages) -> Option<Pages> {
        let may_go_on = self.is_in_turns() && !self.are_large_calls(window);
        let silence = if may_go_on { self.tuning.max_runs as u64 } else { 0 };
        let places = self.places.all();
        let ended = self.runs.iter().filter(|run| places - run.seen >= silence).count();
        // Its own runs replace the earlier ones, one by one.
        let earlier = self.earlier_runs.iter().rev().take(self.tuning.max_runs - self.runs.len());
        if ((ended + earlier.len()) as u64) < self.tuning.min_repeats() {
            return None;
        }
        let own = self.runs.iter().map(|run| run.end.saturating_sub(run.first));
        let lengths = || own.clone().chain(earlier.clone().copied()).map(|run| run as f64);
        let pages: f64 = lengths().sum();
        let squares: f64 = lengths().map(|pages| pages * pages).sum();
        Some(Pages::new((squares / pages.max(1.0)) as u64))
    }

    /// Returns whether a run that contains `first` was read or read ahead up to `end`. If not,
    /// `end` may belong to another reader of the open file.
    pub(super) fn covers(&self, first: u64, end: u64) -> bool {
        let holds = |run: &Run| run.first <= first && first <= run.next && end <= run.next;
        self.runs.iter().any(holds)
    }

    /// Returns the usual length of a run. It stays valid until a run is more than twice as long,
    /// because larger windows leave few places to learn from.
    pub(super) fn usual_run(&self) -> Option<Pages> {
        self.usual_run
    }

    /// Updates the usual length of a run after an interval.
    pub(super) fn interval(&mut self, window: Pages) {
        if let Some(run) = self.run_of_a_page(window) {
            self.usual_run = Some(run);
        } else if let Some(known) = self.usual_run {
            let is_longer = |run: &Run| run.end.saturating_sub(run.first) > 2 * known.get();
            self.usual_run = Some(known).filter(|_| !self.runs.iter().any(is_longer));
        }
    }

    pub(super) fn places(&self) -> PlaceCounts {
        self.places
    }

    /// Returns the share of places that continued a run, 0 to 1; recent places have more weight.
    pub fn forward_share(&self) -> f64 {
        let all = self.sequential + self.strided + self.backward + self.random;
        if all < 0.01 { 0.0 } else { self.sequential / all }
    }

    /// Extends the run of a reader at `index` by a window up to `end`. Another reader may have
    /// missed in the meantime.
    pub fn window_to(&mut self, index: u64, end: u64) {
        let asked = |run: &&mut Run| run.last <= index && index <= run.next;
        if let Some(run) = self.runs.iter_mut().rev().find(asked) {
            run.next = run.next.max(end);
        }
    }

    pub fn age(&mut self) {
        self.fade(0.5);
    }

    /// Multiplies the weight of all observations so far by `part`.
    pub fn fade(&mut self, part: f64) {
        for score in [
            &mut self.sequential,
            &mut self.switched,
            &mut self.strided,
            &mut self.backward,
            &mut self.random,
        ] {
            *score *= part;
        }
    }

    /// Returns the pattern. Whether random reads are dense also depends on the size of the file, so
    /// the caller decides that.
    pub fn pattern(&self) -> AccessPattern {
        let scores = [
            (self.sequential, AccessPattern::Sequential),
            (self.strided, AccessPattern::Strided),
            (self.backward, AccessPattern::Backward),
            (self.random, AccessPattern::Random),
        ];
        let (best, pattern) =
            scores.into_iter().fold((0.0, AccessPattern::Unknown), |best, one| {
                if one.0 > best.0 { one } else { best }
            });
        match pattern {
            _ if best < 0.01 => AccessPattern::Unknown,
            AccessPattern::Sequential if self.switched > 0.3 * self.sequential => {
                AccessPattern::Interleaved
            }
            pattern => pattern,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const WINDOW: Pages = Pages::new(32);

    fn of(reads: impl IntoIterator<Item = (u64, u64)>) -> AccessPattern {
        let mut classifier = Classifier::default();
        for (index, pages) in reads {
            classifier.reader_at(index, pages);
        }
        classifier.pattern()
    }

    #[test]
    fn patterns_are_told_apart() {
        assert_eq!(of([]), AccessPattern::Unknown);
        assert_eq!(of((0..20).map(|n| (n * 16, 16))), AccessPattern::Sequential);
        assert_eq!(of((0..20).map(|n| (n * 64, 16))), AccessPattern::Strided);
        assert_eq!(of((0..20).map(|n| (10_000 - n * 16, 16))), AccessPattern::Backward);
        assert_eq!(of((0..20).map(|n| (10_000 - n * 64, 16))), AccessPattern::Backward);
        assert_eq!(of((0..40).map(|n| (n * n * 7919 % 100_003, 1))), AccessPattern::Random);
        let two = (0..40).map(|n| (n / 2 * 16 + n % 2 * 50_000, 16));
        assert_eq!(of(two), AccessPattern::Interleaved);
    }

    #[test]
    fn the_length_of_runs_is_known_after_several_unless_streams_take_turns() {
        let run = |reads: Vec<(u64, u64)>| {
            let mut classifier = Classifier::default();
            reads.into_iter().for_each(|(index, pages)| {
                classifier.reader_at(index, pages);
            });
            classifier.run_of_a_page(WINDOW).map(Pages::get)
        };
        let chunks = |count: u64| (0..count).map(|n| (n / 4 * 1000 + n % 4 * 16, 16)).collect();
        assert_eq!((run(chunks(12)), run(chunks(80))), (None, Some(64)));
        let long = (0..50).map(|n| (n * 1000, 1)).chain((0..100).map(|n| (90_000 + n * 16, 16)));
        assert_eq!(run(long.collect()), Some(1585), "nearly all pages are in the long one");
        let streams = (0..100).map(|n| (n % 8 * 50_000 + n / 8 * 16, 16));
        assert_eq!(run(streams.collect()), None, "none has ended");
        let threads = (0..384).map(|n| (n / 32 * 1000 + n % 8 * 50_000 + n / 8 % 4 * 16, 16));
        assert_eq!(run(threads.collect()), Some(64), "runs of eight threads, one after another");
    }

    #[test]
    fn a_call_larger_than_a_window_is_a_run_until_its_reader_goes_on() {
        // Eight threads: each call of these pages is read a window at a time.
        let after = |pages: u64, calls: u64| {
            let mut classifier = Classifier::default();
            for place in 0..8 * calls * pages / 16 {
                let (thread, at) = (place % 8, place / 8 * 16);
                classifier.reader_at(thread * 10_000 + at, pages - at % pages);
            }
            let share = |most| classifier.large_call_share(WINDOW, Pages::new(most));
            let run = classifier.run_of_a_page(WINDOW).map(Pages::get);
            (run, share(1024), share(200))
        };
        assert_eq!(after(240, 1), (Some(240), 1.0, 0.0));
        assert_eq!(after(240, 3), (None, 0.0, 0.0));
        let why = "the kernel reads ahead for streams in such calls";
        assert_eq!(after(32, 1), (None, 0.0, 0.0), "{why}");
    }

    #[test]
    fn runs_of_earlier_open_files_count_until_there_are_own_ones() {
        let run = |earlier: &[u64], own: u64| {
            let mut classifier = Classifier::after(earlier, Arc::default());
            (0..own * 4).for_each(|n| {
                classifier.reader_at(n / 4 * 1000 + n % 4 * 16, 16);
            });
            classifier.run_of_a_page(WINDOW).map(Pages::get)
        };
        let enough = vec![8; Tuning::DEFAULT.max_runs];
        assert_eq!(run(&enough, 0), Some(8));
        assert_eq!(run(&enough[1..Tuning::DEFAULT.min_repeats() as usize], 0), None, "too few");
        // Runs of 64 pages replace them, one by one.
        let half = run(&enough, Tuning::DEFAULT.max_runs as u64 / 2).expect("enough runs");
        assert!((9..64).contains(&half), "{half}");
        assert_eq!(run(&enough, Tuning::DEFAULT.max_runs as u64), Some(64));
    }

    #[test]
    fn the_length_of_runs_stays_known_until_one_is_longer() {
        let mut classifier = Classifier::default();
        let mut part = |first: u64, calls: u64| {
            for call in 0..calls {
                classifier.reader_at(first + call * 16, 16);
            }
            classifier.interval(WINDOW);
            classifier.usual_run().map(Pages::get)
        };
        (0..8).for_each(|number| {
            part(number * 1000, 4);
        });
        assert_eq!(part(8000, 4), Some(64));
        classifier.runs.clear();
        let mut part = |calls: u64| {
            (0..calls).for_each(|call| {
                classifier.reader_at(90_000 + call * 16, 16);
            });
            classifier.interval(WINDOW);
            classifier.usual_run().map(Pages::get)
        };
        assert_eq!(part(8), Some(64), "one run is too few to say otherwise");
        assert_eq!(part(12), None, "it goes on for much longer");
    }

    /// Reads 64 pages at each of 97 places once, in no order; returns whether these runs join.
    fn do_join(distance: u64, mut was_read: impl FnMut(u64) -> bool) -> bool {
        let mut classifier = Classifier::default();
        for number in 0..97 {
            let index = number * 37 % 97 * distance;
            classifier.reader_at(index, 64);
            classifier.record_join(index, was_read(index + 64));
        }
        classifier.do_runs_join()
    }

    #[test]
    fn runs_that_fill_a_part_of_a_file_join() {
        let fill = |distance| {
            let mut begun = BTreeSet::new();
            do_join(distance, |after| {
                begun.insert(after - 64);
                begun.contains(&after)
            })
        };
        assert!(fill(64) && !fill(1000));
    }

    #[test]
    fn runs_that_seldom_meet_read_pages_do_not_join() {
        let meet = |percent| do_join(1000, |after| after / 1000 * 31 % 97 < percent);
        assert!(!meet(10) && meet(30));
    }

    #[test]
    fn a_window_belongs_to_the_reader_that_asked_for_it() {
        let mut classifier = Classifier::default();
        classifier.reader_at(0, 16);
        classifier.reader_at(5000, 16);
        classifier.window_to(0, 64);
        classifier.window_to(5000, 5064);
        assert!(!classifier.reader_at(2500, 16), "between the two is neither");
        assert!(classifier.reader_at(60, 16) && classifier.reader_at(5060, 16));
    }

    #[test]
    fn a_skip_within_the_pages_read_ahead_begins_another_run() {
        let after = |first: u64| {
            let mut classifier = Classifier::default();
            classifier.reader_at(first, 16);
            classifier.window_to(first, first + 512);
            classifier
        };
        let mut classifier = after(0);
        assert!(classifier.skip(40, 200));
        assert_eq!(classifier.runs_before(u64::MAX).collect::<Vec<_>>(), [40, 0]);
        assert!(!classifier.reader_at(100, 1), "nothing between the two runs belongs to either");
        let mut classifier = after(0);
        assert!(classifier.skip(40, 200) && classifier.reader_at(300, 1), "the window goes on");
        assert!(!after(0).skip(40, 512), "a miss shows it");
        assert!(!after(100).skip(40, 200), "another reader ended there");
        let mut classifier = after(0);
        classifier.reader_at(100, 16);
        assert!(!classifier.skip(40, 200), "a reader has been seen after the start of the skip");
    }

    #[test]
    fn marks_within_windows_are_of_the_run() {
        let mut classifier = Classifier::default();
        classifier.reader_at(0, 16);
        classifier.window_to(0, 64);
        for (mark, end) in [(16, 320), (64, 832), (320, 1344)] {
            classifier.reader_at(mark, 16);
            classifier.window_to(mark, end);
        }
        assert_eq!(classifier.pattern(), AccessPattern::Sequential);
        classifier.age();
        assert_eq!(classifier.pattern(), AccessPattern::Sequential);
    }
}
