//! Loading programs and libraries takes most of the wait time.

use units::Nanos;

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::recording::AccessKind;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 25,
    name: "cold-start",
    summary: "most waits are for loading programs, libraries and modules",
    explanation: "The rule applies if at least half of the waiting time was in faults \
        of programs and libraries and in reads of modules (.so, .py, .pyc, .jar, .js). Prefetch \
        the list of these files in the order of the device while the program starts, keep them in \
        memory, or load less.",
    check: RuleCheck::Run(check),
};

const CODE_SUFFIXES: [&str; 7] = [".py", ".pyc", ".jar", ".js", ".rb", ".class", ".so"];
/// Minimum number of files: fewer are a program, not a cold start.
const MIN_FILES: usize = 3;

/// Returns whether a file is part of a program, so that the program's advice does not reach it.
pub(super) fn is_code(path: &str, kind: AccessKind) -> bool {
    let base = path.rsplit('/').next().unwrap_or_default();
    let mapped = kind == AccessKind::Fault
        && ["/bin/", "/sbin/", "/lib/", "/libexec/", "/lib64/"].iter().any(|it| path.contains(it));
    mapped || base.contains(".so.") || CODE_SUFFIXES.iter().any(|suffix| base.ends_with(suffix))
}

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let code = |place: &usize| {
        let stream = &run.streams[*place];
        is_code(run.path(stream), stream.kind) && stream.waited > Nanos::ZERO
    };
    let places: Vec<usize> = (0..run.streams.len()).filter(code).collect();
    let waited: Nanos = places.iter().map(|place| run.streams[*place].waited).sum();
    let all = run.recording.waited();
    if places.len() < MIN_FILES || waited.get() * 2 < all.get() || !run.matters(waited) {
        return None;
    }
    let hottest = &run.streams[*places.first()?];
    Some(RuleFinding {
        cause: format!(
            "{} programs, libraries and modules were loaded from the device",
            places.len()
        ),
        fix: "prefetch these files while the program starts".to_owned(),
        snippet: Some(format!("cat {} … > /dev/null &", run.path(hottest))),
        change: FixChange::Prefetched,
        waited,
        stack: hottest.hottest_stack(run.recording),
        others: places,
    })
}
