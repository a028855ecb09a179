//! The kernel shortens a prefetch that the program requests.

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::advice_values::WILLNEED_VALUE;
use crate::recording::AdviceRecord;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 8,
    name: "cut-advice",
    summary: "WILLNEED or readahead(2) of more than the kernel submits",
    explanation: "POSIX_FADV_WILLNEED and readahead(2) submit at most the larger of the window and \
        max_sectors_kb and silently ignore the rest. The rule applies if less than half of the \
        range was submitted and the rest was waited for later. Call it in a loop over pieces of \
        that size.",
    check: RuleCheck::Stream(check),
};

/// Returns the bytes of the advised range that lie in the file.
fn asked(run: &RunView<'_>, stream: &FileStream, advice: &AdviceRecord) -> u64 {
    let rest = run.size(stream).get().saturating_sub(advice.offset);
    // A length of 0 means up to the end.
    match advice.length.get() {
        0 => rest,
        length => length.min(rest),
    }
}

pub(super) fn is_prefetch(advice: &AdviceRecord) -> bool {
    use observe::AdviceCallKind::{Fadvise, Readahead};
    advice.result == 0
        && (advice.call == Readahead || advice.call == Fadvise && advice.advice == WILLNEED_VALUE)
}

/// Returns whether advice is for a whole file. A sequential reader means SEQUENTIAL: `void_advice`.
pub(super) fn is_whole(advice: &AdviceRecord) -> bool {
    advice.offset == 0 && advice.length.is_zero()
}

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let recording = run.recording;
    let prefetches = stream
        .advice(recording, false)
        .filter(|one| is_prefetch(one) && !(is_whole(one) && stream.shape.is_sequential()));
    let mut cut = prefetches.filter(|one| {
        one.submitted.get() > 0 && asked(run, stream, one) >= 2 * one.submitted.get()
    });
    let advice = cut.next()?;
    let asked = asked(run, stream, advice);
    let begin = advice.offset + advice.submitted.get();
    let rest = begin..advice.offset + asked;
    let later = stream
        .waits(recording)
        .filter(|wait| wait.end >= advice.at && rest.contains(&wait.offset.get()));
    let waited = later.map(|wait| wait.blocked).sum();
    run.matters(waited).then(|| RuleFinding {
        cause: format!(
            "{} of the {} that were asked for were submitted; the rest was waited for",
            advice.submitted.rounded(),
            units::Bytes::new(asked).rounded()
        ),
        fix: format!("ask in a loop over pieces of {}", advice.submitted),
        snippet: Some(format!(
            "for (off_t at = 0; at < length; at += {0})\n    posix_fadvise(fd, offset + at, {0}, \
             POSIX_FADV_WILLNEED);",
            advice.submitted.get()
        )),
        change: FixChange::Chunks(units::Bytes::new(asked.min(64 << 20))),
        waited,
        stack: Some(advice.stack),
        others: Vec::new(),
    })
}
