//! What a study tells while it runs.

use std::time::Duration;

use crate::run_id::RunId;
use crate::settings::CellSettings;
use crate::trial::TrialFigures;

#[derive(Clone, Debug, PartialEq)]
pub enum StudyPhase {
    /// Looks at the target, finds the run to resume or begins a new one.
    Preparing,
    CreatingDisk,
    /// Writes the files that the workloads read.
    LayingOut,
    /// Reads here and there to see what the device is like.
    Probing,
    Measuring,
    /// Puts the found settings back and removes what was made.
    Restoring,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProgressEvent {
    Phase(StudyPhase),
    /// Files are being laid out: `done` of `total` bytes.
    LaidOut {
        done: u64,
        /// Bytes to write.
        total: u64,
    },
    /// The device is being probed: `done` of `total` questions are answered.
    Probed {
        done: usize,
        total: usize,
    },
    /// An interrupted run goes on, with this many trials kept.
    Resumed {
        run: RunId,
        trials: usize,
    },
    TrialStarted {
        /// Its number, from 1.
        number: usize,
        /// How many are expected in all; the expectation changes as cells become certain.
        expected: usize,
        settings: CellSettings,
        workload: String,
        /// Time that the rest will take, this trial included; unknown before the first one ended.
        eta: Option<Duration>,
    },
    TrialDone {
        /// Its number, from 1.
        number: usize,
        settings: CellSettings,
        workload: String,
        figures: TrialFigures,
    },
    /// A trial was spoiled and will be repeated if its attempts are not used up.
    TrialSpoiled {
        /// Its number, from 1.
        number: usize,
        reasons: Vec<String>,
        again: bool,
    },
    /// Something that the user should know: a file size that had to be cut down, for one.
    Note(String),
}

/// Hears what a study is doing. The command line draws a bar from it.
pub trait Progress {
    fn step(&mut self, step: &ProgressEvent);
}

#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _step: &ProgressEvent) {}
}
