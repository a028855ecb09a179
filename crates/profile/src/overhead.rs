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

/// What a wait takes that the model of the device does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WaitOverhead {
    /// What each request is delayed by in the simulation, in its time.
    pub request_delay: Nanos,
    /// What a wait has of it, in nanoseconds of the recording.
    pub delay_ns: f64,
    /// What remains, in nanoseconds: negative if the device is faster than its model.
    pub device_ns: f64,
    /// Both as a share of the wait without them. Which of them larger requests have is not known.
    pub device_share: f64,
    /// Of the processor, which a read of cached data does not have: submission, switches.
    pub processor_ns: f64,
}

impl WaitOverhead {
    /// Only that of the processor: the calls of these streams that waited, and those that did not.
    pub(crate) fn of_processor(
        recording: &ProfileRecording,
        streams: &[&FileStream],
        simulated: &SimOutcome,
    ) -> Self {
        let processor_ns = processor_ns(recording, streams) * waits_of_stall(streams, simulated);
        Self { processor_ns, ..Self::default() }
    }

    /// The same with that of the device: its requests took `service_ns` on average, and those of a
    /// simulation with `request_delay` took less, or more.
    pub(crate) fn with_device(
        self,
        streams: &[&FileStream],
        simulated: &SimOutcome,
        service_ns: f64,
        request_delay: Nanos,
        dilation: f64,
    ) -> Self {
        let nanos = |time: Nanos| time.get() as f64 * dilation;
        let [stalled, queued] = [simulated.stalled(), simulated.device.queued].map(nanos);
        // What comes ahead of its reader delays it by the part of its time that is waited for.
        let awaited = (stalled / queued.max(1.0)).min(1.0);
        let delay_ns = nanos(request_delay) * awaited;
        let missing = service_ns - service(simulated, dilation);
        let device_ns = missing * awaited * waits_of_stall(streams, simulated);
        let stalls = stalls(simulated) as f64;
        let without = (stalled - delay_ns * stalls).max(stalled / 2.0).max(1.0);
        let device_share = (delay_ns + device_ns) * stalls / without;
        Self { request_delay, delay_ns, device_ns, device_share, ..self }
    }

    /// The same where requests are delayed by this part of what they were, and the rest is added to
    /// the waits.
    pub(crate) fn partly_within(self, part: f64) -> Self {
        Self {
            request_delay: self.request_delay.scaled(part),
            delay_ns: self.delay_ns * part,
            device_ns: self.device_ns + self.delay_ns * (1.0 - part),
            ..self
        }
    }

    /// What waits of this time in the simulation take in nanoseconds: the larger of both, so that a
    /// fix is not said to win too much.
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

/// How many waits were recorded for each simulated one, which may count a read of several pages as
/// several; at most 1.
fn waits_of_stall(streams: &[&FileStream], simulated: &SimOutcome) -> f64 {
    let waits: usize = streams.iter().map(|stream| stream.waits.len()).sum();
    (waits as f64 / stalls(simulated).max(1) as f64).min(1.0)
}

/// How long a simulated request takes on average, in nanoseconds of the recording.
pub(crate) fn service(simulated: &SimOutcome, dilation: f64) -> f64 {
    let requests = simulated.device.requests.max(1) as f64;
    simulated.device.queued.get() as f64 * dilation / requests
}

/// How long requests took that one of the streams waited for, in nanoseconds: the mean, and the
/// standard deviation; `None` if there were too few.
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

/// How long the reads took that completed while one of the streams waited, in nanoseconds, with
/// their time in the queue of the scheduler.
fn awaited(recording: &ProfileRecording, streams: &[&FileStream]) -> Vec<u64> {
    let waits = streams.iter().flat_map(|stream| stream.waits(recording));
    let mut spans: Vec<(u64, u64)> =
        waits.map(|wait| (wait.start().get(), wait.end.get())).collect();
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
        // The same within the simulation.
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
        // 20 µs, less a cached call of a page.
        assert!((extra - (20_000.0 - 500.0 - 409.6)).abs() < 1.0, "{extra}");
    }
}
