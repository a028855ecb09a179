//! The program reads at random, one request at a time.

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::{AccessKind, PAGE_BYTES};
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 6,
    name: "random-depth-1",
    summary: "random reads with one request in flight",
    explanation: "The rule applies if no step has a majority and at most one request is in flight \
        during 90 % of the requests. A device serves several random requests in almost the time of \
        one. Use io_uring or threads, but only if the offsets are known before the data arrives: a \
        program that follows pointers cannot. Mappings under MADV_RANDOM are left out. No gain is \
        predicted, as the recording does not show which offsets depend on data.",
    check: RuleCheck::Stream(check),
};

/// Whether it is a mapping of which each fault reads its page only, as its program has asked for: a
/// thread cannot have two faults at once.
fn is_page_by_page(run: &RunView<'_>, stream: &FileStream) -> bool {
    let mut accesses = stream.accesses(run.recording);
    stream.kind == AccessKind::Fault
        && accesses.all(|access| access.largest_window.get() <= PAGE_BYTES)
}

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    if !run.matters(stream.waited) {
        return None;
    }
    let requests = run.requests_of(stream);
    let reads = requests.iter().filter(|request| request.is_read);
    let (mut all, mut alone) = (0_u64, 0_u64);
    for request in reads {
        all += 1;
        alone += u64::from(request.depth <= 1);
    }
    let is_alone = all > 0 && alone as f64 >= 0.9 * all as f64;
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
