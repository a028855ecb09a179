//! A small Gaussian process, which estimates a curve between measured places.
//!
//! Algorithm 2.1 of Rasmussen and Williams (2006), for up to a few hundred points.

/// The estimate at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posterior {
    pub mean: f64,
    /// Standard deviation of the estimate, without the noise of a measurement.
    pub deviation: f64,
}

/// A process with mean zero, conditioned on measurements.
#[derive(Clone, Debug)]
pub struct GaussianProcess<P, K> {
    places: Vec<P>,
    kernel: K,
    /// Lower triangle of the Cholesky factor of the measurements' covariance, row by row.
    factor: Vec<Vec<f64>>,
    weights: Vec<f64>,
}

impl<P, K: Fn(&P, &P) -> f64> GaussianProcess<P, K> {
    /// Conditions on `values[i]` measured at `places[i]` with a noise of variance `noise[i]`.
    /// `None` if the lengths differ or the covariance is not positive definite.
    pub fn fit(places: Vec<P>, values: &[f64], noise: &[f64], kernel: K) -> Option<Self> {
        if places.len() != values.len() || places.len() != noise.len() {
            return None;
        }
        let mut factor: Vec<Vec<f64>> = Vec::with_capacity(places.len());
        for i in 0..places.len() {
            let mut row = Vec::with_capacity(i + 1);
            for j in 0..i {
                let known: f64 = row.iter().zip(&factor[j]).map(|(a, b): (&f64, _)| a * b).sum();
                row.push((kernel(&places[i], &places[j]) - known) / factor[j][j]);
            }
            let known: f64 = row.iter().map(|a| a * a).sum();
            let pivot = kernel(&places[i], &places[i]) + noise[i] - known;
            if pivot.is_nan() || pivot <= 0.0 {
                return None;
            }
            row.push(pivot.sqrt());
            factor.push(row);
        }
        let weights = backward(&factor, forward(&factor, values));
        Some(Self { places, kernel, factor, weights })
    }

    /// Returns the estimate at `place`.
    pub fn at(&self, place: &P) -> Posterior {
        let shared: Vec<f64> = self.places.iter().map(|p| (self.kernel)(p, place)).collect();
        let mean = shared.iter().zip(&self.weights).map(|(a, b)| a * b).sum();
        let explained: f64 = forward(&self.factor, &shared).iter().map(|v| v * v).sum();
        let variance = (self.kernel)(place, place) - explained;
        Posterior { mean, deviation: variance.max(0.0).sqrt() }
    }
}

fn forward(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(b.len());
    for (row, b) in factor.iter().zip(b) {
        let known: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
        x.push((b - known) / row[x.len()]);
    }
    x
}

fn backward(factor: &[Vec<f64>], mut x: Vec<f64>) -> Vec<f64> {
    for i in (0..x.len()).rev() {
        let known: f64 = (i + 1..x.len()).map(|j| factor[j][i] * x[j]).sum();
        x[i] = (x[i] - known) / factor[i][i];
    }
    x
}

/// Returns the Matérn 5/2 correlation of two places at this distance, in units of the length scale:
/// smooth, but not so smooth that one peak predicts the next.
pub fn matern52(distance: f64) -> f64 {
    let r = 5f64.sqrt() * distance.abs();
    (1.0 + r + r * r / 3.0) * (-r).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kernel(a: &f64, b: &f64) -> f64 {
        matern52(a - b)
    }

    #[test]
    fn one_measurement_by_hand() {
        let process = GaussianProcess::fit(vec![0.0], &[2.0], &[1.0], kernel).unwrap();
        // mean = k/(1+σ²)·y, variance = 1 − k²/(1+σ²)
        let here = process.at(&0.0);
        assert!((here.mean - 1.0).abs() < 1e-12);
        assert!((here.deviation - 0.5f64.sqrt()).abs() < 1e-12);
        let there = process.at(&1.0);
        let k = (1.0 + 5f64.sqrt() + 5.0 / 3.0) * (-(5f64.sqrt())).exp();
        assert!((there.mean - k).abs() < 1e-12);
        assert!((there.deviation - (1.0 - k * k / 2.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn two_measurements_by_hand() {
        // With correlation c between the two and no noise, the weights are (y − c·z)/(1 − c²).
        let process = GaussianProcess::fit(vec![0.0, 1.0], &[1.0, 3.0], &[0.0; 2], kernel).unwrap();
        let c = matern52(1.0);
        let expected = matern52(0.5) * (1.0 - c * 3.0 + 3.0 - c) / (1.0 - c * c);
        assert!((process.at(&0.5).mean - expected).abs() < 1e-12);
    }

    #[test]
    fn far_away_nothing_is_known() {
        let process = GaussianProcess::fit(vec![0.0], &[5.0], &[0.01], kernel).unwrap();
        let far = process.at(&50.0);
        assert!(far.mean.abs() < 1e-9 && (far.deviation - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_a_covariance_is_refused() {
        assert!(GaussianProcess::fit(vec![0.0, 0.0], &[1.0, 1.0], &[0.0; 2], kernel).is_none());
        assert!(GaussianProcess::fit(vec![0.0], &[1.0, 2.0], &[0.1], kernel).is_none());
        assert!(GaussianProcess::fit(vec![f64::NAN], &[1.0], &[0.1], kernel).is_none());
    }

    proptest! {
        #[test]
        fn noiseless_measurements_are_met(values in prop::collection::vec(-10.0..10.0f64, 1..12)) {
            let places: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
            let noise = vec![1e-9; values.len()];
            let process =
                GaussianProcess::fit(places.clone(), &values, &noise, kernel).unwrap();
            for (place, value) in places.iter().zip(&values) {
                let posterior = process.at(place);
                prop_assert!((posterior.mean - value).abs() < 1e-5);
                prop_assert!(posterior.deviation < 1e-3);
            }
        }
    }
}
