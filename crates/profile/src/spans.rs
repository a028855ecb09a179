//! Ranges without overlap, and times with something under way.

use rangemap::RangeSet;
use units::Nanos;

/// Ranges in order, without overlap; empty ones are left out.
pub(crate) fn merged<T: Clone + Ord>(ranges: impl IntoIterator<Item = (T, T)>) -> RangeSet<T> {
    ranges.into_iter().map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
}

/// How much ranges cover together.
pub(crate) fn covered(ranges: &RangeSet<u64>) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Times in order, without overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusySpans(RangeSet<Nanos>);

impl FromIterator<(Nanos, Nanos)> for BusySpans {
    fn from_iter<I: IntoIterator<Item = (Nanos, Nanos)>>(spans: I) -> Self {
        Self(merged(spans))
    }
}

impl BusySpans {
    /// How much of a time they cover.
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
