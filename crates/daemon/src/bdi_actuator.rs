//! Sets windows and prefetches on the open files of one bdi of a live kernel.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actuate::{
    ActionOutcome, ActuateFailure, Actuator, Directory, MissPrefetcher, NewFiles, Prefetcher,
};
use control::{ActionKind, ExternalChange, Released};
use host::{DevNo, Storage, page_size};
use observe::{Census, OpenFile, OpenFileFilter, OpenFileId};
use policy::{Extent, MissPrefetch};
use tunables::{BdiLease, find};
use units::{Bytes, Pages};

use crate::DaemonError;
use crate::config::LiveConfig;
use crate::decision::{ActionResult, DecisionLog, FileDecision, NewFileWindow};

/// Interval at which records of closed files are dropped.
const PRUNE_INTERVAL: Duration = Duration::from_secs(30);
/// Minimum time between two temporary windows of new files.
const MIN_NEW_FILE_INTERVAL: Duration = Duration::from_secs(1);

/// The result of an action that cannot be done if another process has changed the bdi.
pub(crate) type Attempt = Result<Result<(), ExternalChange>, DaemonError>;

/// An open file whose window was changed.
struct Changed {
    original: OpenFile,
    window: Bytes,
}

/// Acts on the open files of one bdi.
pub(crate) struct BdiActuator {
    actuator: Actuator,
    prefetcher: Prefetcher,
    /// Prefetches on misses, for all bdis.
    miss_prefetcher: Arc<MissPrefetcher>,
    lease: BdiLease,
    /// The window that foreread set on the bdi. Any other value was set by another process.
    new_files: NewFiles,
    new_files_set: Option<Instant>,
    changed: BTreeMap<OpenFileId, Changed>,
    /// Previous windows of open files whose window is temporarily 0, before it becomes smaller.
    shrinking: BTreeMap<OpenFileId, Bytes>,
    /// Number of changed open files that have been closed.
    closed: usize,
    /// Changed open files on which a process has given advice since, with their inodes.
    yielded: BTreeMap<OpenFileId, u64>,
    /// Open files for which a failure was reported.
    failures: BTreeSet<OpenFileId>,
    /// The last reported decisions to prefetch.
    prefetched: BTreeMap<OpenFileId, FileDecision>,
    /// Open files whose misses trigger a prefetch, with the last decision on each.
    on_miss: BTreeMap<OpenFileId, FileDecision>,
    pruned: Instant,
    /// The directory whose files are prefetched.
    directory: Option<Arc<Directory>>,
    /// The file system of which files are prefetched on their next miss.
    awaits_on: Option<DevNo>,
}

impl BdiActuator {
    pub fn new(
        config: &LiveConfig,
        storage: &Storage,
        census: &Census,
        miss_prefetcher: Arc<MissPrefetcher>,
    ) -> Result<Self, DaemonError> {
        let actuator = || Actuator::new(census.clone(), config.limits.clone());
        let prefetcher = Prefetcher::start(actuator())
            .map_err(|source| DaemonError::Thread { purpose: "prefetch", source })?;
        let lease = BdiLease::begin(&config.dirs, &config.root, storage, &config.guard)?;
        let own = lease.read(find("read_ahead")?)?.bytes().unwrap_or_default();
        Ok(Self {
            actuator: actuator(),
            prefetcher,
            miss_prefetcher,
            lease,
            new_files: NewFiles::new(own),
            new_files_set: None,
            changed: BTreeMap::new(),
            shrinking: BTreeMap::new(),
            closed: 0,
            yielded: BTreeMap::new(),
            failures: BTreeSet::new(),
            prefetched: BTreeMap::new(),
            on_miss: BTreeMap::new(),
            pruned: Instant::now(),
            directory: None,
            awaits_on: None,
        })
    }

