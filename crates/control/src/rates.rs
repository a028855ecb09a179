//! What the readers of a device get, and whether they do the same work as before.

use units::Nanos;

use crate::tuning::rates as tuning;

/// A rate, and from how many runs or files it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountedRate {
    pub per_second: f64,
    pub count: u64,
}

impl CountedRate {
    /// So many over this time.
    pub fn over(count: u64, span: Nanos) -> Self {
        Self { per_second: count as f64 / span.as_secs_f64().max(1e-6), count }
    }

    /// Whether it is lower, and not by chance: what one takes differs from the next by as much as
    /// itself on a disk that seeks.
    pub fn is_below(&self, other: &Self) -> bool {
        let chance = (1.0 / self.count.max(1) as f64 + 1.0 / other.count.max(1) as f64).sqrt();
        self.per_second < (tuning::REVERT_BELOW_RATIO - chance) * other.per_second
    }
}

/// What was counted so far; it only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadCounts {
    /// Pages that readers of streams came by.
    pub progress: u64,
    /// Places where a stream went on, and of those where another one was before.
    pub forward: u64,
    pub switched: u64,
    /// Places of the same open files that no stream led to.
    pub elsewhere: u64,
    /// Reads of open files that are read in other ways.
    pub beside: u64,
}

impl ReadCounts {
    /// Takes in those of an interval.
    pub fn add(&mut self, more: &Self) {
        self.progress += more.progress;
        self.forward += more.forward;
        self.switched += more.switched;
        self.elsewhere += more.elsewhere;
        self.beside += more.beside;
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadRates {
    pub progress: f64,
    forward: f64,
    switched: f64,
    elsewhere: f64,
    pub beside: f64,
}

impl ReadRates {
    /// Between two counts that are so many seconds apart.
    pub fn over(before: ReadCounts, after: ReadCounts, seconds: f64) -> Self {
        let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
        Self {
            progress: rate(before.progress, after.progress),
            forward: rate(before.forward, after.forward),
            switched: rate(before.switched, after.switched),
            elsewhere: rate(before.elsewhere, after.elsewhere),
            beside: rate(before.beside, after.beside),
        }
    }

    /// These, changed by this part of what they differ from others.
    pub fn towards(&self, to: &Self, weight: f64) -> Self {
        let go = |from: f64, to: f64| from + weight * (to - from);
        Self {
            progress: go(self.progress, to.progress),
            forward: go(self.forward, to.forward),
            switched: go(self.switched, to.switched),
            elsewhere: go(self.elsewhere, to.elsewhere),
            beside: go(self.beside, to.beside),
        }
    }

    /// The share of places to which a stream came from another.
    pub fn switches(&self) -> f64 {
        self.switched / self.forward.max(1e-9)
    }

    /// What a larger window must win over so many seconds: the less was seen, the more is chance.
    pub fn winning(&self, seconds: f64, (least, most): (f64, f64)) -> f64 {
        (1.0 + 0.5 / (self.forward * seconds).max(1.0).sqrt()).clamp(least, most)
    }

    /// Whether much is read elsewhere by the same open files.
    pub fn is_scattered(&self) -> bool {
        self.elsewhere > tuning::SCATTERED_PLACES_RATIO * self.forward
    }

    /// Whether the readers do something else than before: they went from one stream to several or
    /// back, or read elsewhere.
    pub fn are_of_other_work(&self, before: &Self) -> bool {
        let apart = |rates: &Self| rates.elsewhere / rates.progress.max(1e-3);
        let switched = self.forward > 0.0 && (self.switches() - before.switches()).abs() > 0.4;
        // Who is only slowed down still reads now and then.
        let ended = self.beside == 0.0 && before.beside > tuning::MIN_OTHER_READS_PER_SECOND;
        switched || ended || apart(self) > 3.0 * apart(before) + tuning::OTHER_WORK_PLACES_PER_PAGE
    }

    /// Whether readers beside the streams got less than before, by more than chance explains.
    pub fn hurts_beside(&self, before: &Self, seconds: f64) -> bool {
        let (expected, got) = (before.beside * seconds, self.beside * seconds);
        expected >= 4.0 && got < tuning::MIN_OTHERS_RATIO * expected - 0.7 * expected.sqrt()
    }

    /// Whether they lose so much that no more need be seen of it.
    pub fn plainly_hurts_beside(&self, before: &Self, seconds: f64) -> bool {
        let (expected, got) = (before.beside * seconds, self.beside * seconds);
        expected >= 10.0 && got < tuning::PLAINLY_BELOW_RATIO * expected - expected.sqrt()
    }

    /// Whether they may get too little with twice the window: each of their reads waits for what is
    /// being read ahead, so that takes as much from them again.
    pub fn next_may_hurt_beside(&self, before: &Self) -> bool {
        let lost = 1.0 - self.beside / before.beside.max(f64::MIN_POSITIVE);
        before.beside > 0.0 && lost > 0.5 * (1.0 - tuning::MIN_OTHERS_RATIO)
    }
}
