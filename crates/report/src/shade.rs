//! Shades of a heat map.

/// The range of the figures in a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shades {
    least: f64,
    most: f64,
}

impl Shades {
    /// Creates the range of the positive figures.
    pub fn new(figures: impl Iterator<Item = f64>) -> Self {
        let usable = figures.filter(|figure| *figure > 0.0 && figure.is_finite());
        let (least, most) = usable.fold((f64::INFINITY, 0.0f64), |(least, most), figure| {
            (least.min(figure), most.max(figure))
        });
        Self { least, most }
    }

    /// Returns the shade, from 0 (worst) to `steps` (best), by ratio: a doubling counts the same
    /// everywhere. All shades are 0 if the figures hardly differ.
    pub fn shade(self, figure: f64, steps: usize) -> usize {
        let range = (self.most / self.least).ln();
        if !range.is_finite() || range < 0.01 || figure <= 0.0 {
            return 0;
        }
        let share = (figure / self.least).ln() / range;
        (share * steps as f64).round().clamp(0.0, steps as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_by_ratio_from_worst_to_best() {
        let shades = Shades::new([1.0, 10.0, 100.0, f64::NAN, 0.0].into_iter());
        let shade = |figure| shades.shade(figure, 4);
        assert_eq!([1.0, 10.0, 100.0, 0.0].map(shade), [0, 2, 4, 0]);
        let equal = Shades::new([5.0, 5.01].into_iter());
        assert_eq!(equal.shade(5.01, 4), 0, "no difference, no shade");
        assert_eq!(Shades::new(std::iter::empty()).shade(1.0, 4), 0);
    }
}
