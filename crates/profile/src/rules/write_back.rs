//! Waits for writes.

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::recording::WaitClass;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 26,
    name: "write-back",
    summary: "waits for writes: fsync, journal, dirty pages",
    explanation: "The rule applies if threads waited for writes (fsync, the journal, the limit of \
        dirty pages) for at least 5 % of the run. Read-ahead cannot help; the rule names the time \
        so that it is not mistaken for reads.",
    check: RuleCheck::Run(check),
};

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let waited = run.waited_as(WaitClass::WriteBack);
    run.matters(waited).then(|| RuleFinding {
        cause: format!("{:.0} ms went into fsync, journal or dirty pages", waited.as_millis_f64()),
        fix: "none in read-ahead: write less, or sync less often".to_owned(),
        snippet: None,
        change: FixChange::Unpredictable("writes are not simulated"),
        waited,
        stack: run.stack_of(WaitClass::WriteBack),
        others: Vec::new(),
    })
}
