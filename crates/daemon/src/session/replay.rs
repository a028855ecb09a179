//! Replays a recording: gives its inputs to the same loop and compares the decisions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::iter::Peekable;

use control::{
    ActionSink, BdiKey, ControlLoop, DirectoryQuery, EventSource, ExternalChange, FileAction,
    FileState, Listing, LoopNote, LoopSample, Released, SampledFiles,
};
use observe::OpenFileId;
use serde::Serialize;
use thiserror::Error;
use units::{Nanos, Pages};

use super::entry::{
    CallOnBdi, KnownState, ListingOnBdi, LoopDecision, SESSION_VERSION, SampledOnBdi, SessionEntry,
    SessionHeader,
};
use super::file::SessionWriter;
use super::recorder::RecordingBackend;

#[derive(Debug, Error)]
pub enum SessionError {
    #[error("cannot read the recording")]
    Read(#[from] io::Error),
    #[error("this is not a recording of auto")]
    NotASession,
    #[error("recording format {found} is newer than this foreread supports (up to {known})")]
    Newer { found: u32, known: u32 },
}

/// A decision of a replay that differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionDifference {
    /// The number of the step, from 1.
    pub step: u64,
    /// Time since the start of the recording.
    pub at_ns: Nanos,
    /// `None` if the recording has no further decision in this step.
    pub recorded: Option<LoopDecision>,
    pub decided: Option<LoopDecision>,
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionReport {
    /// The version of foreread that recorded it.
    pub foreread: String,
    pub steps: u64,
    pub duration_ns: Nanos,
    pub events: u64,
    pub open_files: u64,
    /// Number of actions on open files.
    pub actions: u64,
    /// Whether the recording was cut short.
    pub is_cut: bool,
    /// The error that stopped the session; `None` if there was none.
    pub failed: Option<String>,
    pub difference: Option<SessionDifference>,
}

/// Why a step of a replay stopped early.
#[derive(Debug, Error)]
enum Stop {
    #[error("the recording ends within a step")]
    Cut,
    /// The session stopped because of this error.
    #[error("{0}")]
    Failed(String),
    #[error("another decision")]
    Different,
}

/// Replays a recording up to the first decision that differs. Passes actions to `show` with the
/// time since the start and the path of the open file, if it is known.
///
/// # Errors
///
/// If it cannot be read or is not a recording.
pub fn replay_session(
    entries: impl Iterator<Item = io::Result<SessionEntry>>,
    show: impl FnMut(Nanos, &FileAction, Option<&str>),
) -> Result<SessionReport, SessionError> {
    let (header, mut entries) = begin(entries)?;
    let mut control = ControlLoop::new(header.loop_config());
    let mut backend = ReplayBackend { show: Some(show), ..ReplayBackend::default() };
    backend.report.foreread = header.foreread;
    while let Some(step) = StepEntries::read(&mut entries)? {
        backend.step = step;
        if !backend.carry_on(|backend| control.step(backend)) {
            return Ok(backend.report);
        }
        if backend.step.is_last {
            backend.carry_on(|backend| control.end(backend).map(drop));
            break;
        }
    }
    Ok(backend.report)
}

/// Replays a recording and writes another one, with the same inputs and the decisions that the loop
/// makes now. Updates recordings that are kept as tests after the rules have changed.
///
/// # Errors
///
/// If it cannot be read or is not a recording, or if the other one cannot be written.
pub fn decide_session_again(
    entries: impl Iterator<Item = io::Result<SessionEntry>>,
    writer: SessionWriter,
) -> Result<(), SessionError> {
    let (header, mut entries) = begin(entries)?;
    let mut control = ControlLoop::new(header.loop_config());
    let backend = ReplayBackend::<fn(Nanos, &FileAction, Option<&str>)>::default();
    let mut backend = RecordingBackend::new(backend, &header, Some(writer));
    while let Some(step) = StepEntries::read(&mut entries)? {
        let is_last = step.is_last;
        backend.backend_mut().step = StepEntries { decisions: None, ..step };
        if control.step(&mut backend).is_err() || is_last {
            break;
        }
    }
    drop(control.end(&mut backend));
    Ok(())
}

/// Reads the header of a recording; returns it and the remaining entries.
fn begin<I: Iterator<Item = io::Result<SessionEntry>>>(
    entries: I,
) -> Result<(SessionHeader, Peekable<I>), SessionError> {
    let mut entries = entries.peekable();
    let header = match entries.next().transpose() {
        Ok(Some(SessionEntry::Begin(header))) => header,
        Ok(_) => return Err(SessionError::NotASession),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(SessionError::NotASession);
        }
        Err(error) => return Err(error.into()),
    };
    let (found, known) = (header.session_version, SESSION_VERSION);
    if found > known { Err(SessionError::Newer { found, known }) } else { Ok((header, entries)) }
}

