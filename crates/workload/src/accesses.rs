//! Generates the accesses of one reader from a workload and a seed.

use std::collections::HashSet;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use units::Bytes;

use crate::access::{Access, AccessClass};
use crate::declaration::Workload;
use crate::error::WorkloadError;
use crate::parameters::{Pattern, Sharing};
use crate::permutation::Permutation;
use crate::replay::{AccessSource, TraceReplay};
use crate::space::{BlockSpace, share};
use crate::varied::{PlaceOrder, Varied};
use crate::zipf::Zipf;

/// The accesses of one reader, in order. The same seed gives the same accesses.
#[derive(Clone, Debug)]
pub struct Accesses {
    space: BlockSpace,
    next: u64,
    order: Order,
    /// Maximum number of remaining accesses.
    left: u64,
}

/// The state of each pattern between two accesses.
#[derive(Clone, Debug)]
enum Order {
    Forward,
    Backward,
    Uniform(Permutation),
    Zipf { ranks: Zipf, places: Permutation, rng: Pcg64Mcg },
    Runs { places: Permutation, run: Option<Access>, block: Bytes },
    Turns(Vec<Turn>),
    Mixed(Box<Mixed>),
    Disorder { span: u64, group: Permutation, rng: Pcg64Mcg },
    Trace(Replayed),
    Varied(Box<Varied>),
}

/// The requests of a trace, piece by piece.
#[derive(Clone, Debug)]
struct Replayed {
    source: Arc<dyn AccessSource>,
    piece: Arc<[Access]>,
    at: usize,
    next_piece: usize,
}

impl Replayed {
    #[inline]
    fn next(&mut self) -> Option<Access> {
        loop {
            if let Some(access) = self.piece.get(self.at) {
                self.at += 1;
                return Some(*access);
            }
            self.piece = self.source.piece(self.next_piece)?;
            self.next_piece += 1;
            self.at = 0;
        }
    }
}

/// One of several streams on an open file.
#[derive(Clone, Copy, Debug)]
struct Turn {
    next: u64,
    end: u64,
}

/// The random part of a mixed pattern.
#[derive(Clone, Debug)]
struct Mixed {
    space: BlockSpace,
    places: Permutation,
    drawn: u64,
    /// The next random access, wherever it occurs in the order.
    peeked: Option<Access>,
    /// The random share, in units of 2^-53.
    share: u64,
    rng: Pcg64Mcg,
    /// Whether the next access is already known to be random.
    random_next: bool,
}

/// Maximum number of consecutive accesses that are counted at once.
const RUN_MAX: u64 = 1024;

impl Iterator for Accesses {
    type Item = Access;

    #[inline]
    fn next(&mut self) -> Option<Access> {
        self.left = self.left.checked_sub(1)?;
        let len = self.space.len();
        let step = self.next;
        match &mut self.order {
            Order::Forward => {
                self.next += 1;
                (step < len).then(|| self.space.at(step, AccessClass::Stream))
            }
            Order::Backward => {
                self.next += 1;
                (step < len).then(|| self.space.at(len - 1 - step, AccessClass::Stream))
            }
            Order::Uniform(places) => {
                self.next += 1;
                (step < len).then(|| self.space.at(places.at(step), AccessClass::Random))
            }
            Order::Zipf { ranks, places, rng } => {
                Some(self.space.at(places.at(ranks.draw(rng)), AccessClass::Random))
            }
            Order::Runs { places, run, block } => {
                if let Some(access) = run.as_mut().and_then(|rest| cut(rest, *block)) {
                    return Some(access);
                }
                self.next += 1;
                let mut seek =
                    (step < len).then(|| self.space.at(places.at(step), AccessClass::Random))?;
                let first = cut(&mut seek, *block);
                *run = Some(Access { class: AccessClass::Stream, ..seek });
                first
            }
            Order::Turns(turns) => {
                let streams = turns.len() as u64;
                for waited in 0..streams {
                    let turn = &mut turns[((step + waited) % streams) as usize];
                    if turn.next < turn.end {
                        turn.next += 1;
                        self.next = step + waited + 1;
                        return Some(self.space.at(turn.next - 1, AccessClass::Stream));
                    }
                }
                None
            }
            Order::Mixed(mixed) => mixed.next(&self.space, &mut self.next),
            Order::Disorder { span, group, rng } => {
                self.next += 1;
                (step < len).then(|| {
                    let within = step % *span;
                    let start = step - within;
                    if within == 0 {
                        *group = Permutation::new((*span).min(len - start), rng);
                    }
                    self.space.at(start + group.at(within), AccessClass::Stream)
                })
            }
            Order::Varied(varied) => varied.next(&self.space, &mut self.next),
            Order::Trace(replayed) => replayed.next(),
        }
    }
}

