//! Executes a reader, from one step to the next.

use std::collections::VecDeque;

use policy::cache::PAGE;
use policy::{Call, Extent, Page, Policy, ReadWalk, StreamId, TouchOutcome};
use units::{Bytes, Nanos, Pages};
use workload::AccessClass;

use super::clock::Picos;
use super::view::{CacheView, NO_STEPS};
use super::{Flow, MAX_LOOKAHEAD, Open, World};
use crate::cache::PageCache;
use crate::outcome::ReaderOutcome;
use crate::queue::Item;
use crate::scenario::ReadStep;

/// Pages that are searched ahead of a reader: results for more would be outdated on its arrival.
const MAX_SEARCH_PAGES: Pages = Pages::new(256);
/// Page size in bytes.
pub(super) const PAGE_BYTES: u64 = PAGE.bytes().get();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The reader is about to start a step.
    Between,
    /// The reader is about to give advice.
    Advise,
    /// The reader goes through the pages of its call.
    Walk,
    /// The reader submits the requests of its policy.
    Issue,
    /// The reader waits for pages, and takes them.
    Arrive,
    Done,
}

/// The current read call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadCall {
    pub(super) open: u32,
    pub(super) class: AccessClass,
    pub(super) began: Picos,
    pub(super) offset: Bytes,
    pub(super) length: Bytes,
    /// Offset of the next byte to copy, and the offset after the last byte.
    pub(super) position: u64,
    pub(super) end: u64,
    pub(super) walk: ReadWalk,
    /// Whether the policy has not been called for it yet.
    pub(super) fresh: bool,
    /// Whether a page of it was missing: pages that arrive with that page are not late.
    pub(super) missed: bool,
}

/// Pages to wait for, which are then taken up to `stop`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    extent: Extent,
    stop: Page,
    fault: bool,
}

/// The state of a reader.
pub(super) struct RunningReader {
    pub(super) number: u32,
    /// Rest of the current run of steps: the next step, and the number of steps.
    pub(super) run: Option<(ReadStep, u64)>,
    pub(super) lookahead: VecDeque<ReadStep>,
    pub(super) ended: bool,
    pub(super) begun: bool,
    pub(super) phase: Phase,
    pub(super) clock: Picos,
    pub(super) call: ReadCall,
    /// Advice to give next.
    pub(super) advised: Option<ReadStep>,
    pub(super) awaited: Option<Awaited>,
    pub(super) to_issue: VecDeque<Item>,
    /// Time since which the reader waits for the dispatch of its requests.
    pub(super) dispatch_since: Option<Nanos>,
    waits_since: Option<Picos>,
    pub(super) outcome: ReaderOutcome,
    pub(super) references: Pages,
    pub(super) late: Pages,
    pub(super) misses: Pages,
    /// Last latency of stream reads and of random reads, and its number of consecutive occurrences.
    pub(super) latencies: [(Nanos, u64); 2],
}

impl RunningReader {
    pub(super) fn new(number: u32) -> Self {
        let call = ReadCall {
            open: 0,
            class: AccessClass::Stream,
            began: Picos::default(),
            offset: Bytes::ZERO,
            length: Bytes::ZERO,
            position: 0,
            end: 0,
            walk: ReadWalk::new(Call { offset: Bytes::ZERO, length: Bytes::ZERO }, Bytes::ZERO).0,
            fresh: false,
            missed: false,
        };
        Self {
            number,
            run: None,
            lookahead: VecDeque::new(),
            ended: false,
            begun: false,
            phase: Phase::Between,
            clock: Picos::default(),
            call,
            advised: None,
            awaited: None,
            to_issue: VecDeque::new(),
            dispatch_since: None,
            waits_since: None,
            outcome: ReaderOutcome::default(),
            references: Pages::ZERO,
            late: Pages::ZERO,
            misses: Pages::ZERO,
            latencies: [(Nanos::ZERO, 0); 2],
        }
    }
}

