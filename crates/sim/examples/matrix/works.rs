//! The twelve micro-workloads that tell read-ahead algorithms apart, and mixes of them.

use foreread_sim::{
    FileOnDisk, Limits, Machine, OpenFile, Outcome, Reader, Scenario, Start, Step, lay_out, run,
};
use units::{Bytes, Nanos};
use workload::{AccessClass, AccessMethod, Hint, Layout, Pattern, Workload};

/// A workload of the matrix.
pub struct Work {
    pub name: &'static str,
    kind: Kind,
    /// The page cache; that of the matrix unless given.
    pub cache: Option<Bytes>,
}

enum Kind {
    Declared(Box<Workload>),
    /// A scan of a file of which a quarter is cached, here and there.
    Primed,
    /// Scan, random reads and four streams in turns, five seconds each, by one open file.
    Phases,
}

type Steps = Box<dyn Iterator<Item = Step>>;

/// All of them.
pub fn works() -> Vec<Work> {
    let of = |name, pattern, block_kib| Workload::new(name, pattern, Bytes::from_kib(block_kib));
    let sequential =
        |name, block, readers| Workload { readers, ..of(name, Pattern::Sequential, block) };
    let stride = |name, block, step_kib| {
        of(name, Pattern::Stride { step: Bytes::from_kib(step_kib) }, block)
    };
    let declared = |workload: Workload| Work {
        name: Box::leak(workload.name.clone().into_boxed_str()),
        kind: Kind::Declared(Box::new(Workload { name: "work".to_owned(), ..workload })),
        cache: None,
    };
    let own = |name, kind| Work { name, kind, cache: None };
    let mixed = Pattern::Mixed {
        random_fraction: 0.5,
        random_block: Bytes::from_kib(4),
        same_open_file: true,
    };
    let mut works: Vec<Work> = [
        sequential("w1 one pass", 64, 1),
        Workload { think: Nanos::from_millis(1), ..sequential("w2 with think time", 64, 1) },
        Workload { readers: 8, ..of("w3 random pread", Pattern::Uniform, 4) },
        Workload {
            readers: 8,
            access: AccessMethod::Mmap,
            ..of("w3 random mmap", Pattern::Uniform, 4)
        },
        stride("w4 4K of each 64K", 4, 64),
        stride("w4 64K of each 256K", 64, 256),
        of("w5 backward 4K", Pattern::Backward, 4),
        of("w5 backward 64K", Pattern::Backward, 64),
        of("w6 8 streams, one fd", Pattern::Interleaved { streams: 8 }, 64),
        sequential("w6 8 streams", 64, 8),
        sequential("w6 64 streams", 64, 64),
        of("w7 half random, one fd", mixed, 64),
        of("w10 seek and read 64K", Pattern::SeekAndRead { blocks: 16 }, 4),
        Workload {
            files_per_reader: 2000,
            file_size: Some(Bytes::from_kib(64)),
            ..of("w11 small files", Pattern::Sequential, 4)
        },
    ]
    .into_iter()
    .map(declared)
    .collect();
    works.push(Work {
        cache: Some(Bytes::from_mib(64)),
        ..declared(sequential("w8 64 streams in 64M", 64, 64))
    });
    works.push(own("w9 scan of a primed file", Kind::Primed));
    works.push(own("w12 phases", Kind::Phases));
    works.push(declared(Workload {
        readers: 4,
        ..of(
            "mix streams and random",
            Pattern::Mixed {
                random_fraction: 0.1,
                random_block: Bytes::from_kib(8),
                same_open_file: false,
            },
            64,
        )
    }));
    works
}

impl Work {
    /// One trial.
    pub fn run(&self, machine: &Machine, data: Bytes, time: Nanos) -> Outcome {
        let machine = Machine { cache: self.cache.unwrap_or(machine.cache), ..machine.clone() };
        match &self.kind {
            Kind::Declared(workload) => {
                let count = u64::from(workload.files());
                let size = workload
                    .file_size
                    .unwrap_or(Bytes::new(data.get() / count / (1 << 20) * (1 << 20)));
                let files = place(&machine, &vec![size; count as usize]);
                let mut scenario = Scenario::of_workload(workload, files, 7).expect("a scenario");
                scenario.limits = Limits { time, ends_with_first: true };
                run(&machine, scenario).expect("an outcome")
            }
            Kind::Primed => alone(&machine, data.min(Bytes::from_mib(512)), time, primed),
            Kind::Phases => alone(&machine, data, time, phases),
        }
    }
}

fn place(machine: &Machine, sizes: &[Bytes]) -> Vec<FileOnDisk> {
    lay_out(sizes, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO)
}

/// One reader of one file.
fn alone(machine: &Machine, size: Bytes, time: Nanos, steps: fn(u64) -> Steps) -> Outcome {
    let open = |hint| OpenFile { file: 0, method: AccessMethod::Read, hint };
    let scenario = Scenario {
        files: place(machine, &[size]),
        opens: vec![open(Hint::None), open(Hint::Random)],
        readers: vec![Reader { steps: steps(size.get()) }],
        limits: Limits { time, ends_with_first: true },
    };
    run(machine, scenario).expect("an outcome")
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

/// Numbers that look random.
fn scramble(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn primed(size: u64) -> Steps {
    // A quarter of its 16 KiB pieces, in order, so that the priming itself takes little time.
    let some = (0..size / 16384).filter(|piece| scramble(*piece).is_multiple_of(4));
    let prime = some.map(|piece| step(1, piece * 16384, 16384));
    Box::new(prime.chain((0..size / 65536).map(|block| step(0, block * 65536, 65536))))
}

/// The reads of each phase are as many as take about five seconds at a fair rate.
fn phases(size: u64) -> Steps {
    let blocks = size / 65536;
    let phase = move |number: u64| -> Steps {
        let base = scramble(number) % (blocks / 2);
        match number % 3 {
            0 => Box::new((0..2000).map(move |n| step(0, (base + n) % blocks * 65536, 65536))),
            1 => Box::new(
                (0..400).map(move |n| step(0, scramble(base + n) % (size / 4096) * 4096, 4096)),
            ),
            _ => Box::new((0..2000).map(move |n| {
                let at = base + n / 4 + n % 4 * (blocks / 9);
                step(0, at % blocks * 65536, 65536)
            })),
        }
    };
    Box::new((0..30).flat_map(phase))
}
