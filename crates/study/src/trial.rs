//! One measurement of one cell.

use bench::Sample;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};
use workload::Workload;

use crate::error::StudyError;
use crate::settings::CellSettings;

/// The parameters of one trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialRequest<'a> {
    pub settings: &'a CellSettings,
    pub workload: &'a Workload,
    /// Seed of the access pattern, equal for all settings of a block so that they form pairs.
    pub seed: u64,
}

/// Runs trials, on real storage, on a virtual disk, or by a formula in tests.
pub trait TrialRunner {
    /// Runs one trial with a cold cache under the requested settings.
    fn trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialRecord, StudyError>;
}

/// All measurements of a trial, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialRecord {
    pub sample: Sample,
    /// The counters of the virtual disk; `None` for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_disk: Option<vdisk::DiskCounters>,
    /// Disturbances in addition to those of the sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<String>,
}

impl TrialRecord {
    /// Returns all disturbances as text.
    pub fn disturbances(&self) -> Vec<String> {
        let own = self.sample.disturbances.iter().map(ToString::to_string);
        own.chain(self.spoiled.iter().cloned()).collect()
    }

    /// Returns the figures on which verdicts are based.
    pub fn figures(&self) -> TrialFigures {
        let sample = &self.sample;
        let quantiles = |at: &dyn Fn(f64) -> Option<Nanos>| {
            let p50 = at(0.5)?.as_micros_f64();
            Some(Quantiles { p50, p99: at(0.99)?.as_micros_f64() })
        };
        TrialFigures {
            // The figure of a command replaces MiB/s; a note in the analysis explains that.
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
            // Requests in flight at the end are awaited, which may take longer than the trial.
            measured_seconds: sample.elapsed.max(sample.settled).as_secs_f64(),
            spread: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    Clean,
    /// The trial was disturbed: it stays in the record and is repeated.
    Disturbed,
}

/// A trial of a recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The randomised complete block of the trial, counted from 0.
    pub block: u32,
    /// Index of the trial in the run.
    pub order: u32,
    pub settings: CellSettings,
    pub workload: String,
    /// Start time in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    pub status: TrialStatus,
    pub disturbances: Vec<String>,
    /// The figures, recomputed from the raw sample.
    pub figures: TrialFigures,
}

impl Trial {
    /// Creates a measured trial; storing it sets its index in the run.
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

/// The figures of one sample on which verdicts are based.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Useful data in MiB per second of the storage's own time, or the figure of a command.
    pub throughput_mib_s: f64,
    /// Bytes read from the device ÷ bytes requested; `None` if the device has no counters.
    pub amplification: Option<f64>,
    pub device_requests: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<Bytes>,
    /// Data that was evicted and read again; `None` without a control group that counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted: Option<Bytes>,
    /// Latency of all reads; `None` if there were none.
    pub latency_us: Option<Quantiles>,
    /// Latency of the random reads; `None` if there were none.
    pub random_latency_us: Option<Quantiles>,
    /// Wall-clock time of the trial in seconds, until no request was in flight.
    pub measured_seconds: f64,
    /// The relative spread that the source of an imported figure states, which is half of its
    /// interval. `None` for measured trials, which are repeated instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}
