//! Executes a reader's steps. Steps whose pages are all cached are executed at once.

use policy::{Call, Extent, Page, ReadWalk, StreamId};
use units::{Bytes, Nanos, Pages};
use workload::AccessClass;

use super::clock::Picos;
use super::reader::{PAGE_BYTES, Phase, ReadCall, RunningReader, visit};
use super::{Flow, MAX_LOOKAHEAD, World};
use crate::scenario::{ReadStep, Start, Steps};

/// Maximum number of upcoming steps that policies can query.
const MAX_UPCOMING_STEPS: usize = 1024;

/// Consecutive calls whose pages were all in the cache.
#[derive(Clone, Copy, Debug)]
struct HitRun {
    open: u32,
    start: Page,
    stop: Page,
    end: u64,
}

impl HitRun {
    /// Returns whether a call continues at the end of this run, or within its last page.
    fn goes_on(&self, call: &ReadCall) -> bool {
        let last = call.walk.page == self.stop || call.walk.page.plus(Pages::new(1)) == self.stop;
        self.open == call.open && last && call.walk.stop >= self.stop
    }
}

impl RunningReader {
    #[inline]
    fn single_step(&mut self, steps: &mut impl Steps) -> Option<ReadStep> {
        let (step, times) = match self.run.take() {
            Some(run) => run,
            None => steps.next_run()?,
        };
        if times > 1 {
            self.run = Some((ReadStep { offset: step.offset + step.length, ..step }, times - 1));
        }
        Some(step)
    }

    #[inline]
    fn next_step(&mut self, steps: &mut impl Steps, needs_lookahead: bool) -> Option<ReadStep> {
        if !needs_lookahead {
            return self.single_step(steps);
        }
        while !self.ended && self.lookahead.len() <= MAX_UPCOMING_STEPS {
            match self.single_step(steps) {
                Some(step) => self.lookahead.push_back(step),
                None => self.ended = true,
            }
        }
        self.lookahead.pop_front()
    }
}

impl World {
    /// Executes the steps whose pages are all cached, and starts the step after them.
    pub(super) fn begin(&mut self, steps: &mut impl Steps, reader: &mut RunningReader) -> Flow {
        let horizon = Picos::of(self.others()).plus(Picos::of(MAX_LOOKAHEAD));
        let can_skip_walk = !(self.wants_access_events
            || self.needs_lookahead
            || self.wants_call_events
            || self.page_by_page);
        let mut hit_run = None;
        while let Some(call) = self.next_call(steps, reader) {
            let Some(call) = call else {
                self.settle(hit_run);
                return if reader.phase == Phase::Advise { Flow::Go } else { Flow::Wait };
            };
            if !can_skip_walk || !self.read_hit(reader, &call, horizon, &mut hit_run) {
                reader.call = call;
                reader.phase = Phase::Walk;
                break;
            }
            self.extend_hit_run(reader, horizon, &mut hit_run);
        }
        self.settle(hit_run);
        Flow::Go
    }

    /// Returns the call of the next step. `None` if the step's open file does not exist;
    /// `Some(None)` if no step follows before the time limit, or the step is advice.
    #[inline]
    fn next_call(
        &mut self,
        steps: &mut impl Steps,
        reader: &mut RunningReader,
    ) -> Option<Option<ReadCall>> {
        if reader.clock >= self.end {
            reader.phase = Phase::Done;
            return Some(None);
        }
        let Some(step) = reader.next_step(steps, self.needs_lookahead) else {
            reader.phase = Phase::Done;
            self.exhausted = true;
            if self.ends_with_first {
                self.end = self.end.min(reader.clock);
            }
            return Some(None);
        };
        let open = self.opens.get(step.open as usize)?;
        match step.start {
            Start::After(think) if reader.begun => {
                reader.clock = reader.clock.plus(Picos::of(think))
            }
            Start::After(_) => {}
            Start::At(at) => reader.clock = reader.clock.max(Picos::of(at)),
        }
        reader.begun = true;
        if reader.clock >= self.end {
            reader.phase = Phase::Done;
            return Some(None);
        }
        if step.advice.is_some() {
            reader.advised = Some(step);
            reader.phase = Phase::Advise;
            return Some(None);
        }
        let size = self.placed[open.file as usize].size();
        let (walk, end) = ReadWalk::new(Call { offset: step.offset, length: step.length }, size);
        if step.class == AccessClass::Random {
            self.foresee(steps.peek_random().unwrap_or(step));
        }
        let call = ReadCall {
            open: step.open,
            class: step.class,
            began: reader.clock,
            offset: step.offset,
            length: step.length,
            position: step.offset.get(),
            end: end.get(),
            walk,
            fresh: !walk.is_done(),
            missed: false,
        };
        reader.clock = reader.clock.plus(self.costs.call);
        self.processor = self.processor.plus(self.costs.call);
        Some(Some(call))
    }

    /// Prefetches the state of a step's first page into the processor's cache: random reads wait
    /// longest for it.
    #[inline]
    fn foresee(&self, step: ReadStep) {
        if let Some(open) = self.opens.get(step.open as usize) {
            self.cache.fetch(open.file, Page::new(step.offset.get() / PAGE_BYTES));
        }
    }

