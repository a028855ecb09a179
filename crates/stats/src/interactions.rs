//! Joint effects of two factors beyond their separate effects.
//!
//! The additive model of [`main_effects`](crate::main_effects) leaves residuals. Their means by
//! pair of levels show what the model misses: the contrast `m(a, b) − m(a, 0) − m(0, b) + m(0, 0)`
//! is the distance of the two levels together from the sum of their separate effects (Montgomery,
//! *Design and Analysis of Experiments*, chapter 5). On logarithms it is a ratio. Levels never
//! measured together have no contrast, so a one-factor-at-a-time design shows no interactions.

use crate::Estimate;
use crate::effects::{Additive, FREEDOM_LEAST, Observation};
use crate::quantile::student_975;

#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// The indices of the factors, the lower one first.
    pub factors: (usize, usize),
    /// The contrast of each pair of levels other than 0.
    pub contrasts: Vec<((usize, usize), Estimate)>,
}

impl Interaction {
    /// Returns the largest absolute contrast.
    pub fn strength(&self) -> f64 {
        self.contrasts.iter().map(|(_, contrast)| contrast.median.abs()).fold(0.0, f64::max)
    }
}

/// Returns the interactions of all pairs of factors that were measured together, strongest first.
pub fn interactions(observations: &[Observation], levels: &[usize]) -> Vec<Interaction> {
    let Some(fit) = Additive::fit(observations, levels) else { return Vec::new() };
    let factors = levels.len();
    let pairs = (0..factors).flat_map(|a| (a + 1..factors).map(move |b| (a, b)));
    let mut all: Vec<Interaction> =
        pairs.filter_map(|pair| of_pair(&fit, observations, levels, pair)).collect();
    all.sort_by(|a, b| b.strength().total_cmp(&a.strength()));
    all
}

/// A sum and its number of values.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn get(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

fn of_pair(
    fit: &Additive,
    observations: &[Observation],
    levels: &[usize],
    (a, b): (usize, usize),
) -> Option<Interaction> {
    let (rows, columns) = (*levels.get(a)?, *levels.get(b)?);
    let mut means = vec![vec![Mean::default(); columns]; rows];
    for (one, residual) in observations.iter().zip(&fit.residuals) {
        let mean = means.get_mut(*one.levels.get(a)?)?.get_mut(*one.levels.get(b)?)?;
        mean.sum += residual;
        mean.count += 1.0;
    }
    // Residuals that the pair explains are not noise.
    let explained: f64 = means.iter().flatten().map(|m| m.get().unwrap_or(0.0) * m.sum).sum();
    let taken = rows.saturating_sub(1) * columns.saturating_sub(1);
    let freedom = fit.freedom.saturating_sub(taken);
    let variance = (fit.squares() - explained).max(0.0) / freedom.max(1) as f64;
    let mut contrasts = Vec::new();
    for row in 1..rows {
        for column in 1..columns {
            let four = [means[row][column], means[row][0], means[0][column], means[0][0]];
            let [both, first, second, neither] = four.map(Mean::get);
            let (Some(both), Some(first), Some(second), Some(neither)) =
                (both, first, second, neither)
            else {
                continue;
            };
            let value = both - first - second + neither;
            let error = (variance * four.iter().map(|m| 1.0 / m.count).sum::<f64>()).sqrt();
            let half = student_975(freedom) * error;
            let estimate = if freedom < FREEDOM_LEAST {
                Estimate::unbounded(value)
            } else {
                Estimate::interval(value, value - half, value + half)
            };
            contrasts.push(((row, column), estimate));
        }
    }
    (!contrasts.is_empty()).then_some(Interaction { factors: (a, b), contrasts })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all combinations in several blocks, with a fixed pattern as noise.
    fn full(counts: &[usize], blocks: u32, truth: impl Fn(&[usize]) -> f64) -> Vec<Observation> {
        let mut cells = vec![Vec::new()];
        for count in counts {
            cells = cells
                .iter()
                .flat_map(|cell: &Vec<usize>| {
                    (0..*count).map(|level| [cell.as_slice(), &[level]].concat())
                })
                .collect();
        }
        let noise = |block: u32, at: usize| 0.002 * f64::from((block * 5 + at as u32 * 3) % 7);
        (0..blocks)
            .flat_map(|block| cells.iter().enumerate().map(move |(at, cell)| (block, at, cell)))
            .map(|(block, at, cell)| Observation {
                block,
                levels: cell.clone(),
                value: f64::from(block) + truth(cell) + noise(block, at),
            })
            .collect()
    }

    #[test]
    fn what_only_happens_together_is_found_and_ranked() {
        let truth = |cell: &[usize]| {
            let own = 0.3 * cell[0] as f64 - 0.2 * cell[1] as f64 + 0.1 * cell[2] as f64;
            own + if cell[0] == 1 && cell[1] == 2 { 0.5 } else { 0.0 }
        };
        let counts = [2, 3, 2];
        let found = interactions(&full(&counts, 4, truth), &counts);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].factors, (0, 1));
        for (levels, contrast) in &found[0].contrasts {
            let expected = if *levels == (1, 2) { 0.5 } else { 0.0 };
            assert!((contrast.median - expected).abs() < 0.01, "{levels:?} {contrast:?}");
            assert!(contrast.low() < expected && expected < contrast.high(), "{contrast:?}");
        }
        assert!((found[0].strength() - 0.5).abs() < 0.01);
        assert!(found[1].strength() < 0.02 && found[2].strength() < 0.02, "{found:?}");
    }

    #[test]
    fn one_at_a_time_shows_no_interaction() {
        let one = |block, levels: [usize; 2]| Observation {
            block,
            levels: levels.to_vec(),
            value: levels[0] as f64,
        };
        let all: Vec<Observation> = (0..3)
            .flat_map(|block| [[0, 0], [1, 0], [0, 1]].map(|levels| one(block, levels)))
            .collect();
        assert!(interactions(&all, &[2, 2]).is_empty());
        assert!(interactions(&[], &[2, 2]).is_empty());
        assert!(interactions(&all, &[9]).is_empty(), "more levels than there are");
    }

    #[test]
    fn without_repeats_there_is_no_interval() {
        let found = interactions(&full(&[2, 2], 1, |cell| cell[0] as f64), &[2, 2]);
        assert!(found.iter().all(|one| one.contrasts.iter().all(|(_, c)| !c.is_bounded())));
    }
}
