//! Advice calls block their caller.

use units::Nanos;

use super::device_bound::busy;
use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::recording::WaitClass;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 10,
    name: "stalling-advice",
    summary: "the program waits within its calls of fadvise or madvise",
    explanation: "WILLNEED waits where the device's queue is full, and DONTNEED drains the caches \
        of all processors. The rule applies if these calls were blocked for at least 5 % of the \
        run. Call them in another thread, or drop larger ranges less often. This saves at most the \
        time in which the device is idle.",
    check: RuleCheck::Run(check),
};

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let waited: Nanos = run.waited_as(WaitClass::Advice);
    // A call in another thread does not make the device faster.
    let idle = run.recording.wall.saturating_sub(busy(&run.file_requests()));
    run.matters(waited).then(|| RuleFinding {
        cause: format!("{:.0} ms were waited within advice itself", waited.as_millis_f64()),
        fix: "give the advice in another thread, and DONTNEED less often".to_owned(),
        snippet: None,
        change: FixChange::Saves(waited.min(idle)),
        waited,
        stack: run.stack_of(WaitClass::Advice),
        others: Vec::new(),
    })
}
