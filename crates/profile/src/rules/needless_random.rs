//! The program disables read-ahead and then reads in order.

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::advice_values::RANDOM_VALUE;
use crate::recording::AccessKind;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 7,
    name: "needless-random",
    summary: "FADV_RANDOM on an open file that is read in order",
    explanation: "posix_fadvise(POSIX_FADV_RANDOM) turns read-ahead off for read calls on the open \
        file, so each call waits for its own request. The rule applies if at least 75 % of the \
        calls on such an open file start where the last one ended. Delete the advice, or limit it \
        to the phase that reads at random and then give POSIX_FADV_NORMAL.",
    check: RuleCheck::Stream(check),
};

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let recording = run.recording;
    let accesses = stream.accesses(recording);
    let random =
        accesses.filter(|access| access.is_random).map(|it| u64::from(it.calls)).sum::<u64>();
    let shape = &stream.shape;
    let applies = stream.kind == AccessKind::Read
        && shape.calls >= MIN_ACCESSES
        && random * 2 > shape.calls
        && shape.is_sequential()
        && run.matters(stream.waited);
    if !applies {
        return None;
    }
    let advice = stream.advice(recording, true).find(|one| one.advice == RANDOM_VALUE);
    Some(RuleFinding {
        cause: format!(
            "{:.0} % of {} calls read where the last one ended, but FADV_RANDOM turns read-ahead \
             off",
            100.0 * shape.share(shape.contiguous),
            shape.calls,
        ),
        fix: "delete the advice POSIX_FADV_RANDOM on this open file".to_owned(),
        snippet: Some("- posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);".to_owned()),
        change: FixChange::DropRandom,
        waited: stream.waited,
        stack: advice.map(|one| one.stack).or_else(|| stream.hottest_stack(recording)),
        others: Vec::new(),
    })
}
