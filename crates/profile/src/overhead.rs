//! What a wait costs beyond what the device model says: on the device, from the recorded requests,
//! and on the processor, from the recorded calls.

use sim::SimOutcome;
use units::Nanos;

use crate::recording::{AccessKind, FileAccess, IoRequest, ProfileRecording};
use crate::shape::median;
use crate::stream::FileStream;

/// Requests and calls below which nothing is said.
const MIN_SAMPLES: usize = 8;
/// A cached call or fault and a copied byte, where no cached call was recorded: those of
/// [`sim::Costs::TODAY`].
const CACHED_CALL_NS: f64 = 500.0;
const COPY_NS: f64 = 0.1;

/// Nanoseconds of each wait that the simulation does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WaitOverhead {
    /// Of the request: negative if the device is faster than its model.
    pub device_ns: f64,
    /// The same as a share of the simulated wait. Which of them larger requests have is not known.
    pub device_share: f64,
    /// Of the processor, which a read of cached data does not have: submission, switches.
    pub processor_ns: f64,
}

impl WaitOverhead {
    /// Compares the requests that these streams waited for with the simulated ones, and their calls
    /// that waited with those that did not.
    pub(crate) fn new(
        recording: &ProfileRecording,
        streams: &[&FileStream],
        simulated: &SimOutcome,
        dilation: f64,
    ) -> Self {
        let mut services = awaited(recording, streams);
        let requests = simulated.device.requests.max(1) as f64;
        let expected = simulated.device.queued.get() as f64 * dilation / requests;
        let device_ns = match services.len() >= MIN_SAMPLES {
            true => trimmed_mean(&mut services) - expected,
            false => 0.0,
        };
        let stalls: u64 = simulated.readers.iter().map(|reader| reader.stalls).sum();
        // The simulator may count a read of several pages as several waits.
        let waits: usize = streams.iter().map(|stream| stream.waits.len()).sum();
        let share = (waits as f64 / stalls.max(1) as f64).min(1.0);
        let stalled = simulated.stalled().get() as f64 * dilation;
        // What comes ahead of its reader delays it by the part of its time that is waited for.
        let queued = simulated.device.queued.get() as f64 * dilation;
        let device_ns = device_ns * share * (stalled / queued.max(1.0)).min(1.0);
        let device_share = device_ns * stalls as f64 / stalled.max(1.0);
        let processor_ns = processor_ns(recording, streams) * share;
        Self { device_ns, device_share, processor_ns }
    }

    /// Without what the device adds.
    pub(crate) fn of_processor(self) -> Self {
        Self { processor_ns: self.processor_ns, ..Self::default() }
    }

    /// What waits of this time in the simulation take in nanoseconds: the larger of both, so that a
    /// fix is not said to win too much.
    pub(crate) fn waited(&self, simulated: Nanos, waits: u64) -> f64 {
        let time = simulated.get() as f64;
        time + (self.device_ns * waits as f64).max(self.device_share * time)
    }
}

/// How long the reads took that completed while one of the streams waited, in nanoseconds, with
/// their time in the queue of the scheduler.
fn awaited(recording: &ProfileRecording, streams: &[&FileStream]) -> Vec<u64> {
    let waits = streams.iter().flat_map(|stream| stream.waits(recording));
    let mut spans: Vec<(u64, u64)> =
        waits.map(|wait| (wait.end.saturating_sub(wait.blocked).get(), wait.end.get())).collect();
    spans.sort_unstable();
    let is_awaited = |request: &&IoRequest| {
        let end = request.end.get();
        let later = spans.partition_point(|span| span.0 <= end);
        // Waits of several threads overlap: a longer one may lie before the last.
        request.is_read && spans[..later].iter().rev().take(8).any(|span| end <= span.1)
    };
    let awaited = recording.requests.iter().filter(is_awaited);
    awaited.map(|request| (request.queued + request.service).get()).collect()
}

/// The mean without the largest hundredth: pauses of the machine.
fn trimmed_mean(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    let kept = &values[..values.len() - values.len() / 100];
    kept.iter().sum::<u64>() as f64 / kept.len().max(1) as f64
}

