//! Throughput as a function of the setting, and the comparison of two points.

use std::collections::{BTreeMap, BTreeSet};

use stats::{Estimate, Labelled, geometric_mean, groups_differ, median};

use super::counting::throughputs;
use super::types::Difference;
use crate::settings::CellSettings;
use crate::trial::{Trial, TrialStatus};

/// Ratios this close to 1 make no practical difference, even if they are known precisely.
pub(crate) const EQUIVALENCE_MARGIN: f64 = 0.01;
/// A setting counts as good as the best only if its median is within this share of the best median.
/// Otherwise a wide interval would allow recommending a clearly worse setting.
const AS_GOOD_MARGIN: f64 = 0.02;
/// Minimum distance from 1 at which a widened range is conclusive.
const RANGE_MARGIN: f64 = 0.02;
/// Maximum distance from 1 at which both ends of an interval show that there is no difference.
const NO_DIFFERENCE_MARGIN: f64 = 0.05;
/// The same margin for comparisons of all settings with the best one, which chance may have
/// favoured.
const NO_DIFFERENCE_MARGIN_OF_ALL: f64 = 0.10;
/// Settings differ only if chance alone would produce the result in at most this share of cases.
const MAX_P_VALUE: f64 = 0.002;
/// Distance, in standard errors, that two of many equal settings hardly ever reach.
const FAR_STANDARD_ERRORS: f64 = 6.0;
/// Minimum degrees of freedom for an estimate of the noise.
const MIN_DEGREES_OF_FREEDOM: f64 = 4.0;
/// Minimum repeats of a candidate setting, and minimum shared blocks for a correlation.
const MIN_PAIRS: usize = 3;

/// One setting of a curve.
#[derive(Clone, Debug)]
pub(crate) struct SettingPoint {
    pub(crate) settings: CellSettings,
    /// Throughput, or the score over all goals, by block.
    pub(crate) values: BTreeMap<u32, f64>,
    pub(crate) median: f64,
    /// Whether the values come from undisturbed trials.
    pub(crate) clean: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<SettingPoint>,
    seed: u64,
    /// The relative spread of single values that the source states; `None` without one.
    spread: Option<f64>,
}

impl Curve {
    pub(crate) fn from_trials(trials: &[Trial], workload: &str, seed: u64) -> Self {
        let mut settings: Vec<CellSettings> =
            trials.iter().map(|trial| trial.settings.clone()).collect();
        settings.sort_unstable();
        settings.dedup();
        let clean: BTreeSet<CellSettings> = trials
            .iter()
            .filter(|trial| trial.workload == workload && trial.status == TrialStatus::Clean)
            .map(|trial| trial.settings.clone())
            .collect();
        let values = settings
            .iter()
            .map(|s| (s.clone(), throughputs(trials.iter(), workload, s), clean.contains(s)));
        Self { spread: spread_of(trials, workload), ..Self::new(workload, values, seed) }
    }

    fn new(
        name: &str,
        values: impl Iterator<Item = (CellSettings, BTreeMap<u32, f64>, bool)>,
        seed: u64,
    ) -> Self {
        let point = |(settings, values, clean): (CellSettings, BTreeMap<u32, f64>, bool)| {
            let median = median(&values.values().copied().collect::<Vec<_>>())?;
            (median > 0.0).then_some(SettingPoint { settings, values, median, clean })
        };
        let points = values.filter_map(point).collect();
        Self { name: name.to_owned(), points, seed, spread: None }
    }

    pub(crate) fn at(&self, settings: &CellSettings) -> Option<&SettingPoint> {
        self.points.iter().find(|point| point.settings == *settings)
    }

    /// Returns the point with the highest median among those with enough repeats.
    pub(crate) fn best(&self) -> Option<&SettingPoint> {
        self.confirmed()
            .max_by(|a, b| a.median.total_cmp(&b.median).then(b.settings.cmp(&a.settings)))
    }

    /// Returns the settings with repeats, or all if none has repeats. A setting that was measured
    /// once, as part of a search, is not a candidate.
    pub(crate) fn confirmed(&self) -> impl Iterator<Item = &SettingPoint> {
        let most = self.points.iter().map(|point| point.values.len()).max().unwrap_or(0);
        self.points.iter().filter(move |point| point.values.len() >= most.min(MIN_PAIRS))
    }

