//! The stacks that some recorders print below their events. A trace has no place for them.

use std::collections::HashMap;

use units::Nanos;

use crate::model::Trace;

/// A trace with what its recorder printed of the stack of each record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackedTrace {
    pub trace: Trace,
    /// The frames as they were printed, the innermost first, by thread and time of the record.
    pub stacks: HashMap<(u64, Nanos), Vec<String>>,
}

/// Collects stacks line by line.
#[derive(Debug, Default)]
pub(super) struct CallStacks {
    stacks: HashMap<(u64, Nanos), Vec<String>>,
    last: Option<(u64, Nanos)>,
}

impl CallStacks {
    /// The frames that follow are of what this thread did at this time.
    pub(super) fn begin(&mut self, thread: u64, time: Nanos) {
        self.last = Some((thread, time));
    }

    /// The frames that follow are of nothing that is recorded.
    pub(super) fn end(&mut self) {
        self.last = None;
    }

    pub(super) fn add(&mut self, frame: &str) {
        if let Some(last) = self.last {
            self.stacks.entry(last).or_default().push(frame.to_owned());
        }
    }

    /// Forgets what was collected for this.
    pub(super) fn replace(&mut self, thread: u64, time: Nanos) {
        self.stacks.remove(&(thread, time));
        self.begin(thread, time);
    }

    /// The stacks with times counted from here.
    pub(super) fn since(self, origin: Nanos) -> HashMap<(u64, Nanos), Vec<String>> {
        let shifted =
            |((thread, time), frames)| ((thread, Nanos::saturating_sub(time, origin)), frames);
        self.stacks.into_iter().map(shifted).collect()
    }
}