impl World {
    /// Returns the policy, and the cache as the policy sees it if `open` is read at `now`.
    pub(super) fn view<'a>(
        &'a mut self,
        open: u32,
        now: Nanos,
        reader: Option<&'a RunningReader>,
    ) -> (&'a mut dyn Policy, CacheView<'a>) {
        let file = self.opens[open as usize].file;
        let own = self.windows.get(file as usize).copied();
        let read_ahead = own.unwrap_or(self.limits.read_ahead);
        let view = CacheView {
            placed: &self.placed[file as usize],
            file,
            stream: StreamId(open),
            limits: policy::DeviceLimits { read_ahead, ..self.limits },
            now,
            congested: self.models_congestion && self.queue.congested(),
            lookahead: reader.map_or(&NO_STEPS, |reader| &reader.lookahead),
            whole: reader.is_some_and(|reader| reader.ended),
            cache: &mut self.cache,
            batches: &mut self.batches,
        };
        (self.policy.as_mut(), view)
    }

    /// Goes through the pages of the call.
    pub(super) fn walk(&mut self, reader: &mut RunningReader) -> Flow {
        let others = self.others();
        let horizon = Picos::of(others).plus(Picos::of(MAX_LOOKAHEAD));
        if reader.clock > horizon {
            return Flow::Yield;
        }
        if reader.call.fresh && self.tell_begin(reader) {
            return Flow::Go;
        }
        loop {
            let (call, clock) = (&reader.call, reader.clock);
            let (open, page) = (call.open as usize, call.walk.page);
            if call.walk.is_done() {
                return self.finish(reader);
            }
            if clock > horizon {
                return Flow::Yield;
            }
            let run = self.plain_hit_run(reader);
            if run.is_zero() || self.wants_access_events {
                if clock.nanos() > others && run.is_zero() {
                    return Flow::Yield;
                }
                if self.opens[open].mapping.is_some() {
                    self.fault(reader);
                } else {
                    self.visit_page(reader);
                }
                return Flow::Go;
            }
            let run = self.within(reader, run, horizon);
            let file = self.opens[open].file;
            self.cache.set_used(file, Extent::new(page, run));
            self.take(reader, page.plus(run));
        }
    }

    /// Calls the policy for a new read call. Returns whether it submitted reads.
    #[inline]
    fn tell_begin(&mut self, reader: &mut RunningReader) -> bool {
        reader.call.fresh = false;
        if !self.wants_call_events {
            return false;
        }
        let (call, now) = (reader.call, reader.clock.nanos());
        let (policy, mut view) = self.view(call.open, now, Some(reader));
        let ReadCall { offset, length, open, .. } = call;
        policy.begin(&mut view, StreamId(open), Call { offset, length });
        let reads = !self.batches.is_empty();
        self.collect(reader);
        reads
    }

    /// Returns the number of pages that the reader passes without waiting or a call of its policy.
    #[inline]
    fn plain_hit_run(&mut self, reader: &mut RunningReader) -> Pages {
        let call = &reader.call;
        let open = &mut self.opens[call.open as usize];
        let (left, page) = (call.walk.left(), call.walk.page);
        if let Some(mapping) = &open.mapping {
            let mapped = mapping.is_mapped(page);
            let ready = mapped && !self.cache.is_pending(open.file, page);
            return Pages::new(u64::from(ready));
        }
        let epoch = self.cache.epoch(open.file);
        let (since, from, until) = open.hit_range;
        let known = since == epoch && from <= page && page < until;
        if known && !self.page_by_page {
            return left.min(until.since(page));
        }
        let look = if self.page_by_page { Pages::new(1) } else { MAX_SEARCH_PAGES };
        let run = self.cache.plain_hit_run(open.file, page, look);
        open.hit_range = (epoch, page, page.plus(run));
        left.min(run)
    }

    /// Returns the number of pages of a run that the reader starts to copy by `horizon`.
    #[inline]
    fn within(&self, reader: &RunningReader, run: Pages, horizon: Picos) -> Pages {
        let byte = self.costs.byte.get();
        if run.get() == 1 || byte == 0 {
            return run;
        }
        let bytes = horizon.since(reader.clock).get() / byte;
        let last = (reader.call.position.saturating_add(bytes)) / PAGE_BYTES;
        run.min(Pages::new(last.saturating_sub(reader.call.walk.page.get()) + 1))
    }

    /// Visits a page that is missing or that requires a call of the policy.
    fn visit_page(&mut self, reader: &mut RunningReader) {
        let ReadCall { open, walk, .. } = reader.call;
        let now = reader.clock.nanos();
        let (policy, mut view) = self.view(open, now, Some(reader));
        let visit = walk.visit(policy, &mut view, StreamId(open));
        self.note(reader, visit.outcome, visit.next.since(walk.page));
        reader.awaited = Some(Awaited { extent: visit.folio, stop: visit.next, fault: false });
        self.collect(reader);
        self.schedule_answer(visit.outcome);
    }

    /// Schedules the next tick again after a miss, because a policy may answer it at once.
    fn schedule_answer(&mut self, outcome: TouchOutcome) {
        if self.next_tick != Nanos::MAX && outcome == TouchOutcome::Missed {
            self.next_tick = self.policy.next_tick().unwrap_or(Nanos::MAX);
        }
    }

    /// Counts pages by the outcome of their visit.
    fn note(&mut self, reader: &mut RunningReader, outcome: TouchOutcome, pages: Pages) {
        match outcome {
            TouchOutcome::Hit => {}
            TouchOutcome::Waited if reader.call.missed => reader.misses += pages,
            TouchOutcome::Waited => reader.late += pages,
            TouchOutcome::Missed => {
                reader.call.missed = true;
                reader.misses += pages;
            }
        }
    }

    /// Touches a page of a mapping that is not mapped yet, or not cached.
    ///
    /// Never inlined, like other rare paths: the code that runs for each page is faster without
    /// them.
    #[inline(never)]
    fn fault(&mut self, reader: &mut RunningReader) {
        let (call, now) = (reader.call, reader.clock.nanos());
        let page = call.walk.page;
        let Some(mut mapping) = self.opens[call.open as usize].mapping.take() else { return };
        let (policy, mut view) = self.view(call.open, now, Some(reader));
        let outcome = mapping.begin(policy, &mut view, page).unwrap_or(TouchOutcome::Hit);
        let file = view.file;
        self.opens[call.open as usize].mapping = Some(mapping);
        let folio = self.cache.tree(file).folio(page);
        let extent = folio
            .map_or(Extent::new(page, Pages::ZERO), |folio| Extent::new(folio.head, folio.pages()));
        let one = Pages::new(1);
        let waits = outcome == TouchOutcome::Hit && self.cache.is_pending(file, page);
        self.note(reader, if waits { TouchOutcome::Waited } else { outcome }, one);
        self.cache.set_used(file, Extent::new(page, one));
        self.processor = self.processor.plus(self.costs.fault);
        reader.clock = reader.clock.plus(self.costs.fault);
        reader.awaited = Some(Awaited { extent, stop: page.plus(one), fault: true });
        self.collect(reader);
        self.schedule_answer(outcome);
    }

    /// Waits for the awaited pages, and takes them.
    pub(super) fn arrive(&mut self, reader: &mut RunningReader) -> Flow {
        let Some(awaited) = reader.awaited else {
            reader.phase = Phase::Walk;
            return Flow::Go;
        };
        let file = self.opens[reader.call.open as usize].file;
        if let Some(page) = self.cache.first_pending(file, awaited.extent) {
            if reader.waits_since.is_none() {
                reader.waits_since = Some(reader.clock);
                reader.outcome.stalls += 1;
            }
            self.waiters[file as usize].push((reader.number, page));
            return Flow::Wait;
        }
        if let Some(since) = reader.waits_since.take() {
            let wait = reader.clock.since(since).nanos();
            reader.outcome.stalled += wait;
            let (stream, now) = (StreamId(reader.call.open), reader.clock.nanos());
            self.policy.stalled(now, stream, wait);
        }
        reader.awaited = None;
        reader.phase = Phase::Walk;
        if awaited.fault {
            self.end_fault(reader);
        }
        self.take(reader, awaited.stop);
        Flow::Go
    }

    /// Maps the page for which a fault occurred, after the page has arrived.
    #[inline(never)]
    fn end_fault(&mut self, reader: &RunningReader) {
        let (open, page) = (reader.call.open, reader.call.walk.page);
        let Some(mut mapping) = self.opens[open as usize].mapping.take() else { return };
        let (policy, mut view) = self.view(open, reader.clock.nanos(), Some(reader));
        mapping.end(policy, &mut view, page);
        self.opens[open as usize].mapping = Some(mapping);
    }

    /// Copies the cached pages up to `stop`, and records the visit.
    #[inline]
    fn take(&mut self, reader: &mut RunningReader, stop: Page) {
        let call = &mut reader.call;
        let open = &mut self.opens[call.open as usize];
        let end = (stop.get() * PAGE_BYTES).min(call.end);
        let cost = self.costs.byte.times(end.saturating_sub(call.position));
        reader.clock = reader.clock.plus(cost);
        self.processor = self.processor.plus(cost);
        reader.references += stop.since(call.walk.page);
        let first = call.walk.page;
        call.position = end.max(call.position);
        call.walk.page = stop;
        visit(&mut self.cache, open, first, stop);
    }

    fn finish(&mut self, reader: &mut RunningReader) -> Flow {
        let call = reader.call;
        reader.phase = Phase::Between;
        if call.length.is_zero() {
            // Advice is not a request.
            return Flow::Go;
        }
        let open = &mut self.opens[call.open as usize];
        let got =
            Bytes::new(call.position.min(call.end)) - call.offset.min(Bytes::new(call.position));
        if !got.is_zero() {
            open.position = Bytes::new(call.end);
            self.policy.end(StreamId(call.open), open.position);
        }
        self.call_ended(reader, &call, got, 1);
        Flow::Go
    }
}

/// Records that a reader visited pages. Continuing within a folio is not another visit.
#[inline]
pub(super) fn visit(cache: &mut PageCache, open: &mut Open, first: Page, stop: Page) {
    let known = open.visited;
    let from = if known.0 <= first && first < known.1 { known.1.min(stop) } else { first };
    if from >= stop {
        return;
    }
    open.visited = cache.touch(open.file, Extent::new(from, stop.since(from)));
}
