//! What a study tells while it runs.

use std::time::Duration;

use crate::settings::Settings;
use crate::store::RunId;
use crate::trial::Figures;

/// What a study is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Looks at the target, finds the run to resume or begins a new one.
    Preparing,
    /// Creates the virtual disk.
    CreatingDisk,
    /// Writes the files that the workloads read.
    LayingOut,
    /// Reads here and there to see what the device is like.
    Probing,
    /// Runs trials.
    Measuring,
    /// Puts the found settings back and removes what was made.
    Restoring,
}

/// One step forward.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A phase begins.
    Phase(Phase),
    /// Files are being laid out: `done` of `total` bytes.
    LaidOut {
        /// Bytes written.
        done: u64,
        /// Bytes to write.
        total: u64,
    },
    /// The device is being probed: `done` of `total` questions are answered.
    Probed {
        /// Probes done.
        done: usize,
        /// Probes in all.
        total: usize,
    },
    /// An interrupted run goes on, with this many trials kept.
    Resumed {
        /// Id of the run.
        run: RunId,
        /// Finished trials that are kept.
        trials: usize,
    },
    /// A trial begins.
    TrialStarted {
        /// Its number, from 1.
        number: usize,
        /// How many are expected in all; the expectation changes as cells become certain.
        expected: usize,
        /// What it runs under.
        settings: Settings,
        /// What it runs.
        workload: String,
        /// Time that the rest will take, this trial included; unknown before the first one ended.
        eta: Option<Duration>,
    },
    /// A trial ended well.
    TrialDone {
        /// Its number, from 1.
        number: usize,
        /// What it ran under.
        settings: Settings,
        /// What it ran.
        workload: String,
        /// What it measured.
        figures: Figures,
    },
    /// A trial was spoiled and will be repeated if its attempts are not used up.
    TrialSpoiled {
        /// Its number, from 1.
        number: usize,
        /// What disturbed it.
        reasons: Vec<String>,
        /// Whether it is tried again.
        again: bool,
    },
    /// Something that the user should know: a file size that had to be cut down, for one.
    Note(String),
}

/// Hears what a study is doing. The command line draws a bar from it.
pub trait Progress {
    /// Something happened.
    fn step(&mut self, step: &Step);
}

/// Hears everything and says nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _step: &Step) {}
}
