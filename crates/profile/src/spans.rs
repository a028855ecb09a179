//! Disjoint ranges, and times of activity.

use rangemap::RangeSet;
use units::Nanos;

/// Merges ranges to disjoint ones in ascending order; drops empty ones.
pub(crate) fn merged<T: Clone + Ord>(ranges: impl IntoIterator<Item = (T, T)>) -> RangeSet<T> {
    ranges.into_iter().map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
}

/// Returns the total length of ranges.
pub(crate) fn covered(ranges: &RangeSet<u64>) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Disjoint time spans in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusySpans(RangeSet<Nanos>);

impl FromIterator<(Nanos, Nanos)> for BusySpans {
    fn from_iter<I: IntoIterator<Item = (Nanos, Nanos)>>(spans: I) -> Self {
        Self(merged(spans))
    }
}

impl BusySpans {
    /// Returns the part of a time span that they cover.
    pub(crate) fn overlap(&self, start: Nanos, end: Nanos) -> Nanos {
        if start >= end {
            return Nanos::ZERO;
        }
        let within = self.0.overlapping(start..end);
        within.map(|span| span.end.min(end) - span.start.max(start)).sum()
    }

    pub(crate) fn total(&self) -> Nanos {
        self.0.iter().map(|span| span.end - span.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_counts_once() {
        let times = [(40, 50), (10, 20), (15, 30)];
        let nanos = |time: (u64, u64)| (Nanos::new(time.0), Nanos::new(time.1));
        let spans: BusySpans = times.map(nanos).into_iter().collect();
        assert_eq!(spans.total(), Nanos::new(30));
        assert_eq!(spans.overlap(Nanos::new(25), Nanos::new(45)), Nanos::new(10));
        assert_eq!(spans.overlap(Nanos::new(30), Nanos::new(40)), Nanos::ZERO);
    }
}
