//! What does a larger request cost? Each of n processes seeks to random places and reads 1, 2, 4 …
//! blocks in one request.
//!
//! This is the table that Curt Sampson posted to pgsql-hackers on 2002-04-25 for one disk, here for
//! any storage. Reads bypass the page cache (O_DIRECT), so neither the cache nor the kernel's
//! read-ahead affects them. A "process" here is a thread with its own open file, which is
//! equivalent for the block layer. Requests of all sizes start at the same random places.

mod cell;
mod conclude;

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use host::StorageKind;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use study::{Environment, Progress, ProgressEvent, StudyPhase, Target, TargetSpec};
use units::{Bytes, Nanos};

use crate::ExperimentError;
use crate::direct::{ALIGNMENT_BYTES, Direct};
use crate::simulated::SimulatedDisk;
use study::{Findings, LiveTarget, drawn_seed};

pub use cell::BlockCell;
pub use conclude::{FREE_RATIO, free_until};

pub const NAME: &str = "blocks";
pub const QUESTION: &str = "What does it cost to read more in one request?";

#[derive(Clone, Debug, PartialEq)]
pub struct BlockPlan {
    pub target: Target,
    pub block: Bytes,
    /// Blocks per request; the table has one row for each number.
    pub blocks: Vec<u64>,
    /// Numbers of concurrent processes; the table has one part for each.
    pub processes: Vec<u32>,
    /// Duration of each row, in the storage's own time.
    pub duration: Nanos,
    /// Size of the first part of the storage, from which requests are read; `None` for all of it.
    pub span: Option<Bytes>,
    /// Maximum size that the system requests at once; larger requests are read in parts, one after
    /// another. `None` for this kernel's own behaviour.
    pub part: Option<Bytes>,
    pub seed: Option<u64>,
}

impl BlockPlan {
    /// Plans the published table: 1 to 16 blocks of 8 KiB, by one process and by four.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            block: Bytes::from_kib(8),
            blocks: vec![1, 2, 4, 8, 16],
            processes: vec![1, 4],
            duration: Nanos::from_secs(3),
            span: None,
            part: None,
            seed: None,
        }
    }

    /// Checks the plan, sorts its values and removes duplicates.
    fn checked(mut self) -> Result<Self, ExperimentError> {
        const MAX_REQUEST: Bytes = Bytes::from_mib(256);
        let wrong = |text: String| Err(ExperimentError::Usage(text));
        self.blocks.sort_unstable();
        self.blocks.dedup();
        self.processes.sort_unstable();
        self.processes.dedup();
        if self.block.is_zero() || !self.block.get().is_multiple_of(ALIGNMENT_BYTES) {
            return wrong(format!(
                "a block of {}: direct reads need a multiple of {}",
                self.block,
                Bytes::new(ALIGNMENT_BYTES)
            ));
        }
        if let Some(part) = self.part
            && (part.is_zero() || !part.get().is_multiple_of(ALIGNMENT_BYTES))
        {
            let unit = Bytes::new(ALIGNMENT_BYTES);
            return wrong(format!("parts of {part}: direct reads need a multiple of {unit}"));
        }
        let largest = self.blocks.last().copied().unwrap_or(0);
        if self.blocks.first().is_none_or(|least| *least == 0) {
            return wrong("how many blocks are read at once must be 1 or more".to_owned());
        }
        if self.block.get().checked_mul(largest).is_none_or(|size| size > MAX_REQUEST.get()) {
            return wrong(format!(
                "{largest} blocks of {} are more than {MAX_REQUEST}",
                self.block
            ));
        }
        if !self.processes.iter().all(|count| (1..=1024).contains(count)) {
            return wrong("the number of processes must be from 1 to 1024".to_owned());
        }
        if self.processes.is_empty() || self.duration < Nanos::from_millis(20) {
            return wrong("each row needs at least 20 ms and one process".to_owned());
        }
        Ok(self)
    }

    fn largest(&self) -> Bytes {
        self.block * self.blocks.last().copied().unwrap_or(1)
    }
}

pub fn run(
    plan: BlockPlan,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    let mut plan = plan.checked()?;
    let seed = plan.seed.unwrap_or_else(drawn_seed);
    plan.seed = Some(seed);
    if let Target::Simulation(spec) = &plan.target {
        return simulated(&plan, spec, seed, environment);
    }
    let place = LiveTarget::open_raw(&plan.target, environment, progress)?;
    let measured = measure(&plan, seed, &place, environment, progress);
    let closed = place.close(progress);
    let answer = measured?;
    closed?;
    Ok(answer)
}

