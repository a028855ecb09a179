//! The controller of all open files of one device.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Bytes, Nanos, PageSize, Pages};

use super::action::{ActionKind, DirectoryQuery, FileAction};
use super::backoff::Backoff;
use super::climb::WindowSearch;
use super::closed_runs::ClosedRuns;
use super::device::LearnedDevice;
use super::fault_waits::FaultWaits;
use super::gain::GainScores;
use super::inputs::{Bounds, FileKey, FileState, Inputs, SampledFiles};
use super::memory::{Domains, WindowShare, share_of};
use super::pace::PrimingController;
use super::prime::FilePriming;
use super::rates::ReadCounts;
use super::sequence::{DeviceRate, Sequences};
use super::siblings::Siblings;
use super::stream::{Stream, StreamKind};
use super::totals::ReaderTotals;
use crate::tuning::Tuning;
use policy::{AccessEvent, EventKind, OpenFileId};

/// Decides on actions for all open files of one device. Does no I/O and reads no clock.
#[derive(Clone, Debug, Default)]
pub struct BdiController {
    pub(super) bounds: Bounds,
    pub(super) page: Bytes,
    pub(super) device: LearnedDevice,
    pub(super) climb: WindowSearch,
    pub(super) streams: BTreeMap<OpenFileId, Stream>,
    pub(super) primings: BTreeMap<FileKey, FilePriming>,
    pub(super) pace: PrimingController,
    /// Waits that priming cannot shorten, in seconds per second, averaged while nothing is primed.
    pub(super) waits_elsewhere: f64,
    pub(super) domains: Domains,
    pub(super) scores: GainScores,
    pub(super) fault_waits: FaultWaits,
    /// The pause of trials that prefetch the gaps between the pieces of a trend.
    pub(super) gap_trials: Backoff,
    /// Before this time, runs get no predictions: the budget of processor time is spent.
    pub(super) predict_at: Nanos,
    /// Pages reached through open files that are no longer followed, and in sequences of files.
    past_progress: u64,
    /// The times of the first event and of the last decision.
    pub(super) begun: Option<Nanos>,
    last: Option<Nanos>,
    /// The times of the first event after an idle period and of the latest event.
    awake: Option<(Nanos, Nanos)>,
    /// Cumulative counts of all open files.
    pub(super) counts: ReadCounts,
    totals: ReaderTotals,
    /// The window for files opened from now on; `None` for that of the device.
    pub(super) new_file_window: Option<Pages>,
    pub(super) sequences: Sequences,
    pub(super) siblings: Siblings,
    closed_runs: ClosedRuns,
    /// True while the controller only observes.
    paused: bool,
    pub(super) tuning: Arc<Tuning>,
}

impl BdiController {
    pub fn new(bounds: Bounds, page: PageSize) -> Self {
        let tuning = Arc::new(bounds.tuning);
        Self {
            bounds,
            page: page.bytes(),
            climb: WindowSearch::new(Arc::clone(&tuning)),
            pace: PrimingController::new(Arc::clone(&tuning)),
            scores: GainScores::new(Arc::clone(&tuning)),
            sequences: Sequences::new(Arc::clone(&tuning)),
            siblings: Siblings::new(Arc::clone(&tuning)),
            closed_runs: ClosedRuns::new(Arc::clone(&tuning)),
            tuning,
            ..Self::default()
        }
    }

    pub fn device(&self) -> &LearnedDevice {
        &self.device
    }

    /// Returns the totals of all readers since the controller started.
    pub fn totals(&self) -> ReaderTotals {
        self.totals
    }

    /// Returns the number of open files by window size.
    pub fn windows_in_use(&self) -> BTreeMap<Bytes, usize> {
        let mut files = BTreeMap::new();
        for facts in self.streams.values().filter_map(|stream| stream.facts) {
            let window = facts.page.get().saturating_mul(facts.window.get());
            *files.entry(Bytes::new(window)).or_default() += 1;
        }
        files
    }

    /// Returns the scores of predictions against measured gains so far.
    pub fn gains(&self) -> &GainScores {
        &self.scores
    }

    /// Returns the state of priming; `None` while nothing is primed.
    pub fn priming(&self) -> Option<super::pace::PrimingStats> {
        self.pace.stats()
    }

