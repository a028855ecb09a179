//! One replay: the kernel's algorithm over a cache whose reads take time.

use std::collections::VecDeque;
use std::sync::Arc;

use policy::algorithm::linux_6_18::Linux618;
use policy::cache::{PAGE, fill};
use policy::{
    Advice, Cache, Call, DeviceLimits, Extent, FileId, Folio, Mapping, MissPrefetch, Page,
    PageTree, Policy, ReadWalk, StreamId, Submission, TouchOutcome, Trigger,
};
use units::{Bytes, Nanos, Pages};

use super::{Candidate, DeviceTimes, Extra, FileView, PastAccess, PredictedOutcome};
use crate::memory::WindowShare;
use crate::trend::{Trend, TrendPlan};
use crate::tuning::{SINGLE_PAGE, Tuning};

const STREAM: StreamId = StreamId(0);
/// A replayed trend is assumed to continue, so nothing is skipped.
const NO_LIMIT: Pages = Pages::new(u64::MAX);

/// The request queue of the device.
#[derive(Debug)]
struct Queue {
    times: DeviceTimes,
    /// Times at which each of the parallel slots becomes free, and the link.
    free: Vec<Nanos>,
    link: Nanos,
    /// End of the last request.
    end: Page,
}

impl Queue {
    fn new(times: DeviceTimes) -> Self {
        let free = vec![Nanos::ZERO; times.parallel.max(1)];
        Self { times, free, link: Nanos::ZERO, end: Page::new(u64::MAX) }
    }

    /// Submits a request at `now`; returns the time of its completion.
    fn request(&mut self, now: Nanos, extent: Extent) -> Nanos {
        let is_adjacent = extent.start == self.end;
        let fixed = if is_adjacent { self.times.adjacent } else { self.times.fixed };
        self.end = extent.end();
        let Some(place) = self.free.iter_mut().min() else { return now };
        let ready = now.max(*place) + fixed;
        let done = ready.max(self.link) + self.times.page * extent.pages.get();
        (*place, self.link) = (done, done);
        done
    }
}

/// The page cache of the file.
#[derive(Debug)]
struct ReplayCache {
    file: FileView,
    tree: PageTree,
    now: Nanos,
    /// Time from a submission until it reaches the device.
    delay: Nanos,
    queue: Queue,
    in_flight: Vec<(Extent, Nanos)>,
    /// Cached extents, in the order in which they were read.
    order: VecDeque<Extent>,
    read: Pages,
    reads: u64,
    evicted_unused: Pages,
    /// The last miss that the algorithm reported: its page, and the pages requested.
    missed: Option<(Page, Pages)>,
}

impl ReplayCache {
    fn ready_at(&self, extent: Extent) -> Option<Nanos> {
        let overlaps = |one: &Extent| one.start < extent.end() && extent.start < one.end();
        let later = self.in_flight.iter().filter(|(one, at)| *at > self.now && overlaps(one));
        later.map(|(_, at)| *at).max()
    }

    /// Evicts and unmaps the pages that were read first, until the others fit into the cache.
    fn evict(&mut self, mapping: &mut Mapping) {
        while self.tree.cached() > self.file.cache
            && let Some(oldest) = self.order.pop_front()
        {
            mapping.unmap(oldest);
            let mut page = oldest.start;
            while page < oldest.end() {
                let used = self.tree.is_used(page);
                let pages = self.tree.remove(page).map_or(Pages::new(1), |folio| folio.pages());
                if !used {
                    self.evicted_unused += pages.min(oldest.end().since(page));
                }
                page = page.plus(pages);
            }
        }
    }

    fn pass(&mut self, time: Nanos) {
        self.now += time;
        if self.in_flight.len() > 64 {
            let now = self.now;
            self.in_flight.retain(|(_, at)| *at > now);
        }
    }
}

impl Cache for ReplayCache {
    fn file_size(&self) -> Bytes {
        self.file.pages.to_bytes(PAGE)
    }

    fn folio(&self, page: Page) -> Option<Folio> {
        self.tree.folio(page)
    }

