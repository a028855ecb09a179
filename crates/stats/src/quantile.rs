//! Quantiles of a few numbers.

/// Returns the `q`-quantile, interpolated between neighbours (Hyndman and Fan's type 7, the default
/// of R and NumPy). `None` if there are no numbers, one is NaN, or `q` is not in 0..=1.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| v.is_nan()) || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(quantile_of_sorted(&sorted, q))
}

/// Returns the middle value, or the mean of the two middle ones. `None` as for [`quantile`].
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the geometric mean; `None` without numbers or if one is not positive and finite.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    Some((values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// Like [`quantile`], for at least one number in ascending order.
pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    if sorted[below] == sorted[above] {
        return sorted[below]; // also if both are infinite
    }
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Returns the 97.5 % quantile of Student's distribution: a table up to 30 degrees of freedom, then
/// the expansion about the normal's (Abramowitz and Stegun 26.7.5, two terms; error below 0.001).
pub fn student_975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL_QUANTILE_975: f64 = 1.959_964;
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        _ => {
            let (z, n) = (NORMAL_QUANTILE_975, freedom as f64);
            z + (z.powi(3) + z) / (4.0 * n)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_agree_with_numpy() {
        // numpy.quantile([3, 1, 4, 1, 5, 9, 2, 6], [0, .1, .25, .5, .75, .99, 1])
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let expected =
            [(0.0, 1.0), (0.1, 1.0), (0.25, 1.75), (0.5, 3.5), (0.75, 5.25), (0.99, 8.79)];
        for (q, value) in expected {
            assert!((quantile(&values, q).unwrap() - value).abs() < 1e-12, "{q}");
        }
        assert_eq!(quantile(&values, 1.0), Some(9.0));
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn quantiles_ascend_within_the_range(
            values in prop::collection::vec(-1e9..1e9f64, 1..40),
            a in 0.0..1.0f64,
            b in 0.0..1.0f64,
        ) {
            let (a, b) = (a.min(b), a.max(b));
            let (low, high) = (quantile(&values, a).unwrap(), quantile(&values, b).unwrap());
            prop_assert!(low <= high);
            prop_assert!(quantile(&values, 0.0).unwrap() <= low);
            prop_assert!(high <= quantile(&values, 1.0).unwrap());
        }
    }
}