/// What a call that waits takes of the processor beyond one that does not.
fn processor_ns(recording: &ProfileRecording, streams: &[&FileStream]) -> f64 {
    let (mut waiting, mut cached, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut faults = 0;
    for access in streams.iter().flat_map(|stream| stream.accesses(recording)) {
        let calls = u64::from(access.calls.max(1));
        let working = working_ns(access);
        if access.blocked == Nanos::ZERO {
            cached.push(working / calls);
        } else {
            waiting.push(working);
            bytes.push(access.length.get());
            faults += usize::from(access.kind == AccessKind::Fault);
        }
    }
    if waiting.len() < MIN_SAMPLES {
        return 0.0;
    }
    // A fault without a wait has no recorded end.
    let is_known = cached.len() >= MIN_SAMPLES && faults * 2 < waiting.len();
    let estimated = || CACHED_CALL_NS + COPY_NS * median(&mut bytes.clone()) as f64;
    let of_cached = if is_known { median(&mut cached) as f64 } else { estimated() };
    (median(&mut waiting) as f64 - of_cached).max(0.0)
}

fn working_ns(access: &FileAccess) -> u64 {
    access.end.saturating_sub(access.start).saturating_sub(access.blocked).get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{StorageWait, WaitClass};
    use crate::stream::streams;
    use units::Bytes;

    /// Reads that wait 300 µs each, of which requests take 250, and 20 on the processor.
    fn recording() -> ProfileRecording {
        let mut recording = ProfileRecording::default();
        let device = host::DevNo { major: 7, minor: 1 };
        let id = observe::InodeId { device, inode: 1 };
        recording.files.push(crate::recording::ProfiledFile {
            id,
            path: String::new(),
            size: Bytes::from_mib(1),
            start: None,
            jumps: Vec::new(),
        });
        for index in 0..20_u64 {
            let (start, end) = (index * 400_000, index * 400_000 + 320_000);
            let blocked = Nanos::from_micros(300);
            let access = FileAccess::cached(Nanos::new(start), Nanos::new(end));
            recording.accesses.push(FileAccess { blocked, misses: 1, ..access });
            recording.waits.push(StorageWait {
                end: Nanos::new(end - 10_000),
                blocked,
                tid: 1,
                pid: 1,
                stack: 0,
                class: WaitClass::Miss,
                inode: Some(0),
                file: 7,
                offset: Bytes::ZERO,
            });
            recording.requests.push(IoRequest {
                end: Nanos::new(end - 20_000),
                service: Nanos::from_micros(250),
                device,
                sector: 0,
                length: Bytes::from_kib(4),
                depth: 1,
                is_read: true,
                queued: Nanos::ZERO,
                neighbour: None,
            });
        }
        recording
    }

    #[test]
    fn requests_that_nobody_waits_for_do_not_count() {
        let mut recording = recording();
        let other = IoRequest {
            end: Nanos::new(390_000),
            service: Nanos::from_millis(9),
            ..recording.requests[0]
        };
        recording.requests.push(other);
        let all = streams(&recording);
        let mut services = awaited(&recording, &[&all[0]]);
        assert_eq!(services.len(), 20);
        assert!((trimmed_mean(&mut services) - 250_000.0).abs() < 1.0);
    }

    #[test]
    fn larger_requests_have_the_larger_overhead() {
        let overhead = WaitOverhead { device_ns: 100.0, device_share: 0.5, processor_ns: 0.0 };
        assert!((overhead.waited(Nanos::new(400), 4) - 800.0).abs() < 1e-9, "many short waits");
        assert!((overhead.waited(Nanos::new(400), 1) - 600.0).abs() < 1e-9, "one long wait");
    }

    #[test]
    fn a_call_that_waits_takes_more_of_the_processor() {
        let recording = recording();
        let all = streams(&recording);
        let extra = processor_ns(&recording, &[&all[0]]);
        // 20 µs, less a cached call of a page.
        assert!((extra - (20_000.0 - 500.0 - 409.6)).abs() < 1.0, "{extra}");
    }
}
