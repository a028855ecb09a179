//! O_DIRECT with one request at a time.

use units::Bytes;

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 19,
    name: "direct-depth-1",
    summary: "O_DIRECT reads with one request in flight",
    explanation: "With O_DIRECT there is no read-ahead: each call waits for its own request. The \
        rule applies if an open file with O_DIRECT is read by one thread with reads below 1 MiB. \
        Use larger reads, io_uring with several in flight, or the page cache.",
    check: RuleCheck::Stream(check),
};

/// Reads of at least this size keep a device busy.
const LARGE_READ: Bytes = Bytes::from_mib(1);

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let direct = stream.accesses(run.recording).filter(|it| it.is_direct).count();
    let applies = stream.kind == AccessKind::Read
        && shape.calls >= MIN_ACCESSES
        && direct * 2 > stream.accesses.len()
        && stream.tids.len() == 1
        && shape.median_length < LARGE_READ.get()
        && run.matters(stream.waited);
    let change = match shape.is_sequential() {
        true => FixChange::Chunks(LARGE_READ),
        false => FixChange::Unpredictable("the offsets may depend on the data"),
    };
    applies.then(|| RuleFinding {
        cause: format!(
            "{} calls of {} with O_DIRECT, one at a time",
            shape.calls,
            Bytes::new(shape.median_length)
        ),
        fix: "read 1 MiB at once, use io_uring, or read without O_DIRECT".to_owned(),
        snippet: Some("pread(fd, buffer, 1 << 20, offset);".to_owned()),
        change,
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}
