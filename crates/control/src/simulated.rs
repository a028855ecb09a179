//! `foreread auto` on a simulated Linux 6.18: the kernel's own read-ahead, and a controller that
//! observes it through probes and acts from user space.
//!
//! It is a back end of the same loop as a live kernel. The controller receives only what the
//! kernel's tracepoints report, decides in intervals, and uses only what a stock kernel offers:
//! windows of open files, and `readahead(2)` with its limit.

mod finder;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;

use policy::algorithm::linux_6_18::Linux618;
use policy::cache::PAGE;
use policy::{
    AccessEvent, Advice, Cache, Call, DeviceCompletions, Entry, EventKind, Eviction, Extent,
    FileId, Folio, MissPrefetch, OpenFileId, Page, Parameter, Policy, PolicyStats, StreamId,
    TickContext, Touch, TouchOutcome,
};
use units::text::SettingError;
use units::{Bytes, Nanos, Pages};

use crate::action::{ActionKind, DirectoryQuery, FileAction, NextFile};
use crate::control_loop::{
    ActionSink, BdiKey, BdiSample, ControlLoop, EventSource, ExternalChange, Listing, LoopConfig,
    LoopNote, LoopSample, Released,
};
use crate::controller::BdiController;
use crate::inputs::{Bounds, Features, FileKey, FileState, MemoryInputs, SampledFiles};
use crate::probed::{Probed, event};
use crate::tuning::Tuning;
use finder::SimulatedFinder;

/// Parameters besides the thresholds.
const OWN_PARAMETERS: &[Parameter] = &[
    Parameter { name: "most", summary: "the largest window", default: "8M" },
    Parameter { name: "interval", summary: "milliseconds between decisions", default: "100" },
    Parameter { name: "reaction", summary: "microseconds to answer a miss", default: "50" },
    Parameter {
        name: "dilation",
        summary: "how many times slower auto sees the disk",
        default: "1",
    },
    Parameter { name: "samples", summary: "on: samples accesses to open files", default: "off" },
    Parameter { name: "prefetch", summary: "on: also prefetch", default: "on" },
    Parameter { name: "streams", summary: "on: windows of streams", default: "on" },
    Parameter { name: "mappings", summary: "on: windows of random mappings", default: "on" },
    Parameter { name: "misses", summary: "on: prefetching after a miss", default: "on" },
    Parameter { name: "trends", summary: "on: prefetching along trends", default: "on" },
    Parameter { name: "files", summary: "on: prefetching of small files", default: "on" },
    Parameter { name: "priming", summary: "on: priming", default: "on" },
    Parameter { name: "what_if", summary: "on: decisions by prediction", default: "on" },
    Parameter { name: "trials", summary: "on: harmful actions are reverted", default: "on" },
];

/// All parameters: those above, and one for each threshold.
const PARAMETERS: [Parameter; OWN_PARAMETERS.len() + Tuning::PARAMETERS.len()] = {
    let mut all = [OWN_PARAMETERS[0]; OWN_PARAMETERS.len() + Tuning::PARAMETERS.len()];
    let (own, thresholds) = all.split_at_mut(OWN_PARAMETERS.len());
    own.copy_from_slice(OWN_PARAMETERS);
    thresholds.copy_from_slice(Tuning::PARAMETERS);
    all
};

/// The registry entry of this algorithm.
pub const ENTRY: Entry = Entry {
    name: "auto",
    summary: "Linux 6.18 with `foreread auto`: windows and prefetching from outside",
    source: "this project",
    parameters: &PARAMETERS,
    build: |args| {
        let bounds = Bounds {
            most: Pages::new(args.pages("most")?),
            prefetch: args.flag("prefetch")?,
            samples: true,
            features: Features {
                streams: args.flag("streams")?,
                mappings: args.flag("mappings")?,
                misses: args.flag("misses")?,
                trends: args.flag("trends")?,
                files: args.flag("files")?,
                priming: args.flag("priming")?,
                what_if: args.flag("what_if")?,
                trials: args.flag("trials")?,
            },
            tuning: Tuning::from_args(args)?,
            ..Bounds::default()
        };
        let interval = Nanos::from_millis(args.count("interval", 1, 60_000)?);
        let reaction = Nanos::from_micros(args.count("reaction", 0, 1_000_000)?);
        let dilation = args.parsed("dilation", |key, text| {
            let factor = text.parse().ok().filter(|factor| (0.001..=1000.0).contains(factor));
            factor.ok_or_else(|| SettingError::invalid(key, text, "must be 0.001 to 1000"))
        })?;
        let auto = SimulatedAuto::new(bounds, interval, reaction);
        let mut auto = auto.with_dilation(dilation);
        auto.machine.samples_open_files = args.flag("samples")?;
        Ok(Box::new(auto))
    },
};

