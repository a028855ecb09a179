//! Files that were opened before read-ahead changed.

use std::collections::BTreeMap;

use units::Kib;

use super::Detector;
use crate::finding::{Finding, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot, OpenWindow};

pub(super) const DETECTOR: Detector = Detector { id: "old-windows", look };

const MOST_NAMED: usize = 5;

fn look(_snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let outdated = &diagnosis.open.as_ref()?.outdated;
    let holders = by_process(outdated);
    let ((pid, name), _) = holders.first()?;
    let files = outdated.len();
    let others = match holders.len() - 1 {
        0 => String::new(),
        1 => " and another process".to_owned(),
        others => format!(" and {others} other processes"),
    };
    let plural = if files == 1 { "1 open file has" } else { &format!("{files} open files have") };
    let evidence = holders.iter().take(MOST_NAMED).map(|((pid, name), windows)| {
        let counts: Vec<String> =
            windows.iter().map(|(kib, count)| format!("{count} × {kib}")).collect();
        Evidence::new(format!("{name} ({pid}): {}", counts.join(", ")))
    });
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Notice,
        title: format!(
            "{plural} another window than {}: {name} ({pid}){others}",
            diagnosis.read_ahead()
        ),
        why: format!(
            "the kernel copies read-ahead into a file when it is opened; later changes do not \
             affect it. These files keep their window until the plan refreshes them or {name} \
             is restarted"
        ),
        evidence: evidence.collect(),
        remedy: Remedy::OpenFiles,
        fixes: Vec::new(),
    })
}

type ByProcess<'a> = Vec<((u32, &'a str), BTreeMap<Kib, usize>)>;

/// Counts open files by process and window; the process with the most files comes first.
fn by_process(files: &[OpenWindow]) -> ByProcess<'_> {
    let mut found: BTreeMap<(u32, &str), BTreeMap<Kib, usize>> = BTreeMap::new();
    for file in files {
        if let Some((pid, name)) = file.holders.first() {
            *found.entry((*pid, name)).or_default().entry(file.window).or_default() += 1;
        }
    }
    let mut found: ByProcess<'_> = found.into_iter().collect();
    found.sort_by_key(|(_, windows)| std::cmp::Reverse(windows.values().sum::<usize>()));
    found
}
