//! A file that is read once evicts pages that are read again.

use units::Bytes;

use super::{DiagnosisRule, FixChange, MIN_REPEATED_WAITS, RuleCheck, RuleFinding, RunView};
use crate::evicted::{one_touch_bytes, repeated_waits};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 15,
    name: "polluting-scan",
    summary: "a file that is read once evicts pages that are read again",
    explanation: "The rule applies if waits for pages that were used before and that the kernel \
        had reclaimed since cost at least 5 % of the run, and the same processes read more bytes \
        of another file, once, than were evicted. Read that file with RWF_DONTCACHE (Linux 6.14), \
        or give POSIX_FADV_DONTNEED behind the reader. The gain assumes that memory holds the \
        evicted pages.",
    check: RuleCheck::Stream(check),
};

pub(super) fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    if !run.matters(stream.waited) {
        return None;
    }
    let recording = run.recording;
    let evicted = repeated_waits(recording, &[stream])[0].used;
    if evicted.count < MIN_REPEATED_WAITS || !run.matters(evicted.waited) {
        return None;
    }
    let reclaimed: Bytes = recording
        .evictions
        .iter()
        .filter(|one| one.inode == stream.inode && !one.is_advised)
        .map(|one| one.length)
        .sum();
    let others = run.streams.iter().filter(|one| one.inode != stream.inode);
    let scans = others.map(|one| (one_touch_bytes(recording, one), one));
    let (bytes, scan) = scans.max_by_key(|(bytes, _)| *bytes)?;
    if bytes < reclaimed.get().max(1) {
        return None;
    }
    Some(RuleFinding {
        cause: format!(
            "{} waits for pages that were evicted while {} MiB of {} were read once",
            evicted.count,
            bytes >> 20,
            run.path(scan)
        ),
        fix: "read the other file without keeping its pages".to_owned(),
        snippet: Some(
            "preadv2(scan, &iov, 1, offset, RWF_DONTCACHE);\n\
             /* before Linux 6.14, behind the reader: */\n\
             posix_fadvise(scan, 0, done, POSIX_FADV_DONTNEED);"
                .to_owned(),
        ),
        change: FixChange::Saves(evicted.waited),
        waited: evicted.waited,
        stack: scan.hottest_stack(recording).or_else(|| stream.hottest_stack(recording)),
        others: Vec::new(),
    })
}
