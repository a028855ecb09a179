//! From one step of a reader to the next, and over those that find all their pages ready.

use policy::{Extent, Page, StreamId};
use units::{Bytes, Nanos, Pages};
use workload::AccessClass;

use super::clock::Picos;
use super::reader::{PAGE_BYTES, Phase, ReadCall, Running, visit};
use super::{Flow, HEADSTART, World};
use crate::scenario::{Start, Step, Steps};

/// Steps that are known ahead to policies which want to know.
const FORESEEN: usize = 1024;

/// Calls in a row whose pages were all ready, and which follow one another.
#[derive(Clone, Copy, Debug)]
struct Glide {
    open: u32,
    start: Page,
    stop: Page,
    end: u64,
}

impl Glide {
    /// Whether a call goes on where this ends, or within its last page.
    fn goes_on(&self, call: &ReadCall) -> bool {
        let last = call.page == self.stop || call.page.plus(Pages::new(1)) == self.stop;
        self.open == call.open && last && call.stop >= self.stop
    }
}

impl Running {
    #[inline]
    fn single_step(&mut self, steps: &mut impl Steps) -> Option<Step> {
        let (step, times) = match self.run.take() {
            Some(run) => run,
            None => steps.next_run()?,
        };
        if times > 1 {
            self.run = Some((Step { offset: step.offset + step.length, ..step }, times - 1));
        }
        Some(step)
    }

    #[inline]
    fn next_step(&mut self, steps: &mut impl Steps, foresees: bool) -> Option<Step> {
        if !foresees {
            return self.single_step(steps);
        }
        while !self.ended && self.coming.len() <= FORESEEN {
            match self.single_step(steps) {
                Some(step) => self.coming.push_back(step),
                None => self.ended = true,
            }
        }
        self.coming.pop_front()
    }
}

impl World {
    /// Begins the next step, after as many as find all their pages ready.
    pub(super) fn begin(&mut self, steps: &mut impl Steps, reader: &mut Running) -> Flow {
        let horizon = Picos::of(self.others()).plus(Picos::of(HEADSTART));
        let glides = !(self.watches || self.foresees || self.hears_calls || self.page_by_page);
        let mut glide = None;
        while let Some(call) = self.next_call(steps, reader) {
            let Some(call) = call else {
                self.settle(glide);
                return Flow::Wait;
            };
            if !glides || !self.glide(reader, &call, horizon, &mut glide) {
                reader.call = call;
                reader.phase = Phase::Walk;
                break;
            }
            self.glide_on(reader, horizon, &mut glide);
        }
        self.settle(glide);
        Flow::Go
    }

