//! Main effects of factors on a quantity measured in blocks: least squares of an additive model,
//! `y = block + Σ effect of each factor's level`, with intervals from the residuals and Student's
//! distribution (Montgomery, *Design and Analysis of Experiments*, chapters 4, 5 and 10). With too
//! few residuals for an interval, the result is the range over the blocks.
//!
//! On logarithms an effect is a ratio. The same model fits one-factor-at-a-time, full and
//! fractional designs. Joint effects of factors beyond their separate effects remain in the
//! residuals and widen the intervals.

use std::collections::BTreeMap;

use crate::quantile::student_975;
use crate::{Estimate, INTERVAL_FROM};

#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub block: u32,
    /// The level of each factor; 0 is the baseline.
    pub levels: Vec<usize>,
    pub value: f64,
}

/// Returns the effect of each level other than 0 of each factor, relative to level 0. `None` if the
/// measurements do not separate the levels. `levels` holds the number of levels of each factor.
pub fn main_effects(observations: &[Observation], levels: &[usize]) -> Option<Vec<Vec<Estimate>>> {
    let fit = Additive::fit(observations, levels)?;
    let single = if fit.has_interval() { Vec::new() } else { block_fits(observations, levels) };
    let mut start = 0;
    let of_factor = levels.iter().map(|count| {
        let others = count.saturating_sub(1);
        let effects = (start..start + others).map(|effect| fit.estimate(effect, &single)).collect();
        start += others;
        effects
    });
    Some(of_factor.collect())
}

/// Fits the model to each block alone; leaves out blocks that do not separate all levels.
fn block_fits(observations: &[Observation], levels: &[usize]) -> Vec<Additive> {
    let mut blocks: BTreeMap<u32, Vec<Observation>> = BTreeMap::new();
    for one in observations {
        blocks.entry(one.block).or_default().push(one.clone());
    }
    blocks.values().filter_map(|block| Additive::fit(block, levels)).collect()
}

/// Minimum degrees of freedom for an interval: those of five pairs.
pub(crate) const FREEDOM_LEAST: usize = INTERVAL_FROM - 1;

pub(crate) struct Additive {
    /// Number of blocks, which are the first columns.
    blocks: usize,
    solution: Vec<f64>,
    inverse: Vec<Vec<f64>>,
    /// The residual of each observation.
    pub(crate) residuals: Vec<f64>,
    /// The residual degrees of freedom.
    pub(crate) freedom: usize,
}

