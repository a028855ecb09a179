//! The programs of the published measurements, as the simulator runs them.

use model::Spec;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sim::{
    Costs, FileSystem, Limits, ReadStep, Reader, Scenario, SimError, SimMachine, SimOpenFile,
    Start, lay_out, run,
};
use units::{Bytes, Kib, Nanos};
use workload::{AccessClass, AccessMethod, Layout};

use crate::ReproduceError;

/// Readers that each read one file from its start, in blocks: fio with `rw=read`, or bonnie++.
#[derive(Clone, Debug)]
pub struct Streams {
    pub model: Spec,
    pub policy: String,
    /// Read-ahead of the bdi, for algorithms that use it.
    pub read_ahead: Kib,
    pub readers: u32,
    pub block: Bytes,
    pub file_size: Bytes,
    pub first: Bytes,
    pub filesystem: FileSystem,
    pub costs: Costs,
    /// Time at the start that is not counted.
    pub warm_up: Nanos,
    pub span: Nanos,
}

impl Streams {
    /// Returns the total throughput of all readers in decimal MB/s.
    ///
    /// # Errors
    ///
    /// If the simulation fails.
    pub fn mb_s(&self, seed: u64) -> Result<f64, ReproduceError> {
        let machine = SimMachine {
            policy: self.policy.parse().map_err(SimError::from)?,
            read_ahead: self.read_ahead,
            filesystem: self.filesystem,
            costs: self.costs,
            seed,
            ..SimMachine::new(self.model.clone())
        };
        // The rate after the warm-up is the difference of two runs that are identical up to then.
        let got = |time| Ok::<_, ReproduceError>(run(&machine, self.scenario(time))?.useful());
        let (before, after) = (got(self.warm_up)?, got(self.warm_up + self.span)?);
        Ok((after - before).get() as f64 / 1e6 / self.span.as_secs_f64())
    }

    fn scenario(&self, time: Nanos) -> Scenario<Forward> {
        let sizes = vec![self.file_size; self.readers as usize];
        let files = lay_out(&sizes, Layout::Contiguous, self.filesystem.layout, self.first);
        let forward =
            |open| Forward { open, block: self.block, at: Bytes::ZERO, end: self.file_size };
        Scenario {
            files,
            opens: (0..self.readers).map(open_file).collect(),
            readers: (0..self.readers).map(|open| Reader { steps: forward(open) }).collect(),
            limits: Limits { time, ends_with_first: true },
        }
    }
}

fn open_file(file: u32) -> SimOpenFile {
    SimOpenFile::new(file, AccessMethod::Read)
}

fn step(open: u32, offset: Bytes, length: Bytes, class: AccessClass, rest: Nanos) -> ReadStep {
    ReadStep { open, offset, length, class, start: Start::After(rest), advice: None }
}

/// Reads from the start of a file to its end.
struct Forward {
    open: u32,
    block: Bytes,
    at: Bytes,
    end: Bytes,
}

impl Iterator for Forward {
    type Item = ReadStep;

    fn next(&mut self) -> Option<ReadStep> {
        let offset = self.at;
        self.at += self.block;
        let class = AccessClass::Stream;
        (offset < self.end).then(|| step(self.open, offset, self.block, class, Nanos::ZERO))
    }
}

/// Processes that read runs of blocks at random places of a raw partition, one run per call. Larger
/// requests are split into parts, which are read one after another.
#[derive(Clone, Debug)]
pub struct RandomRuns {
    pub model: Spec,
    pub processes: u32,
    pub length: Bytes,
    /// Upper limit of the offsets.
    pub within: Bytes,
    pub block: Bytes,
    pub span: Nanos,
}

impl RandomRuns {
    /// Returns the total calls per second of all processes.
    ///
    /// # Errors
    ///
    /// If the simulation fails.
    pub fn calls_s(&self, seed: u64) -> Result<f64, ReproduceError> {
        let part = self.length.min(self.model.host().max_request);
        let parts = self.length.get().div_ceil(part.get());
        let pages = part.get() / 4096;
        let machine = SimMachine {
            // A raw device has no page cache (here: one too small for hits) and no read-ahead.
            policy: format!("fixed,blocks={pages}").parse().map_err(SimError::from)?,
            cache: Bytes::from_mib(8),
            filesystem: FileSystem::PLAIN,
            costs: Costs::NONE,
            seed,
            ..SimMachine::new(self.model.clone())
        };
        let files =
            lay_out(&[self.within], Layout::Contiguous, FileSystem::PLAIN.layout, Bytes::ZERO);
        let reader = |process: u32| {
            let steps = Runs {
                open: process,
                part,
                parts,
                left: 0,
                at: Bytes::ZERO,
                places: (self.within - self.length).get() / self.block.get(),
                block: self.block,
                rng: Pcg64Mcg::seed_from_u64(seed << 8 | u64::from(process)),
            };
            Reader { steps }
        };
        let scenario = Scenario {
            files,
            opens: (0..self.processes).map(|_| open_file(0)).collect(),
            readers: (0..self.processes).map(reader).collect(),
            limits: Limits { time: self.span, ends_with_first: false },
        };
        let calls = run(&machine, scenario)?.requests() as f64 / parts as f64;
        Ok(calls / self.span.as_secs_f64())
    }
}

