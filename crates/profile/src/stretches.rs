//! Samples a long recording: only some stretches of time, chosen at random, are kept.

use units::Nanos;

use crate::advice_values::lasts;
use crate::device::scattered;
use crate::recording::{ProfileRecording, ThreadAccount};

/// Length of a stretch: enough for many windows of a reader.
pub(crate) const STRETCH_TIME: Nanos = Nanos::from_millis(250);
/// Advice records up to which lasting advice is always kept: most is given once per run.
const FIRST_ADVICE: usize = 10_000;

/// Keeps one of `one_of` stretches. The choice does not depend on the events, and the stretches
/// that remain after a [`halve`](Self::halve) were kept before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptStretches {
    one_of: u64,
}

impl Default for KeptStretches {
    fn default() -> Self {
        Self { one_of: 1 }
    }
}

impl KeptStretches {
    pub(crate) fn contains(self, at: Nanos) -> bool {
        self.keeps(at.get() / STRETCH_TIME.get())
    }

    /// Returns whether any part of a time span is kept.
    pub(crate) fn touches(self, start: Nanos, end: Nanos) -> bool {
        let mut stretches = start.get() / STRETCH_TIME.get()..=end.get() / STRETCH_TIME.get();
        stretches.any(|stretch| self.keeps(stretch))
    }

    /// Returns whether two times lie in the same stretch.
    pub(crate) fn are_together(one: Nanos, other: Nanos) -> bool {
        one.get() / STRETCH_TIME.get() == other.get() / STRETCH_TIME.get()
    }

    /// Returns whether advice is kept, given the number of records before it. Its effect on pages
    /// is known only within a kept stretch.
    pub(crate) fn keeps_advice(self, before: usize, at: Nanos, lasts: bool) -> bool {
        (lasts && before < FIRST_ADVICE) || self.contains(at)
    }

    fn keeps(self, stretch: u64) -> bool {
        scattered(stretch) & (self.one_of - 1) == 0
    }

    /// Keeps about half as many stretches, and returns true, unless none up to `now` would be left.
    pub(crate) fn halve(&mut self, now: Nanos) -> bool {
        let half = Self { one_of: self.one_of * 2 };
        let is_any_left = half.touches(Nanos::ZERO, now);
        if is_any_left {
            *self = half;
        }
        is_any_left
    }

    /// Removes records outside the kept stretches.
    pub(crate) fn filter(self, recording: &mut ProfileRecording) {
        recording.accesses.retain(|one| self.touches(one.start, one.end));
        recording.waits.retain(|one| self.touches(one.start(), one.end));
        let mut before = 0;
        recording.advice.retain(|one| {
            before += 1;
            self.keeps_advice(before - 1, one.at, lasts(one.call, one.advice, one.result))
        });
        recording.requests.retain(|one| self.contains(one.end));
        recording.submitted.retain(|one| self.contains(one.at));
        recording.evictions.retain(|one| self.contains(one.at));
        recording.touches.retain(|one| self.contains(one.at));
    }

    /// Joins the kept stretches, as if nothing had happened between them.
    pub(crate) fn join(self, recording: &mut ProfileRecording) {
        if self.one_of == 1 {
            return;
        }
        let whole = recording.wall;
        let line = JoinedLine::new(self, whole);
        for access in &mut recording.accesses {
            let (start, end) = (line.at(access.start), line.at(access.end));
            access.blocked = access.blocked.min(end - start);
            (access.start, access.end) = (start, end);
        }
        for wait in &mut recording.waits {
            let start = line.at(wait.start());
            let end = line.at(wait.end);
            (wait.end, wait.blocked) = (end, end - start);
        }
        let ends = recording.requests.iter_mut().map(|one| &mut one.end);
        let times = ends
            .chain(recording.advice.iter_mut().map(|one| &mut one.at))
            .chain(recording.submitted.iter_mut().map(|one| &mut one.at))
            .chain(recording.evictions.iter_mut().map(|one| &mut one.at))
            .chain(recording.touches.iter_mut().map(|one| &mut one.at));
        times.for_each(|at| *at = line.at(*at));
        recording.wall = line.at(whole);
        recording.kept_of = Some(whole);
        let share = recording.wall.get() as f64 / whole.get().max(1) as f64;
        for thread in &mut recording.threads {
            let ThreadAccount { span, cpu, runnable, blocked, .. } = thread;
            for time in [span, cpu, runnable, blocked] {
                *time = time.scaled(share);
            }
        }
    }
}

/// Maps times to the time line of the joined stretches.
struct JoinedLine {
    kept: KeptStretches,
    /// Number of kept stretches before each stretch.
    before: Vec<u64>,
}

impl JoinedLine {
    fn new(kept: KeptStretches, whole: Nanos) -> Self {
        let mut count = 0;
        let stretches = 0..=whole.get() / STRETCH_TIME.get();
        let before = stretches.map(|stretch| {
            let before = count;
            count += u64::from(kept.keeps(stretch));
            before
        });
        Self { kept, before: before.collect() }
    }

