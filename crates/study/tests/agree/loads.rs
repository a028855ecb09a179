//! The loads: the standard suite, and loads drawn at random.

use model::layout::FileLayout;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sim::{FileOnDisk, Limits, ReadStep, Reader, Scenario};
use units::Bytes;
use workload::{AccessMethod, Hint, Pattern, Workload};

/// The steps of a reader, from any source.
pub(crate) type Steps = Box<dyn Iterator<Item = ReadStep> + Send>;

/// Number of files, and the size of each.
pub(crate) const FILES: usize = 8;
pub(crate) const FILE: Bytes = Bytes::from_mib(16);
/// Number of random loads, in addition to the standard suite.
const MIXES: u64 = 10;

/// A set of reads that can be repeated identically.
pub(crate) struct Load {
    pub(crate) name: String,
    /// Concurrent parts; each reads files of its own.
    parts: Vec<Workload>,
    seed: u64,
}

/// Number of steps per reader.
#[derive(Clone, Copy)]
pub(crate) struct Distance {
    /// Steps of readers that read a file sequentially.
    pub(crate) streams: usize,
    /// Steps of all other readers.
    pub(crate) others: usize,
}

impl Load {
    /// Returns the standard suite, and loads drawn at random.
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

    /// Returns all parts as one scenario; `starts` contains the offsets of the files on the device.
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

/// Draws a reader at random: pattern, block, method and hint.
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
