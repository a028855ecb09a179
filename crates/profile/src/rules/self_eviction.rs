//! The program drops pages and reads them again.

use super::{DiagnosisRule, FixChange, MIN_REPEATED_WAITS, RuleCheck, RuleFinding, RunView};
use crate::advice_values::DONTNEED_VALUE;
use crate::evicted::repeated_waits;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 16,
    name: "self-eviction",
    summary: "POSIX_FADV_DONTNEED on pages that are read again",
    explanation: "The rule applies if waits for pages that posix_fadvise(POSIX_FADV_DONTNEED) of \
        the program had dropped cost at least 5 % of the run. The advice drops pages from the page \
        cache, for all processes. Delete it, or give it after the last pass. The gain assumes that \
        memory holds the pages.",
    check: RuleCheck::Stream(check),
};

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    if !run.matters(stream.waited) {
        return None;
    }
    let recording = run.recording;
    let dropped = repeated_waits(recording, &[stream])[0].advised;
    if dropped.count < MIN_REPEATED_WAITS || !run.matters(dropped.waited) {
        return None;
    }
    let mut advice = stream.advice(recording, false);
    let advice = advice.find(|one| one.advice == DONTNEED_VALUE);
    Some(RuleFinding {
        cause: format!("{} waits for pages that POSIX_FADV_DONTNEED had dropped", dropped.count),
        fix: "delete the advice POSIX_FADV_DONTNEED, or give it after the last pass".to_owned(),
        snippet: Some("- posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);".to_owned()),
        change: FixChange::Saves(dropped.waited),
        waited: dropped.waited,
        stack: advice.map(|one| one.stack).or_else(|| stream.hottest_stack(recording)),
        others: Vec::new(),
    })
}
