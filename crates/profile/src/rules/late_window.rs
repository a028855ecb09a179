//! The window is too small for the device's latency.

use units::{Bytes, Nanos};

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::evicted::bytes_before_reclaim;
use crate::recording::WaitClass;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 1,
    name: "late-window",
    summary: "a reader in order waits for windows in flight",
    explanation: "The rule applies to open files that are read in order with windows at their \
        limit, if readers waited for at least 25 % of these windows. The kernel requests the next \
        window when the reader reaches the mark of the last one; if it arrives after the reader \
        needs it, the window is too small. It needs about the reader's rate times the device's \
        latency. `foreread tune` measures the best, `foreread apply` sets it.",
    check: RuleCheck::Stream(check),
};

/// Minimum number of waits, as a share of the full windows.
const MIN_LATE_SHARE: f64 = 0.25;
const LARGEST_WINDOW: u64 = 32 << 20;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let recording = run.recording;
    let shape = &stream.shape;
    let limit = stream.accesses(recording).map(|it| it.window_limit.get()).max()?;
    let full = stream.accesses(recording).filter(|it| {
        let window = it.largest_window.get();
        window > 0 && window * 2 >= it.window_limit.get()
    });
    let full = full.count();
    let late = stream
        .waits(recording)
        .filter(|wait| matches!(wait.class, WaitClass::InFlight | WaitClass::Miss));
    let late = late.count();
    let applies = limit > 0
        && full as u64 >= MIN_ACCESSES / 2
        && shape.is_sequential()
        && late as f64 >= MIN_LATE_SHARE * full as f64
        && run.matters(stream.waited);
    if !applies {
        return None;
    }
    let latency = median_service(run, stream)?;
    let threads = recording.wall * stream.tids.len() as u64;
    let thinking = threads.saturating_sub(stream.waited).max(Nanos::new(1));
    let rate = shape.bytes as f64 / thinking.as_secs_f64();
    let needed = (2.0 * rate * latency.as_secs_f64()) as u64;
    let window = needed.next_power_of_two().clamp(2 * limit, LARGEST_WINDOW.max(2 * limit));
    let window = Bytes::new(window);
    // Two windows of this size must fit into the memory that was available.
    if bytes_before_reclaim(recording, stream.inode).is_some_and(|held| window * 2 > held) {
        return None;
    }
    Some(RuleFinding {
        cause: format!(
            "{late} waits for {full} windows of up to {}: they arrive after the reader",
            Bytes::new(limit)
        ),
        fix: format!("give the file a window of {window}"),
        snippet: Some(format!(
            "foreread apply read_ahead={}K --on {}",
            window.get() >> 10,
            run.path(stream)
        )),
        change: FixChange::SetWindow(window),
        waited: stream.waited,
        stack: stream.hottest_stack(recording),
        others: Vec::new(),
    })
}

fn median_service(run: &RunView<'_>, stream: &FileStream) -> Option<Nanos> {
    let requests = run.requests_of(stream);
    let reads = requests.iter().filter(|request| request.is_read);
    let mut times: Vec<u64> = reads.map(|request| request.service.get()).collect();
    (!times.is_empty()).then(|| Nanos::new(crate::shape::median(&mut times)))
}
