//! All open files of one device.

use std::collections::BTreeMap;

use units::{Bytes, Nanos, PageSize, Pages};

use super::action::{ActionKind, FileAction};
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
use super::sequence::Sequences;
use super::stream::{Stream, StreamKind};
use super::totals::ReaderTotals;
use crate::tuning::controller as tuning;
use policy::{AccessEvent, EventKind, OpenFileId};

/// Decides for all open files of one device. It does no I/O and reads no clock.
#[derive(Clone, Debug, Default)]
pub struct BdiController {
    pub(super) bounds: Bounds,
    page: Bytes,
    pub(super) device: LearnedDevice,
    pub(super) climb: WindowSearch,
    pub(super) streams: BTreeMap<OpenFileId, Stream>,
    pub(super) primings: BTreeMap<FileKey, FilePriming>,
    pub(super) pace: PrimingController,
    /// How long readers of what is not primed waited before anything was, in seconds a second.
    pub(super) waits_elsewhere: f64,
    pub(super) domains: Domains,
    pub(super) scores: GainScores,
    pub(super) fault_waits: FaultWaits,
    /// Before this time nothing is predicted for runs: the budget of processor time is spent.
    pub(super) predict_at: Nanos,
    /// Pages that readers of open files which are gone came by.
    gone: u64,
    /// When the first thing was seen, and when it last decided.
    pub(super) begun: Option<Nanos>,
    last: Option<Nanos>,
    /// When readers began after a rest, and when something was last seen of them.
    awake: Option<(Nanos, Nanos)>,
    /// What was counted of all open files.
    pub(super) counts: ReadCounts,
    totals: ReaderTotals,
    /// The window for files that will be opened.
    pub(super) opens: Option<Pages>,
    pub(super) sequences: Sequences,
    closed_runs: ClosedRuns,
    /// Whether nothing is to be done at the moment.
    paused: bool,
}

impl BdiController {
    pub fn new(bounds: Bounds, page: PageSize) -> Self {
        Self { bounds, page: page.bytes(), ..Self::default() }
    }

    /// What it has learnt of the device.
    pub fn device(&self) -> &LearnedDevice {
        &self.device
    }

    /// What readers did since the controller began.
    pub fn totals(&self) -> ReaderTotals {
        self.totals
    }

    /// Open files by window.
    pub fn windows_in_use(&self) -> BTreeMap<Bytes, usize> {
        let mut files = BTreeMap::new();
        for facts in self.streams.values().filter_map(|stream| stream.facts) {
            let window = facts.page.get().saturating_mul(facts.window.get());
            *files.entry(Bytes::new(window)).or_default() += 1;
        }
        files
    }

    /// Predicted and measured gains so far.
    pub fn gains(&self) -> &GainScores {
        &self.scores
    }

    /// How priming goes, while something is primed.
    pub fn priming(&self) -> Option<super::pace::PrimingStats> {
        self.pace.told()
    }

    /// Pages from the disk that readers came by so far, as far as is known.
    pub fn progress(&self) -> u64 {
        self.streams.values().map(|stream| stream.ahead.progress()).sum::<u64>() + self.gone
    }

    /// The open files that it follows, of which it will want the facts.
    pub fn keys(&self) -> impl Iterator<Item = OpenFileId> {
        self.streams.keys().copied()
    }

    /// How many open files it follows.
    pub fn followed(&self) -> usize {
        self.streams.len()
    }

    /// The window that files should have which are opened from now on; the device's own unless
    /// there is one. Files that are read to their end within an interval can be helped only so.
    pub fn new_file_window(&self) -> Option<Pages> {
        self.opens
    }

    /// Has it look on without ordering anything, or go on: what it ordered meanwhile would not be
    /// done, and it would take that for read.
    pub fn pause(&mut self, paused: bool) {
        if paused == self.paused {
            return;
        }
        self.paused = paused;
        // What was ordered and not begun is forgotten, and what readers get now is another matter.
        for stream in self.streams.values_mut() {
            (stream.plan, stream.shrink, stream.answer) = (None, None, None);
            stream.runs.stop();
        }
        self.sequences.stop();
        self.pace.is_over();
        self.climb.abort_trial();
    }

