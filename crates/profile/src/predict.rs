//! What fixes would win: the recorded accesses replayed without and with them.

use std::collections::BTreeMap;

use units::Nanos;

use crate::device::DeviceModel;
use crate::recording::ProfileRecording;
use crate::replay::ProfileReplay;
use crate::rewrite::Changes;
use crate::rules::FixChange;
use crate::stream::{FileStream, StreamKey};
use crate::warm::WarmAccesses;

/// What was predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    pub saved: Nanos,
    /// How far the replay was off, as a share.
    pub error: f64,
}

/// Predicts what a change of these streams wins.
///
/// # Errors
///
/// Why it cannot be predicted.
pub(crate) fn predict(
    recording: &ProfileRecording,
    streams: Vec<&FileStream>,
    change: &FixChange,
    warm: &WarmAccesses,
    model: &DeviceModel,
) -> Result<Prediction, String> {
    let keys: Vec<StreamKey> = streams.iter().map(|stream| stream.key()).collect();
    let replay = ProfileReplay::new(recording, streams, warm, model)?;
    let streams = keys.into_iter().map(|key| (key, change)).collect();
    let changed = replay.run(&Changes { streams, ..Changes::default() })?;
    let saved = replay.times.elapsed.saturating_sub(changed.elapsed);
    Ok(Prediction { saved: saved.min(replay.most_saved()), error: replay.error })
}

/// What each fix wins once those before it are made.
///
/// # Errors
///
/// Why it cannot be predicted.
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