    fn is_ready(&self, page: Page) -> bool {
        self.ready_at(Extent::new(page, Pages::new(1))).is_none()
    }

    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.tree.next_miss(from, max)
    }

    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.tree.prev_miss(from, max)
    }

    fn submit(&mut self, window: Submission) -> Pages {
        let end = Page::FIRST.plus(self.file_pages());
        let filled = fill(&mut self.tree, &window, end, self.file.folio_limit);
        let (at, most) = (self.now + self.delay, self.file.max_request.max(Pages::new(1)));
        for batch in &filled.batches {
            // A batch is one bio, which completes as a whole, however it is split.
            let (mut start, mut done) = (batch.start, at);
            while start < batch.end() {
                let request = Extent::new(start, most.min(batch.end().since(start)));
                done = done.max(self.queue.request(at, request));
                self.reads += 1;
                start = request.end();
            }
            self.in_flight.push((*batch, done));
            self.order.push_back(*batch);
        }
        let pages = filled.pages();
        self.read += pages;
        pages
    }

    fn set_mark(&mut self, page: Page) {
        self.tree.set_mark(page, true);
    }

    fn clear_mark(&mut self, page: Page) {
        self.tree.set_mark(page, false);
    }

    fn is_used(&self, page: Page) -> bool {
        self.tree.is_used(page)
    }

    fn set_used(&mut self, extent: Extent) {
        self.tree.set_used(extent);
    }

    /// The window of the open file is set separately; this one is for files opened later.
    fn limits(&self) -> DeviceLimits {
        DeviceLimits { read_ahead: Pages::ZERO, max_request: self.file.max_request }
    }

    fn folio_limit(&self) -> Option<u8> {
        self.file.folio_limit
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn trace(&mut self, trigger: Trigger) {
        if let Trigger::Sync { index, request, .. } = trigger {
            self.missed = Some((index, request));
        }
    }
}

/// Prefetching along a trend, as the controller does it in intervals.
#[derive(Debug)]
struct TrendReplay {
    trend: Trend,
    plan: Option<TrendPlan>,
    interval: Nanos,
    next: Nanos,
    share: WindowShare,
    /// Whether the kernel reads ahead, so that forward reads need no plan.
    is_read_ahead: bool,
    /// Number of waits up to the last interval.
    waits: u64,
    tuning: Arc<Tuning>,
}

impl TrendReplay {
    fn access(&mut self, access: PastAccess, now: Nanos) {
        self.trend.read(access.first, access.pages, false);
        if let Some(plan) = &mut self.plan {
            plan.reader_at(access.first, None, now);
        }
    }

    /// Returns the extents to prefetch; `waits` is the number of waits of the reader so far.
    fn due(&mut self, now: Nanos, file: Pages, waits: u64) -> Vec<Extent> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + self.interval;
        if let Some(plan) = self.plan.take_if(|plan| plan.is_over(now)) {
            self.trend.end(&plan);
        }
        if self.plan.is_none() {
            let steps = self.trend.steps(self.is_read_ahead);
            self.plan =
                steps.map(|steps| TrendPlan::new(steps, now, NO_LIMIT, Arc::clone(&self.tuning)));
        }
        let Some(plan) = &mut self.plan else { return Vec::new() };
        plan.interval(NO_LIMIT);
        if waits > self.waits {
            plan.late(&self.share);
        }
        self.waits = waits;
        plan.due(file, &self.share)
    }
}

#[derive(Debug)]
pub(super) struct WhatIfReplay {
    kernel: Linux618,
    cache: ReplayCache,
    mapping: Mapping,
    window: Pages,
    after_miss: Option<(MissPrefetch, Nanos)>,
    trend: Option<TrendReplay>,
    waits: u64,
    waited: Nanos,
}

