//! From what was seen to what should be done, one decision for each open file.

use std::collections::BTreeMap;

use observe::{OpenFile, OpenFileId};
use policy::control::{Observed, Reading, Regulator};
use serde::Serialize;
use units::{Bytes, PageSize};

use crate::{Pattern, StreamView, Tracker, View};

/// A window that an open file should get, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The open file as it was last seen.
    pub file: OpenFile,
    /// Its path, where it is known.
    pub path: Option<String>,
    /// The window that it should get.
    pub window: Bytes,
    /// One line for people.
    pub why: String,
}

/// What no decision may go beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The largest window.
    pub most: Bytes,
    /// What all windows together may take, twice each: one is read while the next one comes.
    pub memory: Bytes,
}

/// The regulators of all open files.
#[derive(Debug, Default)]
pub struct Regulators {
    of: BTreeMap<OpenFileId, (Regulator, u64)>,
}

impl Regulators {
    /// Decides after an interval. Pure: the same views give the same decisions.
    pub fn decide(
        &mut self,
        view: &View,
        tracker: &Tracker,
        bounds: Bounds,
        page: PageSize,
    ) -> Vec<Decision> {
        self.of.retain(|id, _| view.streams.iter().any(|stream| stream.id == *id));
        let reading = |stream: &&StreamView| stream.submitted_mib_s > 0.0 || stream.stalls_s > 0.0;
        let active = view.streams.iter().filter(reading).count().max(1) as u64;
        let most = bounds.most.min(Bytes::new(bounds.memory.get() / (2 * active)));
        let mut decisions = Vec::new();
        for stream in view.streams.iter().filter(reading) {
            let Some(file) = tracker.open_file(stream.id) else { continue };
            if file.random || file.direct {
                continue; // its program knows better, or has no read-ahead
            }
            let (regulator, thrashed) = self.of.entry(stream.id).or_default();
            let new = stream.thrashed.saturating_sub(std::mem::replace(thrashed, stream.thrashed));
            let seen = Observed {
                reading: reading_of(stream),
                window: file.window,
                waiting: stream.stalled_ms_s / 1000.0,
                rate: Bytes::new((stream.submitted_mib_s * f64::from(1 << 20)) as u64),
                thrashed: new,
                most,
            };
            if let Some(step) = regulator.decide(&seen, page) {
                let (file, path) = (file.clone(), stream.path.clone());
                decisions.push(Decision { file, path, window: step.window, why: step.why });
            }
        }
        decisions
    }
}

fn reading_of(stream: &StreamView) -> Reading {
    match stream.pattern {
        Pattern::Sequential | Pattern::Interleaved => Reading::Forward,
        Pattern::Random | Pattern::RandomDense if stream.mapped => Reading::MappedRandom,
        _ => Reading::Other,
    }
}
