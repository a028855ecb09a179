//! Measures the wake-up time of readers on this machine.
//!
//! When the reply arrives, a reader that has waited for milliseconds is asleep, and so is its
//! processor. Waking both takes tens of microseconds, more under a hypervisor. The model's times
//! include this already, because readers that had to wake up measured them. So it must not be added
//! again: the creator of a disk measures the wake-up time once by reading, and the server sends the
//! replies to lone requests that much earlier.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use sys::realtime::now;
use units::Nanos;

use crate::control::{ControlRequest, send};
use crate::error::VdiskError;
use crate::head_start::{HeadStart, IDLE_TIMES};
use crate::layout::DiskDirs;

const BLOCK_BYTES: usize = 4096;
const MEASURING_ROUNDS: usize = 5;
const READS_PER_WAIT: usize = 5;
const READS_AWAKE: usize = 30;
const WARM_UP: usize = 2;
/// Maximum head start: longer times are due to a busy machine, not the wake-up.
const MAX_HEAD_START: Nanos = Nanos::from_micros(200);

/// Measures the wake-up time and reports it to the server. Takes about 0.5 s.
///
/// # Errors
///
/// If the device cannot be read or the server does not reply.
pub(crate) fn measure(home: &DiskDirs, device: &Path) -> Result<HeadStart, VdiskError> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(device)
        .map_err(VdiskError::io("opening", device))?;
    let mut early: [Vec<Nanos>; IDLE_TIMES.len()] = Default::default();
    for _ in 0..MEASURING_ROUNDS {
        send(home, ControlRequest::Timing { on: false })?;
        let awake = read_time(&file, READS_AWAKE).map_err(VdiskError::io("reading", device))?;
        for (wait, early) in IDLE_TIMES.into_iter().zip(&mut early) {
            send(home, ControlRequest::Probe { service: Some(wait) })?;
            send(home, ControlRequest::Timing { on: true })?;
            let slept = read_time(&file, READS_PER_WAIT);
            send(home, ControlRequest::Probe { service: None })?;
            let slept = slept.map_err(VdiskError::io("reading", device))?;
            early.push(slept.saturating_sub(wait + awake));
        }
    }
    let early = HeadStart(early.map(|turns| median(turns).min(MAX_HEAD_START)));
    send(home, ControlRequest::HeadStart { early })?;
    Ok(early)
}

/// Returns the median duration of consecutive reads, without the first ones.
fn read_time(file: &File, reads: usize) -> io::Result<Nanos> {
    let mut room = vec![0; 2 * BLOCK_BYTES];
    let start = room.as_ptr().align_offset(BLOCK_BYTES);
    let mut times = Vec::with_capacity(reads);
    for read in 0..WARM_UP + reads {
        let begun = now();
        file.read_exact_at(&mut room[start..start + BLOCK_BYTES], (read * BLOCK_BYTES) as u64)?;
        times.push(now().saturating_sub(begun));
    }
    Ok(median(times.split_off(WARM_UP)))
}

fn median(mut times: Vec<Nanos>) -> Nanos {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
