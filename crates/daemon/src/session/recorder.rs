//! Records a session while it runs.

use std::collections::BTreeSet;

use control::{
    ActionSink, BdiKey, DirectoryQuery, EventSource, ExternalChange, FileAction, FileState,
    Listing, LoopNote, LoopSample, Released, SampledFiles,
};
use observe::OpenFileId;
use units::{Nanos, Pages};

use super::entry::{
    CallOnBdi, KnownState, ListingOnBdi, LoopDecision, SampledOnBdi, SessionEntry, SessionHeader,
};
use super::file::SessionWriter;
use crate::daemon::DaemonBackend;
use crate::decision::DecisionLog;

/// A back end that records the answers of another back end and the decisions of the loop. Without a
/// writer, it only forwards calls.
pub struct RecordingBackend<B> {
    backend: B,
    writer: Option<SessionWriter>,
    known: KnownState,
    now: Nanos,
    /// Why recording stopped early, until this is reported.
    failed: Option<String>,
}

impl<B> RecordingBackend<B> {
    /// Records into `writer`; without one, only forwards calls.
    pub fn new(backend: B, header: &SessionHeader, writer: Option<SessionWriter>) -> Self {
        let (known, now) = (KnownState::default(), Nanos::ZERO);
        let mut recording = Self { backend, writer, known, now, failed: None };
        recording.write(|| SessionEntry::Begin(header.clone()));
        recording
    }

    /// Returns the wrapped back end.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    pub(super) fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// Writes an entry. On an error, recording stops, but control continues.
    fn write(&mut self, entry: impl FnOnce() -> SessionEntry) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(error) = writer.write(&entry()) {
            self.failed = Some(format!("the recording ends here: {error}"));
            self.writer = None;
        }
    }

    fn decide(&mut self, decision: impl FnOnce() -> LoopDecision) {
        if self.writer.is_some() {
            let decision = decision();
            if self.known.is_news(&decision) {
                self.write(|| SessionEntry::Decision(decision));
            }
        }
    }

    fn fail<T, E: std::fmt::Display>(&mut self, result: Result<T, E>) -> Result<T, E> {
        if let Err(error) = &result {
            let text = error.to_string();
            self.write(|| SessionEntry::Failed(text));
        }
        result
    }

    fn answer<E: std::fmt::Display>(
        &mut self,
        call: CallOnBdi,
        bdi: BdiKey,
        result: Result<Result<(), ExternalChange>, E>,
    ) -> Result<Result<(), ExternalChange>, E> {
        if let Ok(Err(change)) = &result {
            let change = change.clone();
            self.write(|| SessionEntry::Changed(call, change, Some(bdi)));
        }
        self.fail(result)
    }
}

impl<B> Drop for RecordingBackend<B> {
    fn drop(&mut self) {
        self.write(|| SessionEntry::End);
        if let Some(Err(error)) = self.writer.take().map(SessionWriter::finish) {
            tracing::warn!("the recording has no end: {error}");
        }
    }
}

