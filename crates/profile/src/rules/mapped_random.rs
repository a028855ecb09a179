//! A mapping is read at random, and each fault reads a window.

use super::start_up::is_code;
use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 11,
    name: "mapped-random",
    summary: "random faults of a mapping that read a whole window each",
    explanation: "A fault of a mapped file reads a window around the page. The rule applies if the \
        faults are not in order and what they submitted is at least four times the pages that \
        faulted. If each fault uses a single page, madvise(MADV_RANDOM); if it uses a few, a small \
        read-ahead window. Pages that a fault maps along with its own do not fault, so the \
        recording cannot count them.",
    check: RuleCheck::Stream(check),
};

/// Bytes read for each byte that faulted.
const MIN_AMPLIFICATION: f64 = 4.0;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let submitted: u64 = stream.accesses(run.recording).map(|it| it.submitted.get()).sum();
    let pages: std::collections::BTreeSet<u64> =
        stream.accesses(run.recording).map(|it| it.offset.get() >> 12).collect();
    let touched = 4096 * pages.len() as u64;
    let amplification = submitted as f64 / touched.max(1) as f64;
    let applies = stream.kind == AccessKind::Fault
        && !is_code(run.path(stream), stream.kind)
        && shape.calls >= MIN_ACCESSES
        && amplification >= MIN_AMPLIFICATION
        && shape.share(shape.near) < 0.5
        && run.matters(stream.waited);
    applies.then(|| RuleFinding {
        cause: format!(
            "{} faults at random read {:.0} bytes for each byte of the pages that faulted",
            shape.calls, amplification
        ),
        fix: "madvise(MADV_RANDOM) if each fault uses one page, a window of that size if more"
            .to_owned(),
        snippet: Some("madvise(address, length, MADV_RANDOM);".to_owned()),
        change: FixChange::SinglePages,
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}
