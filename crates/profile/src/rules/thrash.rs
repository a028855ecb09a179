//! Pages are evicted and read again.

use units::Nanos;

use super::{
    DiagnosisRule, FixChange, MIN_REPEATED_WAITS, RuleCheck, RuleFinding, RunView, polluting_scan,
};
use crate::evicted::{Departure, RepeatedWaits, repeated_waits};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 14,
    name: "thrash",
    summary: "pages that memory pressure evicted and that were missed again",
    explanation: "The rule applies if waits for pages that the kernel had reclaimed cost at least \
        5 % of the run. If most of these pages were never used, memory is too small for the \
        windows of all streams: twice their sum must fit. If they were used, the program returns \
        to more data than memory holds. Use smaller windows, give the cgroup more memory, or read \
        the data once. The gain is that of enough memory.",
    check: RuleCheck::Run(check),
};

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let again = |departures: &[Departure]| -> Vec<RepeatedWaits> {
        let streams = run.streams.iter();
        streams.map(|stream| repeated_waits(run.recording, stream, departures)).collect()
    };
    let all = again(&[Departure::ReclaimedUnused, Departure::ReclaimedUsed]);
    let count: u64 = all.iter().map(|one| one.count).sum();
    let waited: Nanos = all.iter().map(|one| one.waited).sum();
    if count < MIN_REPEATED_WAITS || !run.matters(waited) {
        return None;
    }
    let places: Vec<usize> = (0..all.len()).filter(|place| all[*place].count > 0).collect();
    let streams = || places.iter().map(|place| &run.streams[*place]);
    if streams().any(|stream| polluting_scan::check(run, stream).is_some()) {
        return None;
    }
    let unused: u64 = again(&[Departure::ReclaimedUnused]).iter().map(|one| one.count).sum();
    let (cause, fix) = if 2 * unused >= count {
        (
            format!("{count} waits for pages that were read ahead and reclaimed unused"),
            "reduce windows until twice their sum fits into memory, or add memory",
        )
    } else {
        (
            format!("{count} waits for pages that were used before and reclaimed since"),
            "add memory, or process the data in one pass",
        )
    };
    let hottest = streams().max_by_key(|stream| stream.waited)?;
    Some(RuleFinding {
        cause,
        fix: fix.to_owned(),
        snippet: None,
        change: FixChange::EnoughMemory,
        waited: streams().map(|stream| stream.waited).sum(),
        stack: hottest.hottest_stack(run.recording),
        others: places,
    })
}
