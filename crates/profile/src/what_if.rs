//! Predicts the effect of other settings by replaying all accesses under each.

use std::fmt;
use std::str::FromStr;

use policy::PolicySpec;
use units::text::SettingError;
use units::{Bytes, Nanos};

use crate::replay::{ProfileReplay, ReplayTimes};
use crate::rewrite::Changes;

/// A setting under which a recording is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaySetting {
    /// `foreread auto`, starting with the recorded windows.
    Auto,
    /// The same read-ahead for every file.
    Window(Bytes),
}

/// Maximum relative difference of two durations of a run that agree.
const MAX_BOUND_DIFFERENCE: f64 = 0.15;

impl WhatIf {
    /// Returns whether the result does not depend on touches that were not recorded.
    pub fn is_certain(&self) -> bool {
        agree(self.wall, self.wall_least)
    }
}

/// Returns whether two durations of a run, with the most and the fewest touched pages, agree.
pub(crate) fn agree(most: Nanos, least: Nanos) -> bool {
    (most.get() as f64 / least.get().max(1) as f64 - 1.0).abs() <= MAX_BOUND_DIFFERENCE
}

impl FromStr for ReplaySetting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let window: Option<Bytes> = text.parse().ok();
        window
            .filter(|window| window.get() % 4096 == 0)
            .map(Self::Window)
            .ok_or_else(|| SettingError::invalid("setting", text, "use auto or a size such as 1M"))
    }
}

impl fmt::Display for ReplaySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Window(window) => f.pad(&window.to_string()),
        }
    }
}

/// Predicted results of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhatIf {
    pub setting: ReplaySetting,
    /// Duration of the run.
    pub wall: Nanos,
    /// Duration of the run if only those pages of mappings were touched that are known to have been
    /// touched.
    pub wall_least: Nanos,
    /// Time that threads wait, summed over all threads.
    pub waited: Nanos,
    /// Bytes that the device reads.
    pub read: Bytes,
}

/// Replay of a whole recording, unchanged and under each setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatIfTable {
    /// Recorded waits, and waits of the unchanged replay.
    pub recorded: Nanos,
    pub replayed: Nanos,
    /// Bytes that the device reads in the unchanged replay.
    pub read: Bytes,
    pub rows: Vec<WhatIf>,
}

/// Returns the policy of `foreread auto` on a disk that is `dilation` times slower than its model.
/// `auto` does not slow down with the disk, so it is faster in the model's time.
fn auto(dilation: f64) -> Result<PolicySpec, String> {
    let words = format!("auto,samples=on,dilation={dilation}");
    control::POLICIES.parse(&words).map_err(|error| error.to_string())
}

/// Replays the recording under each setting; `wall` is the recorded duration of the run.
///
/// # Errors
///
/// If the simulator refuses the device or a window.
pub(crate) fn what_if(
    replay: &ProfileReplay<'_>,
    settings: &[ReplaySetting],
    wall: Nanos,
) -> Result<WhatIfTable, String> {
    let ReplayTimes { elapsed, waited, read, .. } = replay.times;
    let least_unchanged = replay.run_least(&Changes::default()).transpose()?;
    let rows = settings.iter().map(|setting| {
        let changes = match setting {
            ReplaySetting::Auto => {
                Changes { policy: auto(replay.model.dilation)?, ..Changes::default() }
            }
            ReplaySetting::Window(window) => {
                Changes { window: Some(*window), ..Changes::default() }
            }
        };
        let times = replay.run(&changes)?;
        let rest = wall.saturating_sub(elapsed);
        let least = match (&least_unchanged, replay.run_least(&changes).transpose()?) {
            (Some(unchanged), Some(least)) => {
                // Compared with the same accesses without a setting.
                wall.saturating_sub(unchanged.elapsed) + least.elapsed
            }
            _ => rest + times.elapsed,
        };
        Ok(WhatIf {
            setting: *setting,
            wall: rest + times.elapsed,
            wall_least: least,
            waited: times.waited,
            read: times.read,
        })
    });
    let rows = rows.collect::<Result<_, String>>()?;
    Ok(WhatIfTable { recorded: replay.recorded, replayed: waited, read, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_slow_disk_auto_is_faster_in_the_time_of_the_model() {
        let text = |dilation| auto(dilation).unwrap().to_string();
        assert_eq!(text(1.0), "auto,samples=on,dilation=1");
        assert_eq!(text(4.0), "auto,samples=on,dilation=4");
        assert!(auto(1e4).is_err());
    }

    #[test]
    fn settings_are_auto_or_whole_pages() {
        let parse = |text: &str| text.parse::<ReplaySetting>().ok();
        assert_eq!(parse("auto"), Some(ReplaySetting::Auto));
        assert_eq!(parse("1M"), Some(ReplaySetting::Window(Bytes::from_mib(1))));
        assert_eq!((parse("1"), parse("6s"), parse("best")), (None, None, None));
    }
}