impl Additive {
    pub(crate) fn fit(observations: &[Observation], levels: &[usize]) -> Option<Self> {
        let mut blocks: Vec<u32> = observations.iter().map(|one| one.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let effects: usize = levels.iter().map(|count| count.saturating_sub(1)).sum();
        let columns = blocks.len() + effects;
        if effects == 0 || observations.len() < columns {
            return None;
        }
        let row = |one: &Observation| -> Option<Vec<f64>> {
            let mut row = vec![0.0; columns];
            row[blocks.binary_search(&one.block).ok()?] = 1.0;
            let mut start = blocks.len();
            for (level, count) in one.levels.iter().zip(levels) {
                if *level > 0 {
                    *row.get_mut(start + level - 1)? = 1.0;
                }
                start += count.saturating_sub(1);
            }
            Some(row)
        };
        let rows: Vec<Vec<f64>> = observations.iter().map(row).collect::<Option<_>>()?;
        let inverse = inverse(normal(&rows, columns))?;
        let both = || rows.iter().zip(observations);
        let right: Vec<f64> = (0..columns)
            .map(|column| both().map(|(row, one)| row[column] * one.value).sum())
            .collect();
        let solution: Vec<f64> = inverse.iter().map(|line| dot(line, &right)).collect();
        let residuals = both().map(|(row, one)| one.value - dot(row, &solution)).collect();
        let freedom = observations.len() - columns;
        Some(Self { blocks: blocks.len(), solution, inverse, residuals, freedom })
    }

    /// Returns the sum of squared residuals.
    pub(crate) fn squares(&self) -> f64 {
        self.residuals.iter().map(|residual| residual.powi(2)).sum()
    }

    /// Returns whether the residuals suffice for an interval.
    fn has_interval(&self) -> bool {
        self.freedom >= FREEDOM_LEAST
    }

    /// Returns one effect, by its index after the blocks; `single` holds the fits of single blocks.
    fn estimate(&self, effect: usize, single: &[Self]) -> Estimate {
        let column = self.blocks + effect;
        let value = self.solution[column];
        if self.has_interval() {
            let variance = self.squares() / self.freedom as f64;
            let error = (variance * self.inverse[column][column].max(0.0)).sqrt();
            let half = student_975(self.freedom) * error;
            return Estimate::interval(value, value - half, value + half);
        }
        let each = single.iter().filter_map(|fit| fit.solution.get(fit.blocks + effect));
        let (mut low, mut high, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0);
        for one in each {
            (low, high, count) = (low.min(*one), high.max(*one), count + 1);
        }
        if count < 2 {
            Estimate::unbounded(value)
        } else {
            Estimate::range(value, low, high, count)
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn normal(rows: &[Vec<f64>], columns: usize) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; columns]; columns];
    for row in rows {
        for (i, left) in row.iter().enumerate().filter(|(_, left)| **left != 0.0) {
            for (j, right) in row.iter().enumerate() {
                matrix[i][j] += left * right;
            }
        }
    }
    matrix
}

/// Inverts a matrix by Gauss–Jordan elimination with pivoting; `None` if it is singular.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let unit = |i: usize| (0..size).map(|j| f64::from(u8::from(i == j))).collect();
    let mut inverse: Vec<Vec<f64>> = (0..size).map(unit).collect();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let divisor = matrix[column][column];
        if divisor.abs() < 1e-9 {
            return None;
        }
        for entry in matrix[column].iter_mut().chain(&mut inverse[column]) {
            *entry /= divisor;
        }
        let (line, partner) = (matrix[column].clone(), inverse[column].clone());
        for other in (0..size).filter(|other| *other != column) {
            let factor = matrix[other][column];
            if factor != 0.0 {
                for (entry, own) in matrix[other].iter_mut().zip(&line) {
                    *entry -= factor * own;
                }
                for (entry, own) in inverse[other].iter_mut().zip(&partner) {
                    *entry -= factor * own;
                }
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spread;

    fn observe(
        levels: &[&[usize]],
        blocks: u32,
        value: impl Fn(u32, &[usize]) -> f64,
    ) -> Vec<Observation> {
        let one = |block: u32, levels: &[usize]| Observation {
            block,
            levels: levels.to_vec(),
            value: value(block, levels),
        };
        (0..blocks)
            .flat_map(|block| levels.iter().map(move |l| (block, *l)))
            .map(|(b, l)| one(b, l))
            .collect()
    }

    #[test]
    fn effects_are_found_in_every_design() {
        let truth = |block: u32, levels: &[usize]| {
            // The noise is a fixed pattern of three values.
            let noise =
                0.001 * f64::from((block * 7 + levels[0] as u32 * 3 + levels[1] as u32) % 3);
            f64::from(block) + [0.0, 0.5][levels[0]] + [0.0, -0.2, 0.1][levels[1]] + noise
        };
        let one_at_a_time: &[&[usize]] = &[&[0, 0], &[1, 0], &[0, 1], &[0, 2]];
        let full: &[&[usize]] = &[&[0, 0], &[0, 1], &[0, 2], &[1, 0], &[1, 1], &[1, 2]];
        for design in [one_at_a_time, full] {
            let effects = main_effects(&observe(design, 4, truth), &[2, 3]).expect("told apart");
            let near = |estimate: Estimate, value: f64| {
                (estimate.median - value).abs() < 0.01
                    && estimate.is_interval()
                    && estimate.high() - estimate.low() < 0.02
            };
            assert!(near(effects[0][0], 0.5), "{effects:?}");
            assert!(near(effects[1][0], -0.2) && near(effects[1][1], 0.1), "{effects:?}");
        }
    }

    #[test]
    fn intervals_are_as_wide_as_the_noise() {
        // Differences 1 to 5 over five blocks: mean 3, standard error √(2.5/5), four degrees.
        let value = |block: u32, levels: &[usize]| levels[0] as f64 * f64::from(block + 1);
        let effects = main_effects(&observe(&[&[0], &[1]], 5, value), &[2]).expect("told apart");
        let estimate = effects[0][0];
        assert!((estimate.median - 3.0).abs() < 1e-9);
        let half = student_975(4) * 0.5f64.sqrt();
        assert!((estimate.high() - estimate.median - half).abs() < 1e-9, "{estimate:?}");
        // Three blocks have a range: differences 1, 2, 3.
        let effects = main_effects(&observe(&[&[0], &[1]], 3, value), &[2]).expect("told apart");
        let Spread::Range { low, high, repeats: 3 } = effects[0][0].spread() else {
            panic!("{effects:?}");
        };
        assert!((low - 1.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9, "{effects:?}");
    }

    #[test]
    fn what_cannot_be_told_apart_is_not() {
        let zero = |_: u32, _: &[usize]| 0.0;
        let mixed: &[&[usize]] = &[&[0, 0], &[1, 1]];
        assert!(main_effects(&observe(mixed, 3, zero), &[2, 2]).is_none(), "always together");
        assert!(main_effects(&[], &[2]).is_none());
        assert!(main_effects(&observe(&[&[0], &[0]], 2, zero), &[1]).is_none(), "one level");
        let once = main_effects(&observe(&[&[0], &[1]], 1, zero), &[2]).expect("one block");
        assert!(!once[0][0].is_bounded(), "no repeats, no interval");
        let far = vec![Observation { block: 0, levels: vec![9], value: 1.0 }; 5];
        assert!(main_effects(&far, &[2]).is_none(), "a level that is not there");
    }

    #[test]
    fn student_s_quantiles_fall_to_the_normal_s() {
        for freedom in 1..200 {
            assert!(student_975(freedom) > student_975(freedom + 1), "{freedom}");
        }
        assert!((student_975(60) - 2.000).abs() < 0.001);
        assert!((student_975(10_000) - 1.960).abs() < 0.001);
    }
}
