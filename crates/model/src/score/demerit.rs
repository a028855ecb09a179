//! The distance between two distributions of response times.

/// Returns the demerit figure of Ruemmler and Wilkes (1994): the root mean square of the horizontal
/// distance between two distribution curves. Sorts both slices, which must have the same length.
pub fn demerit(measured: &mut [f64], modelled: &mut [f64]) -> f64 {
    measured.sort_by(f64::total_cmp);
    modelled.sort_by(f64::total_cmp);
    let squares = measured.iter().zip(&*modelled).map(|(left, right)| (left - right).powi(2));
    (squares.sum::<f64>() / measured.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::demerit;

    #[test]
    fn it_compares_distributions_and_not_pairs() {
        assert_eq!(demerit(&mut [1.0, 2.0, 3.0], &mut [3.0, 1.0, 2.0]), 0.0);
        assert_eq!(demerit(&mut [1.0, 2.0, 3.0], &mut [4.0, 3.0, 2.0]), 1.0);
        assert_eq!(demerit(&mut [0.0, 10.0], &mut [0.0, 14.0]), (16.0f64 / 2.0).sqrt());
        assert_eq!(demerit(&mut [], &mut []), 0.0);
    }
}
