//! Amounts of data.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::amount::amount;
use crate::text::{ParseUnitError, split_number};

/// The unit in which Linux counts sectors, whatever the sector size of the device: 512 bytes.
pub const SECTOR_BYTES: u64 = 512;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

amount! {
    /// An amount of data or an offset, in bytes.
    Bytes
}

amount! {
    /// An amount of data or an offset, in 512-byte sectors.
    Sectors
}

amount! {
    /// A number of memory pages; see [`PageSize`].
    Pages
}

amount! {
    /// An amount of data in KiB (1024 bytes), the unit of `read_ahead_kb`.
    Kib
}

/// The size of a memory page: a power of two, 4 KiB or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct PageSize(u64);

impl PageSize {
    /// 4 KiB, as on x86-64 and most other architectures.
    pub const FOUR_KIB: Self = Self(4096);

    /// A page of `bytes`, or `None` if that is not a power of two of at least 4 KiB.
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= 4096 { Some(Self(bytes)) } else { None }
    }

    pub const fn bytes(self) -> Bytes {
        Bytes(self.0)
    }
}

impl TryFrom<u64> for PageSize {
    type Error = String;

    fn try_from(bytes: u64) -> Result<Self, String> {
        Self::new(bytes).ok_or_else(|| format!("{bytes} bytes cannot be a page size"))
    }
}

impl From<PageSize> for u64 {
    fn from(size: PageSize) -> u64 {
        size.0
    }
}

impl Bytes {
    /// This many KiB.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib * KIB)
    }

    /// This many MiB.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib * MIB)
    }

    pub const fn from_gib(gib: u64) -> Self {
        Self(gib * GIB)
    }

    pub const fn to_sectors_floor(self) -> Sectors {
        Sectors(self.0 / SECTOR_BYTES)
    }

    /// Whole pages, rounded down.
    pub const fn to_pages_floor(self, page: PageSize) -> Pages {
        Pages(self.0 / page.0)
    }

    /// Pages that hold the whole amount, rounded up.
    pub const fn to_pages_ceil(self, page: PageSize) -> Pages {
        Pages(self.0.div_ceil(page.0))
    }

    /// Whole KiB, rounded down.
    pub const fn to_kib_floor(self) -> Kib {
        Kib(self.0 / KIB)
    }

    /// The same amount in KiB, or `None` if it is not a whole number of KiB.
    pub const fn to_kib_exact(self) -> Option<Kib> {
        if self.0.is_multiple_of(KIB) { Some(Kib(self.0 / KIB)) } else { None }
    }

    /// MiB as a fraction, for tables.
    pub fn as_mib(self) -> f64 {
        self.0 as f64 / MIB as f64
    }
}

/// Formats an amount to about three digits: `7.28 TiB`, `16 GiB`, `4 KiB`. For sizes of disks and
/// of memory, which are seldom a whole number of a large unit; settings are shown exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounded(Bytes);

impl Bytes {
    /// The amount to about three digits.
    pub const fn rounded(self) -> Rounded {
        Rounded(self)
    }
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.0;
        let units = [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
        let Some((size, unit)) = units.into_iter().find(|(size, _)| bytes >= *size) else {
            return self.0.fmt(f);
        };
        let value = bytes as f64 / size as f64;
        let digits = match value {
            _ if bytes.is_multiple_of(size) => 0,
            value if value < 9.995 => 2,
            value if value < 99.95 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

impl Sectors {
    /// The same amount in bytes.
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 * SECTOR_BYTES)
    }
}

impl Pages {
    /// The same amount in bytes.
    pub const fn to_bytes(self, page: PageSize) -> Bytes {
        Bytes(self.0 * page.0)
    }
}

impl Kib {
    /// The same amount in bytes; saturates.
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(KIB))
    }

    /// The same amount in 512-byte sectors, the unit of `blockdev --setra`;
    /// saturates.
    pub const fn to_sectors(self) -> Sectors {
        Sectors(self.0.saturating_mul(KIB / SECTOR_BYTES))
    }
}

/// Shows the largest unit in which the number is whole: `128 KiB`, `1088 KiB`, `8 MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")]
            .into_iter()
            .find(|(size, _)| self.0 != 0 && self.0.is_multiple_of(*size))
            .map_or((self.0, "B"), |(size, unit)| (self.0 / size, unit));
        f.pad(&format!("{count} {unit}"))
    }
}

impl fmt::Display for Kib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} KiB", self.0))
    }
}

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} sectors", self.0))
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} pages", self.0))
    }
}

/// Reads `128K`, `128KiB`, `1.5M`, `4096B` or `256s` (512-byte sectors). A number without a unit
/// is refused, except `0`; so are `kB` and `MB`, which half of all tools take for powers of two.
impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let (number, suffix) = split_number(text)?;
        let unit = match suffix {
            "" if number == 0.0 => 1,
            "" => return Err(ParseUnitError::no_unit(text, "128K, 1M or 256s (512-byte sectors)")),
            "B" => 1,
            "s" => SECTOR_BYTES,
            "k" | "K" | "KiB" | "kib" | "Ki" => KIB,
            "m" | "M" | "MiB" | "mib" | "Mi" => MIB,
            "g" | "G" | "GiB" | "gib" | "Gi" => GIB,
            "t" | "T" | "TiB" | "tib" | "Ti" => TIB,
            "kB" | "KB" | "kb" | "MB" | "mb" | "GB" | "gb" | "TB" | "tb" => {
                return Err(ParseUnitError::ambiguous(text, suffix));
            }
            _ => return Err(ParseUnitError::unknown(text, suffix, "B, K, M, G, T or s")),
        };
        let bytes = number * unit as f64;
        if bytes > u64::MAX as f64 / 2.0 {
            return Err(ParseUnitError::too_large(text));
        }
        if bytes.fract() != 0.0 {
            return Err(ParseUnitError::not_whole(text, "bytes"));
        }
        Ok(Bytes(bytes as u64))
    }
}

#[cfg(test)]
mod rounding {
    use super::*;

    #[test]
    fn sizes_of_disks_have_three_digits() {
        for (kib, shown) in [
            (976_762_584, "932 GiB"),
            (7_814_026_584, "7.28 TiB"),
            (1 << 30, "1 TiB"),
            (16 << 20, "16 GiB"),
            (1_047_552, "1023 MiB"),
            (130, "130 KiB"),
            (0, "0 B"),
        ] {
            assert_eq!(Bytes::from_kib(kib).rounded().to_string(), shown);
        }
        assert_eq!(Bytes::new(u64::MAX).rounded().to_string(), "16777216 TiB");
        assert_eq!(Bytes::new(1000).rounded().to_string(), "1000 B");
    }
}
