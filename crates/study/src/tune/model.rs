//! A model of a goal's curve between the measured settings.
//!
//! The first approximation is latency and bandwidth: B · w / (w + w₀), fitted robustly to the
//! measurements. Arrays deviate from it (with one reader, the 2008 array peaks at 512 KiB, loses
//! half by 2 MiB and recovers), so a Gaussian process over log₂ w describes the residuals: it
//! follows a measured dip and gives the uncertainty elsewhere. Windows of 17·2ⁿ pages can differ
//! from neighbouring windows of 2ⁿ pages, so the two families share one smooth part and each has a
//! separate one.

use stats::{GaussianProcess, Posterior, Saturation, matern52};

use crate::settings::CellSettings;

/// Length scale of a residual, in octaves.
const LENGTH_OCTAVES: f64 = 2.0;
/// Standard deviations, in ln, of the residuals that the families share, and of those of one.
const SHARED_DEVIATION: f64 = 0.25;
const FAMILY_DEVIATION: f64 = 0.04;

/// The coordinates of a setting in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
struct GridPoint {
    octave: f64,
    power_of_two: bool,
}

impl GridPoint {
    fn from_settings(settings: &CellSettings) -> Self {
        // Zero has no logarithm, so a window of 0 is placed one octave below a page of 4 KiB.
        let kib = settings.read_ahead.get().max(2);
        Self { octave: (kib as f64).log2(), power_of_two: kib.is_power_of_two() }
    }

    fn covariance(&self, other: &Self) -> f64 {
        let near = matern52((self.octave - other.octave) / LENGTH_OCTAVES);
        let family = if self.power_of_two == other.power_of_two {
            FAMILY_DEVIATION * FAMILY_DEVIATION
        } else {
            0.0
        };
        near * (SHARED_DEVIATION * SHARED_DEVIATION + family)
    }
}

/// A fitted curve.
pub(super) struct Model {
    first_guess: Option<Saturation>,
    level: f64,
    process: GaussianProcess<GridPoint, fn(&GridPoint, &GridPoint) -> f64>,
}

impl Model {
    /// Fits the model to throughputs. Each entry of `seen` has the mean of the logarithms and their
    /// number; `noise` is the relative standard deviation of a single trial.
    pub(super) fn learn(seen: &[(CellSettings, f64, usize)], noise: f64) -> Option<Self> {
        let sizes: Vec<f64> =
            seen.iter().map(|(settings, _, _)| settings.read_ahead.get().max(2) as f64).collect();
        let rates: Vec<f64> = seen.iter().map(|(_, log, _)| log.exp()).collect();
        let first_guess = Saturation::fit(&sizes, &rates);
        let level = seen.iter().map(|(_, log, _)| log).sum::<f64>() / seen.len().max(1) as f64;
        let guess = |size: f64| first_guess.map_or(level, |curve| curve.at(size).ln());
        let left: Vec<f64> =
            sizes.iter().zip(seen).map(|(size, (_, log, _))| log - guess(*size)).collect();
        let variance = |n: &usize| noise * noise / (*n).max(1) as f64;
        let variances: Vec<f64> = seen.iter().map(|(_, _, n)| variance(n)).collect();
        let places =
            seen.iter().map(|(settings, _, _)| GridPoint::from_settings(settings)).collect();
        let covariance: fn(&GridPoint, &GridPoint) -> f64 = GridPoint::covariance;
        let process = GaussianProcess::fit(places, &left, &variances, covariance)?;
        Some(Self { first_guess, level, process })
    }

    /// Returns the logarithm of the throughput at a setting.
    pub(super) fn at(&self, settings: &CellSettings) -> Posterior {
        let size = settings.read_ahead.get().max(2) as f64;
        let guess = self.first_guess.map_or(self.level, |curve| curve.at(size).ln());
        let left = self.process.at(&GridPoint::from_settings(settings));
        Posterior { mean: guess + left.mean, ..left }
    }
}

#[cfg(test)]
mod tests {
    use units::Kib;

    use super::*;

    fn seen(points: &[(u64, f64)]) -> Vec<(CellSettings, f64, usize)> {
        points
            .iter()
            .map(|(kib, t)| (CellSettings::read_ahead(Kib::new(*kib)), t.ln(), 1))
            .collect()
    }

    fn at(model: &Model, kib: u64) -> Posterior {
        model.at(&CellSettings::read_ahead(Kib::new(kib)))
    }

    #[test]
    fn a_saturating_curve_is_known_between_its_points() {
        let curve = |kib: u64| 600.0 * kib as f64 / (kib as f64 + 800.0);
        let points = [4, 64, 256, 1024, 4096, 16384, 65536].map(|kib| (kib, curve(kib)));
        let model = Model::learn(&seen(&points), 0.01).unwrap();
        for kib in [32, 512, 2048, 8192, 32768] {
            assert!((at(&model, kib).mean.exp() / curve(kib) - 1.0).abs() < 0.05, "{kib}");
        }
    }

    #[test]
    fn a_measured_dip_is_followed_and_a_gap_is_doubted() {
        let points = [(4, 55.0), (512, 605.0), (2048, 281.0), (65536, 640.0)];
        let model = Model::learn(&seen(&points), 0.01).unwrap();
        assert!((at(&model, 2048).mean.exp() / 281.0 - 1.0).abs() < 0.05);
        assert!(at(&model, 512).deviation < 0.02);
        assert!(at(&model, 64).deviation > 0.15);
        // The neighbour in the other family is nearly as well known.
        let (own, other) = (at(&model, 2048).deviation, at(&model, 2176).deviation);
        assert!(own < other && other < 0.1, "{own} {other}");
    }
}