/// The only bdi of the simulation.
const BDI: BdiKey = BdiKey(0);
/// Number of decisions whose text is kept, starting with the first.
const MAX_DECISIONS_KEPT: usize = 512;

/// Linux 6.18 controlled by `auto`; see the module documentation.
#[derive(Clone, Debug)]
pub struct SimulatedAuto {
    control: ControlLoop,
    machine: ControlledKernel,
    interval: Nanos,
    next_step: Nanos,
}

impl SimulatedAuto {
    /// Creates a kernel without open files, and a controller within these bounds.
    pub fn new(bounds: Bounds, interval: Nanos, reaction: Nanos) -> Self {
        let control = ControlLoop::new(LoopConfig {
            dry_run: false,
            new_files: false,
            leave: false,
            ab_test: None,
            page: PAGE,
            tuning: bounds.tuning,
        });
        let machine = ControlledKernel {
            kernel: Linux618::new(),
            bounds,
            reaction,
            dilation: 1.0,
            samples_open_files: false,
            sampled: BTreeSet::new(),
            events: Vec::new(),
            completed: DeviceCompletions::default(),
            miss_prefetches: BTreeMap::new(),
            awaited: BTreeMap::new(),
            due: VecDeque::new(),
            files: BTreeMap::new(),
            by_file: BTreeMap::new(),
            only_mapped: BTreeSet::new(),
            finder: SimulatedFinder::default(),
            policy_stats: PolicyStats::default(),
        };
        // Like a live loop that has sampled once and seen no reader.
        let next_step = BdiController::new(bounds, PAGE).next_delay(interval);
        Self { control, machine, interval, next_step }
    }

    /// Makes time pass faster for the controller by this factor, as on a virtual disk that is
    /// slower than the model that is simulated.
    #[must_use]
    pub fn with_dilation(mut self, dilation: f64) -> Self {
        self.next_step = self.next_step.scaled(1.0 / dilation);
        self.machine.reaction = self.machine.reaction.scaled(1.0 / dilation);
        self.machine.dilation = dilation;
        self
    }
}

/// The simulated kernel, and the state of the actions on it.
#[derive(Clone, Debug)]
struct ControlledKernel {
    kernel: Linux618,
    bounds: Bounds,
    /// The time from a miss to the prefetch of the rest of its run.
    reaction: Nanos,
    /// Factor by which time passes faster for the controller than in the simulation.
    dilation: f64,
    /// Whether open files are sampled as live, and not only the next files of a directory. The
    /// published results of synthetic workloads are without these samples.
    samples_open_files: bool,
    /// Files whose accesses are sampled, open or not.
    sampled: BTreeSet<FileKey>,
    /// Events that the tracepoints have reported since the last step.
    events: Vec<(FileKey, AccessEvent)>,
    /// Completions of the device up to the last step.
    completed: DeviceCompletions,
    miss_prefetches: BTreeMap<StreamId, MissPrefetch>,
    /// Files that are prefetched on their next miss, with their pages.
    awaited: BTreeMap<FileKey, Extent>,
    /// Pending prefetches after misses, in order of the time at which they are due.
    due: VecDeque<(Nanos, StreamId, Extent)>,
    files: BTreeMap<StreamId, FileId>,
    /// An open file through which to prefetch each file.
    by_file: BTreeMap<FileId, StreamId>,
    /// Open files without a descriptor.
    only_mapped: BTreeSet<StreamId>,
    finder: SimulatedFinder,
    policy_stats: PolicyStats,
}

fn open_file(stream: StreamId) -> OpenFileId {
    OpenFileId::new(u64::from(stream.0))
}

fn stream(file: OpenFileId) -> Option<StreamId> {
    u32::try_from(file.get()).ok().map(StreamId)
}

fn file_key(file: FileId) -> FileKey {
    FileKey(0, u64::from(file.0))
}

impl ControlledKernel {
    fn report(&mut self, stream: StreamId, mut event: AccessEvent) {
        if let Some(file) = self.files.get(&stream) {
            event.file = Some(open_file(stream));
            event.at = event.at.scaled(self.dilation);
            self.events.push((file_key(*file), event));
        }
    }

    /// Reports an access, to cached pages or not, if accesses to its file are sampled.
    fn sample(&mut self, now: Nanos, stream: StreamId, extent: Extent, mapped: bool) {
        let file = self.files.get(&stream).map(|file| file_key(*file));
        if file.is_some_and(|file| self.sampled.contains(&file)) {
            let kind = EventKind::Access { mapped };
            self.report(stream, event(now, kind, extent.start, extent.pages));
        }
    }

