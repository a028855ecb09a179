//! Intervals by resampling.
//!
//! The percentile bootstrap (Efron 1979) asks nothing of the distribution, but with three repeats
//! it only knows the range of three numbers, which holds the true median in 75 of 100 cases, not
//! in 95. Hesterberg (2015, "What teachers should know about the bootstrap", section 5.3) widens
//! it by √(n/(n−1)) · t(n−1)/z, which is what a t interval does for the mean; so do we. Of normal
//! noise the widened interval holds the truth in 91 of 100 cases with three repeats, in 97 with
//! five and in 94 with nine (a test counts them).

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::estimate::Estimate;
use crate::quantile::{median, quantile_of_sorted};

/// The 97.5 % quantile of Student's t with 1, 2, … 30 degrees of freedom.
const STUDENT_T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The same quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// A seeded bootstrap of 95 % intervals.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap {
    seed: u64,
    resamples: usize,
}

impl Bootstrap {
    /// Two thousand resamples from this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed, resamples: 2000 }
    }

    /// The median and its interval; `None` without numbers or with one that is not finite.
    pub fn median(&self, values: &[f64]) -> Option<Estimate> {
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let centre = median(values)?;
        Some(self.interval(values.len(), centre, |chosen, buffer| {
            buffer.extend(chosen.iter().map(|i| values[*i]));
            middle(buffer)
        }))
    }

    /// The median of `above[i] / below[i]`, resampled by pair. `None` without pairs, if the two
    /// have not the same length, or if a number is not positive and finite.
    pub fn ratio(&self, above: &[f64], below: &[f64]) -> Option<Estimate> {
        let usable = |v: &f64| v.is_finite() && *v > 0.0;
        if above.len() != below.len() || !above.iter().chain(below).all(usable) {
            return None;
        }
        let ratios: Vec<f64> = above.iter().zip(below).map(|(a, b)| a / b).collect();
        self.median(&ratios)
    }

    /// The quotient of two medians that were measured apart, each resampled by itself. `None`
    /// without numbers, or if one is not positive and finite.
    pub fn ratio_of_medians(&self, above: &[f64], below: &[f64]) -> Option<Estimate> {
        let usable = |v: &f64| v.is_finite() && *v > 0.0;
        if !above.iter().chain(below).all(usable) {
            return None;
        }
        let centre = median(above)? / median(below)?;
        let mut random = Pcg64::seed_from_u64(!self.seed);
        let mut drawn = |values: &[f64], buffer: &mut Vec<f64>| {
            buffer.clear();
            buffer.extend(values.iter().map(|_| values[random.random_range(0..values.len())]));
            middle(buffer)
        };
        Some(self.interval(above.len().min(below.len()), centre, |_, buffer| {
            let above = drawn(above, buffer);
            above / drawn(below, buffer)
        }))
    }

    /// The interval of any statistic of `n` things about the value `centre` that it has for all
    /// of them. `statistic` gets the indices of a resample and a cleared buffer to work in.
    pub fn interval(
        &self,
        n: usize,
        centre: f64,
        mut statistic: impl FnMut(&[usize], &mut Vec<f64>) -> f64,
    ) -> Estimate {
        if n < 2 {
            return Estimate::unbounded(centre);
        }
        let mut random = Pcg64::seed_from_u64(self.seed);
        let mut chosen = vec![0; n];
        let mut buffer = Vec::with_capacity(n);
        let mut found = Vec::with_capacity(self.resamples);
        for _ in 0..self.resamples {
            chosen.fill_with(|| random.random_range(0..n));
            buffer.clear();
            found.push(statistic(&chosen, &mut buffer));
        }
        found.sort_unstable_by(f64::total_cmp);
        let low = quantile_of_sorted(&found, 0.025).min(centre);
        let high = quantile_of_sorted(&found, 0.975).max(centre);
        widen(centre, low, high, widening(n))
    }
}

/// How much wider than its percentiles an interval from `n` things has to be.
fn widening(n: usize) -> f64 {
    let n = n as f64;
    let degrees = n - 1.0;
    // Beyond the table the first term of the Cornish–Fisher expansion is exact to 1e-3.
    let t = STUDENT_T
        .get(degrees as usize - 1)
        .copied()
        .unwrap_or(NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * degrees));
    (n / degrees).sqrt() * t / NORMAL
}

/// Moves the ends away from the centre; by ratio for positive numbers, so that they stay positive.
fn widen(centre: f64, low: f64, high: f64, factor: f64) -> Estimate {
    if low > 0.0 {
        let ends = [low, high].map(|end| centre * (end / centre).powf(factor));
        return Estimate { median: centre, low: ends[0], high: ends[1] };
    }
    let ends = [low, high].map(|end| centre + (end - centre) * factor);
    Estimate { median: centre, low: ends[0], high: ends[1] }
}

