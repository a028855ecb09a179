//! The program reads at random, one request at a time.

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::{AccessKind, IoRequest, PAGE_BYTES};
use crate::stream::FileStream;
use units::Nanos;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 6,
    name: "random-depth-1",
    summary: "random reads with one request in flight",
    explanation: "The rule applies if no step has a majority and 90 % of the program's requests \
        are issued while none of it is under way. A device serves several random requests in \
        almost the time of one. Use io_uring or threads, but only if the offsets are known before \
        the data arrives: a program that follows pointers cannot. Mappings under MADV_RANDOM are \
        left out. No gain is predicted, as the recording does not show which offsets depend on \
        data.",
    check: RuleCheck::Stream(check),
};

/// Returns whether the stream is a mapping whose faults each read only their page, as the program
/// requested: a thread cannot have two faults at once.
fn is_page_by_page(run: &RunView<'_>, stream: &FileStream) -> bool {
    let mut accesses = stream.accesses(run.recording);
    stream.kind == AccessKind::Fault
        && accesses.all(|access| access.largest_window.get() <= PAGE_BYTES)
}

/// Returns whether 90 % of the program's reads were issued while no other of its reads was active.
fn are_alone(requests: &[IoRequest]) -> bool {
    let own = requests.iter().filter(|one| one.is_read && one.neighbour.is_none());
    let mut spans: Vec<_> = own.map(|one| (one.start(), one.end)).collect();
    spans.sort_unstable();
    let (mut alone, mut busy_until) = (0, Nanos::ZERO);
    for (start, end) in &spans {
        alone += usize::from(*start >= busy_until);
        busy_until = busy_until.max(*end);
    }
    !spans.is_empty() && alone * 10 >= spans.len() * 9
}

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    if !run.matters(stream.waited) {
        return None;
    }
    let is_alone = are_alone(&run.requests_of(stream));
    let has_stride = shape.stride.is_some_and(|(_, count)| shape.share(count) >= 0.5);
    let applies = shape.calls >= MIN_ACCESSES
        && is_alone
        && !is_page_by_page(run, stream)
        && shape.share(shape.contiguous) < 0.5
        && !has_stride;
    applies.then(|| RuleFinding {
        cause: format!("{} reads at random, each alone in the device's queue", shape.calls),
        fix: "if the offsets are known early: io_uring or several threads".to_owned(),
        snippet: None,
        change: FixChange::Unpredictable("the offsets may depend on the data"),
        waited: stream.waited,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}