    /// Returns an [`ExternalChange`] if another process has set the window of the bdi.
    pub fn check_external_change(&self) -> Attempt {
        let now = self.lease.read(find("read_ahead")?)?;
        let ours = self.new_files.window();
        Ok(if now == ours.into() {
            Ok(())
        } else {
            Err(ExternalChange(format!(
                "another process changed read_ahead_kb of {} from {ours} to {now}",
                self.lease.bdi()
            )))
        })
    }

    /// Sets the window of files that are opened from now on; `None` restores the bdi's own.
    pub fn set_new_file_window(&mut self, window: Option<Bytes>, log: &mut DecisionLog) -> Attempt {
        let is_recent = |at: Instant| at.elapsed() <= MIN_NEW_FILE_INTERVAL;
        if window.is_some() && self.new_files_set.is_some_and(is_recent) {
            return Ok(Ok(()));
        }
        let before = self.new_files.window();
        match self.new_files.set(&self.actuator, &mut self.lease, window) {
            Ok(false) => Ok(Ok(())),
            Ok(true) => {
                self.new_files_set = Some(Instant::now());
                let (after, own) = (self.new_files.window(), self.new_files.own());
                let bdi = self.lease.bdi().clone();
                log.new_file_window(&NewFileWindow { bdi, before, after, own });
                Ok(Ok(()))
            }
            Err(error) => external(error.into()),
        }
    }

    pub fn act(&mut self, decisions: Vec<FileDecision>, log: &mut DecisionLog) -> Attempt {
        let (reports, actions): (Vec<_>, Vec<_>) =
            decisions.into_iter().partition(|one| matches!(one.kind, ActionKind::Report { .. }));
        // First, because a measured gain may be the reason for a new window.
        for one in reports {
            log.decision(&one, ActionResult::Reported);
        }
        let (windows, others): (Vec<_>, Vec<_>) =
            actions.into_iter().partition(|one| matches!(one.kind, ActionKind::SetWindow(_)));
        if let Err(error) = self.set_windows(windows, log) {
            return external(error);
        }
        for one in others {
            match one.kind {
                ActionKind::PrefetchMisses(run) => {
                    self.prefetch_misses(one, run.map(MissPrefetch::of_runs), log);
                }
                ActionKind::PrefetchCalls(most) => {
                    self.prefetch_misses(one, Some(MissPrefetch::of_calls(most)), log);
                }
                ActionKind::AwaitFiles(_) => self.await_files(one, log),
                _ => self.prefetch(one, log),
            }
        }
        Ok(Ok(()))
    }

    /// Collects the results of prefetches and drops the records of closed files. `files` are the
    /// open files of the last sample.
    pub fn maintain(
        &mut self,
        files: &[OpenFile],
        log: &mut DecisionLog,
    ) -> Result<(), DaemonError> {
        let done = self.prefetcher.report();
        if let Some(error) = done.failed {
            return Err(error.into());
        }
        log.status.prefetched_bytes += done.asked.get();
        log.status.dropped_prefetches += done.dropped;
        for (file, missed) in done.missed {
            if let Some(decision) = self.prefetched.get(&file.id).cloned() {
                self.failed(&decision, &ActionOutcome::Failed(missed), log);
            }
        }
        if self.pruned.elapsed() > PRUNE_INTERVAL {
            self.pruned = Instant::now();
            self.prune(files)?;
        }
        Ok(())
    }

    fn prune(&mut self, files: &[OpenFile]) -> Result<(), DaemonError> {
        let known = self.changed.keys().chain(self.yielded.keys()).chain(&self.failures);
        let known = known.chain(self.prefetched.keys()).chain(self.on_miss.keys());
        let ids: BTreeSet<OpenFileId> = known.copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mapped = files.iter().filter(|file| file.is_only_mapped());
        let open: BTreeMap<OpenFileId, u64> =
            self.open_files(ids)?.iter().chain(mapped).map(|file| (file.id, file.inode)).collect();
        let is_open = |id: &OpenFileId, inode: u64| open.get(id) == Some(&inode);
        let before = self.changed.len();
        self.changed.retain(|id, one| is_open(id, one.original.inode));
        self.closed += before - self.changed.len();
        self.yielded.retain(|id, inode| is_open(id, *inode));
        self.prefetched.retain(|id, one| is_open(id, one.file.inode));
        self.on_miss.retain(|id, one| is_open(id, one.file.inode));
        self.failures.retain(|id| open.contains_key(id));
        self.shrinking.retain(|id, _| open.contains_key(id));
        Ok(())
    }

