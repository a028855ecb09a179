//! The program reads a file backward.

use units::{Bytes, Nanos};

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::shape::AccessShape;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 4,
    name: "backward",
    summary: "reads go backward, which the kernel does not read ahead",
    explanation: "The kernel reads ahead in one direction only. The rule applies if at least 60 % \
        of the steps go backward. Ask for the preceding range before reading it: \
        posix_fadvise(POSIX_FADV_WILLNEED) in pieces of up to the device's max_sectors_kb, or read \
        larger blocks from the end. `foreread auto` and `foreread run` do it from outside.",
    check: RuleCheck::Stream(check),
};

/// Bytes per request in the predicted fix.
const CHUNK_SIZE: Bytes = Bytes::from_kib(512);

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    // Cached reads may go backward without a wait.
    let accesses = stream.accesses(run.recording);
    let waiting = AccessShape::new(accesses.filter(|access| access.blocked > Nanos::ZERO));
    let applies = stream.kind == AccessKind::Read
        && shape.calls >= MIN_ACCESSES
        && shape.share(shape.backward) >= 0.6
        && waiting.share(waiting.backward) >= 0.6
        && run.matters(stream.waited);
    applies.then(|| RuleFinding {
        cause: format!(
            "{:.0} % of {} steps go backward; the kernel reads ahead forward only",
            100.0 * shape.share(shape.backward),
            shape.steps
        ),
        fix: "ask for the preceding 512 KiB before reading them".to_owned(),
        snippet: Some(
            "posix_fadvise(fd, offset - (512 << 10), 512 << 10, POSIX_FADV_WILLNEED);".to_owned(),
        ),
        change: FixChange::Chunks(CHUNK_SIZE),
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}
