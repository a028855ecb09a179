//! A number with its uncertainty.

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::quantile::student_975;

/// A value with its spread: unknown, a range, or a 95 % interval.
///
/// The ends always enclose the value and are finite; [`Spread`] says whether there are ends. JSON
/// has `median`, `low`, `high` (`null` without ends) and `spread`, which is `ci95`, `range` or
/// `none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value, usually a median.
    pub median: f64,
    spread: Spread,
}

/// The spread of a value, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    Unknown,
    /// Minimum and maximum of a few repeats, which are too few for an interval.
    Range {
        low: f64,
        high: f64,
        /// Number of repeats; for a quotient, the smaller of the two numbers.
        repeats: u32,
    },
    /// A 95 % confidence interval.
    Interval {
        low: f64,
        high: f64,
        /// Number of repeats; `None` if the interval does not come from repeats.
        repeats: Option<u32>,
    },
}

/// Widths by which a range is extended for decisions, with two repeats and with three or four:
/// slightly more than the 95 % t interval, which for two repeats is 6.35 widths to either side.
const WIDTHS_OF_TWO: i32 = 6;
const WIDTHS_OF_MORE: i32 = 1;

impl Estimate {
    /// A value with unknown spread.
    pub const fn unbounded(value: f64) -> Self {
        Self { median: value, spread: Spread::Unknown }
    }

    pub const fn exact(value: f64) -> Self {
        Self { median: value, spread: Spread::Interval { low: value, high: value, repeats: None } }
    }

    /// Creates a value with its 95 % interval, which is widened to enclose the value. If an end is
    /// not finite, the spread is unknown.
    pub fn interval(median: f64, low: f64, high: f64) -> Self {
        Self::interval_of(median, low, high, None)
    }

    /// Like [`Self::interval`], from this many repeats.
    pub(crate) fn interval_of(median: f64, low: f64, high: f64, repeats: Option<u32>) -> Self {
        Self::with_ends(median, low, high, |low, high| Spread::Interval { low, high, repeats })
    }

    /// Creates a value with the minimum and the maximum of a few repeats.
    pub fn range(median: f64, low: f64, high: f64, repeats: u32) -> Self {
        Self::with_ends(median, low, high, |low, high| Spread::Range { low, high, repeats })
    }

    fn with_ends(median: f64, low: f64, high: f64, of: impl FnOnce(f64, f64) -> Spread) -> Self {
        if !(median.is_finite() && low.is_finite() && high.is_finite()) {
            return Self::unbounded(median);
        }
        Self { median, spread: of(low.min(median), high.max(median)) }
    }

    pub const fn spread(&self) -> Spread {
        self.spread
    }

    /// Returns both ends of the interval or range; `None` if the spread is unknown.
    pub const fn bounds(&self) -> Option<(f64, f64)> {
        match self.spread {
            Spread::Unknown => None,
            Spread::Range { low, high, .. } | Spread::Interval { low, high, .. } => {
                Some((low, high))
            }
        }
    }

    /// Returns the lower end of the interval or range, or minus infinity.
    pub fn low(&self) -> f64 {
        self.bounds().map_or(f64::NEG_INFINITY, |(low, _)| low)
    }

    /// Returns the upper end of the interval or range, or infinity.
    pub fn high(&self) -> f64 {
        self.bounds().map_or(f64::INFINITY, |(_, high)| high)
    }

    /// Returns whether the estimate has ends, of an interval or of a range.
    pub const fn is_bounded(&self) -> bool {
        self.bounds().is_some()
    }

    /// Returns whether the ends are those of a 95 % interval.
    pub const fn is_interval(&self) -> bool {
        matches!(self.spread, Spread::Interval { .. })
    }

