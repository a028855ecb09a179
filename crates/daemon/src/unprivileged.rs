//! The back end of the loop without the privilege to observe the kernel. It follows readers through
//! `/proc`; its only actions are prefetching, and windows of once or twice the bdi's own.

use std::collections::{BTreeMap, BTreeSet};

use actuate::{ActuateFailure, FileAdvice, OwnFiles, Prefetcher};
use control::{
    ActionKind, ActionSink, BdiKey, BdiSample, Bounds, DirectoryQuery, EventSource, ExternalChange,
    Features, FileAction, FileState, Listing, LoopNote, LoopSample, Released,
};
use host::{BdiId, Root, Storage, page_size};
use observe::{OpenFile, OpenFileId, ProbeEvent};
use units::{Bytes, Nanos, Pages};

use crate::bdi_actuator::bytes_of;
use crate::daemon::{DaemonBackend, describe};
use crate::decision::{ActionResult, DecisionLog, FileDecision};
use crate::live::{completions, events_of_bdis, file_state};
use crate::source::now;
use crate::{DaemonError, MemoryState, Positions, Snapshot};

/// The factor by which `POSIX_FADV_SEQUENTIAL` multiplies the bdi's window.
const SEQUENTIAL_FACTOR: u64 = 2;

/// A kernel that is observed through `/proc`.
pub struct UnprivilegedBackend {
    root: Root,
    max_window: Bytes,
    prefetch: bool,
    pids: BTreeSet<u32>,
    positions: Positions,
    bdis: Vec<Storage>,
    own_files: OwnFiles,
    prefetcher: Prefetcher,
    /// Open files whose windows were changed, in their original state.
    changed: BTreeMap<OpenFileId, OpenFile>,
    /// Number of changed open files that have been closed.
    closed: usize,
    /// Open files for which a failure was reported.
    failures: BTreeSet<OpenFileId>,
    events: Vec<ProbeEvent>,
    snapshot: Snapshot,
    memory: MemoryState,
    log: DecisionLog,
}

