//! Random numbers from a seed.
//!
//! Each component has its own sequence, whose n-th number depends only on the component's seed and
//! n. Adding a component, or more draws in one, therefore does not change the numbers of others.

#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    key: u64,
    drawn: u64,
}

/// Returns the seed of a component's part number `index`.
pub(crate) fn part_seed(seed: u64, index: u64) -> u64 {
    mix(seed ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self { key: mix(seed), drawn: 0 }
    }

    /// Returns the next number, uniform from 0 (inclusive) to 1 (exclusive).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.drawn = self.drawn.wrapping_add(1);
        let bits = mix(self.key ^ self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (bits >> 11) as i64 as f64 / (1u64 << 53) as f64
    }

    /// Returns the next number from a standard normal distribution (Box–Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Mixes the bits of a value (the finaliser of SplitMix64).
fn mix(value: u64) -> u64 {
    let mut bits = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_moments_they_should() {
        let mut jitter = Jitter::new(7);
        let n = 20_000;
        let uniform: f64 = (0..n).map(|_| jitter.uniform()).sum::<f64>() / f64::from(n);
        assert!((uniform - 0.5).abs() < 0.01, "{uniform}");
        let squares: f64 = (0..n).map(|_| jitter.normal().powi(2)).sum::<f64>() / f64::from(n);
        assert!((squares - 1.0).abs() < 0.05, "{squares}");
    }

    #[test]
    fn parts_differ_and_repeat() {
        let draw = |index| Jitter::new(part_seed(42, index)).uniform();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