/// The recorded entries of one step; for the last step, also the following ones.
#[derive(Default)]
struct StepEntries {
    now: Nanos,
    read: bool,
    sample: Option<LoopSample>,
    files: Vec<(BdiKey, OpenFileId, Option<FileState>, Option<String>)>,
    listings: VecDeque<ListingOnBdi>,
    changes: VecDeque<(CallOnBdi, ExternalChange, Option<BdiKey>)>,
    /// `None` if decisions are not compared.
    decisions: Option<VecDeque<LoopDecision>>,
    failed: Option<String>,
    is_last: bool,
    /// Whether the recording stops here without a regular end.
    is_cut: bool,
}

impl StepEntries {
    /// Reads the next step; `None` after the last one.
    fn read(
        entries: &mut Peekable<impl Iterator<Item = io::Result<SessionEntry>>>,
    ) -> io::Result<Option<Self>> {
        let mut decisions = VecDeque::new();
        let Some(SessionEntry::Poll { now, read }) = entries.next().transpose()? else {
            return Ok(None);
        };
        let mut step = Self { now, read, is_last: true, is_cut: true, ..Self::default() };
        while let Some(entry) = entries.peek() {
            if matches!(entry, Ok(SessionEntry::Poll { .. })) {
                (step.is_last, step.is_cut) = (false, false);
                break;
            }
            match entries.next().transpose()? {
                Some(SessionEntry::Sample(sample)) => step.sample = Some(sample),
                Some(SessionEntry::File { bdi, file, state, path }) => {
                    step.files.push((bdi, file, state, path));
                }
                Some(SessionEntry::Directory(listing)) => step.listings.push_back(listing),
                Some(SessionEntry::Changed(call, change, bdi)) => {
                    step.changes.push_back((call, change, bdi));
                }
                Some(SessionEntry::Decision(decision)) => decisions.push_back(decision),
                Some(SessionEntry::Failed(error)) => step.failed = Some(error),
                Some(SessionEntry::End) => step.is_cut = false,
                Some(SessionEntry::Begin(_) | SessionEntry::Poll { .. }) | None => {}
            }
        }
        step.decisions = Some(decisions);
        Ok(Some(step))
    }
}

/// Returns whether a recorded answer is the one for `bdi`; an answer without a bdi is for any.
fn is_for(recorded: Option<BdiKey>, bdi: BdiKey) -> bool {
    recorded.is_none_or(|recorded| recorded == bdi)
}

