//! The device is busy all the time: only reading less helps.

use units::Nanos;

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::recording::IoRequest;
use crate::spans::BusySpans;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 22,
    name: "device-bound",
    summary: "the device is busy all the time with requests in order",
    explanation: "The rule applies if a device has a request in flight for at least 90 % of the \
        run and serves reads in order. No window, and no code that reads the same data, can be \
        faster. Read less, compress, or use a faster device.",
    check: RuleCheck::Stream(check),
};

const MIN_BUSY_SHARE: f64 = 0.9;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    if !run.matters(stream.waited) {
        return None;
    }
    let share = busy_share(run, stream);
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

/// Returns whether the device of a stream has a request in flight in 90 % of the run or more.
pub(crate) fn is_busy(run: &RunView<'_>, stream: &FileStream) -> bool {
    busy_share(run, stream) >= MIN_BUSY_SHARE
}

fn busy_share(run: &RunView<'_>, stream: &FileStream) -> f64 {
    busy(&run.requests_of(stream)).get() as f64 / run.recording.wall.get().max(1) as f64
}

/// Returns the time with at least one request in flight.
pub(super) fn busy(requests: &[IoRequest]) -> Nanos {
    let spans = requests.iter().map(|one| (one.start(), one.end));
    spans.collect::<BusySpans>().total()
}
