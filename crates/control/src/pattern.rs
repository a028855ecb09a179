//! How an open file is read, from the places where its readers missed or met a mark.

use crate::tuning::pattern as tuning;
use std::fmt;

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessPattern {
    Unknown,
    Sequential,
    /// Several runs forward on one open file.
    Interleaved,
    Strided,
    Backward,
    Random,
    /// Here and there, over so much of the file that all of it will be read.
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
    /// The page where it was last.
    last: u64,
    /// The page where it goes on.
    next: u64,
}

/// Equal steps: the reader was at page `last`, reads `len` pages at a time, and goes `step` pages
/// on from each time to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EqualSteps {
    pub last: u64,
    /// How far it goes, backward if negative; never zero.
    pub step: i64,
    /// How much it reads each time.
    pub len: u64,
    /// Whether the kernel takes it for one run, and reads what is left out, too.
    pub filled: bool,
}

/// Places where readers were seen so far; it only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlaceCounts {
    /// Where a run went on, and of those where another one had been before.
    pub forward: u64,
    pub switched: u64,
    /// Where none went on.
    pub elsewhere: u64,
}

/// Tells patterns apart. What is old counts less and less.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    runs: Vec<Run>,
    stride: i64,
    /// Steps like the last one in a row, and what was read at it.
    same: u32,
    len: u64,
    /// What a reader leaves out each time, and what it reads, though all of it is read ahead; where
    /// that was last seen, and how often in a row.
    gap: (u64, u64),
    gap_at: u64,
    gaps: u32,
    /// Places where a run went on that no window had led to.
    holes: f64,
    sequential: f64,
    switched: f64,
    strided: f64,
    backward: f64,
    random: f64,
    places: PlaceCounts,
}

impl Classifier {
    /// A reader missed `pages` pages at `index`, or met a mark there.
    pub fn reader_at(&mut self, index: u64, pages: u64) {
        self.reader_from(index, pages, None);
    }

