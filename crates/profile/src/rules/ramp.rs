//! Runs of reads are too short for windows to grow.

use units::Bytes;

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 2,
    name: "ramp",
    summary: "short runs of reads, each of which starts with small windows",
    explanation: "After a seek the kernel starts with a small window and doubles it. The rule \
        applies if the program reads many runs of several calls each, and the median run is at \
        most 512 KiB: eight initial windows of 64 KiB, which reads of 32 KiB have at the default \
        read-ahead. Where the length of a run is known, ask for it at once: one larger read, or \
        readahead(2) first.",
    check: RuleCheck::Stream(check),
};

/// Eight initial windows of 64 KiB, as for reads of 32 KiB at the default read-ahead.
const LONGEST_RUN: u64 = 8 * (64 << 10);

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let recording = run.recording;
    let run_length = shape.median_run();
    let waits = stream.waits(recording).count();
    let applies = stream.kind == AccessKind::Read
        && shape.runs.len() as u64 >= MIN_ACCESSES / 2
        && shape.median_run_calls() >= 3
        && run_length <= LONGEST_RUN
        && waits as f64 >= 1.2 * shape.runs.len() as f64
        && run.matters(stream.waited);
    applies.then(|| RuleFinding {
        cause: format!(
            "{} runs of {} each, with {:.1} waits in a run while windows grow",
            shape.runs.len(),
            Bytes::new(run_length),
            waits as f64 / shape.runs.len() as f64
        ),
        fix: "ask for a whole run at its start: readahead(2), or one larger read".to_owned(),
        snippet: Some(format!("readahead(fd, offset, {run_length});")),
        change: FixChange::WholeRuns,
        waited: stream.waited,
        stack: stream.hottest_stack(recording),
        others: Vec::new(),
    })
}