    /// Returns the joined time; outside kept stretches, the end of the last one before.
    fn at(&self, at: Nanos) -> Nanos {
        let last = self.before.len() as u64 - 1;
        let stretch = (at.get() / STRETCH_TIME.get()).min(last);
        let within =
            if self.kept.keeps(stretch) { at.get() - stretch * STRETCH_TIME.get() } else { 0 };
        Nanos::new(self.before[stretch as usize] * STRETCH_TIME.get() + within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::FileAccess;

    const SECOND: u64 = 1_000_000_000;

    fn accesses(count: u64) -> ProfileRecording {
        let access = |index| {
            let start = Nanos::from_millis(index * 10);
            FileAccess::cached(start, start + Nanos::from_millis(4))
        };
        ProfileRecording {
            accesses: (0..count).map(access).collect(),
            wall: Nanos::from_millis(count * 10),
            ..ProfileRecording::default()
        }
    }

    #[test]
    fn half_of_the_stretches_are_kept_and_then_half_of_those() {
        let mut kept = KeptStretches::default();
        let mut recording = accesses(100_000);
        for expected in [50_000, 25_000, 12_500] {
            assert!(kept.halve(recording.wall));
            kept.filter(&mut recording);
            let off = recording.accesses.len().abs_diff(expected);
            assert!(off < expected / 10, "{} of {expected}", recording.accesses.len());
        }
        let first_kept = (0..).find(|one| kept.keeps(*one)).unwrap();
        let before = Nanos::new((first_kept - 1) * STRETCH_TIME.get());
        assert!(!kept.clone().halve(before), "none would be left");
    }

    #[test]
    fn what_is_kept_follows_on_one_another() {
        let mut kept = KeptStretches::default();
        assert!(kept.halve(Nanos::from_secs(40)));
        let mut recording = accesses(4000);
        let second = Nanos::new(SECOND);
        recording.threads.push(ThreadAccount {
            pid: 1,
            tid: 1,
            comm: String::new(),
            span: recording.wall,
            cpu: second,
            runnable: second,
            blocked: second,
        });
        kept.filter(&mut recording);
        kept.join(&mut recording);
        assert_eq!(recording.kept_of, Some(Nanos::from_millis(40_000)));
        // Each stretch has 25 accesses, one every 10 ms.
        assert_eq!(recording.wall, Nanos::from_millis(recording.accesses.len() as u64 * 10));
        let gaps = recording.accesses.windows(2).map(|two| two[1].start - two[0].start);
        assert!(gaps.into_iter().all(|gap| gap == Nanos::from_millis(10)));
        let share = recording.wall.as_secs_f64() / 40.0;
        assert!((recording.threads[0].cpu.as_secs_f64() - share).abs() < 1e-6);
        assert_eq!(recording.threads[0].span, recording.wall);
    }

    #[test]
    fn what_began_before_its_stretch_is_cut() {
        let mut kept = KeptStretches::default();
        let wall = Nanos::new(SECOND * 100);
        assert!(kept.halve(wall));
        let first = (1..).find(|one| kept.keeps(*one) && !kept.keeps(one - 1)).unwrap();
        let start = Nanos::new(first * STRETCH_TIME.get());
        let [begun, ended] = [start - Nanos::from_millis(30), start + Nanos::from_millis(20)];
        let access =
            FileAccess { blocked: Nanos::from_millis(45), ..FileAccess::cached(begun, ended) };
        let mut recording =
            ProfileRecording { accesses: vec![access], wall, ..ProfileRecording::default() };
        kept.filter(&mut recording);
        kept.join(&mut recording);
        let access = &recording.accesses[0];
        assert_eq!(access.blocked, Nanos::from_millis(20));
        assert_eq!(access.end - access.start, Nanos::from_millis(20));
    }

    #[test]
    fn a_read_is_kept_with_its_wait_where_both_end_outside() {
        let (kept, start) = first_before_a_gap();
        let end = start + STRETCH_TIME + Nanos::from_millis(10);
        let access = FileAccess::cached(end - Nanos::from_millis(30), end);
        let late = FileAccess::cached(end - Nanos::from_millis(5), end);
        let mut recording =
            ProfileRecording { accesses: vec![access, late], ..ProfileRecording::default() };
        kept.filter(&mut recording);
        assert_eq!(recording.accesses, [access]);
    }

    #[test]
    fn advice_that_lasts_is_kept_whenever_it_was_given() {
        let (kept, start) = first_before_a_gap();
        let gap = start + STRETCH_TIME + Nanos::from_millis(1);
        assert!(kept.keeps_advice(0, gap, true));
        assert!(!kept.keeps_advice(0, gap, false));
        assert!(!kept.keeps_advice(FIRST_ADVICE, gap, true));
        assert!(kept.keeps_advice(FIRST_ADVICE, start, false));
    }

    /// Returns a choice and the start of a kept stretch that precedes one that is not.
    fn first_before_a_gap() -> (KeptStretches, Nanos) {
        let mut kept = KeptStretches::default();
        assert!(kept.halve(Nanos::new(SECOND * 100)));
        let first = (0..).find(|one| kept.keeps(*one) && !kept.keeps(one + 1)).unwrap();
        (kept, Nanos::new(first * STRETCH_TIME.get()))
    }
}
