//! The file is fragmented.

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 21,
    name: "fragments",
    summary: "sequential reads of a fragmented file",
    explanation: "The rule applies if a file is read in order, and at least half of the windows \
        that the kernel submits for it span two or more places of the device: each place is a \
        request of its own, and a seek on a disk. Rewrite the file, or let its writer allocate it \
        first (fallocate) or write it in larger pieces. No gain is predicted, because the \
        simulator keeps each file in one place.",
    check: RuleCheck::Stream(check),
};

/// Minimum share of the windows that span several places.
const MIN_BROKEN_SHARE: f64 = 0.5;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let recording = run.recording;
    let jumps = &recording.files[stream.inode as usize].jumps;
    let windows = recording.submitted.iter().filter(|one| one.is_window);
    let (mut all, mut broken) = (0_u64, 0_u64);
    for window in windows.filter(|one| one.inode == stream.inode) {
        let next = jumps.partition_point(|jump| *jump <= window.offset);
        all += 1;
        broken += u64::from(jumps.get(next).is_some_and(|at| *at < window.offset + window.length));
    }
    let applies = all >= MIN_ACCESSES
        && broken as f64 >= MIN_BROKEN_SHARE * all as f64
        && stream.shape.is_sequential()
        && run.matters(stream.waited);
    applies.then(|| RuleFinding {
        cause: format!(
            "{broken} of {all} windows span several places of the device; the file has {}",
            jumps.len() + 1
        ),
        fix: "rewrite the file, or allocate it before it is written".to_owned(),
        snippet: Some("fallocate(fd, 0, 0, size); /* before the first write */".to_owned()),
        change: FixChange::Unpredictable("the simulator keeps a file in one place"),
        waited: stream.waited,
        stack: stream.hottest_stack(recording),
        others: Vec::new(),
    })
}
