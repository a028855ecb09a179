//! Overhead of a wait beyond the device model: on the device, from the recorded requests, and on
//! the CPU, from the recorded calls.

use sim::SimOutcome;
use units::Nanos;

use crate::recording::{AccessKind, FileAccess, IoRequest, ProfileRecording};
use crate::shape::median;
use crate::stream::FileStream;

/// Minimum number of requests or calls for an estimate.
const MIN_SAMPLES: usize = 8;
/// Costs of a cached call or fault and of a copied byte, if too few cached calls were recorded. The
/// former lies between the call and the fault of [`sim::Costs::TODAY`]; the latter is the same.
const CACHED_CALL_NS: f64 = 500.0;
const COPY_NS: f64 = 0.1;

/// Time of a wait that the device model does not include.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WaitOverhead {
    /// Delay of each request in the simulation, in simulated time.
    pub request_delay: Nanos,
    /// Delay of a wait by `request_delay`, in nanoseconds of the recording.
    pub delay_ns: f64,
    /// Remaining overhead of the device, in ns; negative if the device is faster than its model.
    pub device_ns: f64,
    /// Their sum as a share of the wait without them, in case it grows with the request.
    pub device_share: f64,
    /// CPU overhead in ns beyond a read of cached data: submission and task switches.
    pub processor_ns: f64,
}

impl WaitOverhead {
    /// Returns the CPU overhead only, from the calls of these streams with and without waits.
    pub(crate) fn of_processor(
        recording: &ProfileRecording,
        streams: &[&FileStream],
        simulated: &SimOutcome,
    ) -> Self {
        let processor_ns = processor_ns(recording, streams) * waits_of_stall(streams, simulated);
        Self { processor_ns, ..Self::default() }
    }

    /// Adds the overhead of the device: recorded requests took `service_ns` on average, and those
    /// of a simulation with `request_delay` took less or more.
    pub(crate) fn with_device_overhead(
        self,
        streams: &[&FileStream],
        simulated: &SimOutcome,
        service_ns: f64,
        request_delay: Nanos,
        dilation: f64,
    ) -> Self {
        let nanos = |time: Nanos| time.get() as f64 * dilation;
        let [stalled, queued] = [simulated.stalled(), simulated.device.queued].map(nanos);
        // A request ahead of its reader delays the reader only by the part that it waits for.
        let awaited = (stalled / queued.max(1.0)).min(1.0);
        let delay_ns = nanos(request_delay) * awaited;
        let missing = service_ns - service(simulated, dilation);
        let device_ns = missing * awaited * waits_of_stall(streams, simulated);
        let stalls = stalls(simulated) as f64;
        let without = (stalled - delay_ns * stalls).max(stalled / 2.0).max(1.0);
        let device_share = (delay_ns + device_ns) * stalls / without;
        Self { request_delay, delay_ns, device_ns, device_share, ..self }
    }

    /// Returns the overhead with this part of the request delay in the simulation; the rest is
    /// added to the waits.
    pub(crate) fn scale_delay(self, part: f64) -> Self {
        Self {
            request_delay: self.request_delay.scaled(part),
            delay_ns: self.delay_ns * part,
            device_ns: self.device_ns + self.delay_ns * (1.0 - part),
            ..self
        }
    }

    /// Returns the recorded time of simulated waits, in nanoseconds. Takes the larger of a constant
    /// and a proportional overhead of the device, so that no gain is overestimated.
    pub(crate) fn waited(&self, simulated: Nanos, waits: u64) -> f64 {
        let (time, waits) = (simulated.get() as f64, waits as f64);
        let without = (time - self.delay_ns * waits).max(0.0);
        let each = (self.delay_ns + self.device_ns) * waits;
        time + self.device_ns * waits + (self.device_share * without - each).max(0.0)
    }
}

fn stalls(simulated: &SimOutcome) -> u64 {
    simulated.readers.iter().map(|reader| reader.stalls).sum()
}