    /// Runs `act` on the kernel for `touch`, and collects the events of its tracepoints.
    fn probe(
        &mut self,
        cache: &mut dyn Cache,
        touch: Touch,
        act: impl FnOnce(&mut Linux618, &mut Probed<'_>),
    ) {
        let (now, file_pages, mut events) = (cache.now(), cache.file_pages(), Vec::new());
        act(&mut self.kernel, &mut Probed::new(cache, &mut events, touch.page));
        for event in events {
            self.report(touch.stream, event);
            let missed = self.files.get(&touch.stream).filter(|_| event.kind.is_miss());
            let file = missed.map(|file| file_key(*file));
            if let Some(wanted) = file.and_then(|file| self.awaited.remove(&file)) {
                let wanted = wanted.before(Page::new(file_pages.get()));
                self.due.push_back((now + self.reaction, touch.stream, wanted));
            }
            if matches!(event.kind, EventKind::Miss { .. })
                && let Some(prefetch) = self.miss_prefetches.get_mut(&touch.stream)
                && let Some(rest) = prefetch.miss(Page::new(event.index), event.request, file_pages)
            {
                self.due.push_back((now + self.reaction, touch.stream, rest));
            }
        }
    }

    /// Carries out the prefetches after misses that are due.
    fn prefetch_misses(&mut self, ctx: &mut dyn TickContext) {
        let now = ctx.now();
        while let Some((at, stream, rest)) = self.due.front().copied()
            && at <= now
        {
            self.due.pop_front();
            ctx.with(stream, &mut |cache| {
                self.prefetch(cache, stream, &[rest]);
            });
        }
    }

    fn carry_out(&mut self, action: &FileAction, ctx: &mut dyn TickContext) {
        let Some(stream) = stream(action.file) else { return };
        if !action.why.is_empty() {
            self.keep_decision(ctx.now(), describe(action));
        }
        match &action.kind {
            ActionKind::SetWindow(pages) => self.kernel.set_window(stream, *pages),
            ActionKind::PrefetchFiles(files) => self.prefetch_files(files, ctx),
            ActionKind::PrefetchMisses(run) => {
                self.miss_prefetches.remove(&stream);
                if let Some(run) = run {
                    self.miss_prefetches.insert(stream, MissPrefetch::of_runs(*run));
                }
            }
            ActionKind::PrefetchCalls(most) => {
                self.miss_prefetches.insert(stream, MissPrefetch::of_calls(*most));
            }
            ActionKind::AwaitFiles(files) => {
                self.awaited = files.iter().map(|next| (next.file, next.wanted())).collect();
            }
            ActionKind::Report { .. } => {}
            ActionKind::Prefetch(extents) => ctx.with(stream, &mut |cache| {
                let read = self.prefetch(cache, stream, extents);
                if action.primes {
                    self.policy_stats.primed += read;
                }
            }),
        }
    }

    fn keep_decision(&mut self, now: Nanos, text: String) {
        if self.policy_stats.decisions.len() < MAX_DECISIONS_KEPT {
            self.policy_stats.decisions.push((now, text));
        }
    }

    /// Prefetches files that need not be open yet: the simulation has numbered them already.
    fn prefetch_files(&mut self, files: &[NextFile], ctx: &mut dyn TickContext) {
        for next in files {
            let is_it = |file: &FileId| file_key(*file) == next.file;
            let stream = self.by_file.get(&FileId(next.file.1 as u32)).copied();
            let Some(stream) = stream.filter(|stream| self.files.get(stream).is_some_and(is_it))
            else {
                continue;
            };
            ctx.with(stream, &mut |cache| {
                let wanted = next.wanted().before(Page::new(cache.file_pages().get()));
                self.prefetch(cache, stream, &[wanted]);
            });
        }
    }

    /// Prefetches these pages; returns how many of them were not cached.
    fn prefetch(&mut self, cache: &mut dyn Cache, stream: StreamId, extents: &[Extent]) -> Pages {
        // The kernel truncates a call to this size.
        let window = self.kernel.state(stream).map_or(Pages::ZERO, |state| state.0);
        let piece = cache.limits().max_request.max(window).max(Pages::new(1));
        let mut unreported = Vec::new();
        let mut probed = Probed::new(cache, &mut unreported, Page::FIRST);
        for extent in extents {
            let mut at = extent.start;
            while at < extent.end() {
                let pages = piece.min(extent.end().since(at));
                let extent = Extent::new(at, pages);
                self.kernel.advise(&mut probed, stream, Advice::WillNeed(extent));
                at = extent.end();
            }
        }
        probed.read
    }
}

fn describe(action: &FileAction) -> String {
    let (file, why) = (action.file.get(), &action.why);
    match &action.kind {
        ActionKind::SetWindow(window) => format!("{file}: window {window}: {why}"),
        ActionKind::Prefetch(extents) => {
            let pages: Pages = extents.iter().map(|extent| extent.pages).sum();
            format!("{file}: prefetches {pages}: {why}")
        }
        ActionKind::PrefetchFiles(files) => {
            format!("{file}: prefetches {} files: {why}", files.len())
        }
        ActionKind::AwaitFiles(files) => {
            format!("{file}: prefetches each of {} files on its next miss: {why}", files.len())
        }
        ActionKind::Report { .. } => format!("{file}: {why}"),
        ActionKind::PrefetchCalls(_) => format!("{file}: prefetches its calls on a miss: {why}"),
        ActionKind::PrefetchMisses(run) => {
            let run = run.map_or(0, Pages::get);
            format!("{file}: prefetches runs of {run} pages on a miss: {why}")
        }
    }
}

/// The simulated kernel as the back end of the loop.
struct SimulatedBackend<'a> {
    machine: &'a mut ControlledKernel,
    ctx: &'a mut dyn TickContext,
}

