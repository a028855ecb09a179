//! Several threads read in order through one open file.

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::shape::AccessShape;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 3,
    name: "shared-open-file",
    summary: "several streams in order share one open file",
    explanation: "An open file has one state of read-ahead. The rule applies if at least two \
        threads each read in order through the same open file, and together they do not. Streams \
        lose their windows to each other. Let each thread open the file itself; dup(2) and fork(2) \
        share the state. A window of 1088 KiB instead of 1024 loses fewer marks (17·2ⁿ pages).",
    check: RuleCheck::Stream(check),
};

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let recording = run.recording;
    if stream.kind != AccessKind::Read || stream.tids.len() < 2 || !run.matters(stream.waited) {
        return None;
    }
    let in_order = stream.tids.iter().filter(|tid| {
        let own = AccessShape::new(stream.accesses(recording).filter(|it| it.tid == **tid));
        own.calls >= MIN_ACCESSES && own.is_sequential()
    });
    let threads = in_order.count();
    let shape = &stream.shape;
    let is_mixed = shape.runs.len() >= 8;
    (threads >= 2 && is_mixed).then(|| RuleFinding {
        cause: format!("{threads} threads read in order through one open file and its one window"),
        fix: "open the file once for each thread (not dup)".to_owned(),
        snippet: Some("int fd = open(path, O_RDONLY); /* in each thread */".to_owned()),
        change: FixChange::OwnOpenFiles,
        waited: stream.waited,
        stack: stream.hottest_stack(recording),
        others: Vec::new(),
    })
}
