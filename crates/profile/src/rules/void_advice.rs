//! The program's advice has no effect.

use super::cut_advice::{is_prefetch, is_whole};
use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::advice_values::{RANDOM_VALUE, SEQUENTIAL_VALUE};
use crate::recording::{AccessKind, AdviceRecord};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 9,
    name: "void-advice",
    summary: "advice without effect on an open file that is waited for",
    explanation: "The rule applies if a file is waited for and the program's advice about it has \
        no effect, in one of these cases. The call failed (values combined with | are other \
        values: SEQUENTIAL | WILLNEED is WILLNEED, others are EINVAL). WILLNEED was given for a \
        whole file that is then read in order: the kernel submits one window of it. SEQUENTIAL or \
        RANDOM was given to another open file than the one that is read, to one with O_DIRECT, or \
        with posix_fadvise for a file that is read through a mapping, where only madvise counts. \
        Move or delete the advice.",
    check: RuleCheck::Stream(check),
};

/// `EINVAL`, as a system call returns it.
const EINVAL_RESULT: i64 = -22;

/// Returns why advice has no effect on the stream; `None` if no reason is found.
fn defect(run: &RunView<'_>, stream: &FileStream, advice: &AdviceRecord) -> Option<&'static str> {
    use observe::AdviceCallKind::Fadvise;
    if advice.result == EINVAL_RESULT && advice.call == Fadvise {
        return Some("failed with EINVAL: its value is not one of POSIX_FADV_*");
    }
    let is_cut = advice.submitted.get() < run.size(stream).get() / 2;
    if is_prefetch(advice) && is_whole(advice) && is_cut && stream.shape.is_sequential() {
        return Some("is WILLNEED for all of the file, of which the kernel submits one window");
    }
    if advice.call != Fadvise || !matches!(advice.advice, RANDOM_VALUE | SEQUENTIAL_VALUE) {
        return None;
    }
    if stream.kind == AccessKind::Fault {
        let only_mapped = !run.streams.iter().any(|one| one.file == advice.file);
        return only_mapped.then_some("does not reach mappings: madvise(2) does");
    }
    if stream.accesses(run.recording).any(|access| access.is_direct) {
        return Some("has no effect on an open file with O_DIRECT");
    }
    let is_read = run.streams.iter().any(|one| one.file == advice.file && one.file != 0);
    (!is_read).then_some("was given to another open file than the one that is read")
}

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    if !run.matters(stream.waited) {
        return None;
    }
    let mut advice = stream.advice(run.recording, false);
    let (advice, defect) = advice.find_map(|one| Some((one, defect(run, stream, one)?)))?;
    let is_sequential =
        advice.advice == SEQUENTIAL_VALUE || is_prefetch(advice) || advice.result == EINVAL_RESULT;
    let change = if is_sequential && stream.kind == AccessKind::Read {
        let limit = stream.accesses(run.recording).map(|access| access.window_limit).max()?;
        FixChange::SetWindow(limit + limit)
    } else {
        FixChange::Unpredictable("it depends on what the advice was for")
    };
    Some(RuleFinding {
        cause: format!("the advice {}", defect),
        fix: "give valid advice to the open file that is read, or delete it".to_owned(),
        snippet: Some("posix_fadvise(fd_that_is_read, 0, 0, POSIX_FADV_SEQUENTIAL);".to_owned()),
        change,
        waited: stream.waited,
        stack: Some(advice.stack),
        others: Vec::new(),
    })
}