    /// After how long it wants to decide again, where that is usually after this.
    pub fn next_delay(&self, interval: Nanos) -> Nanos {
        let now = self.last.unwrap_or_default();
        let at_work = |(since, last): (Nanos, Nanos)| {
            now.saturating_sub(last) <= tuning::IDLE_TIMEOUT
                && now.saturating_sub(since) >= tuning::EAGER_TIME
        };
        let shrinks = self.streams.values().any(|stream| stream.shrink.is_some());
        let calm = self.awake.is_some_and(at_work) && !shrinks;
        if calm { interval } else { interval.min(tuning::EAGER_INTERVAL) }
    }

    /// Whether accesses that find their pages in the cache can be sampled.
    pub fn set_samples(&mut self, samples: bool) {
        self.bounds.samples = samples;
    }

    /// Takes in one thing that happened to a reader of a file. An event without an open file is
    /// ignored, unless it is a sample of a file's first page.
    pub fn on_event(&mut self, file: FileKey, event: &AccessEvent) {
        if let EventKind::Access { .. } = event.kind {
            if event.index == 0 {
                self.sequences.passed(file, event.at);
            }
            // It shows how an open file is read that something else was seen of.
            let stream = event.file.and_then(|key| self.streams.get_mut(&key));
            if let Some(stream) = stream.filter(|stream| stream.file == file) {
                stream.on_event(event, self.page);
            }
            return;
        }
        let Some(key) = event.file else { return };
        let at = event.at;
        let rested = |(_, last): &(Nanos, Nanos)| at.saturating_sub(*last) > tuning::IDLE_TIMEOUT;
        let since = self.awake.filter(|awake| !rested(awake)).map_or(at, |(since, _)| since);
        self.awake = Some((since, at));
        if self.begun.is_none() {
            self.begun = Some(at);
            self.climb.begin(at);
        }
        if self.streams.len() >= tuning::MAX_OPEN_FILES && !self.streams.contains_key(&key) {
            // What is on its way to a smaller window must not stay so, nor what is answered.
            let settled = |stream: &Stream| stream.shrink.is_none() && stream.answer.is_none();
            let others = self.streams.iter().filter(|(_, stream)| settled(stream));
            let oldest = others.min_by_key(|(_, stream)| stream.seen);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.forget(oldest);
            }
        }
        let stream = self.streams.entry(key).or_default();
        if stream.file != file {
            // New, or a number that was used before.
            *stream = Stream::new(file, self.closed_runs.of(file));
        }
        stream.on_event(event, self.page);
        if event.index == 0 && matches!(event.kind, EventKind::Miss { .. }) {
            self.sequences.begun(file, key, at);
        }
        if let Some((start, pages)) = asked(event) {
            if self.primings.len() >= tuning::MAX_PRIMED_FILES && !self.primings.contains_key(&file)
            {
                let idle = self.primings.iter().find(|(_, one)| !one.is_at_work());
                if let Some(idle) = idle.map(|(file, _)| *file) {
                    self.primings.remove(&idle);
                }
            }
            self.primings.entry(file).or_default().touch(start, pages);
        }
    }

    /// Files whose accesses it wants to know, also those that find their pages in the cache.
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

    /// Open files of one of which it wants to know the directory, if there are any: the files of
    /// that may be read one after another. The one that was begun last comes first.
    pub fn wants_directory(&self, now: Nanos) -> Vec<OpenFileId> {
        let wanted = self.bounds.prefetch && self.bounds.features.files && !self.paused;
        if wanted { self.sequences.wants(now) } else { Vec::new() }
    }

    /// Whether it follows readers through the files of a directory.
    pub fn follows_files(&self) -> bool {
        self.sequences.is_at_work()
    }

    /// Takes in the files of the directory of an open file, in the orders in which they may be
    /// read; and what to read of them at once.
    pub fn on_directory(
        &mut self,
        key: OpenFileId,
        orders: Vec<Vec<FileKey>>,
        inputs: &Inputs,
    ) -> Option<FileAction> {
        if self.paused {
            return None;
        }
        self.sequences.list(key, orders, inputs.now, self.bounds.rotates);
        if !self.sequences.is_at_work() {
            return None;
        }
        self.climb.abort_trial();
        self.next_files(inputs)
    }

    /// The memory that windows of an open file may fill.
    pub(super) fn share(&self, inputs: &Inputs, file: &FileState) -> WindowShare {
        share_of(&self.domains, &self.bounds, inputs, file)
    }

    fn forget(&mut self, key: OpenFileId) {
        let Some(stream) = self.streams.remove(&key) else { return };
        self.gone += stream.ahead.progress();
        if let Some(facts) = stream.facts.filter(|_| !stream.mapped) {
            self.closed_runs
                .add(stream.file, stream.classifier.runs_before(facts.file_pages.get()));
        }
    }

    /// What to do after an interval. `facts` tells of an open file; `None` if it is none any more.
    pub fn decide(
        &mut self,
        inputs: &Inputs,
        mut facts: impl FnMut(OpenFileId) -> Option<FileState>,
    ) -> Vec<FileAction> {
        let now = inputs.now;
        // What was seen before the first interval counts from when it began.
        let since = self.last.replace(now).or(self.begun);
        let elapsed = since.map_or(Nanos::ZERO, |since| now.saturating_sub(since));
        self.device.learn(inputs.completions, elapsed);
        if elapsed == Nanos::ZERO {
            return Vec::new();
        }
        let mut closed = Vec::new();
        for (key, stream) in &mut self.streams {
            if now.saturating_sub(stream.seen) > tuning::FORGET_TIMEOUT {
                // The first window of one that was changed is known here alone.
                if !stream.is_changed() || facts(*key).is_none() {
                    closed.push(*key);
                }
            } else if now.saturating_sub(stream.seen) <= tuning::IDLE_TIMEOUT
                || stream.plan.is_some()
            {
                match facts(*key) {
                    Some(facts) => {
                        if stream.facts.is_none() {
                            self.sequences.met(*key, facts);
                        }
                        stream.look(facts, now, elapsed);
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
                actions.extend(self.plans(inputs));
            }
            actions.extend(self.next_files(inputs));
            if features.priming {
                actions.extend(self.prime(inputs, elapsed));
            }
        }
        self.streams.values_mut().for_each(Stream::begin);
        actions
    }

    /// What readers came by, who is active in which domain, and where pages were evicted unused.
    fn count(&mut self, now: Nanos, elapsed: Nanos) {
        for domain in self.domains.values_mut() {
            (domain.active, domain.thrashed, domain.places) = (0, 0, 0);
        }
        let files = self.sequences.interval(now) * self.sequences.typical().get();
        self.counts.progress += files;
        self.gone += files;
        // What one reader of a file has read ahead others come by, so who did cannot be told: there
        // the disk tells how much it was.
        let shared = self.shared();
        let (mut alone, mut together, mut page) = (0_u64, 0, Bytes::from_kib(4));
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            self.totals.add(&stream.totals(facts.page));
            let mut counts = stream.counts();
            if shared.contains(&stream.file) {
                together += std::mem::take(&mut counts.progress);
                page = facts.page;
            }
            alone += counts.progress;
            self.counts.add(&counts);
            let domain = self.domains.entry(facts.domain).or_default();
            domain.thrashed += stream.thrashed;
            domain.progress += counts.progress;
            domain.places += counts.forward + counts.elsewhere;
            let active =
                now.saturating_sub(stream.seen) <= tuning::IDLE_TIMEOUT && !stream.is_done();
            domain.active += u64::from(active && stream.reading() == StreamKind::Forward);
        }
        let read = self.device.now().get() / page.get().max(1);
        if together > 0 {
            self.counts.progress += read.saturating_sub(alone);
        }
        self.domains.values_mut().for_each(|domain| domain.interval(now, elapsed));
    }
}

/// The pages that were asked for, or that the kernel reads with those.
fn asked(event: &AccessEvent) -> Option<(u64, u64)> {
    match event.kind {
        EventKind::Miss { .. } => Some((event.index, event.request.get())),
        // Where neighbours are cached it takes random reads for a stream now and then.
        EventKind::Window { window, .. } => Some((window.start, window.size.get())),
        _ => None,
    }
}