    /// Executes the whole call if all its pages are known to be cached and it completes by
    /// `horizon`, like [`Self::walk`], but without recording the visit yet. Returns whether it did.
    #[inline]
    fn read_hit(
        &mut self,
        reader: &mut RunningReader,
        call: &ReadCall,
        horizon: Picos,
        hit_run: &mut Option<HitRun>,
    ) -> bool {
        let open = &self.opens[call.open as usize];
        let (since, from, until) = open.hit_range;
        let bytes = call.end - call.position;
        let cost = self.costs.byte.times(bytes);
        let ready = open.mapping.is_none()
            && from <= call.walk.page
            && call.walk.stop <= until
            && since == self.cache.epoch(open.file);
        if !ready || !call.fresh || reader.clock.plus(cost) > horizon {
            return false;
        }
        reader.clock = reader.clock.plus(cost);
        self.processor = self.processor.plus(cost);
        reader.references += call.walk.left();
        match hit_run {
            Some(hit_run) if hit_run.goes_on(call) => {
                hit_run.stop = call.walk.stop;
                hit_run.end = call.end;
            }
            _ => {
                let new = HitRun {
                    open: call.open,
                    start: call.walk.page,
                    stop: call.walk.stop,
                    end: call.end,
                };
                self.settle(hit_run.replace(new));
            }
        }
        self.call_ended(reader, call, Bytes::new(bytes), 1);
        true
    }

    /// After a call of hits, executes the further calls of its run that are also hits, at once.
    #[inline]
    fn extend_hit_run(
        &mut self,
        reader: &mut RunningReader,
        horizon: Picos,
        hit_run: &mut Option<HitRun>,
    ) {
        let (Some((step, times)), Some(hit_run)) = (&mut reader.run, hit_run) else { return };
        let Start::After(think) = step.start else { return };
        let (offset, length) = (step.offset.get(), step.length.get());
        let follows = step.open == hit_run.open && offset == hit_run.end;
        if !follows || length == 0 || offset % PAGE_BYTES != 0 || length % PAGE_BYTES != 0 {
            return;
        }
        let open = &self.opens[step.open as usize];
        let ready = open.hit_range.2.get().saturating_mul(PAGE_BYTES);
        let there = ready.min(self.placed[open.file as usize].size().get());
        let think = Picos::of(think);
        let cost = self.costs.call.plus(self.costs.byte.times(length));
        let each = think.plus(cost).get();
        // The last call completes by the horizon, and no call starts at or after the time limit.
        let in_time = horizon.since(reader.clock).get();
        let before_end = self.end.since(reader.clock.plus(think)).get();
        let fits = there.saturating_sub(offset);
        // Usually all of them fit, which is checked without a division.
        let whole = each.saturating_mul(*times);
        let all = whole <= in_time && whole <= before_end && length.saturating_mul(*times) <= fits;
        let count = if all {
            *times
        } else {
            (*times).min(in_time / each).min(before_end.div_ceil(each)).min(fits / length)
        };
        if count == 0 {
            return;
        }
        let pages = Pages::new(count * length / PAGE_BYTES);
        reader.clock = reader.clock.plus(think.plus(cost).times(count));
        self.processor = self.processor.plus(cost.times(count));
        reader.references += pages;
        hit_run.stop = hit_run.stop.plus(pages);
        hit_run.end = offset + count * length;
        let call = ReadCall {
            open: step.open,
            class: step.class,
            began: reader.clock.since(cost),
            ..reader.call
        };
        let got = Bytes::new(length);
        step.offset = Bytes::new(hit_run.end);
        *times -= count;
        if *times == 0 {
            reader.run = None;
        }
        self.call_ended(reader, &call, got, count);
    }

    /// Records the visit of the pages of a run of hits.
    fn settle(&mut self, hit_run: Option<HitRun>) {
        let Some(hit_run) = hit_run else { return };
        let open = &mut self.opens[hit_run.open as usize];
        open.position = Bytes::new(hit_run.end);
        let pages = Extent::new(hit_run.start, hit_run.stop.since(hit_run.start));
        self.cache.set_used(open.file, pages);
        visit(&mut self.cache, open, hit_run.start, hit_run.stop);
        self.policy.end(StreamId(hit_run.open), Bytes::new(hit_run.end));
    }

    /// Counts `times` equal calls, of which `call` is the last.
    #[inline]
    pub(super) fn call_ended(
        &mut self,
        reader: &mut RunningReader,
        call: &ReadCall,
        got: Bytes,
        times: u64,
    ) {
        let got = got * times;
        reader.outcome.requests += times;
        reader.outcome.useful += got;
        reader.outcome.elapsed = reader.clock.nanos();
        match call.class {
            AccessClass::Stream => self.stream.useful += got,
            AccessClass::Random => self.random.useful += got,
        }
        let latency = reader.clock.since(call.began).nanos();
        let (last, count) = &mut reader.latencies[call.class as usize];
        if *last == latency {
            *count += times;
        } else {
            let (last, count) = (std::mem::replace(last, latency), std::mem::replace(count, times));
            self.record(call.class, last, count);
        }
    }

    /// Records equal consecutive latencies in their histogram.
    #[inline]
    fn record(&mut self, class: AccessClass, latency: Nanos, times: u64) {
        if times > 0 {
            self.latencies(class).record_times(latency, times);
        }
    }

    /// Records a reader's last latencies in their histograms.
    pub(super) fn flush_latencies(&mut self, reader: &RunningReader) {
        let latencies = reader.latencies;
        for class in [AccessClass::Stream, AccessClass::Random] {
            let (latency, times) = latencies[class as usize];
            self.record(class, latency, times);
        }
    }
}
