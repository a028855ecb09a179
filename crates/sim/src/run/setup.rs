//! Builds a simulation from a machine and a scenario.

use std::hint::black_box;
use std::sync::Once;

use policy::cache::PAGE;
use policy::{Advice, DeviceLimits, FileId, Mapping, Page, StreamId};
use units::{Bytes, Nanos, Pages};
use workload::{AccessMethod, Hint};

use super::agenda::ReaderAgenda;
use super::clock::Picos;
use super::reader::RunningReader;
use super::windows::WindowsInFlight;
use super::{Open, Picocosts, Simulation, World};
use crate::cache::PageCache;
use crate::disk_layout::Placed;
use crate::error::SimError;
use crate::machine::{Arrival, Costs, SimMachine};
use crate::outcome::ClassOutcome;
use crate::queue::BlockQueue;
use crate::scenario::{Scenario, SimOpenFile, Steps};

impl<I: Steps> Simulation<I> {
    pub(super) fn new(machine: &SimMachine, scenario: Scenario<I>) -> Result<Self, SimError> {
        machine.validate()?;
        keep_freed_memory();
        let policy = machine.policy.build()?;
        let queue = BlockQueue::new(machine, scenario.readers.len() + 1)?;
        let max_request = queue.max_request();
        let limits = DeviceLimits {
            read_ahead: machine.read_ahead.to_bytes().to_pages_floor(PAGE),
            max_request: Bytes::new(max_request).to_pages_floor(PAGE),
        };
        let capacity = machine.cache.to_pages_floor(PAGE);
        let guarded = policy.wants_evict_events();
        let cache = PageCache::new(capacity, machine.replacement, guarded);
        let together = policy.completes_per_window().then_some(Arrival::Windows);
        let arrival = machine.arrival.or(together).unwrap_or(Arrival::Requests);
        let mut world = World {
            costs: Picocosts::of(&machine.costs),
            limits,
            windows: windows(machine),
            wants_access_events: policy.wants_access_events(),
            needs_lookahead: policy.needs_lookahead(),
            wants_call_events: policy.wants_call_events(),
            models_congestion: machine.policy.entry().name == "linux-legacy",
            rotates: machine.model.is_rotational(),
            next_tick: policy.next_tick().unwrap_or(Nanos::MAX),
            policy,
            page_by_page: machine.page_by_page,
            queue,
            cache,
            placed: Vec::new(),
            file_tree: machine.file_tree.clone(),
            in_flight: WindowsInFlight::new(arrival),
            opens: Vec::new(),
            readers: scenario.readers.len() as u32,
            agenda: ReaderAgenda::new(),
            device_wakes: Nanos::MAX,
            waiters: vec![Vec::new(); scenario.files.len()],
            end: Picos::of(scenario.limits.time),
            ends_with_first: scenario.limits.ends_with_first,
            exhausted: false,
            settled: Nanos::ZERO,
            batches: Vec::new(),
            stream: ClassOutcome::default(),
            random: ClassOutcome::default(),
            processor: Picos::default(),
        };
        world.place(machine, &scenario, max_request)?;
        world.open(&scenario)?;
        let mut readers = Vec::new();
        for (number, reader) in (0..).zip(scenario.readers) {
            readers.push((RunningReader::new(number), reader.steps));
            // Programs do not start in the same nanosecond.
            let late = 137 * u64::from(number) + 31 * (machine.seed % 1024);
            world.agenda.push(Nanos::new(late), number);
        }
        Ok(Self { readers, world })
    }
}

impl World {
    fn place<I>(
        &mut self,
        machine: &SimMachine,
        scenario: &Scenario<I>,
        max_request: u64,
    ) -> Result<(), SimError> {
        let capacity = machine.model.capacity();
        for (index, disk) in (0..).zip(&scenario.files) {
            let placed = Placed::new(index, *disk, max_request);
            if placed.end() > capacity {
                return Err(SimError::DeviceTooSmall { needed: placed.end(), capacity });
            }
            let is_mapped =
                |open: &SimOpenFile| open.file == index && open.method == AccessMethod::Mmap;
            let mapped = scenario.opens.iter().any(is_mapped);
            let pages = disk.size.to_pages_ceil(PAGE);
            self.cache.add_file(pages, machine.filesystem.folio_limit, mapped);
            self.placed.push(placed);
        }
        Ok(())
    }

    fn open<I>(&mut self, scenario: &Scenario<I>) -> Result<(), SimError> {
        let files = scenario.files.len();
        for (index, open) in (0..).zip(&scenario.opens) {
            let Some(file) = scenario.files.get(open.file as usize) else {
                let (what, index) = ("file", open.file);
                return Err(SimError::NoSuch { what, index, count: files });
            };
            let pages = file.size.to_pages_ceil(PAGE);
            self.opens.push(Open {
                file: open.file,
                hit_range: (u64::MAX, Page::FIRST, Page::FIRST),
                visited: (Page::FIRST, Page::FIRST),
                position: Bytes::ZERO,
                mapping: mapping(open, StreamId(index), pages),
            });
            let stream = StreamId(index);
            let (policy, mut view) = self.view(index, Nanos::ZERO, None);
            policy.open(&mut view, stream, FileId(open.file));
            if open.only_mapped {
                policy.descriptor_closed(stream);
            }
            match (open.method, open.hint) {
                (AccessMethod::Mmap, _) | (_, Hint::None) => {}
                (_, Hint::Sequential) => policy.advise(&mut view, stream, Advice::Sequential),
                (_, Hint::Random) => policy.advise(&mut view, stream, Advice::Random),
            }
        }
        Ok(())
    }
}

/// Returns the mapping of an open file that is read through a mapping, with its advice.
fn mapping(open: &SimOpenFile, stream: StreamId, pages: Pages) -> Option<Mapping> {
    if open.method != AccessMethod::Mmap {
        return None;
    }
    let mut mapping = Mapping::new(stream, pages);
    let all = policy::Extent::new(Page::FIRST, pages);
    match open.hint {
        Hint::None => {}
        Hint::Sequential => mapping.advise(all, |advice| advice.sequential = true),
        Hint::Random => mapping.advise(all, |advice| advice.random = true),
    }
    if let Some(code) = open.code {
        mapping.advise(code, |advice| advice.code = Some(code));
    }
    Some(mapping)
}

impl Picocosts {
    fn of(costs: &Costs) -> Self {
        Self {
            // At least 1 ns, or a reader of cached data would never finish.
            call: Picos::cost(costs.call_ns.max(1.0)),
            byte: Picos::cost(costs.copy_ns),
            submitted_byte: Picos::cost(costs.submit_ns),
            fault: Picos::cost(costs.fault_ns),
        }
    }
}

/// Makes the allocator keep the memory of one simulation for the next: to request it from the
/// kernel again takes an eighth of the time of a short simulation. glibc returns free memory beyond
/// twice the size of the largest block that was ever freed, counting blocks of up to 32 MiB
/// (`M_TRIM_THRESHOLD` in mallopt(3)). The block is never touched; other allocators are not
/// affected.
fn keep_freed_memory() {
    const TRIM_THRESHOLD_BYTES: usize = (32 << 20) - (64 << 10);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(black_box(Vec::<u8>::with_capacity(TRIM_THRESHOLD_BYTES))));
}

/// Returns the windows of files that have their own.
fn windows(machine: &SimMachine) -> Vec<Pages> {
    machine.file_read_ahead.iter().map(|kib| kib.to_bytes().to_pages_floor(PAGE)).collect()
}
