//! Knees and dips of curves.

/// Returns the index of the knee of a curve that rises and flattens: Kneedle (Satopää, Albrecht,
/// Irwin and Raghavan 2011) for offline data; its authors recommend `sensitivity` 1. Both axes are
/// scaled to 0..1. The knee is the first local maximum of y − x that is followed by a drop of
/// `sensitivity` mean steps, otherwise the highest one. `xs` must ascend; pass logarithms if steps
/// are ratios. `None` for fewer than three points or a curve that does not rise.
pub fn knee(xs: &[f64], ys: &[f64], sensitivity: f64) -> Option<usize> {
    if xs.len() != ys.len() || xs.len() < 3 || !xs.iter().chain(ys).all(|v| v.is_finite()) {
        return None;
    }
    let (first, last) = (xs[0], xs[xs.len() - 1]);
    let low = ys.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if last <= first || high <= low || ys[ys.len() - 1] <= ys[0] {
        return None;
    }
    let above: Vec<f64> = xs
        .iter()
        .zip(ys)
        .map(|(x, y)| (y - low) / (high - low) - (x - first) / (last - first))
        .collect();
    let step = sensitivity / (xs.len() - 1) as f64;
    let peaks = (1..above.len() - 1)
        .filter(|i| above[*i] > 0.0 && above[*i] >= above[i - 1] && above[*i] > above[i + 1]);
    let mut highest: Option<usize> = None;
    for peak in peaks {
        let rest = &above[peak + 1..];
        let fallen = rest.iter().position(|d| *d < above[peak] - step);
        let topped = rest.iter().position(|d| *d > above[peak]);
        if fallen.is_some_and(|f| topped.is_none_or(|t| f < t)) {
            return Some(peak);
        }
        if highest.is_none_or(|h| above[peak] > above[h]) {
            highest = Some(peak);
        }
    }
    highest
}

/// A fall and a later recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dip {
    /// Index of the height from which the curve falls.
    pub from: usize,
    pub bottom: usize,
    /// Depth of the fall, relative to that height (0 to 1).
    pub depth: f64,
}

/// Returns the deepest dip of a series of positive numbers: a fall after which the series rises by
/// at least half of the fall. `None` if no fall is deeper than `tolerance` (0.05 is 5 %).
pub fn deepest_dip(values: &[f64], tolerance: f64) -> Option<Dip> {
    let mut deepest: Option<Dip> = None;
    let mut top = 0;
    for bottom in 1..values.len() {
        if values[bottom] > values[top] {
            top = bottom;
            continue;
        }
        let depth = 1.0 - values[bottom] / values[top];
        let back = values[bottom..].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let recovers = back - values[bottom] >= (values[top] - values[bottom]) / 2.0;
        let deeper = deepest.is_none_or(|d| depth > d.depth);
        if depth > tolerance && recovers && deeper {
            deepest = Some(Dip { from: top, bottom, depth });
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn knee_of_the_authors_example() {
        // Figure 2 of the paper: y = −1/x + 5 at ten points from 0 to 1 has its knee at x ≈ 0.22.
        let xs: Vec<f64> = (0..10).map(|i| f64::from(i) / 9.0).collect();
        let ys: Vec<f64> = xs.iter().map(|x| -1.0 / (x + 0.1) + 5.0).collect();
        assert_eq!(knee(&xs, &ys, 1.0), Some(2));
    }

    #[test]
    fn straight_flat_and_falling_lines_have_no_knee() {
        let xs: Vec<f64> = (0..8).map(f64::from).collect();
        assert_eq!(knee(&xs, &xs, 1.0), None);
        assert_eq!(knee(&xs, &[5.0; 8], 1.0), None);
        let falling: Vec<f64> = xs.iter().map(|x| -x).collect();
        assert_eq!(knee(&xs, &falling, 1.0), None);
        assert_eq!(knee(&xs[..2], &xs[..2], 1.0), None);
        assert_eq!(knee(&xs, &[f64::NAN; 8], 1.0), None);
    }

    #[test]
    fn the_published_single_reader_dips_at_2_mib() {
        // carey-perc6-xfs-front10, 1 reader, 4 KiB to 48 MiB.
        let rates = [
            55.0, 171.0, 303.0, 354.0, 456.0, 523.0, 605.0, 542.0, 445.0, 383.0, 338.0, 281.0,
            415.0, 394.0, 480.0, 518.0, 548.0, 565.0, 595.0, 609.0, 640.0,
        ];
        let dip = deepest_dip(&rates, 0.05).unwrap();
        assert_eq!((dip.from, dip.bottom), (6, 11));
        assert!((dip.depth - (1.0 - 281.0 / 605.0)).abs() < 1e-12);
        assert_eq!(deepest_dip(&rates[..7], 0.05), None);
        assert_eq!(deepest_dip(&[600.0, 400.0, 200.0], 0.05), None, "never comes back");
    }

    proptest! {
        #[test]
        fn a_knee_is_an_inner_point(ys in prop::collection::vec(0.0..1e3f64, 0..30)) {
            let xs: Vec<f64> = (0..ys.len()).map(|i| i as f64).collect();
            if let Some(at) = knee(&xs, &ys, 1.0) {
                prop_assert!(at > 0 && at + 1 < ys.len());
            }
            if let Some(dip) = deepest_dip(&ys, 0.0) {
                prop_assert!(dip.from < dip.bottom && dip.bottom < ys.len());
            }
        }
    }
}
