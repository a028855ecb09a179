//! A lock-free histogram for several threads.

use std::sync::atomic::{AtomicU64, Ordering};

use units::Nanos;

/// Buckets for each power of two: the resolution is 1/32, about 3 %.
const FINE_BITS: u32 = 5;
const SUB_BUCKETS: usize = 1 << FINE_BITS;
const BUCKET_COUNT: usize = (64 - FINE_BITS as usize + 1) * SUB_BUCKETS;

/// Counts of times, in buckets that grow with the time.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
    max: AtomicU64,
    total: AtomicU64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            buckets: (0..BUCKET_COUNT).map(|_| AtomicU64::new(0)).collect(),
            max: AtomicU64::new(0),
            total: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, span: Nanos) {
        self.buckets[bucket(span.get())].fetch_add(1, Ordering::Relaxed);
        self.max.fetch_max(span.get(), Ordering::Relaxed);
        self.total.fetch_add(span.get(), Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Ordering::Relaxed);
        }
        self.max.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
    }

    pub(crate) fn max(&self) -> Nanos {
        Nanos::new(self.max.load(Ordering::Relaxed))
    }

    pub(crate) fn total(&self) -> Nanos {
        Nanos::new(self.total.load(Ordering::Relaxed))
    }

    /// The quantile `q`, within 3 %; zero without values.
    pub(crate) fn quantile(&self, q: f64) -> Nanos {
        let counts: Vec<u64> =
            self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        let rank = ((total as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Nanos::new(highest_in(index)).min(self.max());
            }
        }
        Nanos::ZERO
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB_BUCKETS as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - FINE_BITS;
    (shift as usize + 1) * SUB_BUCKETS + (value >> shift) as usize - SUB_BUCKETS
}

fn highest_in(bucket: usize) -> u64 {
    if bucket < SUB_BUCKETS {
        return bucket as u64;
    }
    let shift = (bucket / SUB_BUCKETS - 1) as u32;
    let mantissa = (SUB_BUCKETS + bucket % SUB_BUCKETS) as u64;
    // In this order the highest bucket does not overflow.
    (mantissa << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_into_a_bucket_that_bounds_it_to_three_percent() {
        let values = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + power / 3, power + (power - 1)]
        });
        for value in values {
            let highest = highest_in(bucket(value));
            assert!(highest >= value, "{value} above its bucket's {highest}");
            assert!(highest - value <= value / 32, "{value} in a bucket up to {highest}");
        }
        assert_eq!(highest_in(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles_are_those_of_what_was_added() {
        let histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), Nanos::ZERO);
        for micros in 1..=1000 {
            histogram.add(Nanos::from_micros(micros));
        }
        for (q, expected) in [(0.5, 500.0), (0.99, 990.0), (0.001, 1.0), (1.0, 1000.0)] {
            let seen = histogram.quantile(q).as_micros_f64();
            assert!((seen / expected - 1.0).abs() <= 1.0 / 32.0, "{q}: {seen} for {expected}");
        }
        assert_eq!(histogram.max(), Nanos::from_millis(1));
        histogram.clear();
        assert_eq!((histogram.quantile(0.9), histogram.max()), (Nanos::ZERO, Nanos::ZERO));
    }
}