    /// Returns the ratio of one point to another.
    ///
    /// Points that share all their blocks are compared in pairs: the median of the ratios within
    /// each block. Otherwise the medians over all blocks are divided, unless the shared blocks
    /// alone are more precise, because they vary much.
    pub(crate) fn ratio(&self, above: &SettingPoint, below: &SettingPoint) -> Estimate {
        if above.settings == below.settings {
            return Estimate::exact(1.0);
        }
        let pairs: (Vec<f64>, Vec<f64>) = above
            .values
            .iter()
            .filter_map(|(block, a)| Some((*a, *below.values.get(block)?)))
            .unzip();
        let stated = self.spread.is_some() && pairs.0.len() < MIN_PAIRS;
        if !stated
            && pairs_say_more(above, below, &pairs)
            && let Some(ratio) = Estimate::of_ratios(&pairs.0, &pairs.1)
        {
            return ratio;
        }
        match (self.alone(above), self.alone(below)) {
            (Some(a), Some(b)) => a.over(&b),
            _ => Estimate::unbounded(above.median / below.median),
        }
    }

    /// Returns the estimate of one point alone.
    pub(crate) fn alone(&self, point: &SettingPoint) -> Option<Estimate> {
        let values: Vec<f64> = point.values.values().copied().collect();
        match self.spread {
            Some(spread) if values.len() < MIN_PAIRS => {
                Some(estimate_from_spread(point.median, spread))
            }
            _ => Estimate::from_values(&values),
        }
    }

    /// Returns whether a point cannot be distinguished from the best.
    pub(crate) fn as_good(&self, point: &SettingPoint, best: &SettingPoint) -> bool {
        let ratio = self.ratio(point, best);
        ratio.decision_bounds().1 >= 1.0 - EQUIVALENCE_MARGIN
            && point.median >= best.median * (1.0 - AS_GOOD_MARGIN)
    }

    /// Returns whether the settings differ. They do if one is further from the best than the noise
    /// of all cells explains, or if its whole interval is below the best and shuffling the settings
    /// within blocks does not explain that.
    pub(crate) fn difference(&self) -> Difference {
        let Some(best) = self.best() else { return Difference::Inconclusive };
        let bounds: Vec<(f64, f64)> =
            self.points.iter().map(|point| self.ratio(point, best).decision_bounds()).collect();
        let below = bounds.iter().any(|(_, high)| *high < 1.0 - EQUIVALENCE_MARGIN);
        // A setting measured once has no interval; the noise of the other cells replaces it.
        let noise = self.noise();
        let far = self.points.iter().any(|point| noise.is_far(point, best));
        let rare = || groups_differ(&self.blocks(), self.seed).is_none_or(|p| p <= MAX_P_VALUE);
        // A stated spread already includes chance.
        if far || (below && (self.spread.is_some() || rare())) {
            Difference::Faster
        } else if bounds.iter().all(|(low, _)| *low >= 1.0 - NO_DIFFERENCE_MARGIN_OF_ALL) {
            Difference::NoMeasurableDifference
        } else {
            Difference::Inconclusive
        }
    }

    /// Returns the variation between repeats of a cell, over all cells.
    pub(crate) fn noise(&self) -> Noise {
        let mut noise = Noise::default();
        for point in &self.points {
            let logs: Vec<f64> = point.values.values().map(|v| ln(*v)).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            noise.squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            noise.freedom += logs.len() as f64 - 1.0;
        }
        noise
    }

    /// Returns the logarithms of all values by block, labelled with the index of their setting.
    fn blocks(&self) -> Vec<Vec<Labelled>> {
        let mut blocks: BTreeMap<u32, Vec<Labelled>> = BTreeMap::new();
        for (place, point) in self.points.iter().enumerate() {
            for (block, value) in &point.values {
                blocks.entry(*block).or_default().push((place, ln(*value)));
            }
        }
        blocks.into_values().collect()
    }
}

/// Relative variation of repeats: a sum of squares and its degrees of freedom.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noise {
    pub(crate) squares: f64,
    pub(crate) freedom: f64,
}

impl Noise {
    /// Returns whether two points are further apart than any two of many equal ones would be.
    fn is_far(&self, a: &SettingPoint, b: &SettingPoint) -> bool {
        if self.freedom < MIN_DEGREES_OF_FREEDOM {
            return false;
        }
        let counts = 1.0 / a.values.len() as f64 + 1.0 / b.values.len() as f64;
        let error = (self.squares / self.freedom * counts).sqrt();
        (ln(a.median) - ln(b.median)).abs() > FAR_STANDARD_ERRORS * error
    }
}

/// Returns the logarithm; for a throughput of zero, that of the smallest positive number.
fn ln(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE).ln()
}