fn measure(
    plan: &BlockPlan,
    seed: u64,
    place: &LiveTarget,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    let path = readable(place)?;
    let span = span(plan, path, &mut answer)?;
    progress.step(&ProgressEvent::Phase(StudyPhase::Measuring));
    let mut cells = Vec::new();
    let mut late = 0;
    let orders = orders(plan, seed);
    let total = orders.len();
    for (done, (processes, blocks)) in orders.into_iter().enumerate() {
        progress.step(&ProgressEvent::Measured { done, total });
        place.reset_disk()?;
        let order = cell::BlockReads {
            processes,
            blocks,
            dilation: place.dilation,
            ..rows(plan, path, span, seed)
        };
        cells.push(order.run(&environment.cancel)?);
        let counters = place.disk.as_ref().map(|disk| disk.counters()).transpose()?;
        late += usize::from(counters.is_some_and(|counters| counters.is_spoiled()));
    }
    (answer.seed, answer.dilation) = (seed, place.dilation);
    if late > 0 {
        answer.notes.push(format!(
            "the virtual disk was later than its model allows in {late} of {} rows",
            cells.len()
        ));
    }
    Ok(concluded(answer, plan, cells))
}

/// Returns the parameters that all rows share.
fn rows<'a>(plan: &BlockPlan, path: &'a Path, span: Bytes, seed: u64) -> cell::BlockReads<'a> {
    cell::BlockReads {
        path,
        processes: 1,
        blocks: 1,
        block: plan.block,
        span,
        largest: plan.largest(),
        part: plan.part,
        duration: plan.duration,
        dilation: 1.0,
        seed,
    }
}

fn simulated(
    plan: &BlockPlan,
    spec: &TargetSpec<sim::SimMachine>,
    seed: u64,
    environment: &Environment,
) -> Result<Findings, ExperimentError> {
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    let mut disk = SimulatedDisk::open(spec.get()?, seed)?;
    answer.set_simulated_by(disk.machine());
    answer.seed = seed;
    let name = answer.target.clone();
    let span = part_of(plan, name.as_ref(), disk.size(), &mut answer)?;
    let mut cells = Vec::new();
    for (processes, blocks) in orders(plan, seed) {
        let order = cell::BlockReads { processes, blocks, ..rows(plan, name.as_ref(), span, seed) };
        cells.push(order.simulate(&mut disk, &environment.cancel)?);
    }
    Ok(concluded(answer, plan, cells))
}

/// Returns the rows of the table in random order, so that changes over time do not look like an
/// effect of size.
fn orders(plan: &BlockPlan, seed: u64) -> Vec<(u32, u64)> {
    let all = plan.processes.iter();
    let all = all.flat_map(|processes| plan.blocks.iter().map(|blocks| (*processes, *blocks)));
    let mut orders: Vec<(u32, u64)> = all.collect();
    orders.shuffle(&mut Pcg64::seed_from_u64(seed));
    orders
}

fn concluded(mut answer: Findings, plan: &BlockPlan, mut cells: Vec<BlockCell>) -> Findings {
    cells.sort_by_key(|cell| (cell.processes, cell.blocks));
    if let Some(part) = plan.part.filter(|part| *part < plan.largest()) {
        answer.notes.push(format!(
            "requests above {part} were split into parts, one after \
                                   another"
        ));
    }
    conclude::conclude(&mut answer, plan.block, &cells);
    answer
}

pub(crate) fn readable(place: &LiveTarget) -> Result<&Path, ExperimentError> {
    let path = &place.storage.path;
    if place.storage.kind == StorageKind::Directory {
        return Err(ExperimentError::Usage(format!(
            "{} is a directory: name a large file in it or the device below it (they are only \
             read)",
            path.display()
        )));
    }
    Ok(path)
}

fn span(plan: &BlockPlan, path: &Path, answer: &mut Findings) -> Result<Bytes, ExperimentError> {
    let size = Direct::open(path)?.size()?;
    let facts = std::fs::metadata(path).map_err(ExperimentError::io("look at", path))?;
    if !facts.file_type().is_block_device() && facts.blocks() * 512 < size.get() {
        answer.notes.push("the file has holes, whose reads cause no I/O".to_owned());
    }
    part_of(plan, path, size, answer)
}
fn part_of(
    plan: &BlockPlan,
    path: &Path,
    size: Bytes,
    answer: &mut Findings,
) -> Result<Bytes, ExperimentError> {
    let span = plan.span.map_or(size, |span| span.min(size));
    // With fewer places, drives and controllers would cache all of them.
    let needed = plan.largest() * 16;
    if span < needed {
        let path = path.to_owned();
        return Err(ExperimentError::TooSmall { path, size: span, needed });
    }
    if span < size {
        answer.notes.push(format!("random places in the first {:.1} MiB only", span.as_mib()));
    }
    Ok(span)
}
