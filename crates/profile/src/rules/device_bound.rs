//! The device is busy: only reading less helps.

use units::Nanos;

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::recording::IoRequest;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 22,
    name: "device-bound",
    summary: "the device is busy all the time with requests in order",
    explanation: "The rule applies if a device has a request in flight for at least 90 % of the \
        run and serves reads in order. Neither windows nor code that reads the same data can be \
        faster. Read less, compress, or use a faster device.",
    check: RuleCheck::Stream(check),
};

const MIN_BUSY_SHARE: f64 = 0.9;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    if !run.matters(stream.waited) {
        return None;
    }
    let busy = busy(&run.requests_of(stream));
    let share = busy.get() as f64 / run.recording.wall.get().max(1) as f64;
    let applies = share >= MIN_BUSY_SHARE && shape.is_sequential();
    applies.then(|| RuleFinding {
        cause: format!("the device is busy for {:.0} % of the run", 100.0 * share.min(1.0)),
        fix: "read less, compress, or use a faster device".to_owned(),
        snippet: None,
        change: FixChange::Unpredictable("the device is the limit"),
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}

/// The time with a request in flight.
pub(crate) fn busy(requests: &[IoRequest]) -> Nanos {
    let mut spans: Vec<(u64, u64)> = requests
        .iter()
        .map(|one| (one.end.saturating_sub(one.service).get(), one.end.get()))
        .collect();
    spans.sort_unstable();
    let (mut total, mut until) = (0, 0);
    for (start, end) in spans {
        total += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    Nanos::new(total)
}
