//! The event loop.
//!
//! Readers and device have a time of their own each; whoever is earliest goes on. What a reader
//! does with data that are there already touches nobody else, so it goes on with that for up to
//! [`HEADSTART`] beyond the next event; before it does anything that others see (a decision of its
//! policy, a request), it waits until it is the earliest.

mod agenda;
mod clock;
mod page_lru;
mod reader;
mod replay;
mod setup;
mod steps;
mod ticks;
mod view;
mod windows;

use policy::{DeviceLimits, Extent, Mapping, Page, Policy};
use stats::LatencyHistogram;
use units::{Bytes, Nanos, Pages};
use workload::AccessClass;

use crate::cache::PageCache;
use crate::disk_layout::Placed;
use crate::error::SimError;
use crate::machine::Machine;
use crate::outcome::{ClassOutcome, Outcome};
use crate::queue::{BlockQueue, Part, Purpose};
use crate::scenario::{Scenario, Steps};
use agenda::Agenda;
use clock::Picos;
use reader::{Phase, Running};
use windows::Windows;

pub use replay::replay;

/// How far a reader may be ahead of the others with what only it sees.
const HEADSTART: Nanos = Nanos::from_micros(20);

/// Lets the readers loose.
///
/// # Errors
///
/// If the machine cannot be, or the scenario does not fit it.
pub fn run<I: Steps>(machine: &Machine, scenario: Scenario<I>) -> Result<Outcome, SimError> {
    let mut simulation = Simulation::new(machine, scenario)?;
    simulation.run();
    Ok(simulation.outcome())
}

/// An open file at work.
struct Open {
    file: u32,
    /// The pages between these are cached, unmarked and there, as long as the file's epoch is
    /// this.
    quiet: (u64, Page, Page),
    /// The pages whose visit has been noted: going on within them is no second one.
    visited: (Page, Page),
    /// The byte behind the last one read.
    position: Bytes,
    mapping: Option<Mapping>,
}

/// What parts of a read cost.
struct Picocosts {
    call: Picos,
    byte: Picos,
    submitted_byte: Picos,
    fault: Picos,
}

struct Simulation<I> {
    costs: Picocosts,
    limits: DeviceLimits,
    /// The windows of single files.
    windows: Vec<Pages>,
    policy: Box<dyn Policy>,
    watches: bool,
    foresees: bool,
    hears_calls: bool,
    minds_congestion: bool,
    page_by_page: bool,
    queue: BlockQueue,
    cache: PageCache,
    placed: Vec<Placed>,
    under_way: Windows,
    opens: Vec<Open>,
    readers: Vec<Running<I>>,
    agenda: Agenda,
    /// When the device has something to say.
    device_wakes: Nanos,
    /// When the policy wants to be called without a reader.
    next_tick: Nanos,
    /// Readers that wait for a page, by file.
    waiters: Vec<Vec<(u32, Page)>>,
    /// No step begins at or after this.
    end: Picos,
    ends_with_first: bool,
    exhausted: bool,
    settled: Nanos,
    batches: Vec<Extent>,
    stream: ClassOutcome,
    random: ClassOutcome,
    processor: Picos,
}

impl<I: Steps> Simulation<I> {
    fn run(&mut self) {
        let (mut parts, mut freed) = (Vec::new(), Vec::new());
        loop {
            let own = self.agenda.next_at();
            if own == Nanos::MAX && self.device_wakes == Nanos::MAX {
                break;
            }
            if self.next_tick < own.min(self.device_wakes) {
                self.tick();
            } else if self.device_wakes <= own {
                if let Some(now) = self.queue.advance(own.min(self.next_tick), &mut parts) {
                    for part in parts.drain(..) {
                        self.complete(now, part);
                    }
                    self.queue.dispatch(now, &mut freed);
                    for reader in freed.drain(..) {
                        self.wake_dispatched(now, reader);
                    }
                }
                self.device_wakes = self.queue.next_wake();
            } else if let Some((at, reader)) = self.agenda.pop() {
                self.resume(at, reader);
            }
        }
    }

