//! A clairvoyant read-ahead algorithm, which knows all future reads.
//!
//! It follows the four rules of an optimal schedule (Cao, Felten, Karlin and Li, "A Study of
//! Integrated Prefetching and Caching Strategies", SIGMETRICS 1995): it fetches the next missing
//! page in order of reference, evicts the page whose next reference is the furthest, never evicts a
//! page that is needed before the fetched one, and does nothing later than possible. Of their two
//! strategies, *aggressive* fetches as soon as these rules permit; *conservative* makes exactly the
//! replacements of Belady's MIN, each as early as possible: fewer fetches, later.
//!
//! On a disk the order of reference is not the best order of service. So it also fetches the pages
//! that follow the next missing page in its file and will be read, up to a maximum run, and keeps
//! few or many runs in flight. The best of several runs and strategies counts. This is a strong
//! opponent, not the optimum, which cannot be computed for a disk. No algorithm without knowledge
//! of the future should beat it by more than a few per cent. It never beats the lower bound.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use policy::cache::PAGE;
use policy::{Extent, Page};
use units::{Bytes, Nanos, Pages};

use super::OracleWork;
use super::bound::{cost, got};
use super::references::{NO_NEXT_USE, Planned, References};
use crate::disk_layout::Placed;
use crate::error::SimError;
use crate::machine::SimMachine;
use crate::queue::{BlockQueue, Item, Part, PartPurpose};
use crate::scenario::Start;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clairvoyance {
    /// Time at which the last reader finishes.
    pub time: Nanos,
    /// Number of requests to the device.
    pub requests: u64,
    /// Pages read from the device.
    pub fetches: Pages,
    /// Total time that readers waited for the device.
    pub stalled: Nanos,
    /// Longest run that was read at once, of the best schedule.
    pub run: Bytes,
}

/// Maximum runs to try, in quarters of the largest request.
const RUNS: [u64; 6] = [1, 4, 16, 64, 256, 1024];
/// Numbers of runs in flight to try. The second is limited only by the device's queue.
const AHEAD: [u64; 2] = [2, u64::MAX];