impl UnprivilegedBackend {
    /// Creates a back end with windows of at most `max_window`; it prefetches only if `prefetch`.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn new(
        root: &Root,
        max_window: Bytes,
        prefetch: bool,
        log: DecisionLog,
    ) -> Result<Self, DaemonError> {
        let own_files = OwnFiles::new(root);
        let prefetcher = Prefetcher::begin_own(own_files.clone())
            .map_err(|source| DaemonError::Thread { purpose: "prefetch", source })?;
        Ok(Self {
            root: root.clone(),
            max_window,
            prefetch,
            pids: BTreeSet::new(),
            positions: Positions::new(root),
            bdis: Vec::new(),
            own_files,
            prefetcher,
            changed: BTreeMap::new(),
            closed: 0,
            failures: BTreeSet::new(),
            events: Vec::new(),
            snapshot: Snapshot::default(),
            memory: MemoryState::default(),
            log,
        })
    }

    /// Returns the bounds of the windows that advice can set.
    fn bounds(&self, bdi: &BdiId) -> Bounds {
        let file = self.snapshot.files.iter().find(|file| file.bdi.as_ref() == Some(bdi));
        let most = file.map_or(Bytes::ZERO, |file| file.bdi_window * SEQUENTIAL_FACTOR);
        let least = most.to_pages_floor(page_size());
        let most = most.min(self.max_window).to_pages_floor(page_size());
        // Misses are not observed.
        let features = Features { misses: false, ..Features::default() };
        Bounds {
            most,
            least: least.min(most),
            prefetch: self.prefetch,
            features,
            ..Bounds::default()
        }
    }

    fn open_file(&self, bdi: BdiKey, id: OpenFileId) -> Option<&OpenFile> {
        let bdi = &self.bdis.get(bdi.0 as usize)?.bdi;
        let is_it = |file: &&OpenFile| file.id == id && file.bdi.as_ref() == Some(bdi);
        self.snapshot.files.iter().find(is_it)
    }

    fn decisions(&self, bdi: BdiKey, actions: Vec<FileAction>) -> Vec<FileDecision> {
        let decision = |FileAction { file: id, kind, why, .. }| {
            let file = self.open_file(bdi, id)?.clone();
            Some(FileDecision { file, path: self.snapshot.paths.get(&id).cloned(), kind, why })
        };
        actions.into_iter().filter_map(decision).collect()
    }

    fn carry_out(&mut self, decision: &FileDecision) {
        match &decision.kind {
            ActionKind::Prefetch(extents) => {
                let wanted: Vec<_> = extents.iter().map(|extent| bytes_of(*extent)).collect();
                if !wanted.is_empty() {
                    self.prefetcher.enqueue(decision.file.clone(), wanted);
                }
                if !decision.why.is_empty() {
                    self.log.decision(decision, ActionResult::Prefetching);
                }
            }
            ActionKind::Report { .. } => self.log.decision(decision, ActionResult::Reported),
            // Directories and misses are not observed here, and a window of 0 requires the
            // privilege to set the bdi.
            ActionKind::PrefetchFiles(_)
            | ActionKind::PrefetchMisses(_)
            | ActionKind::PrefetchCalls(_)
            | ActionKind::AwaitFiles(_)
            | ActionKind::SetWindow(Pages::ZERO) => {}
            ActionKind::SetWindow(pages) => {
                let is_larger = pages.to_bytes(page_size()) > decision.file.bdi_window;
                self.advise_file(
                    decision,
                    if is_larger { FileAdvice::Sequential } else { FileAdvice::Normal },
                );
            }
        }
    }

    fn advise_file(&mut self, decision: &FileDecision, advice: FileAdvice) {
        let file = &decision.file;
        match self.own_files.advise(file, advice) {
            Ok(()) => {
                let factor = if advice == FileAdvice::Sequential { SEQUENTIAL_FACTOR } else { 1 };
                self.positions.set_window(file.id, file.bdi_window * factor);
                self.changed.entry(file.id).or_insert_with(|| file.clone());
                self.log.decision(decision, ActionResult::WindowSet { first: file.bdi_window });
            }
            Err(ActuateFailure::Gone) => {}
            Err(missed) => {
                if self.failures.insert(file.id) {
                    self.log.decision(decision, ActionResult::Failed(missed.to_string()));
                }
            }
        }
    }
}

impl EventSource for UnprivilegedBackend {
    type Error = DaemonError;

    fn now(&self) -> Nanos {
        now()
    }

    fn poll(&mut self) -> bool {
        let (events, snapshot) = self.positions.look(&self.pids);
        self.snapshot = snapshot;
        self.events.extend(events);
        !self.events.is_empty()
    }

