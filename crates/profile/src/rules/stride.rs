//! The program reads pieces at a fixed distance.

use units::Bytes;

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::{AccessKind, WaitClass};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 5,
    name: "stride",
    summary: "reads at a fixed distance, which the kernel does not read ahead",
    explanation: "The rule applies if at least 75 % of the steps have the same distance, larger \
        than the reads. The kernel sees misses only. Ask for the next pieces with \
        posix_fadvise(POSIX_FADV_WILLNEED) before they are needed.",
    check: RuleCheck::Stream(check),
};

/// Number of pieces that the fix requests ahead.
const PIECES_AHEAD: usize = 8;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let (distance, count) = shape.stride?;
    let length = i64::try_from(shape.median_length).ok()?;
    // A piece may consist of several calls.
    let jumps = shape.steps - shape.contiguous;
    let applies = stream.kind == AccessKind::Read
        && jumps >= MIN_ACCESSES
        && distance > length
        && count as f64 >= 0.75 * jumps as f64
        && !shape.is_sequential()
        // Pieces that were requested ahead are in flight.
        && run.matters(stream.waited_as(run.recording, WaitClass::Miss));
    if !applies {
        return None;
    }
    let span = Bytes::new(distance.unsigned_abs());
    Some(RuleFinding {
        cause: format!(
            "reads of {} are {} apart, so each one misses",
            Bytes::new(shape.median_run()),
            span
        ),
        fix: format!("ask for the next {PIECES_AHEAD} pieces before reading them"),
        snippet: Some(format!(
            "posix_fadvise(fd, offset + {PIECES_AHEAD} * {}, length, POSIX_FADV_WILLNEED);",
            span.get()
        )),
        change: FixChange::AskedAhead(PIECES_AHEAD),
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}
