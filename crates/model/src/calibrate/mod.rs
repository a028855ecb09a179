//! Fits a model to a few probes of a device.
//!
//! [`probes`] lists the reads, the caller performs them without a page cache, and [`fit`] turns the
//! timings into a [`Spec`](crate::Spec). [`run`] performs the same probes on a model. This compares
//! candidates without a closed form (number of drives, queueing) with the measurements, and tests
//! the calibration.
//!
//! The probes measure: sequential rates at start, middle and end; several interleaved streams;
//! random 4 KiB reads near one place, everywhere and at fixed distances; several of them
//! concurrently; a stream of single pages; and reads across possible chunk boundaries compared with
//! reads that do not cross them.

mod fit;
mod plan;
mod run;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

pub use fit::{ModelCalibration, ProbeAgreement, fit};
pub use plan::probes;
pub use run::run;

/// A probe: reads of the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub purpose: Purpose,
    /// Number of requests in flight.
    pub depth: usize,
    pub length: Bytes,
    /// The offset of each read, in order.
    pub offsets: Vec<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The rate of a stream at this per mille of the device.
    Stream(u32),
    /// The latency of a stream of single pages at depth 1.
    SmallStream,
    /// The rate of several interleaved streams of small requests, at this depth.
    Interleaved(u32),
    /// Random reads within one thousandth of the device.
    Near,
    /// Random reads back and forth over this distance, in per mille of the device.
    Distance(u32),
    /// Random reads everywhere, at this depth.
    Queue(u32),
    /// Random reads of 8 KiB across multiples of this many KiB.
    Across(u32),
    WithinChunk(u32),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Time from the first request to the last completion.
    pub elapsed: Nanos,
    /// The latency of each request, in order.
    pub latencies: Vec<Nanos>,
    pub bytes: Bytes,
}

/// The timings of all probes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured(BTreeMap<Purpose, Timing>);

impl Measured {
    pub fn note(&mut self, purpose: Purpose, timing: Timing) {
        self.0.insert(purpose, timing);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Purpose, &Timing)> {
        self.0.iter()
    }

    fn of(&self, purpose: Purpose) -> Option<&Timing> {
        self.0.get(&purpose)
    }

    /// Returns the mean latency in milliseconds.
    fn mean_ms(&self, purpose: Purpose) -> Option<f64> {
        self.of(purpose).map(Timing::mean_ms)
    }

    fn requests_s(&self, purpose: Purpose) -> Option<f64> {
        self.of(purpose).map(Timing::requests_s)
    }
}

/// Number of requests at the start of a stream of which any may complete first.
const COMPETING_REQUESTS: usize = 4;

/// Number of reads near one place after which every arm is there.
const SETTLING_READS: usize = 32;

impl Timing {
    /// Returns the timing of reads near one place, without the latencies of the first reads, during
    /// which the arms (one for each drive of an array) move there.
    fn settled(&self) -> Self {
        let latencies = self.latencies[SETTLING_READS.min(self.latencies.len() / 2)..].to_vec();
        Self { latencies, ..*self }
    }

    /// Returns the rate in decimal MB/s, without the first completion, which includes a seek.
    pub fn steady_mb_s(&self) -> f64 {
        let count = self.latencies.len().max(1) as f64;
        // Any of the first few requests may complete first.
        let first =
            self.latencies.iter().take(COMPETING_REQUESTS).min().copied().unwrap_or_default();
        let elapsed = self.elapsed.saturating_sub(first).as_secs_f64();
        self.bytes.get() as f64 * (count - 1.0) / count / 1e6 / elapsed.max(1e-9)
    }

    pub fn mean_ms(&self) -> f64 {
        let sum: f64 = self.latencies.iter().map(|latency| latency.as_secs_f64() * 1e3).sum();
        sum / self.latencies.len().max(1) as f64
    }

    /// Returns the median latency in milliseconds.
    fn median_ms(&self) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }

    pub fn requests_s(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the standard deviation of the latencies in milliseconds.
    fn deviation_ms(&self) -> f64 {
        let mean = self.mean_ms();
        let square = |latency: &Nanos| (latency.as_secs_f64() * 1e3 - mean).powi(2);
        let sum: f64 = self.latencies.iter().map(square).sum();
        (sum / self.latencies.len().max(1) as f64).sqrt()
    }

    /// Returns the standard error of the mean latency in milliseconds.
    fn error_ms(&self) -> f64 {
        self.deviation_ms() / (self.latencies.len().max(1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests;
