//! Latency histograms that can be stored.

use hdrhistogram::Histogram;
use units::Nanos;

/// Latencies in nanoseconds to three significant digits, up to an hour.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        todo!()
    }

    /// How many latencies there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that the share `q` (0 to 1) of all stay within; `None` if there are none.
    pub fn quantile(&self, _q: f64) -> Option<Nanos> {
        todo!()
    }

    /// The mean latency; `None` if there are none.
    pub fn mean(&self) -> Option<Nanos> {
        todo!()
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, _other: &Self) {
        todo!()
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl serde::Serialize for LatencyHistogram {
    fn serialize<S: serde::Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        todo!()
    }
}

impl<'de> serde::Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        todo!()
    }
}
