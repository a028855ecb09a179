//! A study as lines of JSON, one for each trial. docs/json.md explains them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use study::{CellSettings, ProgressEvent, TrialFigures};

use crate::output;

/// A line of output. The document of the whole study, after the last line, has no `event`.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Trial {
        number: usize,
        settings: &'a CellSettings,
        workload: &'a str,
        #[serde(flatten)]
        figures: &'a TrialFigures,
    },
    Spoiled {
        number: usize,
        reasons: &'a [String],
        again: bool,
    },
}

/// Prints a line for each trial. A failure to print stops the study.
#[derive(Debug)]
pub struct TrialLinePrinter {
    stop: Arc<AtomicBool>,
    failed: Option<anyhow::Error>,
}

impl TrialLinePrinter {
    /// Creates the printer of a study that the flag `stop` stops.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, failed: None }
    }

    /// Prints this step if it belongs to a trial.
    pub fn step(&mut self, step: &ProgressEvent) {
        let event = match step {
            ProgressEvent::TrialDone { number, settings, workload, figures } => {
                Event::Trial { number: *number, settings, workload, figures }
            }
            ProgressEvent::TrialSpoiled { number, reasons, again } => {
                Event::Spoiled { number: *number, reasons, again: *again }
            }
            _ => return,
        };
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = output::print_json_line(&report::Versioned::new(event)) {
            self.failed = Some(error);
            self.stop.store(true, Ordering::SeqCst);
        }
    }

    /// Returns why printing failed; `None` if it did not.
    pub fn failure(&mut self) -> Option<anyhow::Error> {
        self.failed.take()
    }
}