    /// When anybody else has something to do.
    #[inline]
    fn others(&self) -> Nanos {
        self.agenda.next_at().min(self.device_wakes).min(self.next_tick)
    }

    fn complete(&mut self, now: Nanos, part: Part) {
        self.settled = self.settled.max(now);
        let Purpose::Data { file, extent } = part.purpose else {
            // Nobody waits for what was read at a tick.
            if (part.reader as usize) < self.readers.len() {
                self.agenda.push(now, part.reader);
            }
            return;
        };
        let Some(extent) = self.under_way.arrive(file, extent) else { return };
        self.cache.arrive(file, extent);
        let mut at = 0;
        while let Some(&(reader, page)) = self.waiters[file as usize].get(at) {
            if extent.start <= page && page < extent.end() {
                self.waiters[file as usize].swap_remove(at);
                self.agenda.push(now, reader);
            } else {
                at += 1;
            }
        }
    }

    fn wake_dispatched(&mut self, now: Nanos, reader: u32) {
        let Some(reader_at_work) = self.readers.get_mut(reader as usize) else { return };
        if std::mem::take(&mut reader_at_work.waits_dispatch) {
            self.agenda.push(now, reader);
        }
    }

    /// Lets a reader go on until it must wait.
    fn resume(&mut self, at: Nanos, reader: u32) {
        let this = &mut self.readers[reader as usize];
        this.clock = this.clock.max(Picos::of(at));
        loop {
            let flow = match self.readers[reader as usize].phase {
                Phase::Between => self.begin(reader),
                Phase::Walk => self.walk(reader),
                Phase::Issue => self.issue(reader),
                Phase::Arrive => self.arrive(reader),
                Phase::Done => Flow::Wait,
            };
            match flow {
                Flow::Go => {}
                Flow::Yield => {
                    let at = self.readers[reader as usize].clock.nanos();
                    return self.agenda.push(at, reader);
                }
                Flow::Wait => return,
            }
        }
    }

    fn outcome(mut self) -> Outcome {
        for reader in 0..self.readers.len() {
            self.flush_latencies(reader as u32);
        }
        let last = self.readers.iter().map(|reader| reader.outcome.elapsed).max();
        let elapsed = last.unwrap_or_default().min(self.end.nanos());
        let ahead = |open: &Open| {
            let page = Page::FIRST.plus(open.position.to_pages_ceil(policy::cache::PAGE));
            self.cache.ahead(open.file, page).to_bytes(policy::cache::PAGE)
        };
        let mut cache = self.cache.counts();
        cache.used = cache.read.saturating_sub(cache.thrashed + self.cache.unused());
        for reader in &self.readers {
            cache.references += reader.references;
            cache.late += reader.late;
            cache.misses += reader.misses;
        }
        cache.hits = cache.references.saturating_sub(cache.late + cache.misses);
        Outcome {
            elapsed,
            settled: self.settled.max(elapsed),
            exhausted: self.exhausted,
            ahead: self.opens.iter().map(ahead).collect(),
            readers: self.readers.iter().map(|reader| reader.outcome).collect(),
            stream: std::mem::take(&mut self.stream),
            random: std::mem::take(&mut self.random),
            processor: self.processor.nanos(),
            device: self.queue.counts(),
            course: self.queue.take_course(),
            account: self.policy.account(),
            cache,
        }
    }

    fn latencies(&mut self, class: AccessClass) -> &mut LatencyHistogram {
        match class {
            AccessClass::Stream => &mut self.stream.latency,
            AccessClass::Random => &mut self.random.latency,
        }
    }
}

/// What a reader does next.
enum Flow {
    /// It goes on.
    Go,
    /// It goes on when it is the earliest.
    Yield,
    /// Somebody will wake it.
    Wait,
}