/// Returns the curve over all goals: by block, the geometric mean of each goal's throughput
/// relative to its own best, so that a doubling counts the same for every goal.
pub(crate) fn overall(goals: &[Curve], seed: u64) -> Curve {
    let bests: Vec<f64> = goals.iter().filter_map(Curve::best).map(|best| best.median).collect();
    let first = goals.first().map_or(&[][..], |goal| goal.points.as_slice());
    let values = first.iter().map(|point| {
        let score = |block: &u32| -> Option<(u32, f64)> {
            let relative: Vec<f64> = goals
                .iter()
                .zip(&bests)
                .map(|(goal, best)| Some(goal.at(&point.settings)?.values.get(block)? / best))
                .collect::<Option<_>>()?;
            Some((*block, geometric_mean(&relative)?))
        };
        let clean = |goal: &Curve| goal.at(&point.settings).is_some_and(|point| point.clean);
        (
            point.settings.clone(),
            point.values.keys().filter_map(score).collect(),
            goals.iter().all(clean),
        )
    });
    let spread = goals.iter().map(|goal| goal.spread).reduce(|a, b| Some(a?.max(b?))).flatten();
    Curve { spread, ..Curve::new("all goals", values, seed) }
}

/// Returns the stated spread of a workload's trials; `None` unless all of them have one.
fn spread_of(trials: &[Trial], workload: &str) -> Option<f64> {
    let ours = trials.iter().filter(|trial| trial.workload == workload);
    ours.map(|trial| trial.figures.spread).reduce(|a, b| Some(a?.max(b?))).flatten()
}

/// Returns an estimate from a number and its stated relative spread.
pub(super) fn estimate_from_spread(value: f64, spread: f64) -> Estimate {
    Estimate::interval(value, value / (1.0 + spread), value * (1.0 + spread))
}

/// Classifies a ratio. An interval decides by its ends, a range by [wider
/// bounds](Estimate::decision_bounds) and with a larger margin.
pub(crate) fn classify(ratio: &Estimate) -> Difference {
    let (low, high) = ratio.decision_bounds();
    let margin = if ratio.is_interval() { EQUIVALENCE_MARGIN } else { RANGE_MARGIN };
    if low > 1.0 + margin {
        Difference::Faster
    } else if high < 1.0 - margin {
        Difference::Slower
    } else if low >= 1.0 - NO_DIFFERENCE_MARGIN && high <= 1.0 + NO_DIFFERENCE_MARGIN {
        Difference::NoMeasurableDifference
    } else {
        Difference::Inconclusive
    }
}

/// Returns whether the shared blocks of two points estimate their ratio better than all blocks do.
///
/// They do if there are no other blocks. Otherwise the function compares the variances of both
/// estimates on a log scale: of the mean difference within shared blocks, and of the difference of
/// the means over all blocks. The variance of each point comes from all its blocks, so that a few
/// shared blocks that agree by chance do not decide; the correlation comes from the shared blocks.
fn pairs_say_more(
    above: &SettingPoint,
    below: &SettingPoint,
    pairs: &(Vec<f64>, Vec<f64>),
) -> bool {
    let counts = [pairs.0.len(), above.values.len(), below.values.len()];
    if counts[0] == counts[1] && counts[0] == counts[2] {
        return true;
    }
    if counts[0] < MIN_PAIRS {
        return false;
    }
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| ln(*v)).collect() };
    let of = |point: &SettingPoint| {
        let all = logs(&point.values.values().copied().collect::<Vec<_>>());
        covariance(&all, &all)
    };
    let (a, b) = (logs(&pairs.0), logs(&pairs.1));
    let scale = (covariance(&a, &a) * covariance(&b, &b)).sqrt();
    let correlation = if scale > 0.0 { (covariance(&a, &b) / scale).max(0.0) } else { 0.0 };
    let (of_a, of_b) = (of(above), of(below));
    let both = correlation * (of_a * of_b).sqrt();
    let [shared, n_a, n_b] = counts.map(|count| count as f64);
    let in_pairs = (of_a + of_b - 2.0 * both) / shared;
    let over_all = of_a / n_a + of_b / n_b - 2.0 * both * shared / (n_a * n_b);
    in_pairs < over_all
}

