//! Diagnoses: each is one file with a [`DiagnosisRule`], one line in [`RULES`] and one contract
//! test.
//!
//! A rule is a pure function of a recording and one of its streams. The first rule of the list that
//! applies to a stream explains it, so special causes come before general ones.

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
use crate::stream::FileStream;

/// The least share of the run's time that a cause must cost to be reported.
pub(crate) const MIN_COST_SHARE: f64 = 0.05;
/// Accesses below which nothing is said about a pattern: half of the window of 32 that the
/// reference looks at.
pub(crate) const MIN_ACCESSES: u64 = 16;

/// Waits for evicted pages below which nothing is said: one may be an accident.
pub(crate) const MIN_REPEATED_WAITS: u64 = 2;

/// What a fix changes, for the simulator.
#[derive(Clone, Debug, PartialEq)]
pub enum FixChange {
    /// The program's advice `RANDOM` goes.
    DropRandom,
    /// The open file gets this window.
    SetWindow(Bytes),
    /// Faults of mappings read single pages.
    SinglePages,
    /// The same, and advice asks for each piece before it is touched.
    AskedPieces,
    /// Reads happen in pieces of this size, each asked for as a whole.
    Chunks(Bytes),
    /// Contiguous reads of one run are asked for together.
    WholeRuns,
    /// Each thread reads through an open file of its own.
    OwnOpenFiles,
    /// Advice asks for this many of the next pieces before each is read.
    AskedAhead(usize),
    /// Nothing is reclaimed.
    EnoughMemory,
    /// All that is read is prefetched from the start, in the order of the device.
    Prefetched,
    /// This much time is saved, without simulation.
    Saves(Nanos),
    /// Nothing that a simulation could predict, and why.
    Unpredictable(&'static str),
}

/// What a rule says about a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleFinding {
    /// Why the program waits, in one sentence.
    pub cause: String,
    /// What to do, in one sentence.
    pub fix: String,
    /// Code or a command that does it.
    pub snippet: Option<String>,
    pub change: FixChange,
    /// How long threads waited because of it.
    pub waited: Nanos,
    /// The stack of the line to change.
    pub stack: Option<u32>,
    /// Other streams that it explains, by their place.
    pub others: Vec<usize>,
}

/// What a rule may look at.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    pub recording: &'a ProfileRecording,
    pub streams: &'a [FileStream],
}

impl RunView<'_> {
    /// The name of a stream's file.
    pub(crate) fn path(&self, stream: &FileStream) -> &str {
        &self.recording.files[stream.inode as usize].path
    }

    pub(crate) fn size(&self, stream: &FileStream) -> Bytes {
        self.recording.files[stream.inode as usize].size
    }

    /// Requests of the device that holds the stream's file; of all devices if none is of it, as
    /// below a device mapper.
    pub(crate) fn requests_of(&self, stream: &FileStream) -> Vec<IoRequest> {
        let device = self.recording.files[stream.inode as usize].id.device;
        let all = &self.recording.requests;
        let own: Vec<IoRequest> = all.iter().filter(|one| one.device == device).copied().collect();
        if own.is_empty() { all.clone() } else { own }
    }

    /// Whether a finding is no more than a guess without a prediction: a device that is busy all
    /// the time may be the limit, and not the window.
    pub(crate) fn needs_prediction(&self, rule: &DiagnosisRule, stream: &FileStream) -> bool {
        rule.code == late_window::RULE.code && device_bound::is_busy(self, stream)
    }

    /// Requests of the devices that hold files of the run; of all devices if none does.
    pub(crate) fn file_requests(&self) -> Vec<IoRequest> {
        let files = self.recording.files.iter();
        let devices: std::collections::BTreeSet<_> = files.map(|file| file.id.device).collect();
        let all = &self.recording.requests;
        let of_files = all.iter().filter(|one| devices.contains(&one.device));
        let of_files: Vec<IoRequest> = of_files.copied().collect();
        if of_files.is_empty() { all.clone() } else { of_files }
    }

    /// Whether this time is worth a report.
    pub(crate) fn matters(&self, time: Nanos) -> bool {
        time.get() as f64 >= MIN_COST_SHARE * self.recording.wall.get() as f64 && time > Nanos::ZERO
    }

    pub(crate) fn waited_as(&self, class: WaitClass) -> Nanos {
        let waits = self.recording.waits.iter();
        waits.filter(|wait| wait.class == class).map(|wait| wait.blocked).sum()
    }

    /// The stack with most of the time of these waits.
    pub(crate) fn stack_of(&self, class: WaitClass) -> Option<u32> {
        let mut waited = std::collections::BTreeMap::<u32, Nanos>::new();
        for wait in self.recording.waits.iter().filter(|wait| wait.class == class) {
            *waited.entry(wait.stack).or_default() += wait.blocked;
        }
        waited.into_iter().max_by_key(|(_, time)| *time).map(|(stack, _)| stack)
    }
}

/// Looks at one stream; `None` if the rule does not apply.
pub(crate) type CheckStream = fn(&RunView<'_>, &FileStream) -> Option<RuleFinding>;
/// Looks at the whole run.
type CheckRun = fn(&RunView<'_>) -> Option<RuleFinding>;

#[derive(Clone, Copy, Debug)]
pub enum RuleCheck {
    /// Explains why a stream is waited for.
    Stream(CheckStream),
    /// Explains what the calls of a stream cost beside their waits.
    Calls(CheckStream),
    Run(CheckRun),
}

/// A diagnosis.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisRule {
    /// Its number in the list of docs/book/profile.md.
    pub code: u8,
    pub name: &'static str,
    /// What it says, in one line.
    pub summary: &'static str,
    /// When it applies, and what to do, in a paragraph.
    pub explanation: &'static str,
    pub check: RuleCheck,
}

/// All rules, special causes before general ones.
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

/// Random reads by several open files of one file, none of which waited long enough for a report:
/// as those of processes that open, read and exit.
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

/// The rule with this name or number.
pub fn rule_named(word: &str) -> Option<&'static DiagnosisRule> {
    RULES.iter().find(|rule| rule.name == word || rule.code.to_string() == word)
}

/// The list of all rules, by number.
pub fn list() -> String {
    let mut rules: Vec<&DiagnosisRule> = RULES.iter().collect();
    rules.sort_by_key(|rule| rule.code);
    let mut text = String::new();
    for rule in rules {
        let _ = writeln!(text, "{:>3}  {:<18} {}", rule.code, rule.name, rule.summary);
    }
    text
}

/// A rule in full.
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
