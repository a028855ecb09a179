//! Draws from a Zipf distribution.

use rand::{Rng, RngExt};

/// Ranks from 1 to `len`, with probability proportional to k^-theta, by rejection-inversion
/// (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996). Needs no table and on average fewer than two draws.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    len: f64,
    first: f64,
    last: f64,
    squeeze: f64,
}

/// Returns (e^x - 1) / x, and its limit at 0.
fn exp_m1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// Returns ln(1 + x) / x, and its limit at 0.
fn ln_1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

impl Zipf {
    pub(crate) fn new(len: u64, theta: f64) -> Self {
        let mut zipf = Self { theta, len: len as f64, first: 0.0, last: 0.0, squeeze: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.len + 0.5);
        zipf.squeeze = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Draws a rank, from 0.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u64 {
        loop {
            let u = self.last + rng.random::<f64>() * (self.first - self.last);
            let x = self.integral_inverse(u);
            let rank = x.round().clamp(1.0, self.len);
            let accepted =
                rank - x <= self.squeeze || u >= self.integral(rank + 0.5) - self.density(rank);
            if accepted {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_m1_ratio((1.0 - self.theta) * log) * log
    }

    fn integral_inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.theta)).max(-1.0);
        (ln_1p_ratio(t) * x).exp()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn shares_follow_the_law() {
        for theta in [0.5, 0.99, 1.0, 1.5] {
            let (len, draws) = (50u64, 200_000);
            let zipf = Zipf::new(len, theta);
            let mut rng = Pcg64Mcg::seed_from_u64(3);
            let mut counts = vec![0u32; len as usize];
            for _ in 0..draws {
                counts[zipf.draw(&mut rng) as usize] += 1;
            }
            let total: f64 = (1..=len).map(|rank| (rank as f64).powf(-theta)).sum();
            for (place, count) in counts.iter().enumerate() {
                let share = ((place + 1) as f64).powf(-theta) / total;
                let expected = share * f64::from(draws);
                // Five standard deviations.
                let slack = 5.0 * expected.sqrt();
                assert!((f64::from(*count) - expected).abs() < slack, "{theta} {place} {count}");
            }
        }
    }

    #[test]
    fn one_element_is_always_drawn() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        assert!((0..100).all(|_| Zipf::new(1, 0.99).draw(&mut rng) == 0));
    }
}
