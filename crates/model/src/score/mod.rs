//! Scores the drive model against recorded service times of real drives.
//!
//! `score` replays a trace through [`Drive`](crate::drive::Drive) and compares the two
//! distributions of response times by their *demerit*: the root mean square of the horizontal
//! distance (Ruemmler and Wilkes, *An Introduction to Disk Drive Modeling*, 1994), also in percent
//! of the measured mean. The geometry, media rates and measured seek curve are given. Properties
//! that no data sheet states (overheads, cache behaviour) are fitted to the first
//! [`FITTED_REQUESTS`] requests, and only the other requests are scored.
//!
//! The loop is closed, as when the traces were recorded and as in DiskSim's validation: a request
//! arrives one recorded gap after the model completes the previous one.

mod classes;
mod constants;
mod demerit;
mod fit;
mod replay;
mod start;
mod trace;

use serde::{Deserialize, Serialize};
use units::Sectors;

use crate::SpecError;
use crate::drive::DriveSpec;

pub use constants::Constants;
pub use demerit::demerit;
pub use replay::replay;
pub use trace::{TraceRequest, parse_seek, parse_trace, unpack};

/// Number of requests at the start of a trace that are used for fitting.
pub const FITTED_REQUESTS: usize = 2000;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScoreError {
    /// The trace is neither UTF-8 nor compressed.
    #[error("the trace is neither text nor compressed with zstd")]
    NotText,
    /// The trace cannot be decompressed.
    #[error("the compressed trace is damaged: {why}")]
    Packed { why: String },
    /// A line of the trace is not a request.
    #[error("trace, line {line}: {why}")]
    TraceLine {
        /// The line number, from 1.
        line: usize,
        why: String,
    },
    /// A line of the seek curve is not a point.
    #[error("seek curve, line {line}: expected `cylinders, milliseconds`")]
    SeekLine {
        /// The line number, from 1.
        line: usize,
    },
    #[error("the seek curve has no points; give lines of `cylinders, milliseconds`")]
    NoSeekPoints,
    /// The drive's description is not valid TOML or lacks a key.
    #[error("the drive's description is invalid: {why}")]
    Description {
        /// The message of the TOML parser, with the position.
        why: String,
    },
    /// The drive's description has a value that no drive can have.
    #[error("the drive's description: {0}")]
    Drive(#[from] SpecError),
    /// No requests remain for scoring.
    #[error(
        "the trace has {requests} requests; {FITTED_REQUESTS} are used for fitting, so more \
             are needed"
    )]
    TooShort { requests: usize },
}

impl units::Classified for ScoreError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}

/// The known properties of a traced drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TracedDrive {
    pub drive: String,
    /// Revolutions per minute.
    pub rpm: f64,
    pub cylinders: f64,
    /// Capacity in 512-byte sectors.
    pub capacity_sectors: u64,
    /// Sustained media rate at the outer edge, in decimal MB/s.
    pub outer_mb_s: f64,
    /// Sustained media rate at the inner edge, in decimal MB/s.
    pub inner_mb_s: f64,
}

impl TracedDrive {
    /// Parses the description from TOML. Ignores unknown keys.
    ///
    /// # Errors
    ///
    /// If it is not TOML, or a key is missing or of the wrong type.
    pub fn from_toml(text: &str) -> Result<Self, ScoreError> {
        toml::from_str(text).map_err(|error| ScoreError::Description {
            why: crate::spec::with_position(text, &error),
        })
    }

    /// Returns the drive's specification with a measured seek curve.
    ///
    /// # Errors
    ///
    /// If the specification is invalid.
    pub fn with_seek_curve(&self, curve: Vec<[f64; 2]>) -> Result<DriveSpec, ScoreError> {
        let sectors = self.capacity_sectors.min(1 << 50);
        let seeks = [curve.first(), curve.last()].map(|point| point.map_or(0.0, |point| point[1]));
        let edges = [self.outer_mb_s, self.inner_mb_s];
        let capacity = Sectors::new(sectors).to_bytes();
        let mut spec = DriveSpec::new(capacity, self.rpm, seeks, edges);
        spec.seek_curve = curve;
        spec.cylinders = Some(self.cylinders);
        spec.destage_delay_ms = 1.0;
        spec.queue_depth = 1;
        spec.validate()?;
        Ok(spec)
    }
}

/// The agreement of the model with a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    pub drive: String,
    pub requests_scored: usize,
    pub requests_fitted: usize,
    /// Mean measured service time of the scored requests.
    pub mean_ms: f64,
    pub modelled_mean_ms: f64,
    /// Root mean square of the horizontal distance between the distributions.
    pub demerit_ms: f64,
    /// The demerit in percent of `mean_ms`.
    pub demerit_percent: f64,
    pub constants: Constants,
}

/// Fits the drive model to the first [`FITTED_REQUESTS`] requests of a trace (text, or compressed
/// with zstd) and scores it on the others. `seek` is the measured seek curve, `description` the
/// drive's TOML.
///
/// # Errors
///
/// If one of the three is invalid, or the trace is too short.
pub fn score(trace: &[u8], seek: &str, description: &str) -> Result<Score, ScoreError> {
    let drive = TracedDrive::from_toml(description)?;
    let spec = drive.with_seek_curve(parse_seek(seek)?)?;
    let trace = parse_trace(&unpack(trace)?)?;
    if trace.len() <= FITTED_REQUESTS {
        return Err(ScoreError::TooShort { requests: trace.len() });
    }
    let constants = fit::fit(&spec, &trace[..FITTED_REQUESTS])?;
    let modelled = replay(&constants.apply(&spec), 0, &trace)?;
    let mut modelled = modelled[FITTED_REQUESTS.min(modelled.len())..].to_vec();
    let mut measured: Vec<f64> =
        trace[FITTED_REQUESTS..].iter().map(|request| request.service_us / 1e3).collect();
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
    let (mean_ms, modelled_mean_ms) = (mean(&measured), mean(&modelled));
    let demerit_ms = demerit(&mut measured, &mut modelled);
    Ok(Score {
        drive: drive.drive,
        requests_scored: measured.len(),
        requests_fitted: FITTED_REQUESTS,
        mean_ms,
        modelled_mean_ms,
        demerit_ms,
        demerit_percent: 100.0 * demerit_ms / mean_ms.max(f64::MIN_POSITIVE),
        constants,
    })
}