impl<B> EventSource for RecordingBackend<B>
where
    B: EventSource,
    B::Error: std::fmt::Display,
{
    type Error = B::Error;

    fn now(&self) -> Nanos {
        if self.writer.is_some() { self.now } else { self.backend.now() }
    }

    fn poll(&mut self) -> bool {
        let read = self.backend.poll();
        self.now = self.backend.now();
        let now = self.now;
        self.write(|| SessionEntry::Poll { now, read });
        read
    }

    fn sample(
        &mut self,
        followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, B::Error> {
        let followed: BTreeSet<OpenFileId> = followed.collect();
        self.known.keep_files(&followed);
        let result = self.backend.sample(&mut followed.into_iter());
        let sample = self.fail(result)?;
        self.write(|| SessionEntry::Sample(sample.clone()));
        Ok(sample)
    }

    fn file_state(&mut self, bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        let state = self.backend.file_state(bdi, file);
        let before = self.known.file(bdi, file);
        if self.writer.is_some() && before != state {
            let path = if before.is_none() { self.backend.path(file) } else { None };
            self.known.set_file(bdi, file, state);
            self.write(|| SessionEntry::File { bdi, file, state, path });
        }
        state
    }

    fn sample_accesses(&mut self, bdi: BdiKey, files: &SampledFiles) {
        self.decide(|| LoopDecision::SampleAccesses(SampledOnBdi { bdi, files: files.clone() }));
        self.backend.sample_accesses(bdi, files);
    }

    fn find_directory(&mut self, bdi: BdiKey, query: &DirectoryQuery) -> Option<Listing> {
        self.decide(|| LoopDecision::FindDirectory { bdi, wanted: query.files.clone() });
        let listing = self.backend.find_directory(bdi, query)?;
        let found = || ListingOnBdi { bdi: Some(bdi), listing: listing.clone() };
        self.write(|| SessionEntry::Directory(found()));
        Some(listing)
    }

    fn path(&self, file: OpenFileId) -> Option<String> {
        self.backend.path(file)
    }
}

impl<B> ActionSink for RecordingBackend<B>
where
    B: ActionSink,
    B::Error: std::fmt::Display,
{
    fn maintain(&mut self) -> Result<(), B::Error> {
        let result = self.backend.maintain();
        self.fail(result)
    }

    fn act(
        &mut self,
        bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, B::Error> {
        self.decide(|| LoopDecision::Act { bdi, actions: actions.clone() });
        let result = self.backend.act(bdi, actions);
        self.answer(CallOnBdi::Act, bdi, result)
    }

    fn set_new_file_window(
        &mut self,
        bdi: BdiKey,
        window: Option<Pages>,
    ) -> Result<Result<(), ExternalChange>, B::Error> {
        self.decide(|| LoopDecision::NewFileWindow { bdi, window });
        let result = self.backend.set_new_file_window(bdi, window);
        self.answer(CallOnBdi::NewFileWindow, bdi, result)
    }

    fn advise(&mut self, bdi: BdiKey, actions: Vec<FileAction>) -> Result<(), B::Error> {
        self.decide(|| LoopDecision::Advise { bdi, actions: actions.clone() });
        let result = self.backend.advise(bdi, actions);
        self.fail(result)
    }

    fn check_external_change(
        &mut self,
        bdi: BdiKey,
    ) -> Result<Result<(), ExternalChange>, B::Error> {
        let result = self.backend.check_external_change(bdi);
        self.answer(CallOnBdi::Check, bdi, result)
    }

    fn keep_directory(&mut self, bdi: BdiKey, keep: bool) {
        self.decide(|| LoopDecision::KeepDirectory { bdi, keep });
        self.backend.keep_directory(bdi, keep);
    }

    fn restore(&mut self, bdi: BdiKey) -> Result<(), B::Error> {
        self.decide(|| LoopDecision::Restore { bdi });
        let result = self.backend.restore(bdi);
        self.fail(result)
    }

    fn reapply(&mut self, bdi: BdiKey) -> Result<(), B::Error> {
        self.decide(|| LoopDecision::Reapply { bdi });
        let result = self.backend.reapply(bdi);
        self.fail(result)
    }

    fn release(&mut self, bdi: BdiKey, leave: bool) -> Result<Released, B::Error> {
        self.decide(|| LoopDecision::Release { bdi, leave });
        let result = self.backend.release(bdi, leave);
        self.fail(result)
    }

    fn note(&mut self, note: &LoopNote) {
        self.decide(|| LoopDecision::Note { text: format!("{note:?}") });
        self.backend.note(note);
    }
}

impl<B: DaemonBackend> DaemonBackend for RecordingBackend<B> {
    fn log(&mut self) -> &mut DecisionLog {
        let failed = self.failed.take();
        let log = self.backend.log();
        failed.into_iter().for_each(|text| log.note(&text));
        log
    }

    fn bdi_name(&self, bdi: BdiKey) -> String {
        self.backend.bdi_name(bdi)
    }

    fn follow(&mut self, pids: BTreeSet<u32>) {
        self.backend.follow(pids);
    }
}