    fn open_files(&self, ids: BTreeSet<OpenFileId>) -> Result<Vec<OpenFile>, DaemonError> {
        let filter = OpenFileFilter { ids: Some(ids), ..Default::default() };
        Ok(self.actuator.open_files(&filter)?)
    }

    fn set_windows(
        &mut self,
        mut decisions: Vec<FileDecision>,
        log: &mut DecisionLog,
    ) -> Result<(), DaemonError> {
        decisions.retain(|one| !self.is_yielded(&one.file));
        let wanted: Vec<(&OpenFile, Bytes)> =
            decisions.iter().filter_map(|one| Some((&one.file, one.window()?))).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let exact = self.actuator.set_windows(&mut self.lease, &wanted)?;
        log.status.collateral_windows_restored += exact.collateral_restores.len() as u64;
        for (mut decision, outcome) in decisions.into_iter().zip(&exact.outcomes) {
            let Some(window) = decision.window().filter(|_| outcome.is_good()) else {
                self.failed(&decision, outcome, log);
                continue;
            };
            let file = &mut decision.file;
            let earlier = self.changed.remove(&file.id);
            let earlier = earlier.filter(|one| one.original.inode == file.inode);
            let original = earlier.map_or_else(|| self.untouched(file), |one| one.original);
            let first = original.window;
            self.changed.insert(file.id, Changed { original, window });
            // A temporary window of 0 is not reported.
            if window.is_zero() {
                self.shrinking.insert(file.id, file.window);
                continue;
            }
            file.window = self.shrinking.remove(&file.id).unwrap_or(file.window);
            log.decision(&decision, ActionResult::WindowSet { first });
        }
        Ok(())
    }

    /// Returns an open file that was not changed yet, as if the bdi had kept its own window.
    fn untouched(&self, file: &OpenFile) -> OpenFile {
        OpenFile { window: self.new_files.would_have(file), ..file.clone() }
    }

    /// Returns whether an open file has neither the window that foreread set nor its original one:
    /// its program, or another process, has given advice since.
    fn is_yielded(&mut self, file: &OpenFile) -> bool {
        if let Some(one) = self.changed.get(&file.id)
            && one.original.inode == file.inode
            && ![one.window, one.original.window].contains(&file.window)
        {
            self.changed.remove(&file.id);
            self.yielded.insert(file.id, file.inode);
            self.on_miss.remove(&file.id);
            self.miss_prefetcher.stop(&[file.id]);
        }
        self.yielded.get(&file.id) == Some(&file.inode)
    }

    fn prefetch(&mut self, decision: FileDecision, log: &mut DecisionLog) {
        let is_news = !decision.why.is_empty();
        if is_news {
            log.decision(&decision, ActionResult::Prefetching);
        }
        match &decision.kind {
            ActionKind::Prefetch(extents) if !extents.is_empty() => {
                let wanted = extents.iter().map(|extent| bytes_of(*extent));
                self.prefetcher.enqueue(decision.file.clone(), wanted.collect());
            }
            ActionKind::PrefetchFiles(files) => {
                let Some(directory) = &self.directory else { return };
                let wanted = files.iter().map(|it| (it.file.1, bytes_of(it.wanted())));
                self.prefetcher.enqueue_files(Arc::clone(directory), wanted.collect());
            }
            _ => return,
        }
        if is_news {
            self.prefetched.insert(decision.file.id, decision);
        }
    }

