//! Ranges without overlap, and times with something under way.

use units::Nanos;

/// Ranges in order, without overlap.
pub(crate) fn merged<T: Copy + Ord>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable();
    let mut merged: Vec<(T, T)> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Times in order, without overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusySpans(Vec<(Nanos, Nanos)>);

impl FromIterator<(Nanos, Nanos)> for BusySpans {
    fn from_iter<I: IntoIterator<Item = (Nanos, Nanos)>>(spans: I) -> Self {
        Self(merged(spans.into_iter().collect()))
    }
}

impl BusySpans {
    /// How much of a time they cover.
    pub(crate) fn overlap(&self, start: Nanos, end: Nanos) -> Nanos {
        let first = self.0.partition_point(|span| span.1 <= start);
        let within = self.0[first..].iter().take_while(|span| span.0 < end);
        within.map(|span| span.1.min(end).saturating_sub(span.0.max(start))).sum()
    }

    pub(crate) fn total(&self) -> Nanos {
        self.0.iter().map(|(start, end)| end.saturating_sub(*start)).sum()
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
