//! The twelve micro-workloads that tell read-ahead algorithms apart, a database, and mixes.
//!
//! Each of the twelve is there in the variants in which algorithms differ. Files are as large as
//! the whole data together, unless a workload says otherwise; that is four times the cache.

use foreread_sim::{Limits, Machine, Outcome, Scenario, run};
use units::{Bytes, Nanos};
use workload::{AccessMethod, Pattern, Workload};

use super::scenes::{self, Scene, place};

/// A workload of the matrix.
pub struct Work {
    pub name: String,
    kind: Kind,
    /// The page cache; that of the matrix unless given.
    cache: Option<Bytes>,
    /// How long it runs; as long as all unless given.
    time: Option<Nanos>,
    /// Whether streams and random reads are of readers that do not wait for each other.
    pub apart: bool,
}

enum Kind {
    Declared(Box<Workload>),
    Scene(fn(Bytes) -> Scene),
}

/// All of them, in the order of the tables.
pub fn works() -> Vec<Work> {
    let mut works = streams();
    works.extend(places());
    works.extend(tight_and_partly_cached());
    works.extend(small_files());
    works.extend(databases_and_mixes());
    works
}

fn of(name: &str, pattern: Pattern, block_kib: u64) -> Workload {
    Workload::new(name, pattern, Bytes::from_kib(block_kib))
}

fn sequential(name: &str, block_kib: u64, readers: u32) -> Workload {
    Workload { readers, ..of(name, Pattern::Sequential, block_kib) }
}

fn declared(workload: Workload) -> Work {
    let name = workload.name.clone();
    let workload = Workload { name: "work".to_owned(), ..workload };
    Work { name, kind: Kind::Declared(Box::new(workload)), cache: None, time: None, apart: false }
}

fn scene(name: &str, kind: fn(Bytes) -> Scene) -> Work {
    Work { name: name.to_owned(), kind: Kind::Scene(kind), cache: None, time: None, apart: false }
}

/// W1, W2, W6: one stream, with and without time to think, and several.
fn streams() -> Vec<Work> {
    let files = |name: &str, mib: u64, count| Workload {
        files_per_reader: count,
        file_size: Some(Bytes::from_mib(mib)),
        ..sequential(name, 64, 1)
    };
    let one_fd = |name: &str, streams| of(name, Pattern::Interleaved { streams }, 64);
    let think = |name: &str, micros| Workload {
        think: Nanos::from_micros(micros),
        ..sequential(name, 64, 1)
    };
    [
        sequential("w1 one pass", 64, 1),
        files("w1 files of 1M", 1, 2048),
        files("w1 files of 4M", 4, 512),
        files("w1 files of 16M", 16, 128),
        files("w1 files of 256M", 256, 16),
        think("w2 think 0.1 ms", 100),
        think("w2 think 1 ms", 1000),
        one_fd("w6 2 streams, one fd", 2),
        one_fd("w6 8 streams, one fd", 8),
        sequential("w6 2 streams", 64, 2),
        sequential("w6 8 streams", 64, 8),
        sequential("w6 64 streams", 64, 64),
    ]
    .into_iter()
    .map(declared)
    .collect()
}