    /// Returns the ends to base decisions on; minus and plus infinity if there are none.
    ///
    /// An interval has its own ends. A range encloses the true value too rarely (with three
    /// repeats, in 75 of 100 cases), so it is widened on either side by its own width, with two
    /// repeats by six times its width, on a log scale if all values are positive: about the width
    /// of a 95 % t interval.
    pub fn decision_bounds(&self) -> (f64, f64) {
        match self.spread {
            Spread::Interval { low, high, .. } => (low, high),
            Spread::Range { low, high, repeats } => {
                let widths = if repeats < 3 { WIDTHS_OF_TWO } else { WIDTHS_OF_MORE };
                if low > 0.0 {
                    let wider = (high / low).powi(widths);
                    (low / wider, high * wider)
                } else {
                    let wider = (high - low) * f64::from(widths);
                    (low - wider, high + wider)
                }
            }
            Spread::Unknown => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// Returns the ratio of two independent estimates.
    ///
    /// Distances of two intervals add in quadrature on a log scale (MOVER: Zou and Donner 2008). If
    /// either has only a range, the result is the range of all quotients.
    pub fn over(&self, below: &Self) -> Self {
        let centre = self.median / below.median;
        let (Some((a_low, a_high)), Some((b_low, b_high))) = (self.bounds(), below.bounds()) else {
            return Self::unbounded(centre);
        };
        if a_low <= 0.0 || b_low <= 0.0 {
            return Self::unbounded(centre);
        }
        match Self::range_repeats(&[*self, *below]) {
            Some(repeats) => Self::range(centre, a_low / b_high, a_high / b_low, repeats),
            None => {
                let (median, repeats) = (1.0 / below.median, below.interval_repeats());
                let inverse = Self::interval_of(median, 1.0 / b_high, 1.0 / b_low, repeats);
                Self::product(centre, &[*self, inverse], 1.0)
            }
        }
    }

    /// Returns the geometric mean of independent estimates, with a known centre. If any of them has
    /// only a range, the result is the range from all minima to all maxima.
    pub fn geometric_mean(centre: f64, all: &[Self]) -> Self {
        if all.is_empty() || all.iter().any(|one| one.low() <= 0.0) {
            return Self::unbounded(centre);
        }
        let share = 1.0 / all.len() as f64;
        let away = |of: fn(&Self) -> f64| -> f64 { all.iter().map(|one| of(one).ln()).sum() };
        match Self::range_repeats(all) {
            Some(repeats) => {
                let down = away(|one| one.low() / one.median) * share;
                let up = away(|one| one.high() / one.median) * share;
                Self::range(centre, centre * down.exp(), centre * up.exp(), repeats)
            }
            None => Self::product(centre, all, share),
        }
    }

    /// Returns the product of intervals, each to the power of `share`.
    fn product(centre: f64, all: &[Self], share: f64) -> Self {
        let (mut down, mut up) = (Quadrature::default(), Quadrature::default());
        for one in all {
            let repeats = one.interval_repeats();
            down.add((one.median / one.low()).ln() * share, repeats);
            up.add((one.high() / one.median).ln() * share, repeats);
        }
        let ((down, fewer), (up, more)) = (down.half(), up.half());
        let repeats = fewer.into_iter().chain(more).min();
        Self::interval_of(centre, centre * (-down).exp(), centre * up.exp(), repeats)
    }

    /// Returns the smallest number of repeats of any range; `None` if none of them is a range.
    fn range_repeats(all: &[Self]) -> Option<u32> {
        let of = |one: &Self| match one.spread {
            Spread::Range { repeats, .. } => Some(repeats),
            Spread::Unknown | Spread::Interval { .. } => None,
        };
        all.iter().filter_map(of).min()
    }

    /// Returns the repeats of an interval; `None` if it does not come from repeats.
    const fn interval_repeats(&self) -> Option<u32> {
        match self.spread {
            Spread::Interval { repeats, .. } => repeats,
            Spread::Unknown | Spread::Range { .. } => None,
        }
    }

    /// Returns the kind of ends as in JSON and CSV: `ci95`, `range` or `none`.
    pub const fn spread_kind(&self) -> &'static str {
        match self.spread {
            Spread::Unknown => "none",
            Spread::Range { .. } => "range",
            Spread::Interval { .. } => "ci95",
        }
    }

    /// Applies an increasing function: `f64::exp` turns a difference of logarithms into a ratio.
    pub fn map(&self, rising: impl Fn(f64) -> f64) -> Self {
        let median = rising(self.median);
        match self.spread {
            Spread::Unknown => Self::unbounded(median),
            Spread::Range { low, high, repeats } => {
                Self::range(median, rising(low), rising(high), repeats)
            }
            Spread::Interval { low, high, repeats } => {
                Self::interval_of(median, rising(low), rising(high), repeats)
            }
        }
    }
}

/// Half widths of independent 95 % intervals, added in quadrature.
///
/// An interval from few repeats is wider than one from many, because its noise is less certain. The
/// noise of a sum is more certain than that of its parts. So the width of each part is divided by
/// Student's quantile of its degrees of freedom, and the sum is multiplied by the quantile of the
/// sum's degrees of freedom (Welch–Satterthwaite).
#[derive(Clone, Copy, Debug, Default)]
struct Quadrature {
    squares: f64,
    /// Sum of squared variances, each divided by its degrees of freedom.
    unsure: f64,
}

impl Quadrature {
    fn add(&mut self, half: f64, repeats: Option<u32>) {
        let freedom = repeats.map(|repeats| repeats.saturating_sub(1).max(1) as usize);
        let square = (half / student_975(freedom.unwrap_or(usize::MAX))).powi(2);
        self.squares += square;
        self.unsure += freedom.map_or(0.0, |freedom| square * square / freedom as f64);
    }

