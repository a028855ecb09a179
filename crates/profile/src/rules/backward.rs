//! The program reads a file or a mapping backward.

use units::{Bytes, Nanos};

use super::start_up::is_code;
use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::{AccessKind, FileAccess};
use crate::shape::AccessShape;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 4,
    name: "backward",
    summary: "reads or faults go backward, which the kernel does not read ahead",
    explanation: "The kernel reads ahead in one direction only. The rule applies if at least 60 % \
        of the steps go backward. Ask for the preceding range before reading it: \
        posix_fadvise(POSIX_FADV_WILLNEED) in pieces of up to the device's max_sectors_kb, or read \
        larger blocks from the end. `foreread auto` and `foreread run` do it from outside. \
        In a mapping, a fault reads the window around its page, half of it before the page, and \
        maps neighbouring cached pages, whose accesses are not recorded. A backward reader \
        therefore faults once in each half window. The rule applies if at least 60 % of the steps \
        between faults go backward by at most a window. Ask for the preceding range with \
        madvise(MADV_WILLNEED).",
    check: RuleCheck::Stream(check),
};

/// Bytes per request in the predicted fix.
const CHUNK_SIZE: Bytes = Bytes::from_kib(512);
/// Minimum share of steps that go backward.
const MIN_BACKWARD_SHARE: f64 = 0.6;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let is_mapped = stream.kind == AccessKind::Fault;
    let applies = if is_mapped {
        has_backward_faults(run, stream)
    } else {
        // Cached reads may go backward without a wait.
        let accesses = stream.accesses(run.recording);
        let waiting = AccessShape::new(accesses.filter(|access| access.blocked > Nanos::ZERO));
        shape.calls >= MIN_ACCESSES
            && shape.share(shape.backward) >= MIN_BACKWARD_SHARE
            && waiting.share(waiting.backward) >= MIN_BACKWARD_SHARE
    };
    if !applies || !run.matters(stream.waited) {
        return None;
    }
    let cause = format!(
        "{:.0} % of {} steps {}go backward; the kernel reads ahead forward only",
        100.0 * shape.share(shape.backward),
        shape.steps,
        if is_mapped { "between faults " } else { "" },
    );
    let (snippet, change) = if is_mapped {
        let snippet = "madvise(address - (512 << 10), 512 << 10, MADV_WILLNEED);";
        (snippet, FixChange::AskedChunks(CHUNK_SIZE))
    } else {
        let snippet = "posix_fadvise(fd, offset - (512 << 10), 512 << 10, POSIX_FADV_WILLNEED);";
        (snippet, FixChange::Chunks(CHUNK_SIZE))
    };
    Some(RuleFinding {
        cause,
        fix: "ask for the preceding 512 KiB before reading them".to_owned(),
        snippet: Some(snippet.to_owned()),
        change,
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}

/// Returns whether most faults of a mapping that wait step backward, each by at most a window.
pub(super) fn has_backward_faults(run: &RunView<'_>, stream: &FileStream) -> bool {
    if stream.kind != AccessKind::Fault || is_code(run.path(stream), stream.kind) {
        return false;
    }
    let accesses = stream.accesses(run.recording);
    let waiting: Vec<&FileAccess> =
        accesses.filter(|access| access.blocked > Nanos::ZERO).collect();
    let is_short_step_back = |pair: &&[&FileAccess]| {
        let back = pair[0].offset.get().checked_sub(pair[1].offset.get());
        back.is_some_and(|back| (1..=pair[1].window_limit.get().max(4096)).contains(&back))
    };
    let backward = waiting.windows(2).filter(is_short_step_back).count();
    waiting.len() as u64 >= MIN_ACCESSES
        && backward as f64 >= MIN_BACKWARD_SHARE * (waiting.len() - 1) as f64
}
