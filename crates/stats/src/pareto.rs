//! The Pareto front.

/// Returns the indices of the points that no other point exceeds in both values, ascending by the
/// first value. Of several equal points, only the first is included.
pub fn pareto(points: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len())
        .filter(|i| points[*i].0.is_finite() && points[*i].1.is_finite())
        .collect();
    order.sort_by(|a, b| {
        let ((ax, ay), (bx, by)) = (points[*a], points[*b]);
        bx.total_cmp(&ax).then(by.total_cmp(&ay)).then(a.cmp(b))
    });
    let mut best = f64::NEG_INFINITY;
    let mut front: Vec<usize> = order
        .into_iter()
        .filter(|i| {
            let better = points[*i].1 > best;
            best = best.max(points[*i].1);
            better
        })
        .collect();
    front.reverse();
    front
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_front_leaves_out_what_is_beaten_in_both() {
        let points = [(1.0, 5.0), (2.0, 4.0), (1.5, 3.0), (3.0, 1.0), (2.0, 4.0), (f64::NAN, 9.0)];
        assert_eq!(pareto(&points), [0, 1, 3]);
        assert!(pareto(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_beats_the_front_and_the_front_beats_the_rest(
            points in prop::collection::vec((0u8..20, 0u8..20), 1..40)
        ) {
            let points: Vec<(f64, f64)> =
                points.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect();
            let front = pareto(&points);
            let as_good = |a: (f64, f64), b: (f64, f64)| a.0 >= b.0 && a.1 >= b.1;
            for (place, point) in points.iter().enumerate() {
                let covered = front.iter().any(|i| as_good(points[*i], *point));
                prop_assert!(covered);
                if front.contains(&place) {
                    let beaten = points.iter().any(|p| as_good(*p, *point) && p != point);
                    prop_assert!(!beaten);
                }
            }
        }
    }
}
