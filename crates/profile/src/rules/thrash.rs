//! Pages are evicted and read again.

use super::{DiagnosisRule, FixChange, MIN_REPEATED_WAITS, RuleCheck, RuleFinding, RunView};
use crate::evicted::{Departure, repeated_waits};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 14,
    name: "thrash",
    summary: "pages that memory pressure evicted and that were missed again",
    explanation: "The rule applies if waits for pages that the kernel had reclaimed cost at least \
        5 % of the run. If most of these pages were never used, memory is too small for the \
        windows of all streams: twice their sum must fit. If they were used, the program returns \
        to more data than memory holds. Use smaller windows, give the cgroup more memory, or read \
        the data once.",
    check: RuleCheck::Stream(check),
};

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    if !run.matters(stream.waited) {
        return None;
    }
    let recording = run.recording;
    let unused = repeated_waits(recording, stream, &[Departure::ReclaimedUnused]);
    let both = [Departure::ReclaimedUnused, Departure::ReclaimedUsed];
    let all = repeated_waits(recording, stream, &both);
    if all.count < MIN_REPEATED_WAITS || !run.matters(all.waited) {
        return None;
    }
    let (cause, fix) = if 2 * unused.count >= all.count {
        (
            format!("{} waits for pages that were read ahead and reclaimed unused", all.count),
            "reduce windows until twice their sum fits into memory, or add memory",
        )
    } else {
        (
            format!("{} waits for pages that were used before and reclaimed since", all.count),
            "add memory, or process the data in one pass",
        )
    };
    Some(RuleFinding {
        cause,
        fix: fix.to_owned(),
        snippet: None,
        change: FixChange::Saves(all.waited),
        waited: all.waited,
        stack: stream.hottest_stack(recording),
        others: Vec::new(),
    })
}
