//! One measurement of one cell.

use bench::Sample;
use serde::{Deserialize, Serialize};
use units::Nanos;
use workload::Workload;

use crate::analyse::Quantiles;
use crate::error::StudyError;
use crate::settings::Settings;

/// What one trial has to run.
#[derive(Clone, Copy, Debug)]
pub struct TrialRequest<'a> {
    /// Under which settings.
    pub settings: Settings,
    /// What.
    pub workload: &'a Workload,
    /// How long, in the storage's own time.
    pub duration: Nanos,
    /// Seed of the access pattern. The same in all cells of a block, so that they are pairs.
    pub seed: u64,
}

/// Something that can run trials: real storage, a virtual disk, in tests a formula.
pub trait Trials {
    /// Runs one trial on a cold cache under the settings asked for.
    fn trial(&mut self, request: &TrialRequest<'_>) -> Result<Measured, StudyError>;
}

/// What a trial brought back.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Everything that was counted.
    pub sample: Sample,
    /// Why the sample should not be trusted; empty for a clean one.
    pub disturbances: Vec<String>,
}

/// Whether a trial counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    /// It does.
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
    /// What it ran under.
    pub settings: Settings,
    /// Name of what it ran.
    pub workload: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: f64,
    /// Whether it counts.
    pub status: TrialStatus,
    /// What disturbed it.
    pub disturbances: Vec<String>,
    /// What it measured, recomputed from the raw sample.
    pub figures: Figures,
}

/// The figures of one sample that verdicts are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Useful data a second of the storage's own time.
    pub throughput_mib_s: f64,
    /// Bytes read from the device ÷ bytes asked for, where the device could be counted.
    pub amplification: Option<f64>,
    /// Requests that the device got.
    pub device_requests: Option<u64>,
    /// Latency of all reads.
    pub latency_us: Quantiles,
    /// Latency of the random reads, where there were any.
    pub random_latency_us: Option<Quantiles>,
    /// How long the trial took on the wall.
    pub measured_seconds: f64,
}
