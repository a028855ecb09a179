//! The event loop.
//!
//! Readers and device have a time of their own each; whoever is earliest goes on. What a reader
//! does with data that are there already touches nobody else, so it goes on with that for up to
//! [`HEADSTART`] beyond the next event; before it does anything that others see (a decision of its
//! policy, a request), it waits until it is the earliest.

mod agenda;
mod clock;
mod issue;
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

/// The readers, each with what it is to read, and the world in which they read: apart, so that what
/// one of them does takes that one and the world.
struct Simulation<I> {
    readers: Vec<(Running, I)>,
    world: World,
}

/// All but the readers: a machine with its files, and what is under way.
struct World {
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
    agenda: Agenda,
    /// When the device has something to say.
    device_wakes: Nanos,
    /// When the policy wants to be called without a reader.
    next_tick: Nanos,
    /// Readers that wait for a page, by file.
    waiters: Vec<Vec<(u32, Page)>>,
    /// How many readers there are.
    readers: u32,
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
        let Self { readers, world } = self;
        loop {
            let own = world.agenda.next_at();
            if own == Nanos::MAX && world.device_wakes == Nanos::MAX {
                break;
            }
            if world.next_tick < own.min(world.device_wakes) {
                world.tick();
            } else if world.device_wakes <= own {
                if let Some(now) = world.queue.advance(own.min(world.next_tick), &mut parts) {
                    for part in parts.drain(..) {
                        world.complete(now, part);
                    }
                    world.queue.dispatch(now, &mut freed);
                    for reader in freed.drain(..) {
                        let waits = readers.get_mut(reader as usize);
                        if waits.is_some_and(|(it, _)| std::mem::take(&mut it.waits_dispatch)) {
                            world.agenda.push(now, reader);
                        }
                    }
                }
                world.device_wakes = world.queue.next_wake();
            } else if let Some((at, reader)) = world.agenda.pop()
                && let Some((reader, steps)) = readers.get_mut(reader as usize)
            {
                world.resume(at, steps, reader);
            }
        }
    }

    fn outcome(self) -> Outcome {
        let Self { readers, mut world } = self;
        let readers: Vec<Running> = readers.into_iter().map(|(reader, _)| reader).collect();
        for reader in &readers {
            world.flush_latencies(reader);
        }
        let last = readers.iter().map(|reader| reader.outcome.elapsed).max();
        let elapsed = last.unwrap_or_default().min(world.end.nanos());
        let ahead = |open: &Open| {
            let page = Page::FIRST.plus(open.position.to_pages_ceil(policy::cache::PAGE));
            world.cache.ahead(open.file, page).to_bytes(policy::cache::PAGE)
        };
        let mut cache = world.cache.counts();
        cache.used = cache.read.saturating_sub(cache.thrashed + world.cache.unused());
        for reader in &readers {
            cache.references += reader.references;
            cache.late += reader.late;
            cache.misses += reader.misses;
        }
        cache.hits = cache.references.saturating_sub(cache.late + cache.misses);
        Outcome {
            elapsed,
            settled: world.settled.max(elapsed),
            exhausted: world.exhausted,
            ahead: world.opens.iter().map(ahead).collect(),
            readers: readers.iter().map(|reader| reader.outcome).collect(),
            stream: std::mem::take(&mut world.stream),
            random: std::mem::take(&mut world.random),
            processor: world.processor.nanos(),
            device: world.queue.counts(),
            course: world.queue.take_course(),
            account: world.policy.account(),
            cache,
        }
    }
}

impl World {
    /// When anybody else has something to do.
    #[inline]
    fn others(&self) -> Nanos {
        self.agenda.next_at().min(self.device_wakes).min(self.next_tick)
    }

    fn complete(&mut self, now: Nanos, part: Part) {
        self.settled = self.settled.max(now);
        let Purpose::Data { file, extent } = part.purpose else {
            // Nobody waits for what was read at a tick.
            if part.reader < self.readers {
                self.agenda.push(now, part.reader);
            }
            return;
        };
        let Some(extent) = self.under_way.arrive(file, extent) else { return };
        self.cache.arrive(file, extent);
        let mut at = 0;
        while let Some(&(reader, page)) = self.waiters[file as usize].get(at) {
            if extent.contains(page) {
                self.waiters[file as usize].swap_remove(at);
                self.agenda.push(now, reader);
            } else {
                at += 1;
            }
        }
    }

    /// Lets a reader go on until it must wait.
    fn resume(&mut self, at: Nanos, steps: &mut impl Steps, reader: &mut Running) {
        reader.clock = reader.clock.max(Picos::of(at));
        loop {
            let flow = match reader.phase {
                Phase::Between => self.begin(steps, reader),
                Phase::Walk => self.walk(reader),
                Phase::Issue => self.issue(reader),
                Phase::Arrive => self.arrive(reader),
                Phase::Done => Flow::Wait,
            };
            match flow {
                Flow::Go => {}
                Flow::Yield => {
                    return self.agenda.push(reader.clock.nanos(), reader.number);
                }
                Flow::Wait => return,
            }
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
