//! A random permutation without a table.

use rand::{Rng, RngExt};

/// Number of mixing rounds. With three rounds each input bit affects each output bit; a fourth
/// costs a nanosecond and makes small domains look random, too.
const MIX_ROUNDS: usize = 4;

/// A bijection of `0..len`: reversible steps (add a constant, multiply by an odd number, fold the
/// high half of the bits into the low half) on the next power of two, repeated until the result is
/// in range (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002, method 2).
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    len: u64,
    mask: u64,
    shift: u32,
    rounds: [(u64, u64); MIX_ROUNDS],
}

impl Permutation {
    pub(crate) fn new(len: u64, rng: &mut impl Rng) -> Self {
        let bits = len.max(2).next_power_of_two().ilog2();
        Self {
            len,
            mask: (1 << bits) - 1,
            shift: bits.div_ceil(2),
            rounds: std::array::from_fn(|_| (rng.random(), rng.random::<u64>() | 1)),
        }
    }

    /// Returns the element at `place`, which must be in range.
    pub(crate) fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.len, "{place} of {}", self.len);
        let mut x = place;
        loop {
            for (add, odd) in self.rounds {
                x = x.wrapping_add(add) & self.mask;
                x ^= x >> self.shift;
                x = x.wrapping_mul(odd) & self.mask;
            }
            // The domain fills more than half of the power of two: at most two rounds on average.
            if x < self.len {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    proptest! {
        #[test]
        fn each_element_has_one_place(len in 1u64..5000, seed: u64) {
            let order = Permutation::new(len, &mut Pcg64Mcg::seed_from_u64(seed));
            let mut seen = vec![false; len as usize];
            for place in 0..len {
                let element = order.at(place) as usize;
                prop_assert!(!seen[element]);
                seen[element] = true;
            }
        }
    }

    #[test]
    fn the_order_looks_random() {
        let len = 100_000u64;
        let order = Permutation::new(len, &mut Pcg64Mcg::seed_from_u64(7));
        let places: Vec<u64> = (0..len).map(|place| order.at(place)).collect();
        // In a random order one neighbour in len is the next block: about one in all.
        let next = places.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(next < 12, "{next} blocks are read right after the one before them");
        // The mean distance of two random places is a third of the length.
        let distance: u64 = places.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
        let mean = distance as f64 / (len - 1) as f64 / len as f64;
        assert!((mean - 1.0 / 3.0).abs() < 0.02, "mean distance {mean}");
        // Each tenth of the order visits each tenth of the data about equally often.
        for tenth in places.chunks(10_000) {
            let low = tenth.iter().filter(|place| **place < len / 10).count();
            assert!((700..1300).contains(&low), "{low}");
        }
    }
}
