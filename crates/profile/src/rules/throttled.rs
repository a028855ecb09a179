//! The kernel delays requests before they reach the device.

use units::Nanos;

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::WaitClass;
use crate::spans::BusySpans;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 24,
    name: "throttled",
    summary: "requests wait for a limit while the device is idle",
    explanation: "The rule applies if threads wait in the kernel's throttling functions, or wait \
        for pages while the device of the files has no request in flight for at least half of that \
        time and a cgroup of theirs has a limit (io.max, io.latency, blkio.throttle), and this \
        costs at least 5 % of the run. Raise the limit, or read less. There is no prediction, \
        because the order in which the limit lets requests pass is not simulated.",
    check: RuleCheck::Run(check),
};

/// Minimum share of the waits for pages during which the device is idle.
const MIN_IDLE_SHARE: f64 = 0.5;

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let recording = run.recording;
    let throttled = run.waited_as(WaitClass::Throttle);
    let has_files = |device| recording.files.iter().any(|file| file.id.device == device);
    let requests = recording.requests.iter().filter(|one| has_files(one.device));
    let reads = requests.clone().filter(|one| one.is_read).count() as u64;
    let busy: BusySpans = requests.map(|one| (one.start(), one.end)).collect();
    let (waited, busy) = run.page_waits(&busy);
    let idle = waited.saturating_sub(busy);
    // Without requests to the devices of the files, the data come from elsewhere: a network, FUSE
    // or underlying devices.
    let is_held = !recording.limits.is_empty()
        && reads >= MIN_ACCESSES
        && idle.get() as f64 >= MIN_IDLE_SHARE * waited.get() as f64;
    let held = throttled + if is_held { idle } else { Nanos::ZERO };
    if !run.matters(held) {
        return None;
    }
    let cause = if let Some(limit) = recording.limits.first().filter(|_| is_held) {
        format!(
            "the device is idle for {:.0} % of the time that threads wait for pages; {limit}",
            100.0 * idle.get() as f64 / waited.get().max(1) as f64
        )
    } else {
        "threads wait in the kernel's throttling functions".to_owned()
    };
    let stack = run.stack_of(WaitClass::Throttle);
    Some(RuleFinding {
        cause,
        fix: "raise the limit of the cgroup, or read less".to_owned(),
        snippet: Some("cat /sys/fs/cgroup/GROUP/io.max".to_owned()),
        change: FixChange::Unpredictable("the limit is not simulated"),
        waited: held,
        stack: stack.or_else(|| run.stack_of(WaitClass::Miss)),
        others: if is_held { waiting_streams(run) } else { Vec::new() },
    })
}

/// Returns the streams that the limit explains: all that waited long enough to be reported.
fn waiting_streams(run: &RunView<'_>) -> Vec<usize> {
    let streams = run.streams.iter().enumerate();
    streams.filter(|(_, stream)| run.matters(stream.waited)).map(|(place, _)| place).collect()
}
