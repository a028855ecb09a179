//! Read rates of a device, and whether its readers still do the same work as before.

use units::Pages;

use crate::tuning::Tuning;

/// Returns whether a count is far below the expected one, by more than chance explains.
pub(super) fn is_plainly_below(expected: f64, got: f64, tuning: &Tuning) -> bool {
    expected >= 10.0 && got < tuning.plainly_below_ratio * expected - expected.sqrt()
}

/// A rate, and the number of runs, files or reads from which it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountedRate {
    pub per_second: f64,
    pub count: u64,
}

impl CountedRate {
    /// Returns whether it is lower by more than chance explains. On a disk that seeks, the time per
    /// item has a standard deviation as large as its mean.
    pub fn is_below(&self, other: &Self, tuning: &Tuning) -> bool {
        let chance = (1.0 / self.count.max(1) as f64 + 1.0 / other.count.max(1) as f64).sqrt();
        self.per_second < (tuning.revert_below_ratio() - chance) * other.per_second
    }
}

/// Cumulative counts of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadCounts {
    /// Pages that readers of streams reached.
    pub progress: u64,
    /// Places that continued a stream, and those of them that switched to another stream.
    pub forward: u64,
    pub switched: u64,
    /// Places of the same open files that continued no stream.
    pub elsewhere: u64,
    /// Reads of open files that are not streams.
    pub other_reads: u64,
}

impl ReadCounts {
    /// Adds the counts of an interval.
    pub fn add(&mut self, more: &Self) {
        self.progress += more.progress;
        self.forward += more.forward;
        self.switched += more.switched;
        self.elsewhere += more.elsewhere;
        self.other_reads += more.other_reads;
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadRates {
    pub progress: f64,
    forward: f64,
    switched: f64,
    elsewhere: f64,
    pub other_reads: f64,
}

impl ReadRates {
    /// Returns the rates between two counts that are `seconds` apart.
    pub fn over(before: ReadCounts, after: ReadCounts, seconds: f64) -> Self {
        let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
        Self {
            progress: rate(before.progress, after.progress),
            forward: rate(before.forward, after.forward),
            switched: rate(before.switched, after.switched),
            elsewhere: rate(before.elsewhere, after.elsewhere),
            other_reads: rate(before.other_reads, after.other_reads),
        }
    }

    /// Returns these rates, moved towards `to` by the part `weight` of the difference.
    pub fn towards(&self, to: &Self, weight: f64) -> Self {
        let go = |from: f64, to: f64| from + weight * (to - from);
        Self {
            progress: go(self.progress, to.progress),
            forward: go(self.forward, to.forward),
            switched: go(self.switched, to.switched),
            elsewhere: go(self.elsewhere, to.elsewhere),
            other_reads: go(self.other_reads, to.other_reads),
        }
    }

    /// Returns the share of stream places that switched from another stream.
    pub fn switches(&self) -> f64 {
        self.switched / self.forward.max(1e-9)
    }

    /// Returns the gain ratio that a larger window must reach; fewer observations require more.
    pub fn winning(&self, seconds: f64, (least, most): (f64, f64)) -> f64 {
        (1.0 + 0.5 / (self.forward * seconds).max(1.0).sqrt()).clamp(least, most)
    }

    /// Returns whether the same open files have many places outside streams.
    pub fn is_scattered(&self, tuning: &Tuning) -> bool {
        self.elsewhere > tuning.majority_share * self.forward
    }

    /// Returns whether the readers do other work than before: they changed between one and several
    /// streams, or read more places outside streams.
    pub fn are_of_other_work(&self, before: &Self, tuning: &Tuning) -> bool {
        let apart = |rates: &Self| rates.elsewhere / rates.progress.max(1e-3);
        let switched = self.forward > 0.0 && (self.switches() - before.switches()).abs() > 0.4;
        switched || apart(self) > 3.0 * apart(before) + tuning.other_work_places_per_page()
    }

    /// Returns whether other readers read less than before, by more than chance explains.
    pub fn hurts_others(&self, before: &Self, seconds: f64, tuning: &Tuning) -> bool {
        let (expected, got) = (before.other_reads * seconds, self.other_reads * seconds);
        expected >= 4.0 && got < tuning.min_others_ratio() * expected - 0.7 * expected.sqrt()
    }

    /// Returns whether other readers lose so much that no further observation is needed.
    pub fn plainly_hurts_others(&self, before: &Self, seconds: f64, tuning: &Tuning) -> bool {
        is_plainly_below(before.other_reads * seconds, self.other_reads * seconds, tuning)
    }

    /// Returns whether streams with these windows lose so much that no further observation is
    /// needed.
    pub fn is_plainly_slower(
        &self,
        before: &Self,
        seconds: f64,
        window: Pages,
        tuning: &Tuning,
    ) -> bool {
        let windows = |rates: &Self| rates.progress * seconds / window.get().max(1) as f64;
        is_plainly_below(windows(before), windows(self), tuning)
    }

    /// Returns whether twice the window may slow down other readers too much: each of their reads
    /// waits for read-ahead in flight, so their loss would double.
    pub fn next_may_hurt_others(&self, before: &Self, tuning: &Tuning) -> bool {
        let lost = 1.0 - self.other_reads / before.other_reads.max(f64::MIN_POSITIVE);
        before.other_reads > 0.0 && lost > 0.5 * (1.0 - tuning.min_others_ratio())
    }
}
