//! Workloads that no declaration has: who reads what is written out.

use foreread_sim::{
    FileOnDisk, Limits, Machine, OpenFile, Outcome, Reader, Scenario, Start, Step, lay_out, run,
};
use units::{Bytes, Nanos};
use workload::{AccessClass, AccessMethod, Hint, Layout};

type Reads = Box<dyn Iterator<Item = Step>>;

/// Files, open files and readers, before they have a place on a disk.
pub struct Scene {
    sizes: Vec<u64>,
    opens: Vec<OpenFile>,
    readers: Vec<Reads>,
}

impl Scene {
    /// One trial.
    pub fn run(self, machine: &Machine, limits: Limits) -> Outcome {
        let sizes: Vec<Bytes> = self.sizes.into_iter().map(Bytes::new).collect();
        let readers = self.readers.into_iter().map(|steps| Reader { steps }).collect();
        let files = place(machine, &sizes);
        let scenario = Scenario { files, opens: self.opens, readers, limits };
        run(machine, scenario).expect("an outcome")
    }
}

/// Files one behind the other.
pub fn place(machine: &Machine, sizes: &[Bytes]) -> Vec<FileOnDisk> {
    lay_out(sizes, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO)
}

const MIB: u64 = 1 << 20;

/// The file that is partly cached.
const PRIMED: u64 = 512 * MIB;

/// 1,500,000 rows of pgbench: 100 bytes each and an index over them, in blocks of 8 KiB.
const HEAP: u64 = 192 * MIB;
const INDEX: u64 = 32 * MIB;
const CLIENTS: u32 = 8;
/// So many that next to every block was wanted, and enough to see the cache fill beside a scan.
const SELECTS: u64 = 240_000;
const SELECTS_BESIDE: u64 = 30_000;

/// Time enough for all selects of the slowest device without read-ahead.
pub const SELECTS_TIME: Nanos = Nanos::from_secs(400);

fn opened(file: u32) -> OpenFile {
    OpenFile { file, method: AccessMethod::Read, hint: Hint::None }
}

fn step(open: u32, offset: u64, length: u64) -> Step {
    Step {
        open,
        offset: Bytes::new(offset),
        length: Bytes::new(length),
        class: AccessClass::Stream,
        start: Start::After(Nanos::ZERO),
    }
}

fn at_random(open: u32, offset: u64, length: u64) -> Step {
    Step { class: AccessClass::Random, ..step(open, offset, length) }
}

/// Numbers that look random.
fn scramble(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn scan(open: u32, size: u64, block: u64) -> Reads {
    Box::new((0..size / block).map(move |at| step(open, at * block, block)))
}

/// A scan of a file of which some pieces of 16 KiB are cached. They are read in order before, so
/// that this takes little time.
fn partly(cached: impl Fn(u64) -> bool + 'static) -> Scene {
    let some = (0..PRIMED / 16_384).filter(move |piece| cached(scramble(*piece)));
    let prime = some.map(|piece| step(1, piece * 16_384, 16_384));
    let steps: Reads = Box::new(prime.chain(scan(0, PRIMED, 65_536)));
    let random = OpenFile { hint: Hint::Random, ..opened(0) };
    Scene { sizes: vec![PRIMED], opens: vec![opened(0), random], readers: vec![steps] }
}

/// One piece of so many is cached.
pub fn primed(of: u64) -> Scene {
    partly(move |number| number.is_multiple_of(of))
}

/// All pieces but one of so many are cached.
pub fn primed_all_but(of: u64) -> Scene {
    partly(move |number| !number.is_multiple_of(of))
}

/// Scan, random reads and four streams in turns by one open file; the reads of each phase are as
/// many as take some seconds at a fair rate.
pub fn phases(data: Bytes) -> Scene {
    let (size, blocks) = (data.get(), data.get() / 65_536);
    let phase = move |number: u64| -> Reads {
        let base = scramble(number) % (blocks / 2);
        match number % 3 {
            0 => Box::new((0..2000).map(move |n| step(0, (base + n) % blocks * 65_536, 65_536))),
            1 => Box::new(
                (0..400).map(move |n| step(0, scramble(base + n) % (size / 4096) * 4096, 4096)),
            ),
            _ => Box::new((0..2000).map(move |n| {
                let at = base + n / 4 + n % 4 * (blocks / 9);
                step(0, at % blocks * 65_536, 65_536)
            })),
        }
    };
    let steps: Reads = Box::new((0..30).flat_map(phase));
    Scene { sizes: vec![size], opens: vec![opened(0)], readers: vec![steps] }
}

/// Selects by a random key: a leaf of the index, then the row. Open files 0 to 15 are theirs.
fn clients(selects: u64) -> (Vec<OpenFile>, Vec<Reads>) {
    let opens = (0..CLIENTS).flat_map(|_| [opened(0), opened(1)]).collect();
    let client = |client: u32| -> Reads {
        let first = u64::from(client) << 32;
        Box::new((first..first + selects).flat_map(move |number| {
            let leaf = scramble(2 * number) % (INDEX / 8192);
            let row = scramble(2 * number + 1) % (HEAP / 8192);
            [at_random(2 * client, leaf * 8192, 8192), at_random(2 * client + 1, row * 8192, 8192)]
        }))
    };
    (opens, (0..CLIENTS).map(client).collect())
}

/// A database that was just started, until nearly all of it is cached.
pub fn selects() -> Scene {
    let (opens, readers) = clients(SELECTS / u64::from(CLIENTS));
    Scene { sizes: vec![INDEX, HEAP], opens, readers }
}

/// The same beside a scan of another table.
pub fn selects_and_scan(data: Bytes) -> Scene {
    let (mut opens, mut readers) = clients(SELECTS_BESIDE / u64::from(CLIENTS));
    opens.push(opened(2));
    // It goes on as long as the selects do.
    let table = data.get();
    readers.push(Box::new((0..1000).flat_map(move |_| scan(2 * CLIENTS, table, 8192))));
    Scene { sizes: vec![INDEX, HEAP, table], opens, readers }
}

/// Three workers share the scan of a table, each taking the next 64 blocks when it is done.
pub fn parallel_scan(data: Bytes) -> Scene {
    const WORKERS: u64 = 3;
    const CHUNK: u64 = 64;
    let chunks = data.get() / 8192 / CHUNK;
    let worker = |worker: u64| -> Reads {
        let own = (worker..chunks).step_by(WORKERS as usize);
        Box::new(own.flat_map(move |chunk| {
            (0..CHUNK).map(move |block| step(worker as u32, (chunk * CHUNK + block) * 8192, 8192))
        }))
    };
    Scene {
        sizes: vec![data.get()],
        opens: (0..WORKERS).map(|_| opened(0)).collect(),
        readers: (0..WORKERS).map(worker).collect(),
    }
}

/// Two streams beside two mappings that are read at random.
pub fn streams_and_mapping(data: Bytes) -> Scene {
    let size = data.get() / 4;
    let mapped = |file| OpenFile { method: AccessMethod::Mmap, ..opened(file) };
    let faults = move |open: u32| -> Reads {
        let first = u64::from(open) << 32;
        let at = move |number| scramble(first + number) % (size / 4096) * 4096;
        Box::new((0..u64::MAX).map(move |number| at_random(open, at(number), 4096)))
    };
    Scene {
        sizes: vec![size; 4],
        opens: vec![opened(0), opened(1), mapped(2), mapped(3)],
        readers: vec![scan(0, size, 65_536), scan(1, size, 65_536), faults(2), faults(3)],
    }
}