/// Returns the number of recorded waits per simulated stall, at most 1: the simulation may count a
/// read of several pages as several stalls.
fn waits_of_stall(streams: &[&FileStream], simulated: &SimOutcome) -> f64 {
    let waits: usize = streams.iter().map(|stream| stream.waits.len()).sum();
    (waits as f64 / stalls(simulated).max(1) as f64).min(1.0)
}

/// Returns the mean time of a simulated request, in nanoseconds of the recording.
pub(crate) fn service(simulated: &SimOutcome, dilation: f64) -> f64 {
    let requests = simulated.device.requests.max(1) as f64;
    simulated.device.queued.get() as f64 * dilation / requests
}

/// Returns the mean and the standard deviation of the time of requests that a stream waited for, in
/// nanoseconds; `None` if there were too few.
pub(crate) fn recorded_service(
    recording: &ProfileRecording,
    streams: &[&FileStream],
) -> Option<(f64, f64)> {
    let mut services = awaited(recording, streams);
    (services.len() >= MIN_SAMPLES).then(|| {
        let mean = trimmed_mean(&mut services);
        let squares: f64 = services.iter().map(|one| (*one as f64 - mean).powi(2)).sum();
        (mean, (squares / services.len() as f64).sqrt())
    })
}

/// Returns the times of the reads that completed while a stream waited, in nanoseconds, including
/// the time in the scheduler's queue.
fn awaited(recording: &ProfileRecording, streams: &[&FileStream]) -> Vec<u64> {
    let waits = streams.iter().flat_map(|stream| stream.waits(recording));
    let mut spans: Vec<(u64, u64)> =
        waits.map(|wait| (wait.start().get(), wait.end.get())).collect();
    spans.sort_unstable();
    let is_awaited = |request: &&IoRequest| {
        let end = request.end.get();
        let later = spans.partition_point(|span| span.0 <= end);
        // Waits of several threads overlap: an earlier wait may end later.
        request.is_read && spans[..later].iter().rev().take(8).any(|span| end <= span.1)
    };
    let awaited = recording.requests.iter().filter(is_awaited);
    awaited.map(|request| (request.queued + request.service).get()).collect()
}

/// Returns the mean without the largest 1 % of the values: pauses of the machine.
fn trimmed_mean(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    let kept = &values[..values.len() - values.len() / 100];
    kept.iter().sum::<u64>() as f64 / kept.len().max(1) as f64
}

/// Returns the CPU time of a call that waits beyond that of a cached call, in nanoseconds.
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
    (trimmed_mean(&mut waiting) - of_cached).max(0.0)
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

    /// Records reads that wait 300 µs each, 250 µs for the request, and run on the CPU for 20 µs.
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
        let of = |delay_ns, device_ns, device_share| WaitOverhead {
            delay_ns,
            device_ns,
            device_share,
            ..WaitOverhead::default()
        };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let after = of(0.0, 100.0, 0.5);
        assert!(near(after.waited(Nanos::new(400), 4), 800.0), "many short waits");
        assert!(near(after.waited(Nanos::new(400), 1), 600.0), "one long wait");
        // The same overhead within the simulation.
        let within = of(100.0, 0.0, 0.5);
        assert!(near(within.waited(Nanos::new(800), 4), 800.0));
        assert!(near(within.waited(Nanos::new(500), 1), 600.0));
        let faster = of(0.0, -50.0, -0.1);
        assert!(near(faster.waited(Nanos::new(1000), 4), 900.0));
    }

    #[test]
    fn a_call_that_waits_takes_more_of_the_processor() {
        let recording = recording();
        let all = streams(&recording);
        let extra = processor_ns(&recording, &[&all[0]]);
        // 20 µs, minus a cached call that copies one page.
        assert!((extra - (20_000.0 - 500.0 - 409.6)).abs() < 1.0, "{extra}");
    }
}
