//! The twelve micro-workloads that distinguish read-ahead algorithms, a database, and mixes.
//!
//! Each micro-workload has the variants in which algorithms differ. Unless a workload says
//! otherwise, its files together hold all data, which is four times the cache.

use sim::{Limits, Scenario, SimMachine, SimOutcome, run_workload};
use units::{Bytes, Nanos};
use workload::{AccessMethod, Pattern, Workload};

use super::scenes::{self, MatrixScene, place};

macro_rules! matrix_cases {
    ($($(#[$doc:meta])* $case:ident: $name:literal,)*) => {
        /// The workloads of the matrix, in the order of the tables. Blocks have 64 KiB unless the
        /// case says otherwise.
        #[derive(Clone, Copy, Debug)]
        pub enum MatrixCase {
            $($(#[$doc])* $case,)*
        }

        impl MatrixCase {
            pub const ALL: &[Self] = &[$(Self::$case,)*];

            /// The name in the tables, which starts with the number of the micro-workload.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$case => $name,)*
                }
            }
        }
    };
}

matrix_cases! {
    /// One reader reads one file once, in order.
    OnePass: "w1 one pass",
    /// One reader reads 2048 files of 1 MiB, each in order.
    Files1MiB: "w1 files of 1M",
    /// One reader reads 512 files of 4 MiB, each in order.
    Files4MiB: "w1 files of 4M",
    /// One reader reads 128 files of 16 MiB, each in order.
    Files16MiB: "w1 files of 16M",
    /// One reader reads 16 files of 256 MiB, each in order.
    Files256MiB: "w1 files of 256M",
    /// One sequential reader that computes for 0.1 ms between two reads.
    Think100Us: "w2 think 0.1 ms",
    /// One sequential reader that computes for 1 ms between two reads.
    Think1Ms: "w2 think 1 ms",
    /// Two sequential streams that take turns on one open file.
    OneFd2Streams: "w6 2 streams, one fd",
    /// Eight sequential streams that take turns on one open file.
    OneFd8Streams: "w6 8 streams, one fd",
    /// Eight threads that read parts of 0.5 to 1 MiB through one open file, each in one call.
    OneFdParts: "w6 8 threads, parts at once, one fd",
    /// The same parts, in calls of 64 KiB.
    OneFdPartsBy64KiB: "w6 8 threads, parts by 64K, one fd",
    /// Two sequential readers, each with a file of its own.
    Streams2: "w6 2 streams",
    /// Eight sequential readers, each with a file of its own.
    Streams8: "w6 8 streams",
    /// 64 sequential readers, each with a file of its own.
    Streams64: "w6 64 streams",
    /// Eight readers of random pages of 4 KiB through a mapping.
    RandomMmap: "w3 random mmap",
    /// Eight readers of random pages of 4 KiB with pread.
    RandomPread: "w3 random pread",
    /// The first 4 KiB of each 8 KiB, forward.
    Stride4KiBOf8KiB: "w4 4K of each 8K",
    /// The first 4 KiB of each 64 KiB, forward.
    Stride4KiBOf64KiB: "w4 4K of each 64K",
    /// The first 4 KiB of each 256 KiB, forward.
    Stride4KiBOf256KiB: "w4 4K of each 256K",
    /// The first 64 KiB of each 256 KiB, forward.
    Stride64KiBOf256KiB: "w4 64K of each 256K",
    /// Blocks of 4 KiB from the end of the file to its start.
    Backward4KiB: "w5 backward 4K",
    /// Blocks of 64 KiB from the end of the file to its start.
    Backward64KiB: "w5 backward 64K",
    /// A stream with 10 % random reads of 4 KiB through the same open file.
    Mixed10Percent: "w7 10 % random, one fd",
    /// A stream with 50 % random reads of 4 KiB through the same open file.
    Mixed50Percent: "w7 50 % random, one fd",
    /// A stream with 90 % random reads of 4 KiB through the same open file.
    Mixed90Percent: "w7 90 % random, one fd",
    /// A seek to a random offset, then 16 KiB in blocks of 4 KiB.
    SeekRead16KiB: "w10 seek and read 16K",
    /// A seek to a random offset, then 64 KiB in blocks of 4 KiB.
    SeekRead64KiB: "w10 seek and read 64K",
    /// A seek to a random offset, then 256 KiB in blocks of 4 KiB.
    SeekRead256KiB: "w10 seek and read 256K",
    /// 64 sequential readers with a page cache of 16 MiB.
    Tight16MiB: "w8 64 streams in 16M",
    /// 64 sequential readers with a page cache of 64 MiB.
    Tight64MiB: "w8 64 streams in 64M",
    /// 64 sequential readers with a page cache of 256 MiB.
    Tight256MiB: "w8 64 streams in 256M",
    /// A scan of a file of which 5 % is cached, in pieces of 16 KiB.
    Cached5Percent: "w9 scan, 5 % cached",
    /// A scan of a file of which 25 % is cached, in pieces of 16 KiB.
    Cached25Percent: "w9 scan, 25 % cached",
    /// A scan of a file of which 75 % is cached, in pieces of 16 KiB.
    Cached75Percent: "w9 scan, 75 % cached",
    /// A scan, random reads and four streams, one phase after another, through one open file.
    Phases: "w12 phases",
    /// 40,000 files of 4 KiB, each read whole.
    SmallFiles4KiB: "w11 files of 4K",
    /// 10,000 files of 64 KiB, read in blocks of 4 KiB.
    SmallFiles64KiB: "w11 files of 64K by 4K",
    /// 10,000 files of 256 KiB, read in blocks of 128 KiB.
    SmallFiles256KiB: "w11 files of 256K by 128K",
    /// Selects by a random key in a database whose files are not cached at the start.
    ColdSelects: "pg selects from cold",
    /// A sequential scan of a table in blocks of 8 KiB.
    TableScan: "pg scan",
    /// A scan of a table that three workers share.
    ParallelScan: "pg parallel scan",
    /// Selects by a random key during a scan of another table.
    SelectsAndScan: "mix pg selects and scan",
    /// Four streaming readers with 10 % random reads of 8 KiB through separate open files.
    StreamsAndRandom: "mix streams and random",
    /// Two streams and two mappings that are read at random.
    StreamsAndMmap: "mix streams and mmap",
}

pub struct MatrixWork {
    kind: WorkKind,
    /// Size of the page cache; `None` for that of the matrix.
    cache: Option<Bytes>,
    /// Time limit of a cell; `None` for that of the matrix.
    time: Option<Nanos>,
    /// Whether streams and random reads belong to readers that do not wait for each other.
    pub apart: bool,
}

enum WorkKind {
    Declared(Box<Workload>),
    MatrixScene(fn(Bytes) -> MatrixScene),
}

fn of(pattern: Pattern, block_kib: u64) -> Workload {
    Workload::new("work", pattern, Bytes::from_kib(block_kib))
}

fn sequential(block_kib: u64, readers: u32) -> Workload {
    Workload { readers, ..of(Pattern::Sequential, block_kib) }
}

fn files(mib: u64, count: u32) -> Workload {
    Workload { files_per_reader: count, file_size: Some(Bytes::from_mib(mib)), ..sequential(64, 1) }
}

fn small_files(kib: u64, block_kib: u64, count: u32) -> Workload {
    Workload {
        files_per_reader: count,
        file_size: Some(Bytes::from_kib(kib)),
        ..of(Pattern::Sequential, block_kib)
    }
}

fn think(micros: u64) -> Workload {
    Workload { think: Nanos::from_micros(micros), ..sequential(64, 1) }
}

fn one_fd(streams: u32) -> Workload {
    of(Pattern::Interleaved { streams }, 64)
}

fn random(access: AccessMethod) -> Workload {
    Workload { readers: 8, access, ..of(Pattern::Uniform, 4) }
}

fn stride(block_kib: u64, step_kib: u64) -> Workload {
    of(Pattern::Stride { step: Bytes::from_kib(step_kib) }, block_kib)
}

fn mixed(random_fraction: f64, random_kib: u64, same_open_file: bool) -> Workload {
    let random_block = Bytes::from_kib(random_kib);
    of(Pattern::Mixed { random_fraction, random_block, same_open_file }, 64)
}

fn seek(blocks: u32) -> Workload {
    of(Pattern::SeekAndRead { blocks }, 4)
}

fn of_kind(kind: WorkKind) -> MatrixWork {
    MatrixWork { kind, cache: None, time: None, apart: false }
}

fn declared(workload: Workload) -> MatrixWork {
    of_kind(WorkKind::Declared(Box::new(workload)))
}

fn scene(scene: fn(Bytes) -> MatrixScene) -> MatrixWork {
    of_kind(WorkKind::MatrixScene(scene))
}

/// 64 sequential readers with a page cache of this size in MiB.
fn tight(cache_mib: u64) -> MatrixWork {
    MatrixWork { cache: Some(Bytes::from_mib(cache_mib)), ..declared(sequential(64, 64)) }
}

fn selects(kind: fn(Bytes) -> MatrixScene) -> MatrixWork {
    MatrixWork { time: Some(scenes::SELECTS_TIME), ..scene(kind) }
}

impl MatrixCase {
    pub fn work(self) -> MatrixWork {
        match self {
            Self::OnePass => declared(sequential(64, 1)),
            Self::Files1MiB => declared(files(1, 2048)),
            Self::Files4MiB => declared(files(4, 512)),
            Self::Files16MiB => declared(files(16, 128)),
            Self::Files256MiB => declared(files(256, 16)),
            Self::Think100Us => declared(think(100)),
            Self::Think1Ms => declared(think(1000)),
            Self::OneFd2Streams => declared(one_fd(2)),
            Self::OneFd8Streams => declared(one_fd(8)),
            Self::OneFdParts => scene(|data| scenes::column(data, 1 << 20)),
            Self::OneFdPartsBy64KiB => scene(|data| scenes::column(data, 1 << 16)),
            Self::Streams2 => declared(sequential(64, 2)),
            Self::Streams8 => declared(sequential(64, 8)),
            Self::Streams64 => declared(sequential(64, 64)),
            Self::RandomMmap => declared(random(AccessMethod::Mmap)),
            Self::RandomPread => declared(random(AccessMethod::Read)),
            Self::Stride4KiBOf8KiB => declared(stride(4, 8)),
            Self::Stride4KiBOf64KiB => declared(stride(4, 64)),
            Self::Stride4KiBOf256KiB => declared(stride(4, 256)),
            Self::Stride64KiBOf256KiB => declared(stride(64, 256)),
            Self::Backward4KiB => declared(of(Pattern::Backward, 4)),
            Self::Backward64KiB => declared(of(Pattern::Backward, 64)),
            Self::Mixed10Percent => declared(mixed(0.1, 4, true)),
            Self::Mixed50Percent => declared(mixed(0.5, 4, true)),
            Self::Mixed90Percent => declared(mixed(0.9, 4, true)),
            Self::SeekRead16KiB => declared(seek(4)),
            Self::SeekRead64KiB => declared(seek(16)),
            Self::SeekRead256KiB => declared(seek(64)),
            Self::Tight16MiB => tight(16),
            Self::Tight64MiB => tight(64),
            Self::Tight256MiB => tight(256),
            Self::Cached5Percent => scene(|_| scenes::primed(20)),
            Self::Cached25Percent => scene(|_| scenes::primed(4)),
            Self::Cached75Percent => scene(|_| scenes::primed_all_but(4)),
            Self::Phases => scene(scenes::phases),
            Self::SmallFiles4KiB => declared(small_files(4, 4, 40_000)),
            Self::SmallFiles64KiB => declared(small_files(64, 4, 10_000)),
            Self::SmallFiles256KiB => declared(small_files(256, 128, 10_000)),
            Self::ColdSelects => selects(|_| scenes::selects()),
            Self::TableScan => declared(sequential(8, 1)),
            Self::ParallelScan => scene(scenes::parallel_scan),
            Self::SelectsAndScan => MatrixWork { apart: true, ..selects(scenes::selects_and_scan) },
            Self::StreamsAndRandom => declared(Workload { readers: 4, ..mixed(0.1, 8, false) }),
            Self::StreamsAndMmap => {
                MatrixWork { apart: true, ..scene(scenes::streams_and_mapping) }
            }
        }
    }
}

impl MatrixWork {
    /// Runs one trial. The machine's seed determines the order of random reads; seed 1 gives that
    /// of the published tables.
    pub fn run(&self, machine: &SimMachine, data: Bytes, time: Nanos) -> SimOutcome {
        let machine = SimMachine { cache: self.cache.unwrap_or(machine.cache), ..machine.clone() };
        let limits = Limits { time: self.time.unwrap_or(time), ends_with_first: true };
        match &self.kind {
            WorkKind::Declared(workload) => {
                let count = u64::from(workload.files());
                let part = Bytes::new(data.get() / count / (1 << 20) * (1 << 20));
                let sizes = vec![workload.file_size.unwrap_or(part); count as usize];
                let files = place(&machine, &sizes);
                let scenario = Scenario::of_workload(workload, files, machine.seed.wrapping_add(6))
                    .expect("a scenario");
                run_workload(&machine, Scenario { limits, ..scenario }).expect("an outcome")
            }
            WorkKind::MatrixScene(scene) => scene(data).run(&machine, limits),
        }
    }
}
