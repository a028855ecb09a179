//! The program reads pieces at a fixed distance.

use units::Bytes;

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 5,
    name: "stride",
    summary: "reads at a fixed distance, which the kernel does not read ahead",
    explanation: "The rule applies if at least 75 % of the steps have the same distance, larger \
        than the reads. The kernel sees misses only. Ask for the next pieces with \
        posix_fadvise(POSIX_FADV_WILLNEED) before they are needed; where at least a quarter of the \
        span is used, read the whole span.",
    check: RuleCheck::Stream(check),
};

/// Pieces that are in flight in the predicted fix.
const PIECES_AHEAD: u32 = 8;
/// From this share of the span on, reading all of it is cheaper than seeking.
const MIN_USED_SHARE: f64 = 0.25;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let (distance, count) = shape.stride?;
    let length = i64::try_from(shape.median_length).ok()?;
    // Several calls may make one piece.
    let jumps = shape.steps - shape.contiguous;
    let applies = stream.kind == AccessKind::Read
        && jumps >= MIN_ACCESSES
        && distance > length
        && count as f64 >= 0.75 * jumps as f64
        && !shape.is_sequential()
        && run.matters(stream.waited);
    if !applies {
        return None;
    }
    let used = shape.median_run() as f64 / distance as f64;
    let span = Bytes::new(distance.unsigned_abs());
    let (fix, snippet, change) = if used >= MIN_USED_SHARE {
        let fix = format!("read the whole span: {:.0} % of it is used", 100.0 * used);
        (
            fix,
            format!("pread(fd, buffer, 4 * {}, offset);", span.get()),
            FixChange::Chunks(Bytes::from_mib(1)),
        )
    } else {
        let snippet = format!(
            "posix_fadvise(fd, offset + {PIECES_AHEAD} * {}, length, POSIX_FADV_WILLNEED);",
            span.get()
        );
        let fix = format!("ask for the next {PIECES_AHEAD} pieces before reading them");
        (fix, snippet, FixChange::Parallel(PIECES_AHEAD))
    };
    Some(RuleFinding {
        cause: format!(
            "reads of {} are {} apart, so each one misses",
            Bytes::new(shape.median_run()),
            span
        ),
        fix,
        snippet: Some(snippet),
        change,
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}
