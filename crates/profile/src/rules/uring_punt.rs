//! Reads through io_uring block worker threads.

use units::Nanos;

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};
use crate::recording::{StorageWait, WaitClass};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 20,
    name: "io-uring-punt",
    summary: "reads through io_uring are handed to worker threads that block",
    explanation: "io_uring hands a read to a worker thread where the file system cannot read \
        without blocking, or where the program asks for it (IOSQE_ASYNC). Each read then costs a \
        thread and task switches. The rule applies if at least 10 % of the reads through io_uring \
        went to workers, and these waited for at least 5 % of the run. Use O_DIRECT, or a file \
        system with asynchronous buffered reads (XFS, ext4, btrfs), and do not set IOSQE_ASYNC.",
    check: RuleCheck::Run(check),
};

/// Minimum share of the reads that went to worker threads.
const MIN_PUNTED_SHARE: f64 = 0.1;
/// Kernel functions that are only on the stacks of worker threads.
const WORKER_FUNCTIONS: [&str; 3] = ["io_wq_submit_work", "io_worker_handle_work", "io_wq_worker"];

fn is_of_worker(run: &RunView<'_>, wait: &StorageWait) -> bool {
    let stack = run.recording.stacks.get(wait.stack as usize);
    stack.is_some_and(|stack| {
        stack.kernel.iter().any(|frame| WORKER_FUNCTIONS.contains(&frame.function.as_str()))
    })
}

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let observe::UringReads { submitted, punted } = run.recording.uring_reads;
    let waits = run.recording.waits.iter().filter(|wait| {
        matches!(wait.class, WaitClass::Miss | WaitClass::InFlight) && is_of_worker(run, wait)
    });
    let waited: Nanos = waits.map(|wait| wait.blocked).sum();
    let is_often = punted > 0 && punted as f64 >= MIN_PUNTED_SHARE * submitted as f64;
    (is_often && run.matters(waited)).then(|| RuleFinding {
        cause: format!(
            "{punted} of {submitted} reads through io_uring were handed to worker threads"
        ),
        fix: "use O_DIRECT or a file system with asynchronous reads; no IOSQE_ASYNC".to_owned(),
        snippet: Some("int fd = open(path, O_RDONLY | O_DIRECT);".to_owned()),
        change: FixChange::Unpredictable("io_uring is not simulated"),
        waited,
        // A worker has no stack of the program.
        stack: None,
        others: Vec::new(),
    })
}