    /// Starts prefetching on the misses of an open file; stops it if `rule` is `None`.
    fn prefetch_misses(
        &mut self,
        decision: FileDecision,
        rule: Option<MissPrefetch>,
        log: &mut DecisionLog,
    ) {
        let file = &decision.file;
        // `check_yielded` detects new advice of other processes in every interval.
        let is_yielded = self.yielded.get(&file.id) == Some(&file.inode);
        let is_news = !decision.why.is_empty();
        let is_over = rule.is_none();
        let Some(rule) = rule.filter(|_| !is_yielded) else {
            self.miss_prefetcher.stop(&[file.id]);
            if self.on_miss.remove(&file.id).is_some() && is_over && is_news {
                log.decision(&decision, ActionResult::Prefetching);
            }
            return;
        };
        if is_news {
            log.decision(&decision, ActionResult::Prefetching);
        }
        self.miss_prefetcher.watch(file.clone(), rule);
        self.on_miss.insert(file.id, decision);
    }

    /// Prefetches files of the directory on their next miss; with no files, stops this.
    fn await_files(&mut self, decision: FileDecision, log: &mut DecisionLog) {
        self.ignore_files();
        let ActionKind::AwaitFiles(files) = &decision.kind else { return };
        let Some(directory) = self.directory.as_ref().filter(|_| !files.is_empty()) else { return };
        let wanted: Vec<_> =
            files.iter().map(|next| (next.file.1, bytes_of(next.wanted()))).collect();
        self.miss_prefetcher.await_files(directory, &wanted);
        self.awaits_on = Some(directory.file().device);
        log.decision(&decision, ActionResult::Prefetching);
        self.prefetched.insert(decision.file.id, decision);
    }

    fn ignore_files(&mut self) {
        if let Some(device) = self.awaits_on.take() {
            self.miss_prefetcher.ignore_files(device);
        }
    }

    /// Reports that prefetching on the misses of an open file has stopped because of a failure.
    pub fn on_miss_prefetch_failed(
        &mut self,
        file: &OpenFile,
        missed: ActuateFailure,
        log: &mut DecisionLog,
    ) {
        // It may have been started again meanwhile.
        self.miss_prefetcher.stop(&[file.id]);
        let awaited = || self.prefetched.get(&file.id).cloned();
        if let Some(decision) = self.on_miss.remove(&file.id).or_else(awaited) {
            self.failed(&decision, &ActionOutcome::Failed(missed), log);
        }
    }

    /// Stops prefetching on the misses of open files on which another process has given advice.
    pub fn check_yielded(&mut self, files: &[OpenFile]) {
        for file in files {
            if self.on_miss.contains_key(&file.id) {
                self.is_yielded(file);
            }
        }
    }

    fn stop_miss_prefetches(&mut self) {
        self.ignore_files();
        let files: Vec<OpenFileId> = self.on_miss.keys().copied().collect();
        self.miss_prefetcher.stop(&files);
    }

    /// Sets the directory whose files are prefetched.
    pub fn set_directory(&mut self, directory: Option<Directory>) {
        self.directory = directory.map(Arc::new);
    }

    pub fn directory(&self) -> Option<&Directory> {
        self.directory.as_deref()
    }

    /// Reports a failure, once for each open file. A file that was closed is not a failure.
    fn failed(&mut self, decision: &FileDecision, outcome: &ActionOutcome, log: &mut DecisionLog) {
        let is_closed = *outcome == ActionOutcome::Failed(ActuateFailure::Gone);
        if !is_closed && self.failures.insert(decision.file.id) {
            log.decision(decision, ActionResult::Failed(outcome.to_string()));
        }
    }

