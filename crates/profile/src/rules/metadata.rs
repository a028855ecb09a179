//! Waits for directories, inodes and block maps of files.

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::recording::WaitClass;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 18,
    name: "metadata",
    summary: "waits for directories, inodes and maps of files",
    explanation: "The rule applies if threads waited for metadata of the file system for at least \
        5 % of the run. Visit files in the order of their inodes, keep fewer and larger files, or \
        keep the metadata in memory (vm.vfs_cache_pressure).",
    check: RuleCheck::Run(check),
};

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let waited = run.waited_as(WaitClass::Metadata);
    run.matters(waited).then(|| RuleFinding {
        cause: format!("{:.0} ms went into directories, inodes and maps", waited.as_millis_f64()),
        fix: "visit files by inode, or have fewer files".to_owned(),
        snippet: None,
        change: FixChange::Unpredictable("metadata is not simulated"),
        waited,
        stack: run.stack_of(WaitClass::Metadata),
        others: Vec::new(),
    })
}
