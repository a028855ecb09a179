//! The event loop.
//!
//! Each reader and the device have a clock of their own; the one with the earliest time runs next.
//! A reader that reads cached data affects no other, so it runs for up to [`MAX_LOOKAHEAD`] beyond
//! the next event. Before it does anything that others can see (a decision of its policy, a
//! request), it waits until its time is the earliest.

mod advice;
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

use std::sync::Arc;
use std::vec;

use policy::{DeviceLimits, Extent, FileTree, Mapping, Page, Policy};
use stats::LatencyHistogram;
use units::{Bytes, Nanos, Pages};
use workload::AccessClass;

use crate::cache::PageCache;
use crate::disk_layout::Placed;
use crate::error::SimError;
use crate::machine::SimMachine;
use crate::outcome::{ClassOutcome, SimOutcome};
use crate::queue::{BlockQueue, Part, PartPurpose};
use crate::scenario::{AccessSteps, ReadStep, Scenario, Steps};
use agenda::ReaderAgenda;
use clock::Picos;
use reader::{Phase, RunningReader};
use windows::WindowsInFlight;

pub use replay::replay;

/// Maximum lead of a reader over the others while it does nothing that they can see.
const MAX_LOOKAHEAD: Nanos = Nanos::from_micros(20);

/// Runs the readers of a scenario on a machine.
///
/// # Errors
///
/// If the machine is invalid, or the scenario does not fit it.
pub fn run<I: Steps>(machine: &SimMachine, scenario: Scenario<I>) -> Result<SimOutcome, SimError> {
    let mut simulation = Simulation::new(machine, scenario)?;
    simulation.run();
    Ok(simulation.outcome())
}

/// Runs a declared workload as [`run`] does, which is generic and therefore compiled with the
/// optimisation of its caller's crate and not of this one.
pub fn run_workload(
    machine: &SimMachine,
    scenario: Scenario<AccessSteps>,
) -> Result<SimOutcome, SimError> {
    run(machine, scenario)
}

/// Runs readers with lists of steps, compiled as [`run_workload`].
pub fn run_lists(
    machine: &SimMachine,
    scenario: Scenario<vec::IntoIter<ReadStep>>,
) -> Result<SimOutcome, SimError> {
    run(machine, scenario)
}

/// The state of an open file.
struct Open {
    file: u32,
    /// An epoch of the file and a range of pages: while the file is in this epoch, they are cached,
    /// unmarked and not in flight.
    hit_range: (u64, Page, Page),
    /// Pages whose visit has been recorded: continuing within them is not another visit.
    visited: (Page, Page),
    /// Offset after the last byte read.
    position: Bytes,
    mapping: Option<Mapping>,
}

/// Costs of the parts of a read.
struct Picocosts {
    call: Picos,
    byte: Picos,
    submitted_byte: Picos,
    fault: Picos,
}

/// The readers with their steps, and the world in which they read. They are separate so that a
/// method can borrow one reader and the world.
struct Simulation<I> {
    readers: Vec<(RunningReader, I)>,
    world: World,
}

/// Everything except the readers: a machine with its files and its requests in flight.
struct World {
    costs: Picocosts,
    limits: DeviceLimits,
    windows: Vec<Pages>,
    policy: Box<dyn Policy>,
    wants_access_events: bool,
    needs_lookahead: bool,
    wants_call_events: bool,
    /// Whether the device is a rotating disk.
    rotates: bool,
    models_congestion: bool,
    page_by_page: bool,
    queue: BlockQueue,
    cache: PageCache,
    placed: Vec<Placed>,
    file_tree: Option<Arc<FileTree>>,
    in_flight: WindowsInFlight,
    opens: Vec<Open>,
    agenda: ReaderAgenda,
    /// Time of the device's next event.
    device_wakes: Nanos,
    /// Time of the policy's next tick.
    next_tick: Nanos,
    /// Readers that wait for a page, by file.
    waiters: Vec<Vec<(u32, Page)>>,
    readers: u32,
    /// No step starts at or after this time.
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
                        let Some((it, _)) = readers.get_mut(reader as usize) else { continue };
                        if let Some(since) = it.dispatch_since.take() {
                            // A reader that gave advice waits for no page.
                            if it.awaited.is_some() {
                                it.outcome.queue_wait += now.saturating_sub(since);
                            }
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

    fn outcome(self) -> SimOutcome {
        let Self { readers, mut world } = self;
        let readers: Vec<RunningReader> = readers.into_iter().map(|(reader, _)| reader).collect();
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
        SimOutcome {
            elapsed,
            settled: world.settled.max(elapsed),
            exhausted: world.exhausted,
            ahead: world.opens.iter().map(ahead).collect(),
            readers: readers.iter().map(|reader| reader.outcome).collect(),
            stream: std::mem::take(&mut world.stream),
            random: std::mem::take(&mut world.random),
            processor: world.processor.nanos(),
            device: world.queue.counts(),
            timeline: world.queue.take_timeline(),
            policy_stats: world.policy.stats(),
            cache,
        }
    }
}

impl World {
    /// Returns the time of the next event of the other readers, the device or the policy.
    #[inline]
    fn others(&self) -> Nanos {
        self.agenda.next_at().min(self.device_wakes).min(self.next_tick)
    }

    fn complete(&mut self, now: Nanos, part: Part) {
        self.settled = self.settled.max(now);
        let PartPurpose::Data { file, extent } = part.purpose else {
            // No reader waits for a read that a tick submitted.
            if part.reader < self.readers {
                self.agenda.push(now, part.reader);
            }
            return;
        };
        let Some(extent) = self.in_flight.arrive(file, extent) else { return };
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

    /// Resumes a reader until it must wait.
    fn resume(&mut self, at: Nanos, steps: &mut impl Steps, reader: &mut RunningReader) {
        reader.clock = reader.clock.max(Picos::of(at));
        loop {
            let flow = match reader.phase {
                Phase::Between => self.begin(steps, reader),
                Phase::Advise => self.advise(reader),
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

enum Flow {
    Go,
    /// Resumes when the reader is the earliest.
    Yield,
    Wait,
}
