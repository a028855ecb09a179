//! Pages are evicted and read again.

use std::collections::BTreeMap;

use units::Nanos;

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 14,
    name: "thrash",
    summary: "pages that were evicted and missed again",
    explanation: "The rule applies if at least a tenth of the waits is for pages that the program \
        had waited for before. Either memory is too small for the windows of all streams (their \
        sum, twice, must fit) or the program dropped the pages itself with POSIX_FADV_DONTNEED, \
        which the cause then says. Use smaller windows, give the cgroup more memory, or delete the \
        advice.",
    check: RuleCheck::Stream(check),
};

/// `POSIX_FADV_DONTNEED`.
const FADV_DONTNEED_VALUE: u32 = 4;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let recording = run.recording;
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    let (mut again, mut waited) = (0_u64, Nanos::ZERO);
    for wait in stream.waits(recording) {
        let times = seen.entry(wait.offset.get() >> 12).or_default();
        *times += 1;
        if *times > 1 {
            again += 1;
            waited += wait.blocked;
        }
    }
    // The marks and misses of one call are one page.
    let is_direct = stream.accesses(recording).any(|access| access.is_direct);
    let rereads = rereads(recording, stream);
    if again < MIN_ACCESSES || rereads < MIN_ACCESSES || is_direct || !run.matters(waited) {
        return None;
    }
    let dropped = stream.advice(recording, false).find(|one| one.advice == FADV_DONTNEED_VALUE);
    let (cause, fix, snippet) = match dropped {
        Some(_) => (
            format!("{again} waits for pages that POSIX_FADV_DONTNEED had dropped"),
            "delete the advice POSIX_FADV_DONTNEED, or give it after the last pass".to_owned(),
            Some("- posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);".to_owned()),
        ),
        None => (
            format!("{again} waits for pages that were read before and evicted since"),
            "reduce windows until twice their sum fits into memory, or add memory".to_owned(),
            None,
        ),
    };
    Some(RuleFinding {
        cause,
        fix,
        snippet,
        change: FixChange::Saves(waited),
        waited,
        stack: dropped.map(|one| one.stack).or_else(|| stream.hottest_stack(recording)),
        others: Vec::new(),
    })
}

/// Accesses that waited at an offset which an earlier access has covered.
fn rereads(recording: &crate::recording::ProfileRecording, stream: &FileStream) -> u64 {
    let mut pages = std::collections::BTreeSet::new();
    let mut count = 0;
    for access in stream.accesses(recording) {
        let first = access.offset.get() >> 12;
        let last = (access.offset.get() + access.length.get().saturating_sub(1)) >> 12;
        let is_again = access.blocked > Nanos::ZERO && last > first && pages.contains(&(first + 1))
            || access.blocked > Nanos::ZERO
                && pages.contains(&first)
                && access.offset.get() & 4095 == 0;
        count += u64::from(is_again);
        pages.extend(first..=last);
    }
    count
}
