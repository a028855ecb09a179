//! Quantities over the time of a trial besides readers and device: queries per second, read-ahead
//! windows.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// One quantity over the time of a trial. Reports show the mean over the trials of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in reports: `queries`, `window`.
    pub name: String,
    /// Unit: `queries/s`, `KiB`.
    pub unit: String,
    /// True if the values are per second of wall time and need correction for dilation.
    #[serde(default)]
    pub rate: bool,
    /// Time of each value since the start of the readers, in wall time, ascending.
    pub at: Vec<Nanos>,
    /// One value for each time.
    pub values: Vec<f64>,
}

impl Series {
    /// Creates a quantity that does not depend on dilation.
    pub fn level(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), ..Self::default() }
    }

    /// Creates a quantity per second of wall time.
    pub fn rate(name: &str, unit: &str) -> Self {
        Self { rate: true, ..Self::level(name, unit) }
    }

    /// Adds a value; skips a value that is not finite, because a record cannot store it.
    pub fn push(&mut self, at: Nanos, value: f64) {
        if value.is_finite() {
            self.at.push(at);
            self.values.push(value);
        }
    }

    /// Returns times (in seconds) and values in the storage's own time.
    pub fn points(&self, dilation: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
        let scale = if self.rate { dilation } else { 1.0 };
        let both = self.at.iter().zip(&self.values);
        both.map(move |(at, value)| (at.as_secs_f64() / dilation, value * scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dilation_is_taken_out_of_times_and_rates() {
        let mut queries = Series::rate("queries", "queries/s");
        queries.push(Nanos::from_secs(4), 100.0);
        queries.push(Nanos::from_secs(5), f64::NAN);
        assert_eq!(queries.points(4.0).collect::<Vec<_>>(), [(1.0, 400.0)]);
        let mut window = Series::level("window", "KiB");
        window.push(Nanos::from_secs(4), 128.0);
        assert_eq!(window.points(4.0).collect::<Vec<_>>(), [(1.0, 128.0)]);
    }

    #[test]
    fn a_series_is_stored_and_read_back() {
        let mut series = Series::rate("queries", "queries/s");
        series.push(Nanos::from_millis(1500), 12.25);
        let text = serde_json::to_string(&series).unwrap();
        assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), series);
    }
}
