//! One measurement of one cell.

use bench::Sample;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};
use workload::Workload;

use crate::error::StudyError;
use crate::settings::CellSettings;

/// What one trial runs.
#[derive(Clone, Copy, Debug)]
pub struct TrialRequest<'a> {
    pub settings: &'a CellSettings,
    pub workload: &'a Workload,
    /// Seed of the access pattern: equal for all settings of a block, so that they form pairs.
    pub seed: u64,
}

/// Runs trials: real storage, a virtual disk, or in tests a formula.
pub trait TrialRunner {
    /// Runs one trial on a cold cache under the settings asked for.
    fn trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialRecord, StudyError>;
}

/// Everything that a trial counted, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialRecord {
    pub sample: Sample,
    /// The counters of the virtual disk, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_disk: Option<vdisk::DiskCounters>,
    /// Disturbances besides the sample's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<String>,
}

impl TrialRecord {
    /// All disturbances, in words.
    pub fn disturbances(&self) -> Vec<String> {
        let own = self.sample.disturbances.iter().map(ToString::to_string);
        own.chain(self.spoiled.iter().cloned()).collect()
    }

    /// The figures from which verdicts are made.
    pub fn figures(&self) -> TrialFigures {
        let sample = &self.sample;
        let quantiles = |at: &dyn Fn(f64) -> Option<Nanos>| {
            let p50 = at(0.5)?.as_micros_f64();
            Some(Quantiles { p50, p99: at(0.99)?.as_micros_f64() })
        };
        TrialFigures {
            // For a command, its own figure takes the place of MiB/s; a note says so.
            throughput_mib_s: sample
                .tool
                .as_ref()
                .and_then(|tool| tool.metric)
                .unwrap_or_else(|| sample.throughput().as_mib()),
            amplification: sample.amplification(),
            device_bytes: sample.device.as_ref().map(|device| device.bytes),
            refaulted: sample.memory.map(|memory| memory.refaulted),
            device_requests: sample.device.as_ref().map(|device| device.requests),
            latency_us: quantiles(&|q| sample.latency_quantile(q)),
            random_latency_us: quantiles(&|q| sample.random_latency_quantile(q)),
            // Requests in flight at the end are awaited, which can take longer than the trial.
            measured_seconds: sample.elapsed.max(sample.settled).as_secs_f64(),
            spread: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    Clean,
    /// Something disturbed it: it stays in the record and is repeated.
    Disturbed,
}

/// A trial of the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The randomised complete block of the trial, from 0.
    pub block: u32,
    /// Its index in the run.
    pub order: u32,
    pub settings: CellSettings,
    pub workload: String,
    /// Start time, in seconds since 1970.
    pub started_unix_s: f64,
    pub status: TrialStatus,
    pub disturbances: Vec<String>,
    /// What it measured, recomputed from the raw sample.
    pub figures: TrialFigures,
}

impl Trial {
    /// A measured trial; its index in the run is set when it is stored.
    pub fn new(
        block: u32,
        settings: CellSettings,
        started_unix_s: f64,
        record: &TrialRecord,
    ) -> Self {
        let disturbances = record.disturbances();
        let clean = disturbances.is_empty();
        Self {
            block,
            order: 0,
            settings,
            workload: record.sample.workload.clone(),
            started_unix_s,
            status: if clean { TrialStatus::Clean } else { TrialStatus::Disturbed },
            disturbances,
            figures: record.figures(),
        }
    }
}

/// Two quantiles of latency in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    pub p50: f64,
    pub p99: f64,
}

/// The figures of one sample from which verdicts are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Useful data per second of the storage's own time.
    pub throughput_mib_s: f64,
    /// Bytes read from the device ÷ bytes requested, if the device could be counted.
    pub amplification: Option<f64>,
    pub device_requests: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<Bytes>,
    /// Data that was evicted and read again, if a control group counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted: Option<Bytes>,
    /// Latency of all reads, if there were any.
    pub latency_us: Option<Quantiles>,
    /// Latency of the random reads, if there were any.
    pub random_latency_us: Option<Quantiles>,
    /// Wall time of the trial until no request was in flight.
    pub measured_seconds: f64,
    /// The relative spread that the source of an imported figure states: half of its interval. Our
    /// own trials are repeated instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}