impl Accesses {
    /// Returns the next access and the number of consecutive accesses like it: of the same class,
    /// file and length, each starting where the previous one ended. Skips the other accesses.
    #[inline]
    pub fn next_run(&mut self) -> Option<(Access, u64)> {
        match &mut self.order {
            Order::Mixed(mixed) => {
                let most = RUN_MAX.min(self.left);
                let (access, times) = mixed.next_run(&self.space, &mut self.next, most)?;
                self.left -= times;
                Some((access, times))
            }
            Order::Forward => {
                let number = self.next;
                let access = self.next()?;
                let times = self.space.run(number, RUN_MAX.min(self.left + 1));
                self.next += times - 1;
                self.left -= times - 1;
                Some((access, times))
            }
            _ => self.next().map(|access| (access, 1)),
        }
    }

    /// Returns the next random access, if it is already known.
    #[inline]
    pub fn peek_random(&self) -> Option<&Access> {
        match &self.order {
            Order::Mixed(mixed) => mixed.peeked.as_ref(),
            _ => None,
        }
    }
}

/// Removes up to `block` bytes from the front of a run.
fn cut(rest: &mut Access, block: Bytes) -> Option<Access> {
    let length = rest.length.min(block);
    let access = Access { length, ..*rest };
    rest.offset += length;
    rest.length = rest.length - length;
    (!length.is_zero()).then_some(access)
}

impl Mixed {
    /// Draws the random access after `peeked`.
    #[inline]
    fn draw(&mut self) {
        let drawn = self.drawn;
        self.drawn += 1;
        self.peeked = (drawn < self.space.len())
            .then(|| self.space.at(self.places.at(drawn), AccessClass::Random));
    }

    #[inline]
    fn is_random(&mut self) -> bool {
        // Equivalent to `random::<f64>() < fraction` without floats: it draws 53 bits.
        std::mem::take(&mut self.random_next) || self.rng.next_u64() >> 11 < self.share
    }

    /// Returns the number of consecutive accesses to the stream, including the previous one, at
    /// most `most`.
    #[inline]
    fn streams_on(&mut self, most: u64) -> u64 {
        // The classes of the following accesses are not drawn yet. The copy of the generator stays
        // in the processor's registers.
        let mut rng = self.rng.clone();
        let mut times = 1;
        while times < most {
            if rng.next_u64() >> 11 < self.share {
                self.random_next = true;
                break;
            }
            times += 1;
        }
        self.rng = rng;
        times
    }

    fn next(&mut self, stream: &BlockSpace, next: &mut u64) -> Option<Access> {
        if self.is_random() {
            return self.next_random();
        }
        let step = *next;
        *next += 1;
        (step < stream.len()).then(|| stream.at(step, AccessClass::Stream))
    }

    #[inline]
    fn next_random(&mut self) -> Option<Access> {
        let access = self.peeked;
        self.draw();
        access
    }