/// The median of numbers that may be reordered.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Normal noise by Box and Muller.
    fn normal(random: &mut Pcg64) -> f64 {
        let (u, v): (f64, f64) = (random.random(), random.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    #[test]
    fn three_numbers_give_their_range_widened() {
        // The percentiles of the median of three are the smallest and the largest of them.
        let estimate = Bootstrap::new(1).median(&[100.0, 101.0, 103.0]).unwrap();
        let factor = 1.5f64.sqrt() * 4.303 / 1.959_964;
        assert_eq!(estimate.median, 101.0);
        assert!((estimate.low - 101.0 * (100.0f64 / 101.0).powf(factor)).abs() < 1e-9);
        assert!((estimate.high - 101.0 * (103.0f64 / 101.0).powf(factor)).abs() < 1e-9);
    }

    #[test]
    fn one_number_bounds_nothing() {
        assert_eq!(Bootstrap::new(1).median(&[7.0]), Some(Estimate::unbounded(7.0)));
        assert_eq!(Bootstrap::new(1).median(&[]), None);
        assert_eq!(Bootstrap::new(1).median(&[1.0, f64::INFINITY]), None);
        assert_eq!(Bootstrap::new(1).ratio(&[1.0], &[0.0]), None);
        assert_eq!(Bootstrap::new(1).ratio(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        for (n, least) in [(3, 0.90), (5, 0.93), (9, 0.94)] {
            let mut random = Pcg64::seed_from_u64(n as u64);
            let bootstrap = Bootstrap { seed: 5, resamples: 400 };
            let held = (0..1000)
                .filter(|_| {
                    let values: Vec<f64> =
                        (0..n).map(|_| 100.0 * (0.02 * normal(&mut random)).exp()).collect();
                    let estimate = bootstrap.median(&values).unwrap();
                    estimate.low <= 100.0 && 100.0 <= estimate.high
                })
                .count();
            assert!(held as f64 / 1000.0 >= least, "{held} of 1000 with {n} numbers");
        }
    }

    #[test]
    fn pairs_take_out_what_both_share() {
        // Blocks differ by half, the ratio within each is 1.1 ± 0.2 %.
        let below = [100.0, 150.0, 80.0, 120.0, 60.0];
        let above: Vec<f64> =
            below.iter().zip([1.1, 1.101, 1.099, 1.102, 1.098]).map(|(b, r)| b * r).collect();
        let ratio = Bootstrap::new(3).ratio(&above, &below).unwrap();
        assert!((ratio.median - 1.1).abs() < 1e-9);
        assert!(ratio.low > 1.09 && ratio.high < 1.11, "{ratio:?}");
    }

    #[test]
    fn what_was_measured_apart_has_the_scatter_of_both() {
        let above = [110.0, 112.0, 108.0, 111.0, 109.0, 110.5, 109.5];
        let below = [100.0, 103.0, 97.0, 101.0, 99.0, 100.5, 99.5];
        let ratio = Bootstrap::new(3).ratio_of_medians(&above, &below).unwrap();
        assert!((ratio.median - 1.1).abs() < 1e-9);
        assert!(ratio.low < 1.09 && ratio.low > 1.05, "{ratio:?}");
        assert!(ratio.high > 1.11 && ratio.high < 1.16, "{ratio:?}");
        assert!(!Bootstrap::new(3).ratio_of_medians(&[1.0], &below).unwrap().is_bounded());
        assert_eq!(Bootstrap::new(3).ratio_of_medians(&above, &[0.0]), None);
        assert_eq!(Bootstrap::new(3).ratio_of_medians(&[], &below), None);
    }

    #[test]
    fn the_widening_falls_towards_one() {
        assert!((widening(2) - 2f64.sqrt() * 12.706 / NORMAL).abs() < 1e-9);
        assert!(widening(30) > widening(31) && widening(31) > widening(32));
        assert!((widening(100_000) - 1.0).abs() < 1e-4);
    }

    proptest! {
        #[test]
        fn intervals_hold_the_median_and_repeat_with_the_seed(
            values in prop::collection::vec(0.1..1e6f64, 1..12), seed: u64,
        ) {
            let estimate = Bootstrap::new(seed).median(&values).unwrap();
            prop_assert!(estimate.low <= estimate.median && estimate.median <= estimate.high);
            prop_assert_eq!(Bootstrap::new(seed).median(&values), Some(estimate));
        }

        #[test]
        fn scale_does_not_matter(
            values in prop::collection::vec(1.0..1e3f64, 2..9), scale in 0.01..100.0f64,
        ) {
            let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
            let (a, b) = (Bootstrap::new(9).median(&values), Bootstrap::new(9).median(&scaled));
            let (a, b) = (a.unwrap(), b.unwrap());
            prop_assert!((a.low * scale / b.low - 1.0).abs() < 1e-6);
            prop_assert!((a.high * scale / b.high - 1.0).abs() < 1e-6);
        }
    }
}