/// Reads at random places, each in parts.
struct Runs {
    open: u32,
    part: Bytes,
    parts: u64,
    left: u64,
    at: Bytes,
    places: u64,
    block: Bytes,
    rng: Pcg64Mcg,
}

impl Iterator for Runs {
    type Item = ReadStep;

    fn next(&mut self) -> Option<ReadStep> {
        if self.left == 0 {
            self.left = self.parts;
            self.at = Bytes::new(self.rng.random_range(0..self.places) * self.block.get());
        }
        self.left -= 1;
        let offset = self.at;
        self.at += self.part;
        Some(step(self.open, offset, self.part, AccessClass::Random, Nanos::ZERO))
    }
}

/// A client that selects single rows at random until the table is in memory.
#[derive(Clone, Debug)]
pub struct Priming {
    pub model: Spec,
    pub policy: String,
    pub read_ahead: Kib,
    /// Size of the page cache; larger than the table and its index.
    pub memory: Bytes,
    pub heap: Bytes,
    pub index: Bytes,
    /// CPU time of a select.
    pub select: Nanos,
    /// Length of the windows in which the rate of selects is computed.
    pub window: Nanos,
    /// Share of the full rate that counts as primed.
    pub primed: f64,
}

const BLOCK_SIZE: Bytes = Bytes::from_kib(8);
/// Maximum duration of priming, in windows.
const PRIMING_MAX_WINDOWS: u64 = 128;

impl Priming {
    /// Returns the seconds until the rate of selects reaches the share `primed` of the full rate.
    ///
    /// # Errors
    ///
    /// If the simulation fails.
    pub fn seconds(&self, seed: u64) -> Result<f64, ReproduceError> {
        let machine = SimMachine {
            policy: self.policy.parse().map_err(SimError::from)?,
            read_ahead: self.read_ahead,
            cache: self.memory,
            filesystem: FileSystem::EXT3,
            costs: Costs::NONE,
            seed,
            ..SimMachine::new(self.model.clone())
        };
        let selects = |windows: u64| -> Result<u64, ReproduceError> {
            let time = Nanos::new(self.window.get() * windows);
            // A select consists of two reads.
            Ok(run(&machine, self.scenario(seed, time))?.requests() / 2)
        };
        let full = self.window.as_secs_f64() / self.select.as_secs_f64();
        let (mut early, mut late) = (0, PRIMING_MAX_WINDOWS);
        // The rate only rises, so bisection finds the first window that reaches it.
        while late - early > 1 {
            let window = early + (late - early) / 2;
            let rate = selects(window)? - selects(window - 1)?;
            if rate as f64 >= self.primed * full {
                late = window;
            } else {
                early = window;
            }
        }
        Ok(self.window.as_secs_f64() * late as f64)
    }

    fn scenario(&self, seed: u64, time: Nanos) -> Scenario<Selects> {
        let layout = FileSystem::EXT3.layout;
        let files = lay_out(&[self.heap, self.index], Layout::Contiguous, layout, Bytes::ZERO);
        let steps = Selects {
            blocks: [self.heap, self.index].map(|size| size.get() / BLOCK_SIZE.get()),
            select: self.select,
            leaf: false,
            rng: Pcg64Mcg::seed_from_u64(seed),
        };
        Scenario {
            files,
            opens: vec![open_file(0), open_file(1)],
            readers: vec![Reader { steps }],
            limits: Limits { time, ends_with_first: true },
        }
    }
}

/// Reads a leaf of the index, then a block of the table.
struct Selects {
    blocks: [u64; 2],
    select: Nanos,
    leaf: bool,
    rng: Pcg64Mcg,
}

impl Iterator for Selects {
    type Item = ReadStep;

    fn next(&mut self) -> Option<ReadStep> {
        self.leaf = !self.leaf;
        let (open, rest) = if self.leaf { (1, self.select) } else { (0, Nanos::ZERO) };
        let block = self.rng.random_range(0..self.blocks[open as usize]);
        let offset = Bytes::new(block * BLOCK_SIZE.get());
        Some(step(open, offset, BLOCK_SIZE, AccessClass::Random, rest))
    }
}