    fn sample(
        &mut self,
        _followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, DaemonError> {
        let open: BTreeSet<OpenFileId> = self.snapshot.files.iter().map(|file| file.id).collect();
        let before = self.changed.len();
        self.changed.retain(|id, _| open.contains(id));
        self.closed += before - self.changed.len();
        self.failures.retain(|id| open.contains(id));
        for storage in self.positions.storages() {
            if !self.bdis.iter().any(|known| known.bdi == storage.bdi) {
                self.bdis.push(storage.clone());
            }
        }
        self.memory.refresh(&self.root, self.snapshot.at, &self.snapshot.files);
        let sample = |storage: &Storage| BdiSample {
            bounds: self.bounds(&storage.bdi),
            completions: completions(&self.root, &storage.devices),
            events: Vec::new(),
        };
        let mut bdis = (0..)
            .map(BdiKey)
            .zip(&self.bdis)
            .map(|(key, storage)| (key, sample(storage)))
            .collect();
        let bdi_of = |device| {
            let file = self.snapshot.files.iter().find(|file| file.device == device)?;
            let place = self.bdis.iter().position(|it| file.bdi.as_ref() == Some(&it.bdi))?;
            u32::try_from(place).ok().map(BdiKey)
        };
        events_of_bdis(std::mem::take(&mut self.events).into_iter(), bdi_of, &mut bdis);
        Ok(LoopSample { now: self.snapshot.at, bdis, memory: self.memory.inputs.clone() })
    }

    fn file_state(&mut self, bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        self.open_file(bdi, file).map(|file| file_state(file, &self.memory, false))
    }

    fn find_directory(&mut self, _bdi: BdiKey, _query: &DirectoryQuery) -> Option<Listing> {
        None
    }

    fn path(&self, file: OpenFileId) -> Option<String> {
        self.snapshot.paths.get(&file).cloned()
    }
}

impl ActionSink for UnprivilegedBackend {
    fn maintain(&mut self) -> Result<(), DaemonError> {
        let done = self.prefetcher.report();
        self.log.status.prefetched_bytes += done.asked.get();
        for (file, missed) in done.missed {
            if missed != ActuateFailure::Gone && self.failures.insert(file.id) {
                self.log.note(&format!("could not prefetch: {missed}"));
            }
        }
        Ok(())
    }

    fn act(
        &mut self,
        bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, DaemonError> {
        let decisions = self.decisions(bdi, actions);
        decisions.iter().for_each(|decision| self.carry_out(decision));
        Ok(Ok(()))
    }

    fn advise(&mut self, bdi: BdiKey, actions: Vec<FileAction>) -> Result<(), DaemonError> {
        let decisions = self.decisions(bdi, actions);
        self.log.advice(&decisions);
        Ok(())
    }

    /// Returns no change, because foreread does not set the bdi here.
    fn check_external_change(
        &mut self,
        _bdi: BdiKey,
    ) -> Result<Result<(), ExternalChange>, DaemonError> {
        Ok(Ok(()))
    }

    fn keep_directory(&mut self, _bdi: BdiKey, _keep: bool) {}

    fn restore(&mut self, _bdi: BdiKey) -> Result<(), DaemonError> {
        self.prefetcher.clear();
        for file in self.changed.values() {
            // A closed file needs no restoring.
            let _ = self.own_files.advise(file, FileAdvice::Normal);
        }
        Ok(())
    }

    /// Does nothing: only an A/B test calls this, and `run` has none.
    fn reapply(&mut self, _bdi: BdiKey) -> Result<(), DaemonError> {
        Ok(())
    }

    fn release(&mut self, bdi: BdiKey, leave: bool) -> Result<Released, DaemonError> {
        self.prefetcher.clear();
        self.maintain()?;
        let Some(storage) = self.bdis.get(bdi.0 as usize) else { return Ok(Released::default()) };
        let of = |file: &OpenFile| file.bdi.as_ref() == Some(&storage.bdi);
        let ours = self.changed.values().filter(|file| of(file));
        let restored = |file: &&OpenFile| self.own_files.advise(file, FileAdvice::Normal).is_ok();
        // Closed files are counted with the first bdi.
        let closed = std::mem::take(&mut self.closed);
        Ok(Released {
            changed: ours.clone().count() + closed,
            restored: if leave { 0 } else { ours.filter(restored).count() },
        })
    }

    fn note(&mut self, note: &LoopNote) {
        let text = describe(note, |bdi| self.bdi_name(bdi));
        self.log.note(&text);
    }
}

impl DaemonBackend for UnprivilegedBackend {
    fn log(&mut self) -> &mut DecisionLog {
        &mut self.log
    }

    fn bdi_name(&self, bdi: BdiKey) -> String {
        let bdi = self.bdis.get(bdi.0 as usize);
        bdi.map_or_else(String::new, |storage| storage.bdi.to_string())
    }

    fn follow(&mut self, pids: BTreeSet<u32>) {
        self.pids = pids;
    }
}
