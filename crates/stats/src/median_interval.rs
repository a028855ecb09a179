//! The median of a few repeats with its interval, from the order of the values alone.
//!
//! The number of values below the true median is binomial for every distribution. So the d-th
//! smallest and largest of n values enclose it with a probability that depends only on n and d (the
//! sign test, inverted). Hettmansperger and Sheather (1986, "Confidence intervals based on
//! interpolated order statistics") interpolate between two such pairs to reach 95 %, nearly
//! independent of the distribution. Five values reach 93.75 %: there the same formula extrapolates
//! by 18 % of the distance to the second smallest and largest. Normal, heavy-tailed and skewed
//! values have a coverage of 94 to 96 % from five values on (`docs/measurement.md` has the table).
//!
//! Fewer than five values have a range instead of an interval, marked as such.

use crate::estimate::Estimate;
use crate::quantile::quantile_of_sorted;

/// Minimum number of values for a 95 % interval of the median.
pub const INTERVAL_FROM: usize = 5;

const CONFIDENCE_LEVEL: f64 = 0.95;

/// Number of values from which the normal distribution replaces the binomial one.
const NORMAL_FROM_COUNT: usize = 400;

/// The 97.5 % quantile of the normal distribution.
const NORMAL_QUANTILE_975: f64 = 1.959_964;

impl Estimate {
    /// Returns the median of values: with its 95 % interval from five values on, with the range of
    /// two to four. `None` if there are no values or one is not finite.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = quantile_of_sorted(&sorted, 0.5);
        let (count, last) = (sorted.len(), sorted.len() - 1);
        if count == 1 {
            return Some(Self::unbounded(median));
        }
        if count < INTERVAL_FROM {
            return Some(Self::range(median, sorted[0], sorted[last], count as u32));
        }
        let (depth, share) = depth(count);
        let low = between(sorted[depth - 1], sorted[depth], share);
        let high = between(sorted[count - depth], sorted[last - depth], share);
        Some(Self::interval_of(median, low, high, Some(count as u32)))
    }

    /// Returns the median of `above[i] / below[i]`. `None` without pairs, if the lengths differ, or
    /// if a number is not positive and finite.
    pub fn of_ratios(above: &[f64], below: &[f64]) -> Option<Self> {
        let usable = |v: &f64| v.is_finite() && *v > 0.0;
        if above.len() != below.len() || !above.iter().chain(below).all(usable) {
            return None;
        }
        let ratios: Vec<f64> = above.iter().zip(below).map(|(a, b)| a / b).collect();
        Self::from_values(&ratios)
    }
}

/// Interpolates at `share` of the way between two numbers, by ratio if both are positive.
fn between(from: f64, to: f64, share: f64) -> f64 {
    if from > 0.0 && to > 0.0 { from * (to / from).powf(share) } else { from + (to - from) * share }
}

