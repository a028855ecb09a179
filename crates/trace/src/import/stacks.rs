//! Stacks that some recorders print below their events. A trace cannot store them.

use std::collections::HashMap;

use units::Nanos;

use crate::model::Trace;

/// A trace with the stacks that its recorder printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackedTrace {
    pub trace: Trace,
    /// Frames as printed, innermost first, by thread and time of the record.
    pub stacks: HashMap<(u64, Nanos), Vec<String>>,
}

/// Collects stacks line by line.
#[derive(Debug, Default)]
pub(super) struct CallStacks {
    stacks: HashMap<(u64, Nanos), Vec<String>>,
    last: Option<(u64, Nanos)>,
}

impl CallStacks {
    /// Assigns the following frames to the record of this thread and time.
    pub(super) fn begin(&mut self, thread: u64, time: Nanos) {
        self.last = Some((thread, time));
    }

    /// Ignores the following frames: they belong to no record.
    pub(super) fn end(&mut self) {
        self.last = None;
    }

    pub(super) fn add(&mut self, frame: &str) {
        if let Some(last) = self.last {
            self.stacks.entry(last).or_default().push(frame.to_owned());
        }
    }

    /// Discards the frames of this record and assigns the following ones to it.
    pub(super) fn replace(&mut self, thread: u64, time: Nanos) {
        self.stacks.remove(&(thread, time));
        self.begin(thread, time);
    }

    /// Returns the stacks with times relative to `origin`.
    pub(super) fn since(self, origin: Nanos) -> HashMap<(u64, Nanos), Vec<String>> {
        let shifted =
            |((thread, time), frames)| ((thread, Nanos::saturating_sub(time, origin)), frames);
        self.stacks.into_iter().map(shifted).collect()
    }
}
