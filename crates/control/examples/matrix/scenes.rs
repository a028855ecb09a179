//! Workloads that a declaration cannot express: the code lists the reads of each reader.

use sim::{
    FileOnDisk, Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome, Start,
    lay_out, run,
};
use units::{Bytes, Nanos};
use workload::{AccessClass, AccessMethod, Hint, Layout};

type Reads = Box<dyn Iterator<Item = ReadStep>>;

/// Files, open files and readers before the files are placed on a disk.
pub struct MatrixScene {
    sizes: Vec<u64>,
    opens: Vec<SimOpenFile>,
    readers: Vec<Reads>,
}

impl MatrixScene {
    pub fn run(self, machine: &SimMachine, limits: Limits) -> SimOutcome {
        let sizes: Vec<Bytes> = self.sizes.into_iter().map(Bytes::new).collect();
        let readers = self.readers.into_iter().map(|steps| Reader { steps }).collect();
        let files = place(machine, &sizes);
        let scenario = Scenario { files, opens: self.opens, readers, limits };
        run(machine, scenario).expect("an outcome")
    }
}

pub fn place(machine: &SimMachine, sizes: &[Bytes]) -> Vec<FileOnDisk> {
    lay_out(sizes, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO)
}

const MIB: u64 = 1 << 20;

/// Size of the partly cached file.
const PRIMED_BYTES: u64 = 512 * MIB;

/// Sizes of a pgbench table with 1,500,000 rows of 100 bytes and of its index, in blocks of 8 KiB.
const HEAP_SIZE: u64 = 192 * MIB;
const INDEX_SIZE: u64 = 32 * MIB;
const CLIENT_COUNT: u32 = 8;
/// Selects in all: enough to request nearly every block, and, during a scan, to fill the cache.
const SELECT_COUNT: u64 = 240_000;
const SELECTS_BESIDE: u64 = 30_000;

/// Time limit, long enough for all selects on the slowest device without read-ahead.
pub const SELECTS_TIME: Nanos = Nanos::from_secs(400);

fn opened(file: u32) -> SimOpenFile {
    SimOpenFile::new(file, AccessMethod::Read)
}

fn step(open: u32, offset: u64, length: u64) -> ReadStep {
    ReadStep {
        open,
        offset: Bytes::new(offset),
        length: Bytes::new(length),
        class: AccessClass::Stream,
        start: Start::After(Nanos::ZERO),
        advice: None,
    }
}

fn at_random(open: u32, offset: u64, length: u64) -> ReadStep {
    ReadStep { class: AccessClass::Random, ..step(open, offset, length) }
}