    /// Returns the number of pages from the disk that readers have reached so far, an estimate.
    pub fn progress(&self) -> u64 {
        self.streams.values().map(|stream| stream.ahead.progress()).sum::<u64>()
            + self.past_progress
    }

    /// Returns the open files that the controller follows, whose states it will request.
    pub fn keys(&self) -> impl Iterator<Item = OpenFileId> {
        self.streams.keys().copied()
    }

    /// Returns the number of open files that the controller follows.
    pub fn followed(&self) -> usize {
        self.streams.len()
    }

    /// Returns the window for files opened from now on; `None` for that of the device. No other
    /// action helps files that are read to the end within an interval.
    pub fn new_file_window(&self) -> Option<Pages> {
        self.new_file_window
    }

    /// Pauses or resumes decisions. While paused, the controller only observes: its actions would
    /// not be carried out, and it would count their pages as read.
    pub fn pause(&mut self, paused: bool) {
        if paused == self.paused {
            return;
        }
        self.paused = paused;
        // Pending actions are dropped, and rates measured so far are no longer comparable.
        for stream in self.streams.values_mut() {
            (stream.plan, stream.shrink) = (None, None);
            (stream.answer, stream.calls) = (None, None);
            stream.runs.stop();
        }
        self.sequences.stop();
        self.siblings.stop();
        self.pace.is_over();
        self.climb.abort_trial();
    }

    /// Returns the delay before the next decision: `interval` during steady reads, otherwise less.
    pub fn next_delay(&self, interval: Nanos) -> Nanos {
        let now = self.last.unwrap_or_default();
        let at_work = |(since, last): (Nanos, Nanos)| {
            now.saturating_sub(last) <= self.tuning.idle_timeout
                && now.saturating_sub(since) >= self.tuning.idle_timeout
        };
        let shrinks = self.streams.values().any(|stream| stream.shrink.is_some());
        let calm = self.awake.is_some_and(at_work) && !shrinks;
        if calm { interval } else { interval.min(self.tuning.eager_interval) }
    }

    /// Sets whether accesses to cached pages can be sampled.
    pub fn set_samples(&mut self, samples: bool) {
        self.bounds.samples = samples;
    }

