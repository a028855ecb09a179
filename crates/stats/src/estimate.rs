//! A number and how sure it is.

use serde::Serialize;

/// A median with its 95 % interval. One measurement bounds nothing: the ends are infinite then,
/// and JSON, which has no infinity, shows them as `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// A number of which nothing but itself is known.
    pub const fn unbounded(value: f64) -> Self {
        Self { median: value, low: f64::NEG_INFINITY, high: f64::INFINITY }
    }

    /// A number that is certain.
    pub const fn exact(value: f64) -> Self {
        Self { median: value, low: value, high: value }
    }

    /// Whether the interval has two ends.
    pub fn is_bounded(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Half the width of the interval relative to the median; infinite for a median of zero.
    pub fn relative_half_width(&self) -> f64 {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 { 0.0 } else { (half / self.median).abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_width_is_relative_to_the_median() {
        let estimate = Estimate { median: 200.0, low: 190.0, high: 214.0 };
        assert!((estimate.relative_half_width() - 0.06).abs() < 1e-12);
        assert_eq!(Estimate::exact(0.0).relative_half_width(), 0.0);
        assert_eq!(Estimate::unbounded(5.0).relative_half_width(), f64::INFINITY);
        assert!(!Estimate::unbounded(5.0).is_bounded());
    }
}
