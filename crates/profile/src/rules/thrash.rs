//! Pages are evicted and read again.

use units::Nanos;

use super::{
    DiagnosisRule, FixChange, MIN_REPEATED_WAITS, RuleCheck, RuleFinding, RunView, polluting_scan,
};
use crate::evicted::repeated_waits;
use crate::recording::AccessKind;
use crate::stream::FileStream;

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
    let every: Vec<&FileStream> = run.streams.iter().collect();
    let repeated = repeated_waits(run.recording, &every);
    let count = |place: &usize| repeated[*place].used.count + repeated[*place].unused.count;
    let waited = |place: &usize| repeated[*place].used.waited + repeated[*place].unused.waited;
    // Other streams mainly wait for other reasons, or a scan evicted their pages.
    let places: Vec<usize> = (0..every.len())
        .filter(|place| {
            count(place) > 0
                && waited(place) * 2 >= every[*place].waited
                && polluting_scan::check(run, every[*place]).is_none()
        })
        .collect();
    let unused: u64 = places.iter().map(|place| repeated[*place].unused.count).sum();
    let (count, waited): (u64, Nanos) =
        (places.iter().map(count).sum(), places.iter().map(waited).sum());
    if count < MIN_REPEATED_WAITS || !run.matters(waited) {
        return None;
    }
    let streams = || places.iter().map(|place| &run.streams[*place]);
    let hottest = streams().max_by_key(|stream| stream.waited)?;
    let of = match places.len() {
        1 => run.path(hottest).to_owned(),
        open => format!("{open} open files, most of them of {}", run.path(hottest)),
    };
    let (cause, fix) = if 2 * unused >= count {
        (
            format!("{count} waits for pages of {of} that were read ahead and reclaimed unused"),
            "reduce windows until twice their sum fits into memory, or add memory",
        )
    } else {
        (
            format!("{count} waits for pages of {of} that were used before and reclaimed since"),
            "add memory, or process the data in one pass",
        )
    };
    // The simulation does not reclaim pages of mappings.
    let is_mapped = streams().any(|stream| stream.kind == AccessKind::Fault);
    let change = if is_mapped { FixChange::Saves(waited) } else { FixChange::EnoughMemory };
    Some(RuleFinding {
        cause,
        fix: fix.to_owned(),
        snippet: None,
        change,
        waited,
        stack: hottest.hottest_stack(run.recording),
        others: places,
    })
}
