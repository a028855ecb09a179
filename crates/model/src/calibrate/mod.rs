//! From a handful of probes of a device to a model of it.
//!
//! [`probes`] says what to read; whoever can read the device does, without a page cache, and
//! [`fit`] turns the times into a [`Spec`](crate::Spec). The same probes can be run on a model
//! ([`run`]): that is how candidates of which no closed form is known (how many drives there are,
//! how they queue) are compared with what was measured, and how the whole thing is tested.
//!
//! What the probes ask: streaming rates at start, middle and end; several streams in turn; random
//! 4 KiB reads near one place, everywhere and at fixed distances; several of them at once; a stream
//! of single pages; and reads that cross a possible chunk boundary against reads that do not.

mod fit;
mod plan;
mod run;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

pub use fit::{ModelCalibration, ProbeAgreement, fit};
pub use plan::probes;
pub use run::run;

/// A question to a device: reads of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub purpose: Purpose,
    /// How many requests are kept under way.
    pub depth: usize,
    pub length: Bytes,
    /// Where each begins, in the order in which they are sent.
    pub offsets: Vec<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The rate of a stream at this per mille of the device.
    Stream(u32),
    /// The rate of a stream of single pages, one at a time.
    SmallStream,
    /// The rate of several streams of small requests in turn, this many at a time.
    Interleaved(u32),
    /// Random reads within one thousandth of the device.
    Near,
    /// Random reads there and back over this many per mille of the device.
    Distance(u32),
    /// Random reads everywhere, this many at a time.
    Queue(u32),
    /// Random reads of 8 KiB across every multiple of this many KiB.
    Across(u32),
    Beside(u32),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// From the first request to the last answer.
    pub elapsed: Nanos,
    /// What each request took, in the order in which they were sent.
    pub latencies: Vec<Nanos>,
    pub bytes: Bytes,
}

/// What all probes came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured(BTreeMap<Purpose, Timing>);

impl Measured {
    /// Notes what came of a probe.
    pub fn note(&mut self, purpose: Purpose, timing: Timing) {
        self.0.insert(purpose, timing);
    }

    /// All of it, in the order of the purposes.
    pub fn iter(&self) -> impl Iterator<Item = (&Purpose, &Timing)> {
        self.0.iter()
    }

    fn of(&self, purpose: Purpose) -> Option<&Timing> {
        self.0.get(&purpose)
    }

    /// The mean latency in milliseconds.
    fn mean_ms(&self, purpose: Purpose) -> Option<f64> {
        self.of(purpose).map(Timing::mean_ms)
    }

    fn requests_s(&self, purpose: Purpose) -> Option<f64> {
        self.of(purpose).map(Timing::requests_s)
    }
}

/// Requests of which one is answered first.
const COMPETING_REQUESTS: usize = 4;

/// Reads near one place by which every arm has come there.
const SETTLING_READS: usize = 32;

impl Timing {
    /// The same of reads near one place, without the first of them, for which the arms had to go
    /// there: of each drive in an array one.
    fn settled(&self) -> Self {
        let latencies = self.latencies[SETTLING_READS.min(self.latencies.len() / 2)..].to_vec();
        Self { latencies, ..*self }
    }

    /// Decimal MB/s, without the first answer, for which the device had to go somewhere.
    pub fn steady_mb_s(&self) -> f64 {
        let count = self.latencies.len().max(1) as f64;
        // Of the first few, any can be answered first.
        let first =
            self.latencies.iter().take(COMPETING_REQUESTS).min().copied().unwrap_or_default();
        let elapsed = self.elapsed.saturating_sub(first).as_secs_f64();
        self.bytes.get() as f64 * (count - 1.0) / count / 1e6 / elapsed.max(1e-9)
    }

    /// The mean latency in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        let sum: f64 = self.latencies.iter().map(|latency| latency.as_secs_f64() * 1e3).sum();
        sum / self.latencies.len().max(1) as f64
    }

    /// The median latency in milliseconds.
    fn median_ms(&self) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }

    pub fn requests_s(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The standard deviation of the latencies in milliseconds.
    fn deviation_ms(&self) -> f64 {
        let mean = self.mean_ms();
        let square = |latency: &Nanos| (latency.as_secs_f64() * 1e3 - mean).powi(2);
        let sum: f64 = self.latencies.iter().map(square).sum();
        (sum / self.latencies.len().max(1) as f64).sqrt()
    }

    /// The standard error of their mean in milliseconds.
    fn error_ms(&self) -> f64 {
        self.deviation_ms() / (self.latencies.len().max(1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests;
