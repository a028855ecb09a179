//! Points and spans of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::amount::amount;
use crate::text::{ParseUnitError, split_number};

amount! {
    /// A span of time, or a point in time since an agreed start, in nanoseconds.
    Nanos
}

impl Nanos {
    pub const MAX: Self = Self(u64::MAX);

    /// This many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// This many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// This many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Seconds, rounded to the nearest nanosecond; a negative number or NaN becomes zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span made `factor` times longer (or shorter), rounded to the nearest nanosecond.
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Duration::from_nanos(span.0)
    }
}

/// Shows three significant digits in a unit that a person would choose: `7.45 ms`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return f.pad(&format!("{} ns", self.0)),
            1_000..1_000_000 => (nanos / 1e3, "µs"),
            1_000_000..1_000_000_000 => (nanos / 1e6, "ms"),
            1_000_000_000..120_000_000_000 => (nanos / 1e9, "s"),
            _ => (nanos / 60e9, "min"),
        };
        let decimals = if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        f.pad(&format!("{value:.decimals$} {unit}"))
    }
}

/// Reads `250ns`, `40us`, `1.5ms`, `2s` or `10min`. A number without a unit is refused, except `0`.
impl FromStr for Nanos {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let (number, suffix) = split_number(text)?;
        let unit = match suffix {
            "" if number == 0.0 => 1.0,
            "" => return Err(ParseUnitError::no_unit(text, "40us, 1.5ms, 2s or 10min")),
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => 1e9,
            "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(ParseUnitError::unknown(text, suffix, "ns, us, ms, s, min or h")),
        };
        let nanos = number * unit;
        if nanos > u64::MAX as f64 / 2.0 {
            return Err(ParseUnitError::too_large(text));
        }
        Ok(Nanos(nanos.round() as u64))
    }
}
