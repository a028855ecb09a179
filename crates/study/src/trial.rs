//! One measurement of one cell.

use bench::Sample;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};
use workload::Workload;

use crate::error::StudyError;
use crate::settings::CellSettings;

/// What one trial has to run.
#[derive(Clone, Copy, Debug)]
pub struct TrialRequest<'a> {
    pub settings: &'a CellSettings,
    pub workload: &'a Workload,
    /// Seed of the access pattern. The same for all settings of a block, so that they are pairs.
    pub seed: u64,
}

/// Something that can run trials: real storage, a virtual disk, in tests a formula.
pub trait TrialRunner {
    /// Runs one trial on a cold cache under the settings asked for.
    fn trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialRecord, StudyError>;
}

/// Everything that one trial counted: what the store keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialRecord {
    pub sample: Sample,
    /// What the virtual disk counted meanwhile, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_disk: Option<vdisk::DiskCounters>,
    /// What spoiled the trial besides the sample's own disturbances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<String>,
}

impl TrialRecord {
    /// Everything that speaks against it, in words.
    pub fn disturbances(&self) -> Vec<String> {
        let own = self.sample.disturbances.iter().map(ToString::to_string);
        own.chain(self.spoiled.iter().cloned()).collect()
    }

    /// The figures that verdicts are made of.
    pub fn figures(&self) -> TrialFigures {
        let sample = &self.sample;
        let quantiles = |at: &dyn Fn(f64) -> Option<Nanos>| {
            let p50 = at(0.5)?.as_micros_f64();
            Some(Quantiles { p50, p99: at(0.99)?.as_micros_f64() })
        };
        TrialFigures {
            // What a command tells by itself stands in the place of MiB/s; a note says so.
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
            // What was under way at the end is waited for, which can take longer than the trial.
            measured_seconds: sample.elapsed.max(sample.settled).as_secs_f64(),
            spread: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    Clean,
    /// Something disturbed it: kept in the record, and repeated.
    Disturbed,
}

/// A trial as the record has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The randomised complete block that it belongs to, from 0.
    pub block: u32,
    /// Its place in the run, from 0.
    pub order: u32,
    pub settings: CellSettings,
    pub workload: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: f64,
    pub status: TrialStatus,
    pub disturbances: Vec<String>,
    /// What it measured, recomputed from the raw sample.
    pub figures: TrialFigures,
}

impl Trial {
    /// A measured trial; its place in the run is the number of those before it, set when it is
    /// stored.
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
    /// Half of the reads are faster.
    pub p50: f64,
    /// 99 of 100 are.
    pub p99: f64,
}

/// The figures of one sample that verdicts are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Useful data a second of the storage's own time.
    pub throughput_mib_s: f64,
    /// Bytes read from the device ÷ bytes asked for, where the device could be counted.
    pub amplification: Option<f64>,
    pub device_requests: Option<u64>,
    /// Bytes that were read from the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<Bytes>,
    /// Data that were evicted and had to be read again, where a control group counted that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted: Option<Bytes>,
    /// Latency of all reads, if there were any.
    pub latency_us: Option<Quantiles>,
    /// Latency of the random reads, where there were any.
    pub random_latency_us: Option<Quantiles>,
    /// How long the trial took on the wall, until nothing was under way any more.
    pub measured_seconds: f64,
    /// How well the throughput repeats, relative, as whoever measured it says: the half of its
    /// interval. Our own trials are repeated instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}
