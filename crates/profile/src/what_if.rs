//! What other settings would do: all accesses replayed under each.

use std::fmt;
use std::str::FromStr;

use units::text::SettingError;
use units::{Bytes, Nanos};

use crate::replay::{ProfileReplay, ReplayTimes};
use crate::rewrite::Changes;

/// A setting under which a recording is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaySetting {
    /// `foreread auto`, from the windows that were recorded.
    Auto,
    /// This read-ahead for every file.
    Window(Bytes),
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

/// What a setting would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhatIf {
    pub setting: ReplaySetting,
    /// How long the run would take.
    pub wall: Nanos,
    /// How long threads would wait, summed over them.
    pub waited: Nanos,
    /// What the device would read.
    pub read: Bytes,
}

/// The replay of a whole recording, unchanged and under settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatIfTable {
    /// What was recorded as waits, and what the replay waits unchanged.
    pub recorded: Nanos,
    pub replayed: Nanos,
    /// What the device reads in the replay, unchanged.
    pub read: Bytes,
    pub rows: Vec<WhatIf>,
}

/// Replays under each setting; `wall` is the recorded time of the run.
///
/// # Errors
///
/// If the simulator refuses the device or a window.
pub(crate) fn what_if(
    replay: &ProfileReplay<'_>,
    settings: &[ReplaySetting],
    wall: Nanos,
) -> Result<WhatIfTable, String> {
    let ReplayTimes { elapsed, waited, read } = replay.times;
    let rows = settings.iter().map(|setting| {
        let changes = match setting {
            ReplaySetting::Auto => {
                let policy = control::POLICIES.parse("auto").map_err(|error| error.to_string())?;
                Changes { policy, ..Changes::default() }
            }
            ReplaySetting::Window(window) => {
                Changes { window: Some(*window), ..Changes::default() }
            }
        };
        let times = replay.run(&changes)?;
        Ok(WhatIf {
            setting: *setting,
            wall: wall.saturating_sub(elapsed) + times.elapsed,
            waited: times.waited,
            read: times.read,
        })
    });
    let rows = rows.collect::<Result<_, String>>()?;
    Ok(WhatIfTable { recorded: replay.recorded(), replayed: waited, read, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_auto_or_whole_pages() {
        let parse = |text: &str| text.parse::<ReplaySetting>().ok();
        assert_eq!(parse("auto"), Some(ReplaySetting::Auto));
        assert_eq!(parse("1M"), Some(ReplaySetting::Window(Bytes::from_mib(1))));
        assert_eq!((parse("1"), parse("6s"), parse("best")), (None, None, None));
    }
}
