//! What is read: the standard suite, and loads drawn at random.

use model::layout::FileLayout;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sim::{FileOnDisk, Limits, ReadStep, Reader, Scenario};
use units::Bytes;
use workload::{AccessMethod, Hint, Pattern, Workload};

/// A reader's steps, of whatever make.
pub(crate) type Steps = Box<dyn Iterator<Item = ReadStep> + Send>;

/// Files that there are, and the size of each.
pub(crate) const FILES: usize = 8;
pub(crate) const FILE: Bytes = Bytes::from_mib(16);
/// Random loads, in addition to the standard suite.
const MIXES: u64 = 10;

/// Something that is read, again and again in the same way.
pub(crate) struct Load {
    pub(crate) name: String,
    /// One after another, each with files of its own.
    parts: Vec<Workload>,
    seed: u64,
}

/// How far readers go.
#[derive(Clone, Copy)]
pub(crate) struct Distance {
    /// Those that go through their file.
    pub(crate) streams: usize,
    /// All others.
    pub(crate) others: usize,
}

impl Load {
    /// The standard suite, and loads drawn at random.
    pub(crate) fn all() -> Vec<Self> {
        let suite = Workload::suite().into_iter();
        let suite = suite.map(|part| Self { name: part.name.clone(), parts: vec![part], seed: 1 });
        let mixes = (0..MIXES).map(|seed| {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let parts = (0..rng.random_range(2..6)).map(|_| one(&mut rng)).collect();
            Self { name: format!("mix-{seed}"), parts, seed }
        });
        suite.chain(mixes).collect()
    }

    /// All its parts at once; `starts` says where on the device the files lie.
    pub(crate) fn scenario(&self, steps: Distance, starts: &[Bytes]) -> Scenario<Steps> {
        let place = |start: &Bytes| FileOnDisk {
            size: FILE,
            start: *start,
            layout: FileLayout::Contiguous,
            pieces: None,
        };
        let mut all = Scenario {
            files: starts.iter().map(place).collect(),
            opens: Vec::new(),
            readers: Vec::new(),
            limits: Limits::default(),
        };
        let mut first = 0;
        for (part, seed) in self.parts.iter().zip(self.seed..) {
            let count = part.files() as usize;
            let own: Vec<FileOnDisk> = all.files[first..first + count].to_vec();
            let scenario = Scenario::of_workload(part, own, seed).expect("a workload");
            let opens = all.opens.len() as u32;
            all.opens.extend(scenario.opens.into_iter().map(|mut open| {
                open.file += first as u32;
                open
            }));
            let steps =
                if part.pattern == Pattern::Sequential { steps.streams } else { steps.others };
            for reader in scenario.readers {
                let renamed = move |step: ReadStep| ReadStep { open: step.open + opens, ..step };
                let taken: Steps = Box::new(reader.steps.into_iter().map(renamed).take(steps));
                all.readers.push(Reader { steps: taken });
            }
            first += count;
        }
        all
    }
}

/// A reader drawn at random: pattern, block, method and hint.
fn one(rng: &mut Pcg64Mcg) -> Workload {
    let block = Bytes::from_kib(*pick(rng, &[4, 4, 8, 16, 64, 128]));
    let pattern = match rng.random_range(0..7) {
        0 | 1 => Pattern::Sequential,
        2 => Pattern::Uniform,
        3 => Pattern::Stride { step: Bytes::new(block.get() * rng.random_range(2..6)) },
        4 => Pattern::SeekAndRead { blocks: rng.random_range(2..9) },
        5 => Pattern::Interleaved { streams: rng.random_range(2..5) },
        _ => Pattern::Disorder { span: rng.random_range(2..5) },
    };
    let mut reader = Workload::new("part", pattern, block);
    if rng.random::<f64>() < 0.2 {
        reader.access = AccessMethod::Mmap;
    } else if rng.random::<f64>() < 0.2 {
        reader.hint = *pick(rng, &[Hint::Sequential, Hint::Random]);
    }
    reader
}

fn pick<'a, T>(rng: &mut Pcg64Mcg, of: &'a [T]) -> &'a T {
    &of[rng.random_range(0..of.len())]
}