impl EventSource for SimulatedBackend<'_> {
    type Error = Infallible;

    fn now(&self) -> Nanos {
        self.ctx.now().scaled(self.machine.dilation)
    }

    fn poll(&mut self) -> bool {
        let mut completed = self.ctx.completions();
        completed.time = completed.time.scaled(self.machine.dilation);
        let before = std::mem::replace(&mut self.machine.completed, completed);
        before != completed || !self.machine.events.is_empty()
    }

    fn sample(
        &mut self,
        _followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, Infallible> {
        let bdi = BdiSample {
            bounds: Bounds { rotates: self.ctx.rotates(), ..self.machine.bounds },
            completions: self.machine.completed,
            events: std::mem::take(&mut self.machine.events),
        };
        // The simulated cache is the only cache of these readers.
        let memory = MemoryInputs {
            caches: BTreeMap::from([(0, self.ctx.memory().available.to_bytes(PAGE))]),
            limited: BTreeSet::from([0]),
            ..MemoryInputs::default()
        };
        Ok(LoopSample { now: self.now(), bdis: BTreeMap::from([(BDI, bdi)]), memory })
    }

    fn file_state(&mut self, _bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        let stream = stream(file)?;
        let mut pages = None;
        self.ctx.with(stream, &mut |cache| pages = Some(cache.file_pages()));
        let (window, position, random) = self.machine.kernel.state(stream)?;
        Some(FileState {
            file_pages: pages?,
            window,
            position,
            unmanaged: false,
            random,
            only_mapped: self.machine.only_mapped.contains(&stream),
            prime: false,
            domain: 0,
            page: PAGE.bytes(),
        })
    }

    fn sample_accesses(&mut self, _bdi: BdiKey, files: &SampledFiles) {
        let machine = &mut self.machine;
        machine.sampled = files.next.iter().copied().collect();
        if machine.samples_open_files {
            let open = files.open.iter().filter_map(|key| machine.files.get(&stream(*key)?));
            machine.sampled.extend(open.map(|file| file_key(*file)));
        }
    }

    fn find_directory(&mut self, _bdi: BdiKey, query: &DirectoryQuery) -> Option<Listing> {
        if let Some(tree) = self.ctx.file_tree() {
            let read = |key: OpenFileId| Some((key, *self.machine.files.get(&stream(key)?)?));
            let open = query.files.iter().find_map(|key| read(*key));
            let wanted = open.map(|(key, file)| (key, file, query.with_next));
            let DeviceCompletions { reads, time, .. } = self.ctx.completions();
            let read_time = time.scaled(1.0 / reads.max(1) as f64);
            return self.machine.finder.find(tree, wanted, self.ctx.now(), read_time);
        }
        // All files are in one directory, which lists them in order of creation.
        let files = self.machine.by_file.keys().map(|file| file_key(*file));
        let orders = || vec![files.clone().collect(), files.rev().collect()];
        query.files.first().map(|file| Listing { file: *file, orders: orders() })
    }
}

