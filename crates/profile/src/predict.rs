//! Predicts gains of fixes by replaying the recorded accesses without and with them.

use std::collections::BTreeMap;

use units::Nanos;

use crate::device::DeviceModel;
use crate::pieces::touches_per_seen;
use crate::recording::ProfileRecording;
use crate::replay::ProfileReplay;
use crate::rewrite::Changes;
use crate::rules::FixChange;
use crate::stream::{FileStream, StreamKey, in_longest_thread};
use crate::warm::WarmAccesses;
use crate::what_if::agree;

/// A predicted gain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub saved: Nanos,
    /// Error of `saved`: the largest of the error of the unchanged replay's waits, two standard
    /// deviations of single replays, the correction for unseen touches, and 5 % of `saved`.
    pub error: Nanos,
    /// Reason why the prediction is only a guess; `None` if it is reliable.
    pub doubt: Option<String>,
}

impl Prediction {
    /// Adds the gain on another device.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            saved: self.saved + other.saved,
            error: self.error + other.error,
            doubt: self.doubt.or(other.doubt),
        }
    }
}

/// Reason why the gain of a fix of a mapping is not predicted.
const UNSEEN_PAGES: &str = "it depends on mapped pages that were not seen";
/// Minimum error of a prediction, as a share of the gain.
const MIN_ERROR: f64 = 0.05;
/// Half width of the interval, in standard deviations of single replays.
const INTERVAL_DEVIATIONS: f64 = 2.0;

/// Predicts the gain of a change of these streams.
///
/// # Errors
///
/// If the simulator refuses the device or a window.
pub(crate) fn predict(
    recording: &ProfileRecording,
    streams: Vec<&FileStream>,
    change: &FixChange,
    warm: &WarmAccesses,
    model: &DeviceModel,
) -> Result<Prediction, String> {
    let keys: Vec<StreamKey> = streams.iter().map(|stream| stream.key()).collect();
    let waited = in_longest_thread(recording, &streams);
    let replay = ProfileReplay::new(recording, streams, warm, model)?;
    let inodes = keys.iter().map(|(inode, _)| *inode).collect();
    let streams = keys.into_iter().map(|key| (key, change)).collect();
    let changes = Changes { streams, ..Changes::default() };
    let (mean, deviation) = replay.saved(&changes)?;
    let [mut saved, chance] =
        [mean, INTERVAL_DEVIATIONS * deviation].map(|time| Nanos::new(time as u64));
    let mut doubt = replay.check().err();
    // The same with the fewest pages of mappings that may have been touched.
    let before = replay.run_least(&Changes::default()).transpose()?;
    let after = replay.run_least(&changes).transpose()?;
    if let Some((before, after)) = before.zip(after) {
        let fewest = before.elapsed.saturating_sub(after.elapsed);
        let elapsed = replay.times.elapsed;
        if !agree(elapsed.saturating_sub(saved), elapsed.saturating_sub(fewest)) {
            saved = saved.max(fewest);
            doubt.get_or_insert_with(|| UNSEEN_PAGES.to_owned());
        }
    }
    let mut correction = Nanos::ZERO;
    if *change == FixChange::SinglePages {
        // With MADV_RANDOM, each page that was touched unseen is a fault.
        let unseen = touches_per_seen(recording, &inodes) - 1.0;
        correction = waited.saturating_sub(saved).scaled(unseen);
        saved = saved.saturating_sub(correction);
    }
    let saved = saved.min(replay.most_saved());
    let error = replay.error.max(chance).max(correction).max(saved.scaled(MIN_ERROR));
    Ok(Prediction { saved, error, doubt })
}

/// Returns the gain of each fix in addition to the fixes before it.
///
/// # Errors
///
/// If the simulator refuses the device or a window.
pub(crate) fn marginal_gains(
    replay: &ProfileReplay<'_>,
    fixes: &[(Vec<StreamKey>, &FixChange)],
) -> Result<Vec<Nanos>, String> {
    let mut streams = BTreeMap::new();
    let mut before = replay.times.elapsed;
    let mut gains = Vec::new();
    for (keys, change) in fixes {
        streams.extend(keys.iter().map(|key| (*key, *change)));
        let changes = Changes { streams: streams.clone(), ..Changes::default() };
        let elapsed = replay.run(&changes)?.elapsed;
        gains.push(before.saturating_sub(elapsed));
        before = before.min(elapsed);
    }
    Ok(gains)
}
