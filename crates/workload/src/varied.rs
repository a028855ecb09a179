//! Requests of random sizes, drawn as in fio for a range (`get_next_buflen` in io_u.c): the
//! smallest size plus a uniform share of the largest, rounded down to a multiple of the smallest,
//! at most the largest. A size that does not fit before the end of a file is drawn again.

use std::collections::HashSet;

use rand::{Rng, RngExt};
use rand_pcg::Pcg64Mcg;
use units::Bytes;

use crate::access::{Access, AccessClass};
use crate::permutation::Permutation;
use crate::space::BlockSpace;
use crate::zipf::Zipf;

/// Maximum number of draws before the largest fitting size is used.
const DRAWS_MAX: u32 = 64;

/// The order of requests of random sizes through a space with blocks of the smallest size.
#[derive(Clone, Debug)]
pub(crate) struct Varied {
    least: u64,
    most: u64,
    rng: Pcg64Mcg,
    places: PlaceOrder,
}

#[derive(Clone, Debug)]
pub(crate) enum PlaceOrder {
    Forward,
    /// At random, but nothing is read twice: a request ends before data that were already read.
    Uniform {
        places: Permutation,
        read: HashSet<u64>,
    },
    /// At random, some places more often than others.
    Zipf {
        ranks: Zipf,
        places: Permutation,
    },
}

impl Varied {
    pub(crate) fn new((least, most): (Bytes, Bytes), places: PlaceOrder, rng: Pcg64Mcg) -> Self {
        Self { least: least.get().max(1), most: most.get(), rng, places }
    }

    /// Returns the request after `next` blocks or places, and updates `next`.
    pub(crate) fn next(&mut self, space: &BlockSpace, next: &mut u64) -> Option<Access> {
        let (first, class) = match &mut self.places {
            PlaceOrder::Forward => (*next, AccessClass::Stream),
            PlaceOrder::Uniform { places, read } => loop {
                let place = (*next < space.len()).then(|| places.at(*next))?;
                *next += 1;
                if !read.contains(&place) {
                    break (place, AccessClass::Random);
                }
            },
            PlaceOrder::Zipf { ranks, places } => {
                (places.at(ranks.draw(&mut self.rng)), AccessClass::Random)
            }
        };
        if first >= space.len() {
            return None;
        }
        let blocks = self.blocks(space.run(first, self.most / self.least));
        let blocks = match &mut self.places {
            PlaceOrder::Forward => {
                *next += blocks;
                blocks
            }
            // fio's map of blocks that were read also shortens a request.
            PlaceOrder::Uniform { read, .. } => {
                let free = (1..blocks).find(|more| read.contains(&(first + more)));
                let blocks = free.unwrap_or(blocks);
                read.extend(first..first + blocks);
                blocks
            }
            PlaceOrder::Zipf { .. } => blocks,
        };
        let access = space.at(first, class);
        // The last block of a file may be short; then it is a request of its own.
        let length = if blocks == 1 { access.length } else { Bytes::new(blocks * self.least) };
        Some(Access { length, ..access })
    }

    /// Returns the length of a request in blocks of the smallest size, at most `room`.
    fn blocks(&mut self, room: u64) -> u64 {
        let drawn = (0..DRAWS_MAX).map(|_| draw(self.least, self.most, &mut self.rng));
        drawn.map(|size| size / self.least).find(|blocks| *blocks <= room).unwrap_or(room)
    }
}

fn draw(least: u64, most: u64, rng: &mut impl Rng) -> u64 {
    let size = least + (most as f64 * rng.random::<f64>()) as u64;
    (size - size % least).min(most)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::{Pattern, Workload};

    fn workload(pattern: Pattern) -> Workload {
        let block_min = Some(Bytes::from_kib(4));
        Workload { block_min, ..Workload::new("varied", pattern, Bytes::from_kib(64)) }
    }

    fn accesses(pattern: Pattern, size: Bytes, seed: u64) -> Vec<Access> {
        workload(pattern).accesses(0, &[size], seed).unwrap().take(100_000).collect()
    }

    #[test]
    fn sizes_are_distributed_as_those_of_fio() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let mut counts = [0u32; 17];
        for _ in 0..160_000 {
            counts[draw(4096, 65_536, &mut rng) as usize / 4096] += 1;
        }
        // 4 KiB to 64 KiB in sixteen equal parts: 4 + 64 × [0, 1), rounded down to 4.
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        // 2 KiB or 4 KiB with equal probability: 2 + 4 × [0, 1), rounded down to 2.
        let largest = (0..10_000).filter(|_| draw(2048, 4096, &mut rng) == 4096).count();
        assert!((4_700..5_300).contains(&largest), "{largest}");
    }

    #[test]
    fn a_stream_has_no_gaps_and_ends_with_the_file() {
        let size = Bytes::new((1 << 20) + 100);
        let reads = accesses(Pattern::Sequential, size, 1);
        let mut at = Bytes::ZERO;
        for read in &reads {
            assert_eq!(read.offset, at);
            at += read.length;
        }
        assert_eq!(at, size);
        assert_ne!(reads[0].length, reads[1].length);
    }

    #[test]
    fn random_requests_read_everything_once() {
        let size = Bytes::from_mib(4);
        let reads = accesses(Pattern::Uniform, size, 1);
        let mut ranges: Vec<(u64, u64)> =
            reads.iter().map(|read| (read.offset.get(), read.length.get())).collect();
        ranges.sort_unstable();
        let end = ranges.iter().fold(0, |end, (offset, length)| {
            assert_eq!(*offset, end);
            end + length
        });
        assert_eq!(Bytes::new(end), size);
        assert!(reads.iter().any(|read| read.length > Bytes::from_kib(32)));
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        for pattern in [Pattern::Sequential, Pattern::Uniform, Pattern::Zipf { theta: 0.9 }] {
            let reads = |seed| accesses(pattern, Bytes::from_mib(1), seed);
            assert_eq!(reads(1), reads(1));
            assert_ne!(reads(1), reads(2));
        }
    }

    #[test]
    fn only_some_patterns_have_drawn_sizes() {
        assert!(workload(Pattern::Backward).validate().is_err());
        let odd = Workload { block_min: Some(Bytes::from_kib(5)), ..workload(Pattern::Uniform) };
        assert!(odd.validate().is_err(), "no multiple");
        let same = Workload { block_min: Some(Bytes::from_kib(64)), ..workload(Pattern::Uniform) };
        assert!(same.validate().is_err(), "not less");
        let fine = workload(Pattern::Uniform);
        assert_eq!(Workload::from_toml(&fine.to_toml()).unwrap(), fine);
    }
}