    /// Restores the windows of the bdi and of open files. Returns the number of open files.
    pub fn restore(&mut self) -> Result<usize, DaemonError> {
        self.prefetcher.clear();
        self.stop_miss_prefetches();
        let others: HashSet<OpenFileId> = self.changed.keys().copied().collect();
        if let Err(error) = self.new_files.end(&self.actuator, &mut self.lease, &others) {
            // If another process has changed the bdi, files opened since keep their windows.
            external(error.into())?.ok();
        }
        let restored = self.swap(|original, window| (window, original));
        // This is required even if another process has changed the bdi.
        self.finish_shrinking()?;
        // `reapply` skips these files: prefetching of runs is decided anew, with its window.
        let (on_miss, before) = (std::mem::take(&mut self.on_miss), self.changed.len());
        self.changed.retain(|id, _| !on_miss.get(id).is_some_and(prefetches_runs));
        self.closed += before - self.changed.len();
        restored
    }

    /// Sets the windows that open files had before they were restored.
    pub fn reapply(&mut self) -> Result<(), DaemonError> {
        // A window of 0 was only temporary.
        self.changed.retain(|_, one| !one.window.is_zero());
        self.swap(|original, window| (original, window)).map(drop)
    }

    /// Changes the windows of open files that foreread has changed, unless another process has
    /// changed them since. From the original and the set window, `direction` returns the window
    /// that a file must have and the window that it gets.
    fn swap(
        &mut self,
        direction: fn(Bytes, Bytes) -> (Bytes, Bytes),
    ) -> Result<usize, DaemonError> {
        if self.changed.is_empty() {
            return Ok(0);
        }
        let ids = Some(self.changed.keys().copied().collect());
        let filter = OpenFileFilter { ids, ..OpenFileFilter::on_bdi(self.lease.bdi()) };
        let now = self.actuator.open_files(&filter)?;
        let wanted: Vec<(&OpenFile, Bytes)> = now
            .iter()
            .filter_map(|file| {
                let one = self.changed.get(&file.id)?;
                let (from, to) = direction(one.original.window, one.window);
                let ours = one.original.inode == file.inode && file.window == from;
                ours.then_some((file, to))
            })
            .collect();
        match self.actuator.set_windows(&mut self.lease, &wanted) {
            Ok(exact) => Ok(exact.outcomes.iter().filter(|outcome| outcome.is_good()).count()),
            Err(error) => external(error.into())?.map_or(Ok(0), |()| Ok(0)),
        }
    }

    /// Sets the bdi's window on open files that have a temporary window of 0 or the window for
    /// prefetching on misses, whichever process has changed the bdi.
    fn finish_shrinking(&self) -> Result<(), DaemonError> {
        let passing = |id: &OpenFileId, window: Bytes| {
            window.is_zero() || self.on_miss.get(id).is_some_and(prefetches_runs)
        };
        let passing = self.changed.iter().filter(|(id, one)| passing(id, one.window));
        let ids: BTreeSet<OpenFileId> = passing.map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        for file in self.open_files(ids)? {
            let set = self.changed.get(&file.id).map(|one| one.window);
            if file.window.is_zero() || set == Some(file.window) {
                self.actuator.refresh(&file)?;
            }
        }
        Ok(())
    }

    /// Restores the bdi and, unless `leave` is true, all windows.
    pub fn release(mut self, leave: bool) -> Result<Released, DaemonError> {
        self.stop_miss_prefetches();
        let restored = if leave { self.finish_shrinking().map(|()| 0) } else { self.restore() };
        let changed = self.changed.len() + self.closed;
        // The bdi is restored even if open files could not be.
        self.lease.restore()?;
        Ok(Released { changed, restored: restored? })
    }
}

fn external(error: DaemonError) -> Attempt {
    if error.is_external_change() { Ok(Err(ExternalChange(error.to_string()))) } else { Err(error) }
}

/// Returns whether a decision prefetches runs on misses: the open file has a window of one page.
fn prefetches_runs(decision: &FileDecision) -> bool {
    matches!(decision.kind, ActionKind::PrefetchMisses(_))
}

/// Returns the offset and the length of an extent, in bytes.
pub(crate) fn bytes_of(extent: Extent) -> (Bytes, Bytes) {
    let start = Pages::new(extent.start.get()).to_bytes(page_size());
    (start, extent.pages.to_bytes(page_size()))
}