    /// Returns half the width of the sum, and the equivalent number of repeats.
    fn half(self) -> (f64, Option<u32>) {
        let freedom = (self.unsure > 0.0).then(|| self.squares * self.squares / self.unsure);
        // The cast saturates.
        let quantile = student_975(freedom.map_or(usize::MAX, |freedom| freedom as usize));
        (quantile * self.squares.sqrt(), freedom.map(|freedom| freedom as u32 + 1))
    }
}

impl Serialize for Estimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (low, high) = self.bounds().unzip();
        let mut fields = serializer.serialize_struct("Estimate", 4)?;
        fields.serialize_field("median", &self.median)?;
        fields.serialize_field("low", &low)?;
        fields.serialize_field("high", &high)?;
        fields.serialize_field("spread", self.spread_kind())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_finite_and_hold_the_value() {
        assert_eq!(Estimate::interval(1.0, f64::NEG_INFINITY, 2.0), Estimate::unbounded(1.0));
        assert_eq!(Estimate::interval(1.0, f64::NAN, 2.0), Estimate::unbounded(1.0));
        assert!(!Estimate::unbounded(1.0).is_bounded());
        assert_eq!(Estimate::interval(1.0, 1.5, 2.0).bounds(), Some((1.0, 2.0)));
        assert_eq!(Estimate::range(1.0, 2.0, 0.5, 3).bounds(), Some((1.0, 1.0)));
    }

    #[test]
    fn a_range_decides_by_three_times_its_width() {
        let (low, high) = Estimate::range(1.2, 1.1, 1.21, 3).decision_bounds();
        assert!((low - 1.0).abs() < 1e-12 && (high - 1.331).abs() < 1e-12, "{low} {high}");
        let nothing = (f64::NEG_INFINITY, f64::INFINITY);
        let (low, high) = Estimate::range(2.0, 1.9, 2.1, 2).decision_bounds();
        assert!((low - 1.9 * (1.9f64 / 2.1).powi(6)).abs() < 1e-9, "{low}");
        assert!((high - 2.1 * (2.1f64 / 1.9).powi(6)).abs() < 1e-9, "{high}");
        assert_eq!(Estimate::unbounded(1.2).decision_bounds(), nothing);
        assert_eq!(Estimate::interval(1.2, 1.1, 1.21).decision_bounds(), (1.1, 1.21));
        assert_eq!(Estimate::range(0.0, -1.0, 1.0, 4).decision_bounds(), (-3.0, 3.0));
    }

    #[test]
    fn quotients_of_intervals_are_intervals_and_of_ranges_ranges() {
        let (a, b) = (Estimate::interval(4.0, 2.0, 8.0), Estimate::interval(1.0, 0.5, 2.0));
        let ratio = a.over(&b);
        assert!(ratio.is_interval() && (ratio.low() - 1.5008).abs() < 1e-3, "{ratio:?}");
        let few = Estimate::range(1.0, 0.5, 2.0, 3);
        assert_eq!(a.over(&few), Estimate::range(4.0, 1.0, 16.0, 3));
        assert_eq!(a.over(&Estimate::unbounded(2.0)), Estimate::unbounded(2.0));
        assert_eq!(Estimate::exact(1.0).over(&Estimate::exact(0.0)).bounds(), None);
    }

    #[test]
    fn the_mean_of_several_is_surer_than_each() {
        let one = Estimate::interval(2.0, 1.0, 4.0);
        let four = Estimate::geometric_mean(2.0, &[one; 4]);
        assert!((four.high() / 2.0 - 2f64.sqrt()).abs() < 1e-9, "{four:?}");
        let few = Estimate::range(2.0, 1.0, 4.0, 3);
        assert_eq!(Estimate::geometric_mean(2.0, &[one, few]).bounds(), Some((1.0, 4.0)));
        assert!(!Estimate::geometric_mean(2.0, &[one, Estimate::unbounded(2.0)]).is_bounded());
        assert!(!Estimate::geometric_mean(2.0, &[]).is_bounded());
    }

    #[test]
    fn json_says_which_kind_of_ends_it_has() {
        let json = |estimate: Estimate| serde_json::to_value(estimate).unwrap();
        let interval = json(Estimate::interval(2.0, 1.0, 3.0));
        assert_eq!(interval["spread"], "ci95");
        assert_eq!((interval["low"].as_f64(), interval["high"].as_f64()), (Some(1.0), Some(3.0)));
        assert_eq!(json(Estimate::range(2.0, 1.0, 3.0, 3))["spread"], "range");
        let single = json(Estimate::unbounded(2.0));
        assert_eq!((single["spread"].as_str(), single["low"].is_null()), (Some("none"), true));
    }
}
