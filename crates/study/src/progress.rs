//! What a study reports while it runs.

use std::time::Duration;

use crate::run_id::RunId;
use crate::settings::CellSettings;
use crate::trial::TrialFigures;

#[derive(Clone, Debug, PartialEq)]
pub enum StudyPhase {
    /// Inspects the target, and finds the run to resume or starts a new one.
    Preparing,
    CreatingDisk,
    /// Creates the files that the workloads read.
    LayingOut,
    /// Probes the device.
    Probing,
    Measuring,
    /// Restores the settings and removes what was created.
    Restoring,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProgressEvent {
    Phase(StudyPhase),
    /// Files are being created: `done` of `total` bytes.
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
    /// An interrupted run is resumed with this many trials.
    Resumed {
        run: RunId,
        trials: usize,
    },
    TrialStarted {
        /// Its number, from 1.
        number: usize,
        /// The expected total, which changes as cells become certain.
        expected: usize,
        settings: CellSettings,
        workload: String,
        /// Remaining time, this trial included; unknown during the first trial.
        eta: Option<Duration>,
    },
    TrialDone {
        /// Its number, from 1.
        number: usize,
        settings: CellSettings,
        workload: String,
        figures: TrialFigures,
    },
    /// A trial was disturbed. It is repeated unless its attempts are used up.
    TrialSpoiled {
        /// Its number, from 1.
        number: usize,
        reasons: Vec<String>,
        again: bool,
    },
    /// A note for the user, for example that a file size was reduced.
    Note(String),
}

/// Receives the progress of a study. The command line draws a bar from it.
pub trait Progress {
    fn step(&mut self, step: &ProgressEvent);
}

#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _step: &ProgressEvent) {}
}
