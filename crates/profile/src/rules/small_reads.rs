//! The program reads cached data in small pieces.

use units::{Bytes, Nanos};

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;
use crate::stream::FileStream;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 13,
    name: "small-reads",
    summary: "many small calls in order, whose cost is the call itself",
    explanation: "The rule applies to reads of at most 16 KiB in order, if at least 90 % find \
        their data in memory, and the time in the calls beyond copying is at least 5 % of the \
        run. Read into a larger buffer, 128 KiB for example.",
    check: RuleCheck::Calls(check),
};

const LARGEST_SMALL: u64 = 16 << 10;
/// Time to copy a byte to the program (10 GB/s), as in [`sim::Costs::TODAY`].
const COPY_NS_PER_BYTE: f64 = 0.1;
/// Time of a call, as in [`sim::Costs::TODAY`].
const CALL_NS: u64 = 400;

fn check(run: &RunView<'_>, stream: &FileStream) -> Option<RuleFinding> {
    let shape = &stream.shape;
    let blocked = stream.blocked_accesses(run.recording) as u64;
    let copying = Nanos::new((shape.bytes as f64 * COPY_NS_PER_BYTE) as u64);
    let larger = 1 + shape.bytes / Bytes::from_kib(128).get();
    let cost = Nanos::new(shape.calls.saturating_sub(larger) * CALL_NS);
    let applies = stream.kind == AccessKind::Read
        && shape.calls >= 64 * MIN_ACCESSES
        && shape.median_length <= LARGEST_SMALL
        && shape.is_sequential()
        && blocked * 10 <= shape.calls
        && run.matters(cost);
    applies.then(|| RuleFinding {
        cause: format!(
            "{} calls of {} in order; the calls cost {:.0} ms, the copying {:.0} ms",
            shape.calls,
            Bytes::new(shape.median_length),
            cost.as_millis_f64(),
            copying.as_millis_f64()
        ),
        fix: "read into a larger buffer".to_owned(),
        snippet: Some("read(fd, buffer, 128 << 10);".to_owned()),
        change: FixChange::Saves(cost),
        waited: cost,
        stack: stream.hottest_stack(run.recording),
        others: Vec::new(),
    })
}
