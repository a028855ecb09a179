//! Progress reports of a running study.

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
    /// Restores the settings and removes created files and disks.
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
    /// The device is being probed: `done` of `total` probes are complete.
    Probed {
        done: usize,
        total: usize,
    },
    /// An experiment measures: `done` of `total` measurements are complete.
    Measured {
        done: usize,
        total: usize,
    },
    /// An interrupted run is resumed; it has this many trials.
    Resumed {
        run: RunId,
        trials: usize,
    },
    TrialStarted {
        /// Number of the trial, counted from 1.
        number: usize,
        /// Expected number of trials, which changes as cells become certain.
        expected: usize,
        settings: CellSettings,
        workload: String,
        /// Remaining time, including this trial; `None` during the first trial.
        eta: Option<Duration>,
    },
    TrialDone {
        /// Number of the trial, counted from 1.
        number: usize,
        settings: CellSettings,
        workload: String,
        figures: TrialFigures,
    },
    /// A trial was disturbed. It is repeated unless it was the last attempt.
    TrialSpoiled {
        /// Number of the trial, counted from 1.
        number: usize,
        reasons: Vec<String>,
        again: bool,
    },
    /// A note for the user, for example that a file size was reduced.
    Note(String),
}

/// Receives the progress of a study. The command line draws a progress bar from it.
pub trait Progress {
    fn step(&mut self, step: &ProgressEvent);
}

#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _step: &ProgressEvent) {}
}
