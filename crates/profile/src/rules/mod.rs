//! Diagnoses: each is one file with a [`DiagnosisRule`], one line in [`RULES`] and one contract
//! test.
//!
//! A rule is a pure function of a recording and one of its streams. The first rule in the list that
//! applies to a stream explains it, so specific causes precede general ones.

mod backward;
mod cut_advice;
mod device_bound;
mod direct;
mod fragments;
mod late_window;
mod mapped_random;
mod mapped_sequential;
mod metadata;
mod needless_random;
mod neighbours;
mod polluting_scan;
mod ramp;
mod random;
mod self_eviction;
mod shared;
mod small_files;
mod small_reads;
mod stalling_advice;
mod start_up;
mod stride;
mod thrash;
mod throttled;
mod uring_punt;
mod void_advice;
mod write_back;

use std::fmt::Write as _;

use units::{Bytes, Nanos};

use crate::recording::{IoRequest, ProfileRecording, WaitClass};
use crate::spans::BusySpans;
use crate::stream::FileStream;

/// Minimum cost of a cause that is reported, as a share of the run's time.
pub(crate) const MIN_COST_SHARE: f64 = 0.05;
/// Minimum number of accesses for a statement about a pattern: half of the 32 accesses over which
/// the rules are specified.
pub(crate) const MIN_ACCESSES: u64 = 16;

/// Minimum number of waits for evicted pages: a single one may be an accident.
pub(crate) const MIN_REPEATED_WAITS: u64 = 2;

/// The change that a fix makes, for the simulator.
#[derive(Clone, Debug, PartialEq)]
pub enum FixChange {
    /// The program does not give the advice `RANDOM`.
    DropRandom,
    /// The open file has this window.
    SetWindow(Bytes),
    /// Faults of mappings read single pages.
    SinglePages,
    /// Like `SinglePages`, and advice requests each piece before it is touched.
    AskedPieces,
    /// Reads happen in pieces of this size, each requested as a whole.
    Chunks(Bytes),
    /// Advice requests pieces of this size before the first touch of each.
    AskedChunks(Bytes),
    /// Contiguous reads of one run are requested together.
    WholeRuns,
    /// Each thread reads through an open file of its own.
    OwnOpenFiles,
    /// Advice requests this many of the next pieces before each is read.
    AskedAhead(usize),
    /// Memory is large enough that nothing is reclaimed.
    EnoughMemory,
    /// All data that is read is prefetched from the start, in device order.
    Prefetched,
    /// This much time is saved, without simulation.
    Saves(Nanos),
    /// The change cannot be simulated, for this reason.
    Unpredictable(&'static str),
}

/// Result of a rule that applies.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleFinding {
    /// Why the program waits, in one sentence.
    pub cause: String,
    /// The recommended change, in one sentence.
    pub fix: String,
    /// Code or a command for this change.
    pub snippet: Option<String>,
    pub change: FixChange,
    /// Time that threads waited because of the cause.
    pub waited: Nanos,
    /// Index of the stack with the line to change; `None` if unknown.
    pub stack: Option<u32>,
    /// Indexes of other streams that the finding explains.
    pub others: Vec<usize>,
}

/// Input of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    pub recording: &'a ProfileRecording,
    pub streams: &'a [FileStream],
}

impl RunView<'_> {
    /// Returns the path of a stream's file.
    pub(crate) fn path(&self, stream: &FileStream) -> &str {
        &self.recording.files[stream.inode as usize].path
    }

    pub(crate) fn size(&self, stream: &FileStream) -> Bytes {
        self.recording.files[stream.inode as usize].size
    }

    /// Returns the requests of the device that holds the stream's file, or those of all devices if
    /// there are none, as below a device mapper.
    pub(crate) fn requests_of(&self, stream: &FileStream) -> Vec<IoRequest> {
        let device = self.recording.files[stream.inode as usize].id.device;
        let all = &self.recording.requests;
        let own: Vec<IoRequest> = all.iter().filter(|one| one.device == device).copied().collect();
        if own.is_empty() { all.clone() } else { own }
    }

    /// Returns whether a finding without a prediction is only a guess: a device that is busy all
    /// the time may be the limit instead of the window.
    pub(crate) fn needs_prediction(&self, rule: &DiagnosisRule, stream: &FileStream) -> bool {
        rule.code == late_window::RULE.code && device_bound::is_busy(self, stream)
    }

    /// Returns the requests of devices that hold files of the run, or all if there are none.
    pub(crate) fn file_requests(&self) -> Vec<IoRequest> {
        let files = self.recording.files.iter();
        let devices: std::collections::BTreeSet<_> = files.map(|file| file.id.device).collect();
        let all = &self.recording.requests;
        let of_files = all.iter().filter(|one| devices.contains(&one.device));
        let of_files: Vec<IoRequest> = of_files.copied().collect();
        if of_files.is_empty() { all.clone() } else { of_files }
    }

    /// Returns whether a time is long enough to be reported.
    pub(crate) fn matters(&self, time: Nanos) -> bool {
        time.get() as f64 >= MIN_COST_SHARE * self.recording.wall.get() as f64 && time > Nanos::ZERO
    }

    /// Returns the time that threads waited for pages, and the part of it within these spans.
    fn page_waits(&self, spans: &BusySpans) -> (Nanos, Nanos) {
        let waits = || self.recording.waits.iter().filter(|wait| wait.class.is_for_pages());
        let within = waits().map(|wait| spans.overlap(wait.start(), wait.end)).sum();
        (waits().map(|wait| wait.blocked).sum(), within)
    }

    pub(crate) fn waited_as(&self, class: WaitClass) -> Nanos {
        let waits = self.recording.waits.iter();
        waits.filter(|wait| wait.class == class).map(|wait| wait.blocked).sum()
    }

    /// Returns the stack with the longest total wait of this class.
    pub(crate) fn stack_of(&self, class: WaitClass) -> Option<u32> {
        let mut waited = std::collections::BTreeMap::<u32, Nanos>::new();
        for wait in self.recording.waits.iter().filter(|wait| wait.class == class) {
            *waited.entry(wait.stack).or_default() += wait.blocked;
        }
        waited.into_iter().max_by_key(|(_, time)| *time).map(|(stack, _)| stack)
    }
}