    /// The call of the next step: `None` if that means nothing, nothing in it if there is none.
    #[inline]
    fn next_call(
        &mut self,
        steps: &mut impl Steps,
        reader: &mut Running,
    ) -> Option<Option<ReadCall>> {
        if reader.clock >= self.end {
            reader.phase = Phase::Done;
            return Some(None);
        }
        let Some(step) = reader.next_step(steps, self.foresees) else {
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
        let size = self.placed[open.file as usize].size();
        let asked = step.offset.get().saturating_add(step.length.get());
        let end = asked.min(size.get()).max(step.offset.get());
        let page = Page::new(step.offset.get() / PAGE_BYTES);
        let fresh = end > step.offset.get();
        if step.class == AccessClass::Random {
            self.foresee(steps.coming().unwrap_or(step));
        }
        let call = ReadCall {
            open: step.open,
            class: step.class,
            began: reader.clock,
            offset: step.offset,
            length: step.length,
            position: step.offset.get(),
            end,
            page,
            stop: if fresh { Page::new(end.div_ceil(PAGE_BYTES)) } else { page },
            beyond: Page::new(asked.div_ceil(PAGE_BYTES)),
            fresh,
            missed: false,
        };
        reader.clock = reader.clock.plus(self.costs.call);
        self.processor = self.processor.plus(self.costs.call);
        Some(Some(call))
    }

    /// Has the processor fetch what is known of a step's first page while it does other things: who
    /// reads at random waits longest for that.
    #[inline]
    fn foresee(&self, step: Step) {
        if let Some(open) = self.opens.get(step.open as usize) {
            self.cache.fetch(open.file, Page::new(step.offset.get() / PAGE_BYTES));
        }
    }

    /// Does the whole call if all its pages are known to be ready, and nobody else is to have his
    /// turn meanwhile: what [`Self::walk`] would do, without noting the visit yet.
    #[inline]
    fn glide(
        &mut self,
        reader: &mut Running,
        call: &ReadCall,
        horizon: Picos,
        glide: &mut Option<Glide>,
    ) -> bool {
        let open = &self.opens[call.open as usize];
        let (since, from, until) = open.quiet;
        let bytes = call.end - call.position;
        let cost = self.costs.byte.times(bytes);
        let ready = open.mapping.is_none()
            && from <= call.page
            && call.stop <= until
            && since == self.cache.epoch(open.file);
        if !ready || !call.fresh || reader.clock.plus(cost) > horizon {
            return false;
        }
        reader.clock = reader.clock.plus(cost);
        self.processor = self.processor.plus(cost);
        reader.references += call.stop.since(call.page);
        match glide {
            Some(glide) if glide.goes_on(call) => {
                glide.stop = call.stop;
                glide.end = call.end;
            }
            _ => {
                let new =
                    Glide { open: call.open, start: call.page, stop: call.stop, end: call.end };
                self.settle(glide.replace(new));
            }
        }
        self.tell_end(reader, call, Bytes::new(bytes), 1);
        true
    }

    /// After a call that glided: does as many of the run that it belongs to as would, all at once.
    #[inline]
    fn glide_on(&mut self, reader: &mut Running, horizon: Picos, glide: &mut Option<Glide>) {
        let (Some((step, times)), Some(glide)) = (&mut reader.run, glide) else { return };
        let Start::After(think) = step.start else { return };
        let (offset, length) = (step.offset.get(), step.length.get());
        let follows = step.open == glide.open && offset == glide.end;
        if !follows || length == 0 || offset % PAGE_BYTES != 0 || length % PAGE_BYTES != 0 {
            return;
        }
        let open = &self.opens[step.open as usize];
        let ready = open.quiet.2.get().saturating_mul(PAGE_BYTES);
        let there = ready.min(self.placed[open.file as usize].size().get());
        let think = Picos::of(think);
        let cost = self.costs.call.plus(self.costs.byte.times(length));
        let each = think.plus(cost).get();
        // The last of them ends by the horizon, and none begins at the end of all.
        let in_time = horizon.since(reader.clock).get();
        let before_end = self.end.since(reader.clock.plus(think)).get();
        let fits = there.saturating_sub(offset);
        // Mostly it is all of them, which a division need not tell.
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
        glide.stop = glide.stop.plus(pages);
        glide.end = offset + count * length;
        let call = ReadCall {
            open: step.open,
            class: step.class,
            began: reader.clock.since(cost),
            ..reader.call
        };
        let got = Bytes::new(length);
        step.offset = Bytes::new(glide.end);
        *times -= count;
        if *times == 0 {
            reader.run = None;
        }
        self.tell_end(reader, &call, got, count);
    }

    /// Notes the visit of pages that a reader glided over.
    fn settle(&mut self, glide: Option<Glide>) {
        let Some(glide) = glide else { return };
        let open = &mut self.opens[glide.open as usize];
        open.position = Bytes::new(glide.end);
        let pages = Extent::new(glide.start, glide.stop.since(glide.start));
        self.cache.set_used(open.file, pages);
        visit(&mut self.cache, open, glide.start, glide.stop);
        self.policy.end(StreamId(glide.open), Bytes::new(glide.end));
    }

    /// Counts a call that is done, the last of so many that were the same.
    #[inline]
    pub(super) fn tell_end(
        &mut self,
        reader: &mut Running,
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

    /// Puts latencies that were the same in a row into their histogram.
    #[inline]
    fn record(&mut self, class: AccessClass, latency: Nanos, times: u64) {
        if times > 0 {
            self.latencies(class).record_times(latency, times);
        }
    }

    /// Puts a reader's last latencies into their histograms.
    pub(super) fn flush_latencies(&mut self, reader: &Running) {
        let latencies = reader.latencies;
        for class in [AccessClass::Stream, AccessClass::Random] {
            let (latency, times) = latencies[class as usize];
            self.record(class, latency, times);
        }
    }
}
