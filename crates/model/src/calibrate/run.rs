//! Runs probes on a model.

use units::{Bytes, Nanos};

use super::{Probe, Timing};
use crate::{Device, Request, RequestId, RequestKind};

/// Runs a probe on an idle device from `now` on; returns the timing and the end time.
pub fn run(device: &mut dyn Device, probe: &Probe, now: Nanos) -> (Timing, Nanos) {
    let mut sent = vec![now; probe.offsets.len()];
    let mut latencies = vec![Nanos::ZERO; probe.offsets.len()];
    let (mut next, mut open, mut time) = (0, 0, now);
    let mut done = Vec::new();
    loop {
        while open < probe.depth && next < probe.offsets.len() {
            sent[next] = time;
            let id = RequestId(next as u64);
            let (offset, length) = (probe.offsets[next], probe.length);
            device.submit(time, Request { id, kind: RequestKind::Read, offset, length });
            (open, next) = (open + 1, next + 1);
        }
        if open == 0 {
            break;
        }
        let Some(at) = device.next_wake() else { break };
        device.advance(at, &mut done);
        for completion in done.drain(..) {
            time = time.max(completion.at);
            let place = completion.id.0 as usize;
            latencies[place] = completion.at.saturating_sub(sent[place]);
            open -= 1;
        }
    }
    let bytes = Bytes::new(probe.length.get() * probe.offsets.len() as u64);
    (Timing { elapsed: time.saturating_sub(now), latencies, bytes }, time)
}