/// As `VecDeque::pop_front_if`, which the oldest supported compiler does not have.
fn pop_front_if<T>(queue: &mut VecDeque<T>, is_wanted: impl FnOnce(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(is_wanted) { queue.pop_front() } else { None }
}

/// A back end that answers from the recording.
struct ReplayBackend<F> {
    step: StepEntries,
    show: Option<F>,
    known: KnownState,
    paths: BTreeMap<OpenFileId, String>,
    begun: Option<Nanos>,
    report: SessionReport,
}

impl<F> Default for ReplayBackend<F> {
    fn default() -> Self {
        Self {
            step: StepEntries::default(),
            show: None,
            known: KnownState::default(),
            paths: BTreeMap::new(),
            begun: None,
            report: SessionReport::default(),
        }
    }
}

impl<F: FnMut(Nanos, &FileAction, Option<&str>)> ReplayBackend<F> {
    /// Runs a part of the loop. Returns whether the next step follows, and records why not.
    fn carry_on(&mut self, run: impl FnOnce(&mut Self) -> Result<(), Stop>) -> bool {
        match run(self) {
            Err(Stop::Cut) => self.report.is_cut = true,
            Err(Stop::Failed(error)) => self.report.failed = Some(error),
            Err(Stop::Different) => {}
            // After the last step, the end of control makes the remaining decisions.
            Ok(()) if self.step.is_last && self.report.difference.is_none() => return true,
            Ok(()) => {
                if let Some(recorded) = self.step.decisions.as_mut().and_then(VecDeque::pop_front) {
                    self.differ(Some(recorded), None);
                }
            }
        }
        self.report.failed.is_none() && self.report.difference.is_none() && !self.report.is_cut
    }

    fn at(&self) -> Nanos {
        self.step.now.saturating_sub(self.begun.unwrap_or(self.step.now))
    }

    /// Records the first difference.
    fn differ(&mut self, recorded: Option<LoopDecision>, decided: Option<LoopDecision>) {
        let (step, at_ns) = (self.report.steps, self.at());
        let difference = SessionDifference { step, at_ns, recorded, decided };
        self.report.difference.get_or_insert(difference);
    }

    /// Compares a decision with the recorded one.
    fn decide(&mut self, decision: LoopDecision) {
        let is_over = self.report.difference.is_some() || self.report.is_cut;
        let Some(decisions) = self.step.decisions.as_mut().filter(|_| !is_over) else { return };
        if !self.known.is_news(&decision) {
            return;
        }
        match decisions.pop_front() {
            Some(recorded) if recorded == decision => self.on_decision(&decision),
            // The recording ends before this decision.
            None if self.step.is_cut || self.step.failed.is_some() => {
                self.report.is_cut = self.step.is_cut;
            }
            recorded => self.differ(recorded, Some(decision)),
        }
    }

    fn on_decision(&mut self, decision: &LoopDecision) {
        if let LoopDecision::Act { actions, .. } | LoopDecision::Advise { actions, .. } = decision {
            let at = self.at();
            self.report.actions += actions.len() as u64;
            if let Some(show) = &mut self.show {
                for action in actions {
                    show(at, action, self.paths.get(&action.file).map(String::as_str));
                }
            }
        }
    }

    /// Returns an error if the step must stop.
    fn done(&mut self) -> Result<(), Stop> {
        let is_exhausted = self.step.decisions.as_ref().is_none_or(VecDeque::is_empty);
        if self.report.difference.is_some() {
            Err(Stop::Different)
        } else if self.report.is_cut {
            Err(Stop::Cut)
        } else if let Some(error) = self.step.failed.take_if(|_| is_exhausted) {
            Err(Stop::Failed(error))
        } else {
            Ok(())
        }
    }

    /// As [`Self::done`]; also returns the answer to a call that fails on an external change.
    fn answer(&mut self, call: CallOnBdi, bdi: BdiKey) -> Result<Result<(), ExternalChange>, Stop> {
        self.done()?;
        let changed =
            pop_front_if(&mut self.step.changes, |(of, _, on)| *of == call && is_for(*on, bdi));
        Ok(changed.map_or(Ok(()), |(_, change, _)| Err(change)))
    }
}

impl<F: FnMut(Nanos, &FileAction, Option<&str>)> EventSource for ReplayBackend<F> {
    type Error = Stop;

    fn now(&self) -> Nanos {
        self.step.now
    }

    fn poll(&mut self) -> bool {
        self.begun.get_or_insert(self.step.now);
        self.report.steps += 1;
        self.report.duration_ns = self.at();
        self.step.read
    }

    fn sample(
        &mut self,
        followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, Stop> {
        let followed: BTreeSet<OpenFileId> = followed.collect();
        self.known.keep_files(&followed);
        for (bdi, file, state, path) in self.step.files.drain(..) {
            self.report.open_files += u64::from(self.known.file(bdi, file).is_none());
            self.known.set_file(bdi, file, state);
            self.paths.extend(path.map(|path| (file, path)));
        }
        let Some(sample) = self.step.sample.take() else {
            return Err(match self.step.failed.take() {
                Some(error) => Stop::Failed(error),
                None => Stop::Cut,
            });
        };
        let events = sample.bdis.values().map(|bdi| bdi.events.len() as u64);
        self.report.events += events.sum::<u64>();
        Ok(sample)
    }

    fn file_state(&mut self, bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        self.known.file(bdi, file)
    }

    fn sample_accesses(&mut self, bdi: BdiKey, files: &SampledFiles) {
        self.decide(LoopDecision::SampleAccesses(SampledOnBdi { bdi, files: files.clone() }));
    }

    fn find_directory(&mut self, bdi: BdiKey, query: &DirectoryQuery) -> Option<Listing> {
        self.decide(LoopDecision::FindDirectory { bdi, wanted: query.files.clone() });
        let found = pop_front_if(&mut self.step.listings, |found| is_for(found.bdi, bdi));
        found.map(|found| found.listing)
    }

    fn path(&self, file: OpenFileId) -> Option<String> {
        self.paths.get(&file).cloned()
    }
}

impl<F: FnMut(Nanos, &FileAction, Option<&str>)> ActionSink for ReplayBackend<F> {
    fn maintain(&mut self) -> Result<(), Stop> {
        self.done()
    }

    fn act(
        &mut self,
        bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, Stop> {
        self.decide(LoopDecision::Act { bdi, actions });
        self.answer(CallOnBdi::Act, bdi)
    }

    fn set_new_file_window(
        &mut self,
        bdi: BdiKey,
        window: Option<Pages>,
    ) -> Result<Result<(), ExternalChange>, Stop> {
        self.decide(LoopDecision::NewFileWindow { bdi, window });
        self.answer(CallOnBdi::NewFileWindow, bdi)
    }

    fn advise(&mut self, bdi: BdiKey, actions: Vec<FileAction>) -> Result<(), Stop> {
        self.decide(LoopDecision::Advise { bdi, actions });
        self.done()
    }

    fn check_external_change(&mut self, bdi: BdiKey) -> Result<Result<(), ExternalChange>, Stop> {
        self.answer(CallOnBdi::Check, bdi)
    }

    fn keep_directory(&mut self, bdi: BdiKey, keep: bool) {
        self.decide(LoopDecision::KeepDirectory { bdi, keep });
    }

    fn restore(&mut self, bdi: BdiKey) -> Result<(), Stop> {
        self.decide(LoopDecision::Restore { bdi });
        self.done()
    }

    fn reapply(&mut self, bdi: BdiKey) -> Result<(), Stop> {
        self.decide(LoopDecision::Reapply { bdi });
        self.done()
    }

    fn release(&mut self, bdi: BdiKey, leave: bool) -> Result<Released, Stop> {
        self.decide(LoopDecision::Release { bdi, leave });
        self.done().map(|()| Released::default())
    }

    fn note(&mut self, note: &LoopNote) {
        self.decide(LoopDecision::Note { text: format!("{note:?}") });
    }
}
