//! Replays a trace through the model.
//!
//! The loop is closed, as when the trace was recorded (and as in DiskSim): a request arrives one
//! recorded gap after the model completes the previous one. An error in one request therefore does
//! not change the rotational position of the next.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use units::{Nanos, Sectors};

use crate::SpecError;
use crate::device::{Device, Request, RequestId, RequestKind};
use crate::drive::{Drive, DriveSpec};

use super::trace::TraceRequest;

/// Replays a trace and returns the model's service times in milliseconds.
///
/// Replay 0 uses the recorded gaps. The others add a random part of a rotation to each gap, which
/// is equally likely, because gaps do not depend on the platter. They average out the effect of
/// rotation on a fit.
pub fn replay(spec: &DriveSpec, seed: u64, trace: &[TraceRequest]) -> Result<Vec<f64>, SpecError> {
    let mut drive = Drive::new(spec, seed)?;
    let mut luck = Pcg64Mcg::seed_from_u64(seed);
    let turn = if seed == 0 { 0.0 } else { 60e6 / spec.rpm };
    let mut times = Vec::with_capacity(trace.len());
    let mut done = Vec::new();
    let mut now = Nanos::ZERO;
    for (id, request) in (0..).zip(trace) {
        let kind = if request.is_write { RequestKind::Write } else { RequestKind::Read };
        let (offset, length) = (Sectors::new(request.start), Sectors::new(request.sectors));
        let (offset, length) = (offset.to_bytes(), length.to_bytes());
        drive.submit(now, Request { id: RequestId(id), kind, offset, length });
        let arrival = now;
        while done.is_empty() {
            let Some(wake) = drive.next_wake() else { break };
            drive.advance(wake, &mut done);
        }
        for completion in done.drain(..) {
            times.push((completion.at - arrival).as_millis_f64());
            let late = turn * (luck.next_u32() as f64 / u32::MAX as f64);
            now = completion.at + Nanos::from_secs_f64((request.gap_us + late) / 1e6);
        }
    }
    Ok(times)
}