    #[inline]
    fn next_run(
        &mut self,
        stream: &BlockSpace,
        next: &mut u64,
        most: u64,
    ) -> Option<(Access, u64)> {
        if most == 0 {
            return None;
        }
        if self.is_random() {
            return self.next_random().map(|access| (access, 1));
        }
        let step = *next;
        if step >= stream.len() {
            return None;
        }
        let times = self.streams_on(stream.run(step, most));
        *next += times;
        Some((stream.at(step, AccessClass::Stream), times))
    }
}

impl Workload {
    /// Returns the accesses of `reader` (from 0) to files of these sizes: its own files, or its
    /// part of shared files.
    pub fn accesses(
        &self,
        reader: u32,
        file_sizes: &[Bytes],
        seed: u64,
    ) -> Result<Accesses, WorkloadError> {
        self.validate()?;
        self.check_reader(reader, file_sizes)?;
        if let Some(outside) = &self.outside {
            let program = outside.program();
            return Err(WorkloadError::NotOurs { workload: self.name.clone(), program });
        }
        if let Some(replay) = &self.replay {
            return self.replayed(replay, reader, file_sizes);
        }
        let (part, parts) = match self.sharing {
            Sharing::OwnFile => (0, 1),
            Sharing::SharedOpenFile | Sharing::SharedFile => (reader, self.readers),
        };
        let unit = self.block_min.unwrap_or(self.block);
        let space = match self.zone {
            None => BlockSpace::of_files(file_sizes, unit, part, parts),
            Some(zone) => BlockSpace::of_zone(file_sizes, unit, (part, parts), zone),
        };
        let blocks = match self.pattern {
            Pattern::Interleaved { streams } => u64::from(streams),
            Pattern::Mixed { .. } => 2,
            _ => 1,
        };
        if space.len() < blocks {
            return Err(WorkloadError::TooSmall {
                workload: self.name.clone(),
                size: space.size(),
                needed: Bytes::new(self.block.get().saturating_mul(blocks)),
            });
        }
        Ok(self.order(space, &mut reader_rng(seed, reader)))
    }

    /// Returns the reads of `reader` in a trace. The files must be large enough.
    fn replayed(
        &self,
        replay: &TraceReplay,
        reader: u32,
        file_sizes: &[Bytes],
    ) -> Result<Accesses, WorkloadError> {
        let Some(source) = replay.reads(reader) else {
            return Err(WorkloadError::TraceNotLoaded { trace: replay.trace.clone() });
        };
        let needed = replay.file_sizes();
        for (file, size) in (0..).zip(file_sizes) {
            let needed = needed.get(self.data_file_of(file) as usize).copied().unwrap_or_default();
            if *size < needed {
                let workload = self.name.clone();
                return Err(WorkloadError::TooSmall { workload, size: *size, needed });
            }
        }
        let space = BlockSpace::of_files(&[], self.block, 0, 1);
        let replayed = Replayed { source, piece: Arc::from([]), at: 0, next_piece: 0 };
        Ok(Accesses { space, next: 0, order: Order::Trace(replayed), left: u64::MAX })
    }

    fn check_reader(&self, reader: u32, file_sizes: &[Bytes]) -> Result<(), WorkloadError> {
        let workload = || self.name.clone();
        if reader >= self.readers {
            let readers = self.readers;
            return Err(WorkloadError::NoSuchReader { workload: workload(), readers, reader });
        }
        if file_sizes.len() != self.files_per_reader as usize {
            let (wanted, given) = (self.files_per_reader, file_sizes.len());
            return Err(WorkloadError::WrongFileCount { workload: workload(), wanted, given });
        }
        Ok(())
    }

