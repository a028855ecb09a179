//! Scores how well a simulated column agrees with the published one.

/// Returns the mean of |ln(simulated ÷ published)| in percent: a factor of two counts the same in
/// both directions. 0 without values.
pub fn mean_error_percent(pairs: &[(f64, f64)]) -> f64 {
    if pairs.is_empty() {
        return 0.0;
    }
    let sum: f64 =
        pairs.iter().map(|(published, simulated)| (simulated / published).ln().abs()).sum();
    100.0 * sum / pairs.len() as f64
}

/// Returns the deviation of the simulated figure, in percent of the published one.
pub fn error_percent(published: f64, simulated: f64) -> f64 {
    100.0 * (simulated / published - 1.0)
}

/// Returns the largest absolute error of any pair, in percent.
pub fn worst_error_percent(pairs: &[(f64, f64)]) -> f64 {
    let errors = pairs.iter().map(|&(published, simulated)| error_percent(published, simulated));
    errors.map(f64::abs).fold(0.0, f64::max)
}

/// Returns Spearman's rank correlation, with mean ranks for ties; `None` for fewer than three pairs
/// or a constant column.
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let published = ranks(pairs.iter().map(|pair| pair.0));
    let simulated = ranks(pairs.iter().map(|pair| pair.1));
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let [mut both, mut one, mut other] = [0.0; 3];
    for (x, y) in published.iter().zip(&simulated) {
        both += (x - mean) * (y - mean);
        one += (x - mean) * (x - mean);
        other += (y - mean) * (y - mean);
    }
    let spread = (one * other).sqrt();
    (spread > 0.0).then(|| both / spread)
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let same = values.iter().filter(|other| *other == value).count();
        below as f64 + (same as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// A candidate for a recommendation: a setting with the published and the simulated figure of each
/// column; more is better.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredSetting {
    pub setting: f64,
    /// Published and simulated figure of each column.
    pub figures: Vec<(f64, f64)>,
}

/// Returns the recommendation of the simulation: the setting with the highest geometric mean of the
/// columns' simulated figures (the smallest such setting if there are several), and its regret in
/// each column, in percent of the column's best published figure.
pub fn recommend(candidates: &[ScoredSetting]) -> Option<(f64, Vec<f64>)> {
    let worth = |candidate: &ScoredSetting| -> f64 {
        candidate.figures.iter().map(|figure| figure.1.ln()).sum()
    };
    let mut ascending: Vec<&ScoredSetting> = candidates.iter().collect();
    ascending.sort_by(|a, b| a.setting.total_cmp(&b.setting));
    let mut chosen = *ascending.first()?;
    for candidate in &ascending {
        if worth(candidate) > worth(chosen) {
            chosen = candidate;
        }
    }
    let regret = |(column, figure): (usize, &(f64, f64))| {
        let published = candidates.iter().filter_map(|candidate| candidate.figures.get(column));
        let best = published.map(|figure| figure.0).fold(0.0, f64::max);
        if best > 0.0 { 100.0 * (1.0 - figure.0 / best) } else { 0.0 }
    };
    Some((chosen.setting, chosen.figures.iter().enumerate().map(regret).collect()))
}

/// Returns the setting of the deepest dip of a curve, measured from the lower of the maxima on its
/// left and right. `points` are sorted by setting.
pub fn interior_minimum(points: &[(f64, f64)]) -> Option<f64> {
    let highest = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    let depth = |at: usize| {
        let rim = highest(&points[..at]).min(highest(&points[at + 1..]));
        1.0 - points[at].1 / rim
    };
    let inside = 1..points.len().saturating_sub(1);
    let deepest = inside.max_by(|&a, &b| depth(a).total_cmp(&depth(b)))?;
    (depth(deepest) > 0.0).then(|| points[deepest].0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_weigh_ratios() {
        let error = mean_error_percent(&[(100.0, 200.0), (100.0, 50.0)]);
        assert!((error - 69.3).abs() < 0.1, "{error}");
        assert_eq!(mean_error_percent(&[]), 0.0);
        assert!((error_percent(80.0, 60.0) + 25.0).abs() < 1e-9);
        assert!((worst_error_percent(&[(80.0, 60.0), (1.0, 1.1)]) - 25.0).abs() < 1e-9);
    }

    #[test]
    fn ranks_count_and_ties_share() {
        let rising = [(1.0, 10.0), (2.0, 20.0), (3.0, 21.0)];
        assert_eq!(rank_correlation(&rising), Some(1.0));
        let falling = [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)];
        assert_eq!(rank_correlation(&falling), Some(-1.0));
        assert_eq!(rank_correlation(&rising[..2]), None);
        assert_eq!(rank_correlation(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]), None);
        assert_eq!(ranks([7.0, 5.0, 7.0].into_iter()), [2.5, 1.0, 2.5]);
    }

    #[test]
    fn the_recommendation_serves_all_columns_and_is_judged_by_what_was_published() {
        let candidate = |setting, figures: [(f64, f64); 2]| ScoredSetting {
            setting,
            figures: figures.to_vec(),
        };
        let candidates = [
            candidate(1.0, [(100.0, 50.0), (10.0, 10.0)]),
            candidate(2.0, [(90.0, 100.0), (8.0, 9.0)]),
            candidate(4.0, [(50.0, 100.0), (9.0, 9.0)]),
        ];
        let (setting, regret) = recommend(&candidates).unwrap();
        assert_eq!(setting, 2.0);
        assert!((regret[0] - 10.0).abs() < 1e-9 && (regret[1] - 20.0).abs() < 1e-9, "{regret:?}");
        assert_eq!(recommend(&[]), None);
    }

    #[test]
    fn a_dip_is_lower_than_both_its_sides() {
        let curve = [(1.0, 10.0), (2.0, 60.0), (4.0, 30.0), (8.0, 28.0), (16.0, 70.0)];
        assert_eq!(interior_minimum(&curve), Some(8.0));
        assert_eq!(interior_minimum(&[(1.0, 1.0), (2.0, 2.0), (4.0, 3.0)]), None);
        assert_eq!(interior_minimum(&[(1.0, 1.0)]), None);
        assert_eq!(interior_minimum(&[]), None);
    }

    proptest! {
        #[test]
        fn regret_is_between_nothing_and_all(
            figures in prop::collection::vec((1.0..1e3f64, 1.0..1e3f64), 1..20),
        ) {
            let candidates: Vec<ScoredSetting> = figures
                .iter()
                .enumerate()
                .map(|(at, figure)| ScoredSetting { setting: at as f64, figures: vec![*figure] })
                .collect();
            let (_, regret) = recommend(&candidates).unwrap();
            prop_assert!(regret.iter().all(|regret| (0.0..100.0).contains(regret)));
        }
    }
}
