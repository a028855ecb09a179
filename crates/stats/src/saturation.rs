//! Throughput as a function of latency and bandwidth.
//!
//! A request of w bytes that waits for a latency L and then moves at bandwidth B takes L + w/B. So
//! throughput is w / (L + w/B) = B · w / (w + w₀) with w₀ = L · B. This is the oldest model of a
//! disk, and a first estimate of the throughput with a read-ahead window of w.

/// Throughput as a saturating function of size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Limit of the throughput for large sizes: the bandwidth B.
    pub peak: f64,
    /// Size that reaches half of that limit: w₀.
    pub half_size: f64,
}

impl Saturation {
    /// Fits by least squares of relative errors. 1/T = 1/B + (w₀/B)/w is a line in 1/w, so each
    /// round has a closed solution. Rounds reweigh by Huber's rule, so that a dip in the curve does
    /// not lower all of it. `None` with fewer than two sizes or with numbers that are not positive.
    pub fn fit(sizes: &[f64], throughputs: &[f64]) -> Option<Self> {
        const FIT_ROUNDS: usize = 20;
        /// Relative error from which on a point has less weight.
        const HUBER_RELATIVE_ERROR: f64 = 0.1;
        let usable = |v: &f64| v.is_finite() && *v > 0.0;
        let same = sizes.len() == throughputs.len();
        if !same || !sizes.iter().chain(throughputs).all(usable) {
            return None;
        }
        if sizes.iter().all(|s| Some(s) == sizes.first()) {
            return None;
        }
        let mut weights = vec![1.0; sizes.len()];
        let mut fit = line(sizes, throughputs, &weights)?;
        for _ in 0..FIT_ROUNDS {
            for ((weight, size), seen) in weights.iter_mut().zip(sizes).zip(throughputs) {
                let error = (seen / fit.at(*size) - 1.0).abs();
                *weight =
                    if error <= HUBER_RELATIVE_ERROR { 1.0 } else { HUBER_RELATIVE_ERROR / error };
            }
            fit = line(sizes, throughputs, &weights)?;
        }
        Some(fit)
    }

    /// Returns the throughput at this size.
    pub fn at(&self, size: f64) -> f64 {
        self.peak * size / (size + self.half_size)
    }
}

/// Minimises Σ weight · (T·(a + b/w) − 1)² with a > 0 and b ≥ 0, where a = 1/B and b = w₀/B.
fn line(sizes: &[f64], throughputs: &[f64], weights: &[f64]) -> Option<Saturation> {
    let (mut pp, mut pq, mut qq, mut p, mut q) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for ((size, seen), weight) in sizes.iter().zip(throughputs).zip(weights) {
        let (x, y) = (*seen, seen / size);
        pp += weight * x * x;
        pq += weight * x * y;
        qq += weight * y * y;
        p += weight * x;
        q += weight * y;
    }
    let determinant = pp * qq - pq * pq;
    let (mut a, mut b) = if determinant.abs() > f64::EPSILON * pp * qq {
        ((p * qq - q * pq) / determinant, (q * pp - p * pq) / determinant)
    } else {
        (p / pp, 0.0)
    };
    if b < 0.0 {
        (a, b) = (p / pp, 0.0); // throughput falls with size: the best of these curves is flat
    } else if a <= 0.0 {
        // Throughput rises faster than any of these curves: place the peak far beyond the data.
        b = q / qq;
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        a = b / (largest * 1e3);
    }
    let fit = Saturation { peak: 1.0 / a, half_size: b / a };
    (fit.peak.is_finite() && fit.half_size.is_finite()).then_some(fit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(peak: f64, half: f64, sizes: &[f64]) -> Vec<f64> {
        sizes.iter().map(|w| peak * w / (w + half)).collect()
    }

    #[test]
    fn published_eight_readers_are_such_a_curve() {
        // carey-perc6-xfs-front10, 8 readers, every other row from 256 KiB up: within 25 %.
        let sizes = [32.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 49152.0];
        let rates = [60.0, 119.0, 182.0, 259.0, 357.0, 437.0, 560.0, 602.0, 651.0];
        let fit = Saturation::fit(&sizes[1..], &rates[1..]).unwrap();
        assert!((600.0..700.0).contains(&fit.peak), "{fit:?}");
        assert!((1000.0..2500.0).contains(&fit.half_size), "{fit:?}");
        for (size, rate) in sizes.iter().zip(rates).skip(1) {
            assert!((fit.at(*size) / rate - 1.0).abs() < 0.25, "{size}: {}", fit.at(*size));
        }
    }

    #[test]
    fn a_dip_does_not_drag_the_curve_down() {
        let sizes: Vec<f64> = (2..17).map(|n| f64::from(1 << n)).collect();
        let mut rates = curve(600.0, 100.0, &sizes);
        rates[9] *= 0.5;
        rates[10] *= 0.6;
        let fit = Saturation::fit(&sizes, &rates).unwrap();
        assert!((fit.peak / 600.0 - 1.0).abs() < 0.05, "{fit:?}");
    }

    #[test]
    fn flat_and_falling_curves_have_no_half_size() {
        let fit = Saturation::fit(&[1.0, 2.0, 4.0], &[50.0, 50.0, 50.0]).unwrap();
        assert!((fit.peak - 50.0).abs() < 1e-9 && fit.half_size.abs() < 1e-9);
        let fit = Saturation::fit(&[1.0, 2.0, 4.0], &[50.0, 40.0, 30.0]).unwrap();
        assert_eq!(fit.half_size, 0.0);
    }

    #[test]
    fn too_little_to_fit() {
        assert_eq!(Saturation::fit(&[], &[]), None);
        assert_eq!(Saturation::fit(&[4.0, 4.0], &[1.0, 2.0]), None);
        assert_eq!(Saturation::fit(&[4.0, 8.0], &[1.0, 0.0]), None);
        assert_eq!(Saturation::fit(&[4.0, 8.0], &[1.0]), None);
    }

    proptest! {
        #[test]
        fn exact_curves_are_found_again(peak in 1.0..5e3f64, half in 1.0..1e5f64) {
            let sizes: Vec<f64> = (2..17).map(|n| f64::from(1 << n)).collect();
            let fit = Saturation::fit(&sizes, &curve(peak, half, &sizes)).unwrap();
            prop_assert!((fit.peak / peak - 1.0).abs() < 1e-6);
            prop_assert!((fit.half_size / half - 1.0).abs() < 1e-6);
            prop_assert!((fit.at(4.0 * fit.half_size) / fit.peak - 0.8).abs() < 1e-9);
        }

        #[test]
        fn any_curve_gets_a_finite_fit(
            rates in prop::collection::vec(0.1..1e4f64, 2..20),
        ) {
            let sizes: Vec<f64> = (0..rates.len()).map(|n| 4.0 * 2f64.powi(n as i32)).collect();
            let fit = Saturation::fit(&sizes, &rates).unwrap();
            prop_assert!(fit.peak > 0.0 && fit.half_size >= 0.0);
        }
    }
}