    fn order(&self, space: BlockSpace, rng: &mut Pcg64Mcg) -> Accesses {
        let len = space.len();
        let left = self.requests.unwrap_or(u64::MAX);
        let with = |space, order| Accesses { space, next: 0, order, left };
        if let Some(least) = self.block_min {
            return with(space, self.varied(least, len, rng));
        }
        match self.pattern {
            Pattern::Sequential => with(space, Order::Forward),
            Pattern::Backward => with(space, Order::Backward),
            Pattern::Stride { step } => with(space.with_blocks(self.block, step), Order::Forward),
            Pattern::Uniform => with(space, Order::Uniform(Permutation::new(len, rng))),
            Pattern::Zipf { theta } => {
                let places = Permutation::new(len, rng);
                let order = Order::Zipf { ranks: Zipf::new(len, theta), places, rng: fork(rng) };
                with(space, order)
            }
            Pattern::SeekAndRead { blocks } => {
                let run = Bytes::new(self.block.get().saturating_mul(u64::from(blocks)));
                let space = space.with_blocks(run, run);
                let places = Permutation::new(space.len(), rng);
                with(space, Order::Runs { places, run: None, block: self.block })
            }
            Pattern::Interleaved { streams } => {
                let turn = |part| Turn {
                    next: share(len, part, streams),
                    end: share(len, part + 1, streams),
                };
                with(space, Order::Turns((0..streams).map(turn).collect()))
            }
            Pattern::Mixed { random_fraction, random_block, .. } => {
                let (stream, random_space) = space.split(len / 2);
                let random_space = random_space.with_blocks(random_block, random_block);
                let places = Permutation::new(random_space.len(), rng);
                let share = (random_fraction * (1u64 << 53) as f64).ceil() as u64;
                let (rng, random_next) = (fork(rng), false);
                let (drawn, peeked) = (0, None);
                let mut mixed =
                    Mixed { space: random_space, places, drawn, peeked, share, rng, random_next };
                mixed.draw();
                with(stream, Order::Mixed(Box::new(mixed)))
            }
            // Replays are handled above.
            Pattern::Trace | Pattern::Outside | Pattern::Write | Pattern::Rewrite => {
                with(space, Order::Forward)
            }
            Pattern::Disorder { span } => {
                let span = u64::from(span);
                let group = Permutation::new(span, rng);
                with(space, Order::Disorder { span, group, rng: fork(rng) })
            }
        }
    }
}

impl Workload {
    /// Returns the order of requests of random sizes.
    fn varied(&self, least: Bytes, len: u64, rng: &mut Pcg64Mcg) -> Order {
        let places = match self.pattern {
            Pattern::Uniform => {
                PlaceOrder::Uniform { places: Permutation::new(len, rng), read: HashSet::new() }
            }
            Pattern::Zipf { theta } => {
                let places = Permutation::new(len, rng);
                PlaceOrder::Zipf { ranks: Zipf::new(len, theta), places }
            }
            _ => PlaceOrder::Forward,
        };
        Order::Varied(Box::new(Varied::new((least, self.block), places, fork(rng))))
    }
}

/// Returns a generator for one reader, independent of the others.
fn reader_rng(seed: u64, reader: u32) -> Pcg64Mcg {
    let mut seeds = Pcg64Mcg::seed_from_u64(seed);
    seeds.advance(u128::from(reader));
    Pcg64Mcg::seed_from_u64(seeds.next_u64())
}

fn fork(rng: &mut Pcg64Mcg) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(rng.next_u64())
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn a_share_of_whole_numbers_is_the_fraction_of_floats() {
        for fraction in [0.0, 0.1, 0.3, 1.0 / 3.0, 0.5, 1.0] {
            let pattern = Pattern::Mixed {
                random_fraction: fraction,
                random_block: Bytes::from_kib(4),
                same_open_file: false,
            };
            let workload = Workload::new("mixed", pattern, Bytes::from_kib(4));
            let space = BlockSpace::of_files(&[Bytes::from_mib(1)], Bytes::from_kib(4), 0, 1);
            let accesses = workload.order(space, &mut reader_rng(7, 0));
            let Order::Mixed(mut mixed) = accesses.order else { panic!("another order") };
            let mut rng = mixed.rng.clone();
            for _ in 0..10_000 {
                assert_eq!(mixed.is_random(), rng.random::<f64>() < fraction);
            }
        }
    }
}