/// Returns the best result of the clairvoyant algorithm on this machine.
///
/// # Errors
///
/// If the machine is invalid.
pub fn clairvoyant(machine: &SimMachine, work: &OracleWork) -> Result<Clairvoyance, SimError> {
    machine.validate()?;
    let references = References::of(work);
    let command = machine.model.host().max_request.get() / 4096;
    let capacity = machine.cache.to_pages_floor(PAGE).get();
    let mut best: Option<Clairvoyance> = None;
    let planned = (references.pages.len() as u64 > capacity).then(|| references.plan(capacity));
    let plans = [Some(None), planned.as_deref().map(Some)].into_iter().flatten();
    for (plan, run, ahead) in plans.flat_map(|plan| {
        RUNS.into_iter().flat_map(move |run| AHEAD.map(|ahead| (plan, run, ahead)))
    }) {
        let run = (run * command / 4).max(1);
        // A run that takes most of the cache leaves no room for the others.
        if best.is_some() && run > capacity / 2 {
            continue;
        }
        let outcome = ClairvoyantRun::new(machine, work, &references, plan, (run, ahead))?.run();
        if best.is_none_or(|best| outcome.time < best.time) {
            best = Some(outcome);
        }
    }
    Ok(best.unwrap_or(Clairvoyance {
        time: Nanos::ZERO,
        requests: 0,
        fetches: Pages::ZERO,
        stalled: Nanos::ZERO,
        run: Bytes::ZERO,
    }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    InFlight,
    Cached,
}

/// The state of a reader between two of its pages.
struct Reader {
    step: usize,
    /// Number of pages of the step that the reader has used.
    had: u32,
    clock: Nanos,
    stalled: Nanos,
    waits: Option<Nanos>,
}

struct ClairvoyantRun<'a> {
    machine: &'a SimMachine,
    work: &'a OracleWork,
    references: &'a References,
    placed: Vec<Placed>,
    queue: BlockQueue,
    /// Replacements of MIN for the conservative strategy; `made` counts those already made.
    plan: Option<&'a [Planned]>,
    made: usize,
    run: u64,
    capacity: u64,
    state: Vec<State>,
    /// Position of each page's next reference that has not been made yet.
    due: Vec<u32>,
    /// Cached pages by their next reference: the last one is evicted first.
    here: BTreeSet<(u32, u32)>,
    used: u64,
    /// Position of the first reference that has not been handled yet.
    pointer: usize,
    in_flight: u64,
    max_in_flight: u64,
    fetches: u64,
    readers: Vec<Reader>,
    waiters: Vec<Vec<u32>>,
    agenda: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl<'a> ClairvoyantRun<'a> {
    fn new(
        machine: &'a SimMachine,
        work: &'a OracleWork,
        references: &'a References,
        plan: Option<&'a [Planned]>,
        (run, ahead): (u64, u64),
    ) -> Result<Self, SimError> {
        let queue = BlockQueue::new(machine, work.readers.len())?;
        let max_request = queue.max_request();
        let placed = (0..).zip(&work.files);
        let placed = placed.map(|(file, disk)| Placed::new(file, *disk, max_request)).collect();
        let pages = references.pages.len();
        let mut due = vec![NO_NEXT_USE; pages];
        for (at, page) in references.order.iter().enumerate().rev() {
            due[*page as usize] = at as u32;
        }
        let reader =
            || Reader { step: 0, had: 0, clock: Nanos::ZERO, stalled: Nanos::ZERO, waits: None };
        let depth = machine.model.host().nr_requests as u64 * max_request / 4096;
        Ok(Self {
            machine,
            work,
            references,
            placed,
            queue,
            plan,
            made: 0,
            run,
            capacity: machine.cache.to_pages_floor(PAGE).get().max(1),
            state: vec![State::Absent; pages],
            due,
            here: BTreeSet::new(),
            used: 0,
            pointer: 0,
            in_flight: 0,
            // Another run may wait in the queue, so that the device is never idle.
            max_in_flight: depth.max(run).min(run.saturating_mul(ahead)),
            fetches: 0,
            readers: work.readers.iter().map(|_| reader()).collect(),
            waiters: vec![Vec::new(); pages],
            agenda: (0..work.readers.len() as u32).map(|it| Reverse((Nanos::ZERO, it))).collect(),
        })
    }

    fn run(mut self) -> Clairvoyance {
        let (mut parts, mut freed, mut last) = (Vec::new(), Vec::new(), Nanos::ZERO);
        self.fetch(Nanos::ZERO);
        // A schedule that fetches this often is discarded, however the readers interfere.
        let most = 16 * (self.references.order.len() as u64 + self.capacity);
        while self.fetches <= most {
            let reader = self.agenda.peek().map_or(Nanos::MAX, |Reverse(event)| event.0);
            let device = self.queue.next_wake();
            if reader == Nanos::MAX && device == Nanos::MAX {
                break;
            }
            let now = if device <= reader {
                self.queue.advance(device, &mut parts);
                for part in parts.drain(..) {
                    self.arrive(device, part);
                }
                device
            } else {
                let Some(Reverse((now, reader))) = self.agenda.pop() else { break };
                if let Some(done) = self.go_on(now, reader) {
                    last = last.max(done);
                }
                now
            };
            self.fetch(now);
            self.queue.dispatch(now, &mut freed);
            freed.clear();
        }
        let finished = self.fetches <= most;
        Clairvoyance {
            time: if finished { last } else { Nanos::MAX },
            requests: self.queue.counts().requests,
            fetches: Pages::new(self.fetches),
            stalled: self.readers.iter().map(|reader| reader.stalled).sum(),
            run: Pages::new(self.run).to_bytes(PAGE),
        }
    }

    /// Makes room for a page that is due at `due`. Returns whether there is room.
    fn make_room(&mut self, due: u32) -> bool {
        if self.used < self.capacity {
            return true;
        }
        match self.here.last().copied() {
            Some((furthest, page)) if furthest > due => {
                self.here.pop_last();
                self.state[page as usize] = State::Absent;
                self.used -= 1;
                // If the evicted page is due again, it must be fetched again.
                if furthest != NO_NEXT_USE {
                    self.pointer = self.pointer.min(furthest as usize);
                }
                true
            }
            _ => false,
        }
    }

    /// Fetches pages while there is room and the device accepts more.
    fn fetch(&mut self, now: Nanos) {
        if let Some(plan) = self.plan {
            return self.follow(plan, now);
        }
        while self.in_flight < self.max_in_flight {
            let order = &self.references.order;
            while let Some(page) = order.get(self.pointer) {
                let page = *page as usize;
                let passed = self.due[page] > self.pointer as u32;
                if self.state[page] == State::Absent && !passed {
                    break;
                }
                self.pointer += 1;
            }
            let Some(first) = order.get(self.pointer).copied() else { return };
            if !self.make_room(self.due[first as usize]) {
                return;
            }
            self.fetch_run(now, first);
        }
    }

    /// Makes the next replacements of the plan, those of adjacent pages together.
    fn follow(&mut self, plan: &[Planned], now: Nanos) {
        while self.in_flight < self.max_in_flight {
            let mut run: Option<(u32, u64, u64)> = None;
            while let Some(planned) = plan.get(self.made) {
                let (file, page) = self.references.pages[planned.page as usize];
                let goes_on = run.is_none_or(|(of, start, length)| {
                    of == file && start + length == page && length < self.run
                });
                if !goes_on {
                    break;
                }
                if self.state[planned.page as usize] != State::Absent {
                    self.made += 1;
                    break;
                }
                if !self.replace(planned) {
                    break;
                }
                self.made += 1;
                self.state[planned.page as usize] = State::InFlight;
                self.used += 1;
                run = Some(run.map_or((file, page, 1), |(of, start, more)| (of, start, more + 1)));
            }
            match run {
                Some((file, start, length)) => self.send(now, file, start, length),
                None if plan.get(self.made).is_none_or(|next| !self.may_replace(next)) => return,
                None => {}
            }
        }
    }

    /// Returns whether the replacement needs no eviction, or its victim is next used after it.
    fn may_replace(&self, planned: &Planned) -> bool {
        if self.used < self.capacity || self.state[planned.page as usize] != State::Absent {
            return true;
        }
        planned.victim.is_some_and(|victim| {
            let victim = victim as usize;
            self.state[victim] == State::Cached && self.due[victim] > planned.at
        })
    }

    fn replace(&mut self, planned: &Planned) -> bool {
        if !self.may_replace(planned) {
            return false;
        }
        if let (true, Some(victim)) = (self.used >= self.capacity, planned.victim) {
            self.here.remove(&(self.due[victim as usize], victim));
            self.state[victim as usize] = State::Absent;
            self.used -= 1;
        }
        true
    }

    /// Fetches a page and the pages that follow it and will be read, up to the maximum run.
    fn fetch_run(&mut self, now: Nanos, first: u32) {
        let (file, start) = self.references.pages[first as usize];
        let mut length = 0;
        while length < self.run {
            let Some(page) = self.references.number(file, start + length) else { break };
            let wanted = self.state[page as usize] == State::Absent;
            if !wanted || self.due[page as usize] == NO_NEXT_USE {
                break;
            }
            if length > 0 && !self.make_room(self.due[page as usize]) {
                break;
            }
            self.state[page as usize] = State::InFlight;
            self.used += 1;
            length += 1;
        }
        self.send(now, file, start, length);
    }

    fn send(&mut self, now: Nanos, file: u32, start: u64, length: u64) {
        self.in_flight += length;
        self.fetches += length;
        let mut items = VecDeque::new();
        let extent = Extent::new(Page::new(start), Pages::new(length));
        self.placed[file as usize].plan(extent, &mut items);
        // The algorithm knows the layout, so it needs no metadata.
        items.retain(|item: &Item| item.purpose != PartPurpose::Metadata);
        for item in items {
            self.queue.submit(now, 0, item);
        }
    }

    fn arrive(&mut self, now: Nanos, part: Part) {
        let PartPurpose::Data { file, extent } = part.purpose else { return };
        for page in extent.start.get()..extent.end().get() {
            let Some(page) = self.references.number(file, page) else { continue };
            self.in_flight = self.in_flight.saturating_sub(1);
            self.state[page as usize] = State::Cached;
            self.here.insert((self.due[page as usize], page));
            for reader in std::mem::take(&mut self.waiters[page as usize]) {
                self.agenda.push(Reverse((now, reader)));
            }
        }
    }

    /// Resumes a reader until it must wait or has finished a step. Returns the time at which it
    /// finished its last step, if it has no more steps.
    fn go_on(&mut self, now: Nanos, index: u32) -> Option<Nanos> {
        let place = index as usize;
        let Some(step) = self.work.readers[place].get(self.readers[place].step) else {
            return Some(self.readers[place].clock);
        };
        let reader = &mut self.readers[place];
        if let Some(since) = reader.waits.take() {
            reader.stalled += now.saturating_sub(since);
        } else if reader.had == 0 {
            let start = match step.start {
                // A reader does not pause before its first read.
                Start::After(_) if reader.step == 0 => reader.clock,
                Start::After(rest) => reader.clock + rest,
                Start::At(time) => reader.clock.max(time),
            };
            if start > now {
                reader.clock = start;
                self.agenda.push(Reverse((start, index)));
                // Prevents a second pause before the same step.
                reader.waits = Some(start);
                return None;
            }
        }
        reader.clock = reader.clock.max(now);
        let (first, count) = self.references.steps[place][reader.step];
        while self.readers[place].had < count {
            let at = first + self.readers[place].had;
            let page = self.references.order[at as usize];
            if self.state[page as usize] != State::Cached {
                self.readers[place].waits = Some(self.readers[place].clock);
                self.waiters[page as usize].push(index);
                // A page that a reader waits for must not be evicted, even if its next use is
                // unknown because the readers arrived in an unexpected order.
                self.due[page as usize] = 0;
                if self.state[page as usize] == State::Absent {
                    self.demand(now, page);
                }
                return None;
            }
            self.use_page(at, page);
            self.readers[place].had += 1;
        }
        let method = self.work.opens[step.open as usize].method;
        let reader = &mut self.readers[place];
        reader.clock += cost(&self.machine.costs, method, got(self.work, step));
        (reader.step, reader.had) = (reader.step + 1, 0);
        self.agenda.push(Reverse((reader.clock, index)));
        None
    }

    /// Fetches a page that a reader waits for and that is not in flight, because the readers
    /// arrived in an unexpected order: at once, if necessary over the limit.
    fn demand(&mut self, now: Nanos, page: u32) {
        self.make_room(0);
        self.fetch_run(now, page);
    }

    fn use_page(&mut self, at: u32, page: u32) {
        self.here.remove(&(self.due[page as usize], page));
        let next = self.references.next[at as usize];
        self.due[page as usize] = next;
        self.here.insert((next, page));
    }
}