/// Returns the rank of the ordered value at which the interval starts, counted from 1, and the
/// share of the distance to the next inner value (negative: outward).
fn depth(count: usize) -> (usize, f64) {
    let n = count as f64;
    if count >= NORMAL_FROM_COUNT {
        let at = (n + 1.0) / 2.0 - NORMAL_QUANTILE_975 * n.sqrt() / 2.0;
        return (at as usize, at.fract());
    }
    // The probability that at most `depth - 1` values lie below the median.
    let mut term = 0.5f64.powi(count as i32);
    let mut below = term;
    let mut depth = 1;
    loop {
        let next = term * (n - depth as f64 + 1.0) / depth as f64;
        let (outer, inner) = (1.0 - 2.0 * below, 1.0 - 2.0 * (below + next));
        if inner < CONFIDENCE_LEVEL {
            let part = (outer - CONFIDENCE_LEVEL) / (outer - inner);
            let d = depth as f64;
            return (depth, (n - d) * part / (d + (n - 2.0 * d) * part));
        }
        (term, below, depth) = (next, below + next, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    #[test]
    fn few_values_have_a_range_and_no_interval() {
        assert_eq!(Estimate::from_values(&[7.0]), Some(Estimate::unbounded(7.0)));
        let three = Estimate::from_values(&[103.0, 100.0, 101.0]);
        assert_eq!(three, Some(Estimate::range(101.0, 100.0, 103.0, 3)));
        assert!(!Estimate::from_values(&[1.0, 2.0, 3.0, 4.0]).unwrap().is_interval());
        assert!(Estimate::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap().is_interval());
        assert_eq!(Estimate::from_values(&[]), None);
        assert_eq!(Estimate::from_values(&[1.0, f64::INFINITY]), None);
        assert_eq!(Estimate::of_ratios(&[1.0], &[0.0]), None);
        assert_eq!(Estimate::of_ratios(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn depths_are_those_of_the_sign_test() {
        // Of nine values, the second smallest and second largest enclose the median in 96.1 % of
        // cases, the third in 82.0 %.
        let (depth_of_nine, share) = depth(9);
        assert_eq!(depth_of_nine, 2);
        assert!((share - 0.228).abs() < 0.001, "{share}");
        assert!(depth(5).1 < 0.0 && depth(5).0 == 1 && depth(6).1 > 0.0);
        let (below, above) = (depth(NORMAL_FROM_COUNT - 1), depth(NORMAL_FROM_COUNT));
        let place = |(depth, share): (usize, f64)| depth as f64 + share;
        assert!((place(below) - place(above)).abs() < 1.0, "{below:?} {above:?}");
    }

    #[test]
    fn intervals_hold_the_median_of_any_distribution_in_95_of_100_cases() {
        let shapes: [fn(&mut Pcg64) -> f64; 3] = [
            |random| random.random::<f64>() - 0.5,
            |random| -random.random::<f64>().ln() - std::f64::consts::LN_2,
            |random| (random.random::<f64>() * std::f64::consts::PI).tan(), // Cauchy
        ];
        let mut random = Pcg64::seed_from_u64(11);
        for shape in shapes {
            for count in [5, 6, 7, 9, 20] {
                let holds = |_: &u32| {
                    let values: Vec<f64> = (0..count).map(|_| shape(&mut random)).collect();
                    let found = Estimate::from_values(&values).unwrap();
                    found.low() <= 0.0 && 0.0 <= found.high()
                };
                let held = (0..4000).filter(holds).count();
                assert!((3730..=3870).contains(&held), "{held} of 4000 with {count} values");
            }
        }
    }

    #[test]
    fn quotients_of_two_medians_hold_the_truth_as_often() {
        let shapes: [fn(&mut Pcg64) -> f64; 3] = [
            |random| (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0, // nearly normal
            |random| -random.random::<f64>().ln() - std::f64::consts::LN_2,
            |random| (random.random::<f64>() / random.random::<f64>()).ln(), // Laplace
        ];
        let mut random = Pcg64::seed_from_u64(12);
        for shape in shapes {
            for (above, below) in [(5, 5), (5, 9), (9, 9), (20, 20)] {
                let mut drawn = |count: usize| {
                    let values: Vec<f64> =
                        (0..count).map(|_| (0.1 * shape(&mut random)).exp()).collect();
                    Estimate::from_values(&values).unwrap()
                };
                let holds = |_: &u32| {
                    let ratio = drawn(above).over(&drawn(below));
                    ratio.low() <= 1.0 && 1.0 <= ratio.high()
                };
                let held = (0..4000).filter(holds).count();
                assert!((3720..=3910).contains(&held), "{held} of 4000 with {above} and {below}");
            }
        }
    }

    #[test]
    fn pairs_take_out_what_both_share() {
        // Blocks differ by half; the ratio within each is 1.1 ± 0.2 %.
        let below = [100.0, 150.0, 80.0, 120.0, 60.0];
        let above: Vec<f64> =
            below.iter().zip([1.1, 1.101, 1.099, 1.102, 1.098]).map(|(b, r)| b * r).collect();
        let ratio = Estimate::of_ratios(&above, &below).unwrap();
        assert!((ratio.median - 1.1).abs() < 1e-9);
        assert!(ratio.low() > 1.09 && ratio.high() < 1.11, "{ratio:?}");
    }

    proptest! {
        #[test]
        fn ends_hold_the_median_and_stay_near_the_data(
            values in prop::collection::vec(0.1..1e6f64, 1..500),
        ) {
            let found = Estimate::from_values(&values).unwrap();
            prop_assert!(found.low() <= found.median && found.median <= found.high());
            let least = values.iter().copied().fold(f64::MAX, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            if values.len() > INTERVAL_FROM {
                prop_assert!(found.low() >= least * 0.999_999 && found.high() <= most * 1.000_001);
            } else if values.len() > 1 {
                prop_assert!(found.low() > 0.0 && found.high().is_finite());
            }
        }

        #[test]
        fn scale_does_not_matter(
            values in prop::collection::vec(1.0..1e3f64, 2..12), scale in 0.01..100.0f64,
        ) {
            let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
            let of = |values: &[f64]| Estimate::from_values(values).unwrap();
            let (a, b) = (of(&values), of(&scaled));
            prop_assert!((a.low() * scale / b.low() - 1.0).abs() < 1e-6);
            prop_assert!((a.high() * scale / b.high() - 1.0).abs() < 1e-6);
        }
    }
}
