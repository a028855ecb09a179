//! A lower bound on the time of any schedule.

use policy::cache::PAGE;
use units::{Nanos, Pages};
use workload::AccessMethod;

use super::OracleWork;
use super::belady::min_misses;
use super::references::pages_of;
use crate::machine::{Costs, SimMachine};
use crate::scenario::{ReadStep, Start};

/// A lower bound and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Minimum number of pages to read from the device, with repetitions.
    pub fetches: Pages,
    /// Minimum time of the device to read each distinct page once.
    pub device: Nanos,
    /// Time that the busiest reader needs if all data are cached.
    pub processor: Nanos,
}

impl Bound {
    pub fn time(&self) -> Nanos {
        self.device.max(self.processor)
    }
}

/// Returns the time of a read whose data are cached.
pub(super) fn cost(costs: &Costs, method: AccessMethod, length: u64) -> Nanos {
    let call = if method == AccessMethod::Mmap { 0.0 } else { costs.call_ns };
    Nanos::new((call + costs.copy_ns * length as f64) as u64)
}

/// Returns the time at which a reader would finish if it never waited for the device.
fn unhindered(work: &OracleWork, steps: &[ReadStep], costs: &Costs) -> Nanos {
    let mut now = Nanos::ZERO;
    for (nth, step) in steps.iter().enumerate() {
        now = match step.start {
            // A reader does not pause before its first read.
            Start::After(_) if nth == 0 => now,
            Start::After(rest) => Nanos::new(now.get().saturating_add(rest.get())),
            Start::At(time) => now.max(time),
        };
        let method = work.opens.get(step.open as usize).map_or(AccessMethod::Read, |it| it.method);
        let got = pages_of(work, step).map_or(0, |_| got(work, step));
        now = Nanos::new(now.get().saturating_add(cost(costs, method, got).get()));
    }
    now
}

/// Returns the number of bytes of a step that lie within its file.
pub(super) fn got(work: &OracleWork, step: &ReadStep) -> u64 {
    let file = work.opens.get(step.open as usize).map(|open| open.file);
    let size = file.and_then(|file| work.files.get(file as usize)).map_or(0, |it| it.size.get());
    step.length.get().min(size.saturating_sub(step.offset.get()))
}

struct Fewest {
    /// Minimum number of pages to read, with repetitions.
    fetches: u64,
    distinct: u64,
}

/// Returns the minimum number of pages to read. The order in which readers alternate is unknown, so
/// only what holds for every order counts: for readers that share no pages, the sum of the misses
/// that each would have with the whole cache; otherwise every page once.
fn fewest(work: &OracleWork, capacity: usize) -> Fewest {
    let of_reader = |steps: &Vec<ReadStep>| -> Vec<(u32, u64)> {
        let pages = steps.iter().filter_map(|step| pages_of(work, step));
        pages.flat_map(|(file, pages)| pages.map(move |page| (file, page))).collect()
    };
    let references: Vec<Vec<(u32, u64)>> = work.readers.iter().map(of_reader).collect();
    let mut all: Vec<(u32, u64)> = Vec::new();
    let mut own = 0;
    for reader in &references {
        let mut distinct = reader.clone();
        distinct.sort_unstable();
        distinct.dedup();
        own += distinct.len();
        all.extend(distinct);
    }
    all.sort_unstable();
    all.dedup();
    let distinct = all.len() as u64;
    if all.len() < own || all.len() <= capacity {
        return Fewest { fetches: distinct, distinct };
    }
    let fetches = references.iter().map(|reader| min_misses(reader, capacity)).sum();
    Fewest { fetches, distinct }
}

/// Returns the minimum time in which this machine's device and processors can do the work, with any
/// read-ahead.
pub fn lower_bound(machine: &SimMachine, work: &OracleWork) -> Bound {
    let capacity = machine.cache.to_pages_floor(PAGE).get() as usize;
    let Fewest { fetches, distinct } = fewest(work, capacity);
    let fetches = Pages::new(fetches);
    // Count each page once: the device's own cache may serve repetitions faster than its peak.
    let bytes = Pages::new(distinct).to_bytes(PAGE);
    let peak = machine.model.peak();
    let command = machine.model.host().max_request.get().max(4096);
    let commands = bytes.get().div_ceil(command) as f64;
    let by_commands = if peak.requests > 0.0 { commands / peak.requests } else { 0.0 };
    let by_bytes = machine.model.least_time(bytes);
    let device = by_bytes.max(Nanos::from_secs_f64(by_commands));
    let readers = work.readers.iter().map(|steps| unhindered(work, steps, &machine.costs));
    Bound { fetches, device, processor: readers.max().unwrap_or_default() }
}