/// W3, W4, W5, W7, W10: random, in steps, backward, and between.
fn places() -> Vec<Work> {
    let stride = |name: &str, block, step_kib| {
        of(name, Pattern::Stride { step: Bytes::from_kib(step_kib) }, block)
    };
    let mixed = |name: &str, random_fraction| {
        let random_block = Bytes::from_kib(4);
        of(name, Pattern::Mixed { random_fraction, random_block, same_open_file: true }, 64)
    };
    let seek = |name: &str, blocks| of(name, Pattern::SeekAndRead { blocks }, 4);
    let random = Workload { readers: 8, ..of("w3 random pread", Pattern::Uniform, 4) };
    [
        Workload {
            name: "w3 random mmap".to_owned(),
            access: AccessMethod::Mmap,
            ..random.clone()
        },
        random,
        stride("w4 4K of each 8K", 4, 8),
        stride("w4 4K of each 64K", 4, 64),
        stride("w4 4K of each 256K", 4, 256),
        stride("w4 64K of each 256K", 64, 256),
        of("w5 backward 4K", Pattern::Backward, 4),
        of("w5 backward 64K", Pattern::Backward, 64),
        mixed("w7 10 % random, one fd", 0.1),
        mixed("w7 50 % random, one fd", 0.5),
        mixed("w7 90 % random, one fd", 0.9),
        seek("w10 seek and read 16K", 4),
        seek("w10 seek and read 64K", 16),
        seek("w10 seek and read 256K", 64),
    ]
    .into_iter()
    .map(declared)
    .collect()
}

/// W8, W9, W12: many streams in little memory, holes, and one habit after another.
fn tight_and_partly_cached() -> Vec<Work> {
    let tight = |name: &str, mib| Work {
        cache: Some(Bytes::from_mib(mib)),
        ..declared(sequential(name, 64, 64))
    };
    vec![
        tight("w8 64 streams in 16M", 16),
        tight("w8 64 streams in 64M", 64),
        tight("w8 64 streams in 256M", 256),
        scene("w9 scan, 5 % cached", |_| scenes::primed(20)),
        scene("w9 scan, 25 % cached", |_| scenes::primed(4)),
        scene("w9 scan, 75 % cached", |_| scenes::primed_all_but(4)),
        scene("w12 phases", scenes::phases),
    ]
}

/// W11.
fn small_files() -> Vec<Work> {
    let files = |name: &str, kib: u64, block| Workload {
        files_per_reader: 10_000,
        file_size: Some(Bytes::from_kib(kib)),
        ..of(name, Pattern::Sequential, block)
    };
    [
        files("w11 files of 4K", 4, 4),
        files("w11 files of 64K by 4K", 64, 4),
        files("w11 files of 256K by 128K", 256, 128),
    ]
    .into_iter()
    .map(declared)
    .collect()
}

fn databases_and_mixes() -> Vec<Work> {
    let beside = |name: &str, readers, random_fraction, block_kib| Workload {
        readers,
        ..of(
            name,
            Pattern::Mixed {
                random_fraction,
                random_block: Bytes::from_kib(block_kib),
                same_open_file: false,
            },
            64,
        )
    };
    let selects = |name: &str, kind| Work { time: Some(scenes::SELECTS_TIME), ..scene(name, kind) };
    let apart = |work| Work { apart: true, ..work };
    vec![
        selects("pg selects from cold", |_| scenes::selects()),
        declared(sequential("pg scan", 8, 1)),
        scene("pg parallel scan", scenes::parallel_scan),
        apart(selects("mix pg selects and scan", scenes::selects_and_scan)),
        declared(beside("mix streams and random", 4, 0.1, 8)),
        apart(scene("mix streams and mmap", scenes::streams_and_mapping)),
    ]
}

impl Work {
    /// One trial.
    pub fn run(&self, machine: &Machine, data: Bytes, time: Nanos) -> Outcome {
        let machine = Machine { cache: self.cache.unwrap_or(machine.cache), ..machine.clone() };
        let limits = Limits { time: self.time.unwrap_or(time), ends_with_first: true };
        match &self.kind {
            Kind::Declared(workload) => {
                let count = u64::from(workload.files());
                let part = Bytes::new(data.get() / count / (1 << 20) * (1 << 20));
                let sizes = vec![workload.file_size.unwrap_or(part); count as usize];
                let files = place(&machine, &sizes);
                let scenario = Scenario::of_workload(workload, files, 7).expect("a scenario");
                run(&machine, Scenario { limits, ..scenario }).expect("an outcome")
            }
            Kind::Scene(scene) => scene(data).run(&machine, limits),
        }
    }
}