    /// The same, where it is known at which page the read call before ended.
    pub fn reader_from(&mut self, index: u64, pages: u64, previous: Option<u64>) {
        let next = index.saturating_add(pages);
        self.left_out(index, pages, previous);
        // A mark may lie anywhere between where its run was and where it goes on.
        let goes_on = |run: &Run| run.last <= index && index <= run.next && run.next > run.last;
        if let Some(at) = self.runs.iter().rposition(goes_on) {
            if at + 1 != self.runs.len() {
                self.switched += 1.0;
                self.places.switched += 1;
            }
            self.places.forward += 1;
            let run = self.runs.remove(at);
            self.runs.push(Run { last: index, next: next.max(run.next) });
            self.sequential += 1.0;
            self.same = 0;
            return;
        }
        if previous == Some(index) && !self.runs.is_empty() {
            // It came through pages that were cached already.
            self.sequential += 1.0;
            self.holes += 1.0;
            self.places.forward += 1;
            self.push(Run { last: index, next });
            return;
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
        let again = step == self.stride && pages == self.len && step != 0;
        self.same = if again { self.same.saturating_add(1) } else { 0 };
        (self.stride, self.len) = (step, pages);
        self.push(Run { last: index, next });
    }

    /// Where a read begins behind the end of the one before, what is between was left out. The
    /// kernel takes that for one run, and reads it all.
    fn left_out(&mut self, index: u64, pages: u64, previous: Option<u64>) {
        let Some(previous) = previous else { return };
        let gap = (index.wrapping_sub(previous), pages);
        let on = index.wrapping_sub(self.gap_at);
        let step = gap.0.wrapping_add(pages).max(1);
        let again = gap == self.gap
            && (1..=tuning::MAX_LEFT_OUT_PAGES).contains(&gap.0)
            && on > 0
            && on.is_multiple_of(step);
        self.gaps = if again { self.gaps.saturating_add(1) } else { 0 };
        (self.gap, self.gap_at) = (gap, index);
    }

    fn push(&mut self, run: Run) {
        if self.runs.len() == tuning::MAX_RUNS {
            self.runs.remove(0);
        }
        self.runs.push(run);
    }

    /// The steps that the reader goes in, if it does for some time now.
    pub(super) fn steps(&self) -> Option<EqualSteps> {
        let run = self.runs.last()?;
        if self.same >= tuning::MIN_EQUAL_STEPS && self.len > 0 {
            return Some(EqualSteps {
                last: run.last,
                step: self.stride,
                len: self.len,
                filled: false,
            });
        }
        (self.gaps >= tuning::MIN_EQUAL_STEPS_WITH_GAPS).then(|| {
            // As often as that a gap was small; one backward is a number near the largest.
            let step = (self.gap.0 + self.gap.1).cast_signed();
            EqualSteps { last: run.last, step, len: self.gap.1, filled: true }
        })
    }

    /// Steps without gaps from where a reader is that comes through pages which are cached here and
    /// there, if most places where it missed were such.
    pub(super) fn through_holes(&self) -> Option<EqualSteps> {
        let len = 64;
        let run = self.runs.last()?;
        let upset = self.holes > 4.0 && self.holes > 0.5 * (self.sequential + self.random);
        upset.then_some(EqualSteps { last: run.last, step: 64, len, filled: false })
    }

    pub(super) fn places(&self) -> PlaceCounts {
        self.places
    }

    /// How many of the places where readers were seen went on from others, of all.
    pub fn forward_share(&self) -> f64 {
        let all = self.sequential + self.strided + self.backward + self.random;
        if all < 0.01 { 0.0 } else { self.sequential / all }
    }

    /// A window was submitted up to `end`: the run that asked for it goes on there.
    pub fn window_to(&mut self, end: u64) {
        if let Some(run) = self.runs.last_mut() {
            run.next = run.next.max(end);
        }
    }

    pub fn age(&mut self) {
        self.fade(0.5);
    }

    /// What was seen so far counts for this part only.
    pub fn fade(&mut self, part: f64) {
        for score in [
            &mut self.holes,
            &mut self.sequential,
            &mut self.switched,
            &mut self.strided,
            &mut self.backward,
            &mut self.random,
        ] {
            *score *= part;
        }
    }

    /// The pattern; `touched` is the share of the file that was asked for.
    pub fn pattern(&self, touched: f64) -> AccessPattern {
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
            AccessPattern::Random if touched > tuning::DENSE_SHARE => AccessPattern::RandomDense,
            pattern => pattern,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reads: impl IntoIterator<Item = (u64, u64)>) -> AccessPattern {
        let mut classifier = Classifier::default();
        for (index, pages) in reads {
            classifier.reader_at(index, pages);
        }
        classifier.pattern(0.0)
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
    fn marks_within_windows_are_of_the_run() {
        let mut classifier = Classifier::default();
        classifier.reader_at(0, 16);
        classifier.window_to(64);
        for (mark, end) in [(16, 320), (64, 832), (320, 1344)] {
            classifier.reader_at(mark, 16);
            classifier.window_to(end);
        }
        assert_eq!(classifier.pattern(0.0), AccessPattern::Sequential);
        classifier.age();
        assert_eq!(classifier.pattern(0.0), AccessPattern::Sequential);
    }

    #[test]
    fn random_reads_of_much_of_a_file_are_dense() {
        let mut classifier = Classifier::default();
        for n in 0..40_u64 {
            classifier.reader_at(n * n * 7919 % 100_003, 1);
        }
        assert_eq!(classifier.pattern(0.5), AccessPattern::RandomDense);
    }

    #[test]
    fn a_step_back_leaves_nothing_out() {
        let mut classifier = Classifier::default();
        classifier.reader_from(9, 1, Some(10));
        assert_eq!(classifier.steps(), None);
    }

    #[test]
    fn what_a_reader_leaves_out_of_a_run_is_seen() {
        let mut classifier = Classifier::default();
        // Every other page; the kernel reads four at a time, so each other read finds its page.
        for n in 0..20 {
            classifier.reader_from(4 * n, 1, (4 * n).checked_sub(1));
            classifier.window_to(4 * n + 4);
        }
        let steps = EqualSteps { last: 76, step: 2, len: 1, filled: true };
        assert_eq!(
            (classifier.pattern(0.0), classifier.steps()),
            (AccessPattern::Sequential, Some(steps))
        );
        classifier.reader_from(80, 1, Some(80));
        assert_eq!(classifier.steps(), None, "it leaves out nothing any more");
    }
}
