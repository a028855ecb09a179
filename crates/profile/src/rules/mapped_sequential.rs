//! A mapping is read in order without read-ahead.

use super::start_up::is_code;
use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 12,
    name: "mapped-sequential",
    summary: "a mapping that is read in order, one page per fault",
    explanation: "The rule applies if at least 75 % of the faults go forward in order, at least \
        75 % of them wait, at most 25 % submit more than 16 KiB, and none reaches a page that \
        read-ahead has marked. The usual reason is madvise(MADV_RANDOM), or a read-ahead of 0. \
        Delete the advice, or read ahead with MADV_POPULATE_READ in pieces.",
    check: RuleCheck::Stream(check),
};

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let recording = run.recording;
    let blocked = stream.blocked_accesses(recording) as u64;
    let marks: u32 = stream.accesses(recording).map(|it| it.marks).sum();
    // Without read-ahead, a fault submits at most its own page.
    let windows = stream.accesses(recording).filter(|it| it.submitted.get() > 4 * 4096).count();
    let applies = stream.kind == AccessKind::Fault
        && !is_code(run.path(stream), stream.kind)
        && shape.calls >= MIN_ACCESSES
        && shape.is_sequential()
        && blocked as f64 >= 0.75 * shape.calls as f64
        && marks == 0
        && windows as u64 * 4 <= shape.calls
        && run.matters(stream.waited);
    applies.then(|| RuleFinding {
        cause: format!("{} faults in order, each reading one page", shape.calls),
        fix: "delete MADV_RANDOM, or read ahead with MADV_POPULATE_READ".to_owned(),
        snippet: Some("- madvise(address, length, MADV_RANDOM);".to_owned()),
        change: FixChange::DropRandom,
        waited: stream.waited,
        stack: stream.hottest_stack(recording),
        others: Vec::new(),
    })
}