/// Checks one stream; `None` if the rule does not apply.
pub(crate) type CheckStream = fn(&RunView<'_>, &FileStream) -> Option<RuleFinding>;
/// Checks the whole run; `None` if the rule does not apply.
type CheckRun = fn(&RunView<'_>) -> Option<RuleFinding>;

#[derive(Clone, Copy, Debug)]
pub enum RuleCheck {
    /// Explains the waits of a stream.
    Stream(CheckStream),
    /// Explains the cost of a stream's calls in addition to their waits.
    Calls(CheckStream),
    Run(CheckRun),
}

/// A rule: its names, texts and check.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisRule {
    /// Number of the rule in docs/book/profile.md.
    pub code: u8,
    pub name: &'static str,
    /// The problem, in one line.
    pub summary: &'static str,
    /// Conditions of the rule and the recommended change, in one paragraph.
    pub explanation: &'static str,
    pub check: RuleCheck,
}

/// All rules, specific causes before general ones.
pub static RULES: &[DiagnosisRule] = &[
    write_back::RULE,
    stalling_advice::RULE,
    throttled::RULE,
    neighbours::RULE,
    uring_punt::RULE,
    start_up::RULE,
    small_files::RULE,
    metadata::RULE,
    direct::RULE,
    self_eviction::RULE,
    polluting_scan::RULE,
    thrash::RULE,
    cut_advice::RULE,
    needless_random::RULE,
    mapped_sequential::RULE,
    mapped_random::RULE,
    shared::RULE,
    backward::RULE,
    stride::RULE,
    ramp::RULE,
    void_advice::RULE,
    fragments::RULE,
    late_window::RULE,
    small_reads::RULE,
    random::RULE,
    device_bound::RULE,
];

/// Diagnoses random reads by several open files of one file, none of which waited long enough to be
/// reported: typical of processes that open, read and exit.
pub(crate) fn read_briefly(
    run: &RunView<'_>,
    places: &[usize],
) -> Option<(&'static DiagnosisRule, RuleFinding)> {
    let streams: Vec<&FileStream> = places.iter().map(|place| &run.streams[*place]).collect();
    let all = FileStream::merged(&streams, run.recording)?;
    let RuleCheck::Stream(check) = random::RULE.check else { return None };
    let finding = check(run, &all)?;
    let path = run.path(&all);
    let cause = format!("{}, by {} open files of {path}", finding.cause, places.len());
    let rule = RULES.iter().find(|rule| rule.code == random::RULE.code)?;
    Some((rule, RuleFinding { cause, others: places.to_vec(), ..finding }))
}

/// Returns the rule with this name or number.
pub fn rule_named(word: &str) -> Option<&'static DiagnosisRule> {
    RULES.iter().find(|rule| rule.name == word || rule.code.to_string() == word)
}

/// Returns the list of all rules, sorted by number.
pub fn list() -> String {
    let mut rules: Vec<&DiagnosisRule> = RULES.iter().collect();
    rules.sort_by_key(|rule| rule.code);
    let mut text = String::new();
    for rule in rules {
        let _ = writeln!(text, "{:>3}  {:<18} {}", rule.code, rule.name, rule.summary);
    }
    text
}

/// Returns the full description of a rule.
pub fn explain(rule: &DiagnosisRule) -> String {
    format!("{} ({}): {}\n\n{}\n", rule.name, rule.code, rule.summary, rule.explanation)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_numbers_are_unique_and_texts_are_there() {
        let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        let codes: BTreeSet<u8> = RULES.iter().map(|rule| rule.code).collect();
        assert_eq!((names.len(), codes.len()), (RULES.len(), RULES.len()));
        for rule in RULES {
            assert!(rule.summary.chars().count() <= 72, "{}", rule.name);
            assert!(rule.explanation.len() > 80, "{}", rule.name);
            assert!(rule_named(rule.name).is_some_and(|found| found.code == rule.code));
        }
        assert_eq!(list().lines().count(), RULES.len());
    }
}