    /// Processes one event of a reader of a file. An event without an open file is ignored, unless
    /// it is an access sample.
    pub fn on_event(&mut self, file: FileKey, event: &AccessEvent) {
        if let EventKind::Access { .. } = event.kind {
            self.sequences.on_sample(file, event.at);
            // Samples only add to open files that are already followed.
            let stream = event.file.and_then(|key| self.streams.get_mut(&key));
            if let Some(stream) = stream.filter(|stream| stream.file == file) {
                stream.on_event(event, self.page);
            }
            return;
        }
        let Some(key) = event.file else { return };
        let at = event.at;
        let rested =
            |(_, last): &(Nanos, Nanos)| at.saturating_sub(*last) > self.tuning.idle_timeout;
        let since = self.awake.filter(|awake| !rested(awake)).map_or(at, |(since, _)| since);
        self.awake = Some((since, at));
        if self.begun.is_none() {
            self.begun = Some(at);
            self.climb.begin(at);
        }
        if self.streams.len() >= self.tuning.max_open_files() && !self.streams.contains_key(&key) {
            // Keep open files whose window still shrinks or whose misses trigger a prefetch.
            let settled = |stream: &Stream| {
                stream.shrink.is_none() && stream.answer.is_none() && stream.calls.is_none()
            };
            let others = self.streams.iter().filter(|(_, stream)| settled(stream));
            let oldest = others.min_by_key(|(_, stream)| stream.seen);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.forget(oldest);
            }
        }
        let stream = self
            .streams
            .entry(key)
            .or_insert_with(|| Stream::new(FileKey::default(), &[], &self.tuning));
        // A new open file, or one that reuses an earlier number.
        let is_new = stream.file != file;
        if is_new {
            *stream = Stream::new(file, self.closed_runs.of(file), &self.tuning);
        }
        stream.on_event(event, self.page);
        // Reads of a database table begin at its end, where the index is.
        if is_new || event.index == 0 && matches!(event.kind, EventKind::Miss { .. }) {
            self.sequences.on_file_begun(file, key, at);
        }
        if event.kind.is_miss() {
            self.siblings.on_miss(file);
        }
        if let Some((start, pages)) = requested_pages(event) {
            if self.primings.len() >= self.tuning.max_followed()
                && !self.primings.contains_key(&file)
            {
                let idle = self.primings.iter().find(|(_, one)| !one.is_at_work());
                if let Some(idle) = idle.map(|(file, _)| *file) {
                    self.primings.remove(&idle);
                }
            }
            let new = || FilePriming::new(Arc::clone(&self.tuning));
            let priming = self.primings.entry(file).or_insert_with(new);
            // A window that was changed reads pages that no reader may have requested. A page that
            // was read before and is missed again was evicted, probably with its neighbours.
            let is_miss = matches!(event.kind, EventKind::Miss { .. });
            if is_miss && !stream.is_changed() && !priming.has(start) {
                stream.classifier.record_join(start, priming.has(start.saturating_add(pages)));
            }
            priming.touch(start, pages);
        }
    }

    /// Returns the files whose accesses should be sampled, including accesses to cached pages.
    pub fn wants_samples(&self, now: Nanos) -> SampledFiles {
        if !self.bounds.prefetch || self.paused {
            return SampledFiles::default();
        }
        let wanted = self.streams.iter().filter(|(_, stream)| stream.wants_samples(now));
        SampledFiles {
            open: wanted.map(|(key, _)| *key).collect(),
            next: if self.bounds.samples { self.sequences.markers() } else { Vec::new() },
        }
    }

    /// Returns the directory that should be listed because its files may be read in sequence.
    pub fn wants_directory(&self, now: Nanos) -> DirectoryQuery {
        let may = self.bounds.prefetch && self.bounds.features.files && !self.paused;
        if may { self.sequences.wants(now, self.device_rate()) } else { DirectoryQuery::default() }
    }

    /// Returns whether the controller needs the directory that was listed last.
    pub fn follows_files(&self) -> bool {
        self.sequences.is_at_work() || self.siblings.is_at_work()
    }

    /// Processes the files of the directory of an open file, in each order in which they may be
    /// read. Returns the prefetch to start with, if any.
    pub fn on_directory(
        &mut self,
        key: OpenFileId,
        orders: Vec<Vec<FileKey>>,
        inputs: &Inputs,
    ) -> Option<FileAction> {
        if self.paused {
            return None;
        }
        let read = |file| self.primings.get(&file).map(FilePriming::touched_from_start);
        if let Some(files) = orders.first() {
            self.siblings.list(key, files, inputs.now);
        }
        self.sequences.list(key, orders, read, inputs.now, self.device_rate());
        if !self.sequences.is_at_work() {
            return None;
        }
        self.climb.abort_trial();
        self.next_files(inputs)
    }

    fn device_rate(&self) -> DeviceRate {
        DeviceRate { pages_per_second: self.pages_per_second(), rotates: self.bounds.rotates }
    }

    /// Returns the highest rate of the device so far, at least the lowest assumed one.
    pub(super) fn pages_per_second(&self) -> f64 {
        let rate = (self.device.rate().get() as f64).max(self.tuning.min_stream_rate.get());
        rate / self.page.get().max(1) as f64
    }

    /// Returns the share of memory for windows of an open file.
    pub(super) fn share(&self, inputs: &Inputs, file: &FileState) -> WindowShare {
        share_of(&self.domains, &self.bounds, inputs, file)
    }

    fn forget(&mut self, key: OpenFileId) {
        let Some(stream) = self.streams.remove(&key) else { return };
        self.past_progress += stream.ahead.progress();
        if let Some(facts) = stream.facts.filter(|_| !stream.mapped) {
            self.closed_runs
                .add(stream.file, stream.classifier.runs_before(facts.file_pages.get()));
        }
    }

    /// Returns the actions after an interval. `facts` returns the state of an open file; `None` if
    /// closed.
    pub fn decide(
        &mut self,
        inputs: &Inputs,
        mut facts: impl FnMut(OpenFileId) -> Option<FileState>,
    ) -> Vec<FileAction> {
        let now = inputs.now;
        // The first interval starts at the first event.
        let since = self.last.replace(now).or(self.begun);
        let elapsed = since.map_or(Nanos::ZERO, |since| now.saturating_sub(since));
        self.device.learn(inputs.completions, elapsed, &self.tuning);
        if elapsed == Nanos::ZERO {
            return Vec::new();
        }
        let mut closed = Vec::new();
        for (key, stream) in &mut self.streams {
            if now.saturating_sub(stream.seen) > self.tuning.forget_timeout {
                // Only this entry knows the original window of a changed open file.
                if !stream.is_changed() || facts(*key).is_none() {
                    closed.push(*key);
                }
            } else if !stream.is_idle(now) || stream.plan.is_some() {
                match facts(*key) {
                    Some(facts) => {
                        if stream.facts.is_none() {
                            self.sequences.on_open_file(*key, facts);
                        }
                        stream.observe(facts, now, elapsed);
                    }
                    None => closed.push(*key),
                }
            }
        }
        closed.into_iter().for_each(|key| self.forget(key));
        self.count(now, elapsed);
        if self.paused {
            self.streams.values_mut().for_each(Stream::begin);
            return Vec::new();
        }
        let mut actions = self.windows(inputs, elapsed);
        if actions.iter().any(|action| matches!(action.kind, ActionKind::SetWindow(_))) {
            self.pace.windows_changed();
        }
        let features = self.bounds.features;
        if self.bounds.prefetch {
            if features.trends {
                let plans = self.plans(inputs);
                plans.iter().for_each(|plan| self.count_prefetched(plan));
                actions.extend(plans);
            }
            actions.extend(self.next_files(inputs));
            if features.priming {
                actions.extend(self.prime(inputs, elapsed));
            }
        }
        self.streams.values_mut().for_each(Stream::begin);
        actions
    }

    /// Counts the pages of a prefetch as read: its reader will not miss them.
    fn count_prefetched(&mut self, action: &FileAction) {
        let ActionKind::Prefetch(extents) = &action.kind else { return };
        let file = self.streams.get(&action.file).map(|stream| stream.file);
        let Some(priming) = file.and_then(|file| self.primings.get_mut(&file)) else { return };
        extents.iter().for_each(|extent| priming.touch(extent.start.get(), extent.pages.get()));
    }

    /// Counts the progress of readers, and the active streams and thrashing of each memory domain.
    fn count(&mut self, now: Nanos, elapsed: Nanos) {
        for domain in self.domains.values_mut() {
            (domain.active, domain.thrashed, domain.places) = (0, 0, 0);
        }
        let read = self.device.now().get() / self.page.get().max(1);
        let files = self.sequences.interval(now, read);
        self.counts.progress += files;
        self.past_progress += files;
        // Readers of a shared file use pages that others have read ahead, so progress cannot be
        // attributed. It is derived from the bytes that the device has read.
        let shared = self.shared();
        let (mut alone, mut together) = (0_u64, 0);
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            self.totals.add(&stream.totals(facts.page));
            let mut counts = stream.counts();
            if shared.contains(&stream.file) {
                together += std::mem::take(&mut counts.progress);
            }
            alone += counts.progress;
            self.counts.add(&counts);
            let domain = self.domains.entry(facts.domain).or_default();
            domain.thrashed += stream.thrashed;
            domain.progress += counts.progress;
            domain.places += counts.forward + counts.elsewhere;
            let active = !stream.is_idle(now) && !stream.is_done();
            domain.active += u64::from(active && stream.reading() == StreamKind::Forward);
        }
        if together > 0 {
            self.counts.progress += read.saturating_sub(alone);
        }
        self.domains.values_mut().for_each(|domain| domain.interval(now, elapsed, &self.tuning));
    }
}

/// Returns the first page and the number of pages that a reader requested or a window covers.
fn requested_pages(event: &AccessEvent) -> Option<(u64, u64)> {
    match event.kind {
        EventKind::Miss { .. } => Some((event.index, event.request.get())),
        // The kernel sometimes takes random reads for a stream if their neighbours are cached.
        EventKind::Window { window, .. } => Some((window.start, window.size.get())),
        _ => None,
    }
}
