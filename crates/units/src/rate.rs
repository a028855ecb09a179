//! Data rates.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::{ParseUnitError, split_number};
use crate::{Bytes, Nanos};

/// A rate in bytes per second; finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerSecond(f64);

impl BytesPerSecond {
    /// A rate in bytes per second; `None` if it is negative or not finite.
    pub fn new(bytes_per_second: f64) -> Option<Self> {
        (bytes_per_second.is_finite() && bytes_per_second >= 0.0).then_some(Self(bytes_per_second))
    }

    /// This many MB (1e6 bytes) per second, the unit of data sheets.
    pub const fn from_mb(mb: u32) -> Self {
        Self(mb as f64 * 1e6)
    }

    /// The number of bytes per second.
    pub fn get(self) -> f64 {
        self.0
    }

    /// MiB per second, the unit of foreread's tables.
    pub fn as_mib(self) -> f64 {
        self.0 / (1u64 << 20) as f64
    }

    pub fn as_mb(self) -> f64 {
        self.0 / 1e6
    }

    /// Returns the time for `amount` at this rate; the maximum at a rate of 0.
    pub fn time_for(self, amount: Bytes) -> Nanos {
        if self.0 == 0.0 { Nanos::MAX } else { Nanos::from_secs_f64(amount.get() as f64 / self.0) }
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.as_mib();
        let decimals = if mib >= 100.0 {
            0
        } else if mib >= 10.0 {
            1
        } else {
            2
        };
        f.pad(&format!("{mib:.decimals$} MiB/s"))
    }
}

/// Reads `125M` or `125MiB/s` (1024-based) and `107MB/s` (1e6 bytes, as in data sheets).
impl FromStr for BytesPerSecond {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let (number, suffix) = split_number(text)?;
        let unit = match suffix.strip_suffix("/s").unwrap_or(suffix) {
            "" if number == 0.0 => 1.0,
            "" => return Err(ParseUnitError::no_unit(text, "125MiB/s or 107MB/s")),
            "B" => 1.0,
            "K" | "KiB" => 1024.0,
            "M" | "MiB" => 1_048_576.0,
            "G" | "GiB" => 1_073_741_824.0,
            "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            _ => return Err(ParseUnitError::unknown(text, suffix, "KiB/s, MiB/s, GiB/s or MB/s")),
        };
        Ok(Self(number * unit))
    }
}
