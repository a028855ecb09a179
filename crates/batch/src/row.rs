//! The result of one cell.

use sim::{CacheUse, DeviceUse, SimOutcome};
use stats::LatencyHistogram;
use units::{Bytes, Nanos};

use crate::cell::SimCell;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellStatus {
    Ok,
    /// The simulator rejected the cell, with the reason.
    Error(String),
    /// The processes that simulated the cell died, with the reason.
    Poisoned(String),
}

impl CellStatus {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error(_) => "error",
            Self::Poisoned(_) => "poisoned",
        }
    }

    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Self::Ok => None,
            Self::Error(error) | Self::Poisoned(error) => Some(error),
        }
    }
}

/// Result of a simulation; identical for identical cells, to the nanosecond.
#[derive(Clone, Debug, PartialEq)]
pub struct CellRow {
    pub cell_id: String,
    pub trace: String,
    pub trace_digest: String,
    pub cell: SimCell,
    pub status: CellStatus,
    pub figures: Option<CellFigures>,
}

/// The numbers of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellFigures {
    pub elapsed: Nanos,
    pub useful: Bytes,
    pub device: DeviceUse,
    pub stalls: u64,
    pub stalled: Nanos,
    pub cache: CacheUse,
    /// Latency of all reads, of streams and random.
    pub latency: LatencyHistogram,
}

impl CellFigures {
    pub fn new(outcome: &SimOutcome) -> Self {
        let mut latency = outcome.stream.latency.clone();
        latency.merge(&outcome.random.latency);
        Self {
            elapsed: outcome.elapsed,
            useful: outcome.useful(),
            device: outcome.device,
            stalls: outcome.readers.iter().map(|reader| reader.stalls).sum(),
            stalled: outcome.stalled(),
            cache: outcome.cache,
            latency,
        }
    }

    /// Returns all numbers, by column name.
    pub fn numbers(&self) -> Vec<(&'static str, Option<u64>)> {
        let quantile = |q| self.latency.quantile(q).map(|latency| latency.get());
        vec![
            ("elapsed_ns", Some(self.elapsed.get())),
            ("useful_bytes", Some(self.useful.get())),
            ("device_bytes", Some(self.device.bytes.get())),
            ("device_requests", Some(self.device.requests)),
            ("device_busy_ns", Some(self.device.busy.get())),
            ("stalls", Some(self.stalls)),
            ("stalled_ns", Some(self.stalled.get())),
            ("referenced_pages", Some(self.cache.references.get())),
            ("hit_pages", Some(self.cache.hits.get())),
            ("late_pages", Some(self.cache.late.get())),
            ("missed_pages", Some(self.cache.misses.get())),
            ("read_pages", Some(self.cache.read.get())),
            ("used_pages", Some(self.cache.used.get())),
            ("thrashed_pages", Some(self.cache.thrashed.get())),
            ("latency_p50_ns", quantile(0.5)),
            ("latency_p99_ns", quantile(0.99)),
        ]
    }

    /// Encodes the latencies as pairs of LEB128 numbers: the difference from the previous latency
    /// in nanoseconds, and the number of reads with this latency.
    pub(crate) fn encoded_latency(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut before = 0;
        for (latency, count) in self.latency.counts() {
            leb128(&mut bytes, latency.get() - before);
            leb128(&mut bytes, count);
            before = latency.get();
        }
        bytes
    }
}

fn leb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