fn scramble(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn scan(open: u32, size: u64, block: u64) -> Reads {
    Box::new((0..size / block).map(move |at| step(open, at * block, block)))
}

/// Returns a scan of a file with some cached pieces of 16 KiB. The same reader first reads these
/// pieces in order, so that this takes little time.
fn partly(cached: impl Fn(u64) -> bool + 'static) -> MatrixScene {
    let some = (0..PRIMED_BYTES / 16_384).filter(move |piece| cached(scramble(*piece)));
    let prime = some.map(|piece| step(1, piece * 16_384, 16_384));
    let steps: Reads = Box::new(prime.chain(scan(0, PRIMED_BYTES, 65_536)));
    let random = SimOpenFile { hint: Hint::Random, ..opened(0) };
    MatrixScene { sizes: vec![PRIMED_BYTES], opens: vec![opened(0), random], readers: vec![steps] }
}

/// Returns a scan with on average one in `of` pieces cached.
pub fn primed(of: u64) -> MatrixScene {
    partly(move |number| number.is_multiple_of(of))
}

/// Returns a scan with on average all but one in `of` pieces cached.
pub fn primed_all_but(of: u64) -> MatrixScene {
    partly(move |number| !number.is_multiple_of(of))
}

/// A scan, random reads and four interleaved streams, one phase after another, through one open
/// file. At a fair rate each phase takes some seconds.
pub fn phases(data: Bytes) -> MatrixScene {
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
    MatrixScene { sizes: vec![size], opens: vec![opened(0)], readers: vec![steps] }
}

/// Selects by a random key: an index leaf, then the row. The clients use open files 0 to 15.
fn clients(selects: u64) -> (Vec<SimOpenFile>, Vec<Reads>) {
    let opens = (0..CLIENT_COUNT).flat_map(|_| [opened(0), opened(1)]).collect();
    let client = |client: u32| -> Reads {
        let first = u64::from(client) << 32;
        Box::new((first..first + selects).flat_map(move |number| {
            let leaf = scramble(2 * number) % (INDEX_SIZE / 8192);
            let row = scramble(2 * number + 1) % (HEAP_SIZE / 8192);
            [at_random(2 * client, leaf * 8192, 8192), at_random(2 * client + 1, row * 8192, 8192)]
        }))
    };
    (opens, (0..CLIENT_COUNT).map(client).collect())
}

/// Selects in a database that has just started, until nearly all of it is cached.
pub fn selects() -> MatrixScene {
    let (opens, readers) = clients(SELECT_COUNT / u64::from(CLIENT_COUNT));
    MatrixScene { sizes: vec![INDEX_SIZE, HEAP_SIZE], opens, readers }
}

/// Fewer selects, during a scan of another table.
pub fn selects_and_scan(data: Bytes) -> MatrixScene {
    let (mut opens, mut readers) = clients(SELECTS_BESIDE / u64::from(CLIENT_COUNT));
    opens.push(opened(2));
    // The scan repeats until the selects are done.
    let table = data.get();
    readers.push(Box::new((0..1000).flat_map(move |_| scan(2 * CLIENT_COUNT, table, 8192))));
    MatrixScene { sizes: vec![INDEX_SIZE, HEAP_SIZE, table], opens, readers }
}

/// Three workers share the scan of a table: each reads every third chunk of 64 blocks.
pub fn parallel_scan(data: Bytes) -> MatrixScene {
    const WORKER_COUNT: u64 = 3;
    const CHUNK_SIZE: u64 = 64;
    let chunks = data.get() / 8192 / CHUNK_SIZE;
    let worker = |worker: u64| -> Reads {
        let own = (worker..chunks).step_by(WORKER_COUNT as usize);
        Box::new(own.flat_map(move |chunk| {
            (0..CHUNK_SIZE)
                .map(move |block| step(worker as u32, (chunk * CHUNK_SIZE + block) * 8192, 8192))
        }))
    };
    MatrixScene {
        sizes: vec![data.get()],
        opens: (0..WORKER_COUNT).map(|_| opened(0)).collect(),
        readers: (0..WORKER_COUNT).map(worker).collect(),
    }
}

/// Eight threads read one column of a columnar file through one descriptor. Each reads a part of
/// every eighth row group, in calls of at most `call` bytes.
pub fn column(data: Bytes, call: u64) -> MatrixScene {
    const THREAD_COUNT: u64 = 8;
    const GROUP_SIZE: u64 = 8 * MIB;
    let part = |group: u64| (MIB / 2 + scramble(group) % (MIB / 2)).next_multiple_of(4096);
    let groups = data.get() / GROUP_SIZE;
    let thread = |thread: u64| -> Reads {
        let own = (thread..groups).step_by(THREAD_COUNT as usize);
        Box::new(own.flat_map(move |group| {
            let (first, size) = (group * GROUP_SIZE + 2 * MIB, part(group));
            (0..size).step_by(call as usize).map(move |at| step(0, first + at, call.min(size - at)))
        }))
    };
    MatrixScene {
        sizes: vec![data.get()],
        opens: vec![opened(0)],
        readers: (0..THREAD_COUNT).map(thread).collect(),
    }
}

/// Two streams, and two mappings that are read at random.
pub fn streams_and_mapping(data: Bytes) -> MatrixScene {
    let size = data.get() / 4;
    let mapped = |file| SimOpenFile { method: AccessMethod::Mmap, ..opened(file) };
    let faults = move |open: u32| -> Reads {
        let first = u64::from(open) << 32;
        let at = move |number| scramble(first + number) % (size / 4096) * 4096;
        Box::new((0..u64::MAX).map(move |number| at_random(open, at(number), 4096)))
    };
    MatrixScene {
        sizes: vec![size; 4],
        opens: vec![opened(0), opened(1), mapped(2), mapped(3)],
        readers: vec![scan(0, size, 65_536), scan(1, size, 65_536), faults(2), faults(3)],
    }
}
