//! What an answer costs whoever waits for it, on this machine.
//!
//! A reader that waits for milliseconds is asleep when its answer comes, and its processor rests.
//! Waking both takes tens of microseconds, more under a hypervisor, and none of it is the disk's
//! doing: a device would be blamed for it twice, since the model's times were taken from readers
//! who had to wake as well. So the creator of a disk measures it once, by reading, and the server
//! hands the answers to lone requests over so much earlier.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sys::realtime::now;
use units::Nanos;

use crate::control::{Question, tell};
use crate::error::VdiskError;
use crate::layout::Home;

const BLOCK: usize = 4096;
/// The longer a reader waits, the deeper his processor sleeps and the less of what he needs is
/// left in its caches. These waits are measured, what lies between is interpolated.
const WAITS: [Nanos; 3] = [Nanos::from_millis(1), Nanos::from_millis(5), Nanos::from_millis(10)];
const TURNS: usize = 5;
const READS: usize = 5;
const READS_AWAKE: usize = 30;
const WARM_UP: usize = 2;
/// More than this is not waking but a machine that is busy with something else.
const MOST: Nanos = Nanos::from_micros(200);

/// How early to hand over the answer to a lone request, by how long it waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeadStart([Nanos; WAITS.len()]);

impl HeadStart {
    /// The head start of an answer that was waited for so long.
    pub(crate) fn after(&self, wait: Nanos) -> Nanos {
        let above = WAITS.iter().position(|w| *w >= wait).unwrap_or(WAITS.len() - 1).max(1);
        let (low, high) = (WAITS[above - 1], WAITS[above]);
        let (from, to) = (self.0[above - 1].get() as f64, self.0[above].get() as f64);
        let way = wait.saturating_sub(low).get() as f64 / (high - low).get() as f64;
        Nanos::new((from + (to - from) * way.clamp(0.0, 1.0)) as u64)
    }

    /// The same for every wait.
    #[cfg(test)]
    pub(crate) fn constant(early: Nanos) -> Self {
        Self([early; WAITS.len()])
    }
}

/// Measures what waking takes and tells the server; about half a second.
///
/// # Errors
///
/// Where the device cannot be read or the server does not answer.
pub(crate) fn measure(home: &Home, device: &Path) -> Result<HeadStart, VdiskError> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(device)
        .map_err(VdiskError::io("opening", device))?;
    let mut early: [Vec<Nanos>; WAITS.len()] = Default::default();
    for _ in 0..TURNS {
        tell(home, Question::Timing { on: false })?;
        let awake = read_time(&file, READS_AWAKE).map_err(VdiskError::io("reading", device))?;
        for (wait, early) in WAITS.into_iter().zip(&mut early) {
            tell(home, Question::Probe { service: Some(wait) })?;
            tell(home, Question::Timing { on: true })?;
            let slept = read_time(&file, READS);
            tell(home, Question::Probe { service: None })?;
            let slept = slept.map_err(VdiskError::io("reading", device))?;
            early.push(slept.saturating_sub(wait + awake));
        }
    }
    let early = HeadStart(early.map(|turns| median(turns).min(MOST)));
    tell(home, Question::HeadStart { early })?;
    Ok(early)
}

/// The median time of a read, one after another; the first ones do not count.
fn read_time(file: &File, reads: usize) -> io::Result<Nanos> {
    let mut room = vec![0; 2 * BLOCK];
    let start = room.as_ptr().align_offset(BLOCK);
    let mut times = Vec::with_capacity(reads);
    for read in 0..WARM_UP + reads {
        let begun = now();
        file.read_exact_at(&mut room[start..start + BLOCK], (read * BLOCK) as u64)?;
        times.push(now().saturating_sub(begun));
    }
    Ok(median(times.split_off(WARM_UP)))
}

fn median(mut times: Vec<Nanos>) -> Nanos {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_start_is_interpolated_between_the_waits_that_were_measured() {
        let head_start = HeadStart([10, 40, 80].map(Nanos::from_micros));
        for (wait, early) in [(0, 10), (1_000, 10), (3_000, 25), (5_000, 40), (7_500, 60)] {
            let early = Nanos::from_micros(early);
            assert_eq!(head_start.after(Nanos::from_micros(wait)), early, "after {wait} µs");
        }
        assert_eq!(head_start.after(Nanos::from_secs(9)), Nanos::from_micros(80));
    }
}