impl ActionSink for SimulatedBackend<'_> {
    fn maintain(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn act(
        &mut self,
        _bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, Infallible> {
        actions.iter().for_each(|action| self.machine.carry_out(action, self.ctx));
        Ok(Ok(()))
    }

    fn check_external_change(
        &mut self,
        _bdi: BdiKey,
    ) -> Result<Result<(), ExternalChange>, Infallible> {
        Ok(Ok(()))
    }

    // A simulation ends without restoring anything, and is never a dry run or an A/B test.

    fn advise(&mut self, _bdi: BdiKey, _actions: Vec<FileAction>) -> Result<(), Infallible> {
        Ok(())
    }

    fn keep_directory(&mut self, _bdi: BdiKey, _keep: bool) {}

    fn restore(&mut self, _bdi: BdiKey) -> Result<(), Infallible> {
        Ok(())
    }

    fn reapply(&mut self, _bdi: BdiKey) -> Result<(), Infallible> {
        Ok(())
    }

    fn release(&mut self, _bdi: BdiKey, _leave: bool) -> Result<Released, Infallible> {
        Ok(Released::default())
    }

    fn note(&mut self, _note: &LoopNote) {}
}

impl Policy for SimulatedAuto {
    fn open(&mut self, cache: &mut dyn Cache, stream: StreamId, file: FileId) {
        self.machine.bounds.max_request = cache.limits().max_request;
        self.machine.files.insert(stream, file);
        self.machine.by_file.insert(file, stream);
        self.machine.kernel.open(cache, stream, file);
    }

    fn descriptor_closed(&mut self, stream: StreamId) {
        self.machine.only_mapped.insert(stream);
    }

    fn begin(&mut self, cache: &mut dyn Cache, stream: StreamId, call: Call) {
        let first = call.offset.to_pages_floor(PAGE);
        let end = Bytes::new(call.offset.get().saturating_add(call.length.get()));
        let extent = Extent::new(Page::new(first.get()), end.to_pages_ceil(PAGE) - first);
        self.machine.sample(cache.now(), stream, extent, false);
        self.machine.kernel.begin(cache, stream, call);
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        self.machine.probe(cache, touch, |kernel, cache| kernel.miss(cache, touch));
    }

    fn mark(&mut self, cache: &mut dyn Cache, touch: Touch, folio: Folio) {
        self.machine.probe(cache, touch, |kernel, cache| kernel.mark(cache, touch, folio));
    }

    fn access(&mut self, cache: &mut dyn Cache, touch: Touch, outcome: TouchOutcome) {
        self.machine.kernel.access(cache, touch, outcome);
    }

    fn fault(&mut self, now: Nanos, stream: StreamId, extent: Extent) {
        self.machine.sample(now, stream, extent, true);
    }

    fn fault_hits(&mut self, stream: StreamId, pages: Pages, around: bool) {
        self.machine.kernel.fault_hits(stream, pages, around);
    }

    fn end(&mut self, stream: StreamId, position: Bytes) {
        self.machine.kernel.end(stream, position);
    }

    fn wants_call_events(&self) -> bool {
        self.machine.kernel.wants_call_events() || !self.machine.sampled.is_empty()
    }

    fn completes_per_window(&self) -> bool {
        self.machine.kernel.completes_per_window()
    }

    fn evict(&mut self, file: FileId, page: Page, used: bool) -> Eviction {
        self.machine.kernel.evict(file, page, used)
    }

    fn advise(&mut self, cache: &mut dyn Cache, stream: StreamId, advice: Advice) {
        self.machine.kernel.advise(cache, stream, advice);
    }

    fn close(&mut self, cache: &mut dyn Cache, stream: StreamId) {
        self.machine.files.remove(&stream);
        self.machine.only_mapped.remove(&stream);
        self.machine.miss_prefetches.remove(&stream);
        self.machine.kernel.close(cache, stream);
    }

    fn stalled(&mut self, now: Nanos, stream: StreamId, wait: Nanos) {
        let kind = EventKind::Stall { wait: wait.scaled(self.machine.dilation) };
        self.machine.report(stream, event(now, kind, Page::FIRST, Pages::ZERO));
    }

    fn next_tick(&self) -> Option<Nanos> {
        let due = self.machine.due.front().map_or(Nanos::MAX, |(at, ..)| *at);
        Some(due.min(self.next_step))
    }

    fn tick(&mut self, ctx: &mut dyn TickContext) {
        self.machine.prefetch_misses(ctx);
        if ctx.now() >= self.next_step {
            let mut backend = SimulatedBackend { machine: &mut self.machine, ctx };
            let Ok(()) = self.control.step(&mut backend);
            let delay = self.control.next_delay(self.interval, Nanos::ZERO);
            self.next_step = ctx.now() + delay.scaled(1.0 / self.machine.dilation);
        }
    }

    fn stats(&self) -> PolicyStats {
        self.machine.policy_stats.clone()
    }
}
