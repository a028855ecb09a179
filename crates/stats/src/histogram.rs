//! Latency histograms that can be stored as text.

use std::fmt::{self, Write as _};

use hdrhistogram::Histogram;
use serde::de::Error as _;
use units::Nanos;

/// The longest latency that a histogram distinguishes.
const MAX_LATENCY: Nanos = Nanos::from_secs(3600);
/// Significant decimal digits: a bucket is at most 0.1 % wide.
const SIGNIFICANT_DIGITS: u8 = 3;
/// Base-2 logarithm of the number of equally wide buckets between two powers of two. It follows
/// from the digits: the first 2048 values have a bucket each, as in hdrhistogram.
const BUCKET_BITS: u32 = 10;

/// Latencies in nanoseconds to three significant digits, up to an hour.
///
/// The stored form is one line of text, `bucket+count` for each used bucket, where `bucket` is the
/// distance from the previous one: a few kilobytes for a hundred thousand latencies.
#[derive(Clone, PartialEq)]
pub struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_LATENCY.get(), SIGNIFICANT_DIGITS);
        Self(histogram.expect("constant bounds in their right order"))
    }

    /// Adds one latency; more than an hour counts as an hour.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.0.saturating_record(latency.min(MAX_LATENCY).get());
    }

    /// Adds the same latency `times` times.
    #[inline]
    pub fn record_times(&mut self, latency: Nanos, times: u64) {
        self.0.saturating_record_n(latency.min(MAX_LATENCY).get(), times);
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency at quantile `q` (0 to 1); `None` if empty.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        (!self.0.is_empty()).then(|| Nanos::new(self.0.value_at_quantile(q)))
    }

    /// Returns the mean latency; `None` if empty.
    pub fn mean(&self) -> Option<Nanos> {
        (!self.0.is_empty()).then(|| Nanos::new(self.0.mean().round() as u64))
    }

    /// Returns every recorded latency, to three digits and ascending, with its count.
    pub fn counts(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0
            .iter_recorded()
            .map(|step| (Nanos::new(step.value_iterated_to()), step.count_at_value()))
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut before = 0;
        for step in self.0.iter_recorded() {
            let bucket = bucket_of(step.value_iterated_to());
            let space = if text.is_empty() { "" } else { " " };
            let (distance, count) = (bucket - before, step.count_at_value());
            write!(text, "{space}{distance}+{count}").expect("memory takes all text");
            before = bucket;
        }
        text
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut histogram = Self::new();
        let mut bucket = 0u64;
        for pair in text.split_ascii_whitespace() {
            let (distance, count) = pair.split_once('+')?;
            bucket = bucket.checked_add(distance.parse().ok()?)?;
            let value = value_in(bucket).filter(|value| *value <= MAX_LATENCY.get())?;
            let count: u64 = count.parse().ok()?;
            histogram.0.len().checked_add(count)?;
            histogram.0.record_n(value, count).ok()?;
        }
        Some(histogram)
    }
}

/// Returns the number of the bucket that holds `value`.
fn bucket_of(value: u64) -> u64 {
    let shift = value.max(1).ilog2().saturating_sub(BUCKET_BITS);
    (u64::from(shift) << BUCKET_BITS) + (value >> shift)
}

/// Returns the lowest value of a bucket.
fn value_in(bucket: u64) -> Option<u64> {
    let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
    let within = bucket - (shift << BUCKET_BITS);
    (shift < 64 - u64::from(BUCKET_BITS)).then(|| within << shift)
}

/// Shows a summary, because most of the thousands of buckets are empty.
impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LatencyHistogram");
        shown.field("count", &self.count());
        for (name, q) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            shown.field(name, &self.quantile(q).unwrap_or_default());
        }
        shown.finish()
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl serde::Serialize for LatencyHistogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> serde::Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text).ok_or_else(|| {
            let start: String = text.chars().take(40).collect();
            D::Error::custom(format!("{start:?} is not a latency histogram"))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(latencies: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        latencies.iter().for_each(|latency| histogram.record(Nanos::new(*latency)));
        histogram
    }

    proptest! {
        #[test]
        fn text_keeps_every_count(
            latencies in prop::collection::vec(
                prop_oneof![0u64..5000, 0u64..10_000_000, 0u64..4_000_000_000_000], 0..200,
            )
        ) {
            let histogram = of(&latencies);
            let again = LatencyHistogram::from_text(&histogram.to_text()).unwrap();
            prop_assert_eq!(again.count(), latencies.len() as u64);
            prop_assert_eq!(again.to_text(), histogram.to_text());
            for q in [0.0, 0.5, 0.99, 1.0] {
                prop_assert_eq!(again.quantile(q), histogram.quantile(q));
            }
        }

        #[test]
        fn any_text_is_read_without_panic(text in "[0-9+ x-]{0,60}") {
            let _ = LatencyHistogram::from_text(&text);
        }

        #[test]
        fn buckets_are_numbered_without_gap(value in 0u64..MAX_LATENCY.get()) {
            let bucket = bucket_of(value);
            let low = value_in(bucket).unwrap();
            prop_assert!(low <= value && value - low <= value / 1000);
            let next = value_in(bucket + 1).unwrap();
            prop_assert!(next > value);
        }
    }

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let histogram = of(&(1..=1000).map(|n| n * 10_000).collect::<Vec<_>>());
        let near = |q: f64, expected: u64| {
            let found = histogram.quantile(q).unwrap().get();
            assert!(found.abs_diff(expected) <= expected / 1000, "{q}: {found}");
        };
        near(0.5, 5_000_000);
        near(0.99, 9_900_000);
        near(1.0, 10_000_000);
        assert_eq!(LatencyHistogram::new().quantile(0.5), None);
        assert_eq!(LatencyHistogram::new().mean(), None);
        let counts: Vec<u64> = of(&[5, 7, 5]).counts().map(|(_, count)| count).collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn merging_adds_counts() {
        let mut both = of(&[100, 200]);
        both.merge(&of(&[300]));
        assert_eq!(both.count(), 3);
        assert_eq!(both.mean(), Some(Nanos::new(200)));
    }

    #[test]
    fn a_trial_s_worth_of_latencies_is_small() {
        // A hundred thousand cached reads and two thousand from the disk.
        let cached = (0..100_000u64).map(|n| 900 + n % 700 * (n % 13));
        let disk = (0..2_000u64).map(|n| 4_000_000 + n * 3_001);
        let text = of(&cached.chain(disk).collect::<Vec<_>>()).to_text();
        assert!(text.len() < 40_000, "{} bytes", text.len());
    }
}