/// Returns the sample covariance of two series of the same length.
fn covariance(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let products = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b));
    products.sum::<f64>() / (a.len().max(2) - 1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::Spread;
    use units::Kib;

    use super::*;

    fn curve(points: &[(u64, &[f64])]) -> Curve {
        let of = |(kib, values): &(u64, &[f64])| {
            let blocks = (0..).zip(values.iter().copied()).collect();
            (CellSettings::read_ahead(Kib::new(*kib)), blocks, true)
        };
        Curve::new("seq-8", points.iter().map(of), 1)
    }

    #[test]
    fn what_was_tried_once_counts_if_it_is_beyond_all_noise() {
        let repeated: [(u64, &[f64]); 3] =
            [(128, &[88.0, 92.0, 70.0]), (8192, &[91.0, 89.0, 72.0]), (65536, &[90.0, 75.0, 93.0])];
        assert_ne!(curve(&repeated).difference(), Difference::Faster);
        let with = |once: &'static [f64]| [&[(4, once)][..], &repeated].concat();
        assert_eq!(curve(&with(&[1.9])).difference(), Difference::Faster);
        assert_ne!(curve(&with(&[80.0])).difference(), Difference::Faster);
    }

    /// Figures of `sweep sim:nfs`: the first setting is tight after three blocks; the second
    /// continues to nine blocks and shows its usual rate only then.
    #[test]
    fn all_blocks_count_in_a_comparison() {
        let curve = curve(&[
            (128, &[470.0, 480.0, 490.0]),
            (1024, &[490.0, 482.0, 760.0, 754.0, 750.0, 491.0, 756.0, 755.0, 757.0]),
        ]);
        let ratio = curve.ratio(&curve.points[1], &curve.points[0]);
        assert!((ratio.median - 754.0 / 480.0).abs() < 1e-9, "{ratio:?}");
        let Spread::Range { low, high, repeats: 3 } = ratio.spread() else { panic!("{ratio:?}") };
        let possible = (482.0 / 490.0, 760.0 / 470.0);
        assert!(possible.0 <= low && high <= possible.1, "data exclude more: {ratio:?}");
    }

    #[test]
    fn shared_blocks_are_paired_where_blocks_differ_more_than_settings() {
        let first = [100.0, 150.0, 80.0, 120.0, 60.0, 90.0];
        let second: Vec<f64> =
            first.iter().zip([1.1, 1.101, 1.099, 1.102, 1.098]).map(|(v, r)| v * r).collect();
        let curve = curve(&[(128, &first), (1024, &second)]);
        let ratio = curve.ratio(&curve.points[1], &curve.points[0]);
        assert!((ratio.median - 1.1).abs() < 1e-9 && ratio.is_interval(), "{ratio:?}");
        assert!(ratio.low() > 1.09 && ratio.high() < 1.11, "{ratio:?}");
    }

    #[test]
    fn three_repeats_decide_by_a_clear_margin_only() {
        let word = |values: &[f64]| {
            let curve = curve(&[(128, &[100.0, 100.0, 100.0]), (1024, values)]);
            classify(&curve.ratio(&curve.points[1], &curve.points[0]))
        };
        assert_eq!(word(&[150.0, 152.0, 155.0]), Difference::Faster);
        assert_eq!(word(&[50.0, 52.0, 53.0]), Difference::Slower);
        assert_eq!(word(&[101.0, 102.0, 104.0]), Difference::Inconclusive, "all above, no margin");
        assert_eq!(word(&[104.0, 150.0, 190.0]), Difference::Inconclusive, "all above, too wide");
        assert_eq!(word(&[99.5, 100.0, 100.5]), Difference::NoMeasurableDifference);
        assert_eq!(word(&[150.0, 175.0]), Difference::Inconclusive, "two, by six widths");
        assert_eq!(word(&[150.0, 152.0]), Difference::Faster);
    }

    fn blocks() -> impl Strategy<Value = BTreeMap<u32, f64>> {
        prop::collection::btree_map(0..9u32, 50.0..1000.0f64, 1..9)
    }

    proptest! {
        /// The ends of a ratio lie between the smallest and the largest quotient of two trials,
        /// except for the slight extrapolation with five repeats, whichever blocks the settings
        /// share.
        #[test]
        fn ratios_end_where_the_trials_do(above in blocks(), below in blocks()) {
            let values = [(128, above.clone()), (1024, below.clone())];
            let settings = |kib| CellSettings::read_ahead(Kib::new(kib));
            let curve = values.into_iter().map(|(kib, values)| (settings(kib), values, true));
            let curve = Curve::new("seq-8", curve, 1);
            let ratio = curve.ratio(&curve.points[0], &curve.points[1]);
            let ends = |values: &BTreeMap<u32, f64>| {
                values.values().fold((f64::MAX, 0f64), |(a, b), v| (a.min(*v), b.max(*v)))
            };
            let ((a_low, a_high), (b_low, b_high)) = (ends(&above), ends(&below));
            let (least, most) = (a_low / b_high, a_high / b_low);
            prop_assert!(least <= ratio.median && ratio.median <= most);
            let slack = (most / least).powf(0.2);
            if let Some((low, high)) = ratio.bounds() {
                prop_assert!(low >= least / slack && high <= most * slack, "{ratio:?}");
            }
            prop_assert_eq!(ratio.is_bounded(), above.len().min(below.len()) > 1);
        }
    }
}