impl WhatIfReplay {
    pub fn new(
        file: &FileView,
        device: &DeviceTimes,
        candidate: Candidate,
        tuning: &Arc<Tuning>,
    ) -> Self {
        let mut cache = ReplayCache {
            file: *file,
            tree: PageTree::new(),
            now: Nanos::ZERO,
            delay: Nanos::ZERO,
            queue: Queue::new(*device),
            in_flight: Vec::new(),
            order: VecDeque::new(),
            read: Pages::ZERO,
            reads: 0,
            evicted_unused: Pages::ZERO,
            missed: None,
        };
        let mut kernel = Linux618::new();
        kernel.open(&mut cache, STREAM, FileId(0));
        kernel.set_window(STREAM, candidate.window);
        let share = WindowShare {
            most: file.cache,
            memory: file.cache,
            is_tight: false,
            is_squeezed: false,
        };
        let (after_miss, trend) = match candidate.extra {
            Extra::Nothing => (None, None),
            Extra::AfterMiss(run, delay) => (Some((MissPrefetch::of_runs(run), delay)), None),
            Extra::AlongTrend(interval) => {
                let (trend, next) = (Trend::new(Arc::clone(tuning)), interval);
                (
                    None,
                    Some(TrendReplay {
                        trend,
                        plan: None,
                        interval,
                        next,
                        share,
                        is_read_ahead: candidate.window > SINGLE_PAGE,
                        waits: 0,
                        tuning: Arc::clone(tuning),
                    }),
                )
            }
        };
        let mapping = Mapping::new(STREAM, file.pages);
        let (waits, waited, window) = (0, Nanos::ZERO, candidate.window);
        Self { kernel, cache, mapping, window, after_miss, trend, waits, waited }
    }

    pub fn access(&mut self, access: PastAccess) {
        self.cache.pass(access.think);
        self.follow_trend(access);
        if access.mapped {
            for page in access.first..access.first.saturating_add(access.pages) {
                self.fault(Page::new(page));
            }
        } else {
            self.call(access);
        }
    }

    fn follow_trend(&mut self, access: PastAccess) {
        let now = self.cache.now;
        let Some(trend) = &mut self.trend else { return };
        trend.access(access, now);
        for extent in trend.due(now, self.cache.file.pages, self.waits) {
            self.prefetch(extent);
        }
    }

    fn fault(&mut self, page: Page) {
        let Self { kernel, cache, mapping, .. } = self;
        let Some(outcome) = mapping.begin(kernel, cache, page) else { return };
        self.arrive(outcome, Extent::new(page, Pages::new(1)));
        self.mapping.end(&mut self.kernel, &mut self.cache, page);
        self.cache.evict(&mut self.mapping);
    }

    fn call(&mut self, access: PastAccess) {
        let bytes = |pages| Pages::new(pages).to_bytes(PAGE);
        let call = Call { offset: bytes(access.first), length: bytes(access.pages) };
        let (mut walk, end) = ReadWalk::new(call, self.cache.file_size());
        if walk.is_done() {
            return;
        }
        while !walk.is_done() {
            let visit = walk.visit(&mut self.kernel, &mut self.cache, STREAM);
            self.prefetch_after_miss();
            self.arrive(visit.outcome, visit.folio);
            walk.page = visit.next;
        }
        self.kernel.end(STREAM, end);
        self.cache.evict(&mut self.mapping);
    }

    fn arrive(&mut self, outcome: TouchOutcome, extent: Extent) {
        if outcome == TouchOutcome::Hit {
            return;
        }
        if let Some(at) = self.cache.ready_at(extent) {
            let wait = at.saturating_sub(self.cache.now);
            self.waits += 1;
            self.waited += wait;
            self.cache.pass(wait);
        }
    }

    fn prefetch_after_miss(&mut self) {
        let Some((index, pages)) = self.cache.missed.take() else { return };
        let file = self.cache.file.pages;
        let Some((prefetch, delay)) = &mut self.after_miss else { return };
        let Some(rest) = prefetch.miss(index, pages, file) else { return };
        self.cache.delay = *delay;
        self.prefetch(rest);
        self.cache.delay = Nanos::ZERO;
    }

    /// Prefetches these pages in calls that the kernel does not truncate.
    fn prefetch(&mut self, extent: Extent) {
        let most = self.cache.file.max_request.max(self.window).max(Pages::new(1));
        let mut start = extent.start;
        while start < extent.end() {
            let piece = Extent::new(start, most.min(extent.end().since(start)));
            self.kernel.advise(&mut self.cache, STREAM, Advice::WillNeed(piece));
            start = piece.end();
        }
    }

    pub fn finish(self) -> PredictedOutcome {
        let Self { cache, waits, waited, .. } = self;
        PredictedOutcome {
            waits,
            waited,
            elapsed: cache.now,
            reads: cache.reads,
            read: cache.read,
            evicted_unused: cache.evicted_unused,
        }
    }
}
