//! Numbers that do not belong.

use crate::quantile::median;

/// Indices of the numbers whose modified z-score is above 3.5 (Iglewicz and Hoaglin 1993): the
/// distance from the median in units of the median absolute deviation, scaled to be a standard
/// deviation if the rest is normal. Needs five numbers; of fewer none is called an outlier.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    const THRESHOLD: f64 = 3.5;
    if values.len() < 5 {
        return Vec::new();
    }
    let Some(centre) = median(values) else { return Vec::new() };
    let distances: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    let mad = median(&distances).unwrap_or(0.0);
    // If more than half are equal, the mean deviation stands in, as the authors propose.
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    let unit = if mad > 0.0 { mad / 0.674_5 } else { mean * 1.253_314 };
    if unit == 0.0 {
        return Vec::new();
    }
    (0..values.len()).filter(|i| distances[*i] / unit > THRESHOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_case() {
        // Median 3.15, MAD 0.1: 5.9 scores 18.5, 3.4 scores 1.7.
        let values = [3.1, 3.2, 3.0, 3.4, 3.1, 3.2, 5.9, 3.3, 3.0, 3.1];
        assert_eq!(outliers(&values), [6]);
    }

    #[test]
    fn a_majority_of_equals_does_not_divide_by_zero() {
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 1.0]), [0usize; 0]);
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0]), [7]);
    }

    #[test]
    fn few_numbers_have_no_outliers() {
        assert!(outliers(&[1.0, 1.0, 100.0, 1.0]).is_empty());
        assert!(outliers(&[f64::NAN; 6]).is_empty());
    }
}
