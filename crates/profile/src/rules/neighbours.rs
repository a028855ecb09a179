//! Other processes use the device at the same time.

use std::collections::BTreeMap;

use units::{Bytes, Nanos};

use super::{DiagnosisRule, FixChange, MIN_ACCESSES, RuleCheck, RuleFinding, RunView};
use crate::recording::{IoRequest, WaitClass};
use crate::shape::median;
use crate::spans::BusySpans;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 23,
    name: "neighbours",
    summary: "requests of other processes are served first",
    explanation: "The rule applies if processes that are not profiled have requests at the device \
        of the files during at least half of the time that threads wait for pages, and the \
        program's own requests then take at least 1.5 times as long as alone (if none were alone, \
        if the others move as many bytes). Give their cgroup a lower io.weight or a limit \
        (io.max), run them at another time or on another device. The gain is the time by which \
        the program's requests take longer than alone.",
    check: RuleCheck::Run(check),
};

/// Minimum share of the waits during which other processes have requests.
const MIN_SHARE: f64 = 0.5;
/// Minimum ratio of the request time next to others to the request time alone.
const MIN_SLOWDOWN: f64 = 1.5;

/// Times of the program's own reads in ns: `contended` if others had requests for most of the time.
#[derive(Default)]
struct OwnReads {
    alone: Vec<u64>,
    contended: Vec<u64>,
    bytes: Bytes,
}

impl OwnReads {
    fn new(requests: &[IoRequest], others: &BusySpans) -> Self {
        let mut own = Self::default();
        for request in requests.iter().filter(|one| one.is_read && one.neighbour.is_none()) {
            let (start, end) = span(request);
            let length = end.saturating_sub(start).get();
            let is_contended = 2 * others.overlap(start, end).get() >= length;
            if is_contended { &mut own.contended } else { &mut own.alone }.push(length);
            own.bytes += request.length;
        }
        own
    }

    /// Returns the median times in ns next to others, and alone; `None` if too few were alone.
    fn compared(&mut self) -> (u64, Option<u64>) {
        let is_known = self.alone.len() as u64 >= MIN_ACCESSES / 2;
        (median(&mut self.contended), is_known.then(|| median(&mut self.alone)))
    }
}

/// Returns the start and the end of a request, including its time in the scheduler's queue.
fn span(request: &IoRequest) -> (Nanos, Nanos) {
    (request.end.saturating_sub(request.service + request.queued), request.end)
}

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let requests = run.file_requests();
    let of_others = || requests.iter().filter(|one| one.neighbour.is_some());
    if (of_others().count() as u64) < MIN_ACCESSES {
        return None;
    }
    let others: BusySpans = of_others().map(span).collect();
    let (waited, contended) = run.page_waits(&others);
    if !run.matters(contended) || (contended.get() as f64) < MIN_SHARE * waited.get() as f64 {
        return None;
    }
    let mut own = OwnReads::new(&requests, &others);
    let (slow, alone) = own.compared();
    let bytes: Bytes = of_others().map(|one| one.length).sum();
    let (comparison, change) = match alone {
        Some(alone) if slow as f64 >= MIN_SLOWDOWN * alone as f64 => {
            let share = 1.0 - alone as f64 / slow.max(1) as f64;
            let [slow, alone] = [slow, alone].map(|time| Nanos::new(time).as_millis_f64());
            let text = format!("reads take {slow:.1} ms beside them and {alone:.1} ms alone");
            (text, FixChange::Saves(contended.scaled(share)))
        }
        Some(_) => return None,
        None if bytes >= own.bytes => {
            let text = "no read was alone".to_owned();
            (text, FixChange::Unpredictable("no request was alone at the device"))
        }
        None => return None,
    };
    Some(RuleFinding {
        cause: format!(
            "{} had requests at the device for {:.0} % of the time waited: {comparison}",
            busiest(run, &requests),
            100.0 * contended.get() as f64 / waited.get().max(1) as f64
        ),
        fix: "give the other process a lower io.weight or an io.max, or another time".to_owned(),
        snippet: Some("echo 'default 10' > /sys/fs/cgroup/GROUP/io.weight".to_owned()),
        change,
        waited: contended,
        stack: run.stack_of(WaitClass::Miss).or_else(|| run.stack_of(WaitClass::InFlight)),
        others: Vec::new(),
    })
}

/// Names the other process that moved the most bytes.
fn busiest(run: &RunView<'_>, requests: &[IoRequest]) -> String {
    let mut moved: BTreeMap<u32, Bytes> = BTreeMap::new();
    for request in requests {
        if let Some(pid) = request.neighbour {
            *moved.entry(pid).or_default() += request.length;
        }
    }
    let Some((pid, bytes)) = moved.into_iter().max_by_key(|(_, bytes)| *bytes) else {
        return "another process".to_owned();
    };
    let name = run.recording.neighbours.get(&pid).map_or("a process", String::as_str);
    format!("{name} (pid {pid}, {})", bytes.rounded())
}
