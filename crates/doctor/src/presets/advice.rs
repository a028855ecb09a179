//! The value that a vendor recommends.

use serde::Serialize;
use units::Kib;

/// A recommended value; ranges are in KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VendorAdvice {
    /// From the first to the second value, inclusive.
    Between(Kib, Kib),
    AtLeast(Kib),
    AtMost(Kib),
    OneOf(Vec<Kib>),
    /// The kernel's default.
    Default,
    /// Not a number for a device: a hint to the kernel, a formula, or another kind of value.
    #[default]
    Words,
}

impl VendorAdvice {
    /// Parses a value of the column `recommended_kib`.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text.starts_with("hint:") || text.contains('*') || text.contains("total") {
            return Self::Words;
        }
        if text.starts_with("default") {
            return Self::Default;
        }
        if let Some(kib) = text.strip_prefix(">=").and_then(number) {
            return Self::AtLeast(kib);
        }
        if let Some(kib) = text.strip_prefix("<=").and_then(number) {
            return Self::AtMost(kib);
        }
        if let Some(kib) = number(text) {
            return Self::Between(kib, kib);
        }
        if let Some((low, high)) = text.split_once('-')
            && let (Some(low), Some(high)) = (number(low), number(high))
        {
            return Self::Between(low, high);
        }
        if text.contains("blocks") {
            return Self::Words;
        }
        let several: Vec<Kib> =
            text.split([',', ' ']).filter(|word| !word.is_empty()).filter_map(number).collect();
        match several.as_slice() {
            [] => Self::Words,
            [one] => Self::Between(*one, *one),
            _ => Self::OneOf(several),
        }
    }

    /// Returns whether a value follows the advice; `None` if the advice is not a number.
    pub fn allows(&self, value: Kib) -> Option<bool> {
        Some(match self {
            Self::Between(low, high) => (*low..=*high).contains(&value),
            Self::AtLeast(low) => value >= *low,
            Self::AtMost(high) => value <= *high,
            Self::OneOf(values) => values.contains(&value),
            Self::Default | Self::Words => return None,
        })
    }

    /// Returns the smallest and largest value that follow the advice; `None` if it is not a number.
    pub fn range(&self) -> Option<(Kib, Kib)> {
        let most = Kib::new(u64::MAX / 1024);
        Some(match self {
            Self::Between(low, high) => (*low, *high),
            Self::AtLeast(low) => (*low, most),
            Self::AtMost(high) => (Kib::new(0), *high),
            Self::OneOf(values) => (*values.iter().min()?, *values.iter().max()?),
            Self::Default | Self::Words => return None,
        })
    }

    pub fn contradicts(&self, other: &Self) -> bool {
        match (self.range(), other.range()) {
            (Some((low, high)), Some((other_low, other_high))) => {
                high < other_low || other_high < low
            }
            _ => false,
        }
    }
}

fn number(text: &str) -> Option<Kib> {
    text.trim().parse().ok().map(Kib::new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn advice_comes_in_many_forms() {
        let kib = Kib::new;
        for (text, advice) in [
            ("128", VendorAdvice::Between(kib(128), kib(128))),
            ("4-16", VendorAdvice::Between(kib(4), kib(16))),
            (">=4096", VendorAdvice::AtLeast(kib(4096))),
            ("<=8192", VendorAdvice::AtMost(kib(8192))),
            ("0 or 8", VendorAdvice::OneOf(vec![kib(0), kib(8)])),
            ("2048 versus 128", VendorAdvice::OneOf(vec![kib(2048), kib(128)])),
            ("128 (kernel default)", VendorAdvice::Between(kib(128), kib(128))),
            ("default (do not lower)", VendorAdvice::Default),
            ("hint:MADV_RANDOM", VendorAdvice::Words),
            ("2*optimal_io_size", VendorAdvice::Words),
            ("128 blocks", VendorAdvice::Words),
            ("user-set", VendorAdvice::Words),
            ("no effect measured", VendorAdvice::Words),
            ("1048576 total / 262144 per file", VendorAdvice::Words),
        ] {
            assert_eq!(VendorAdvice::parse(text), advice, "{text}");
        }
    }

    #[test]
    fn ranges_that_do_not_meet_contradict() {
        let advice = VendorAdvice::parse;
        assert!(advice("4-16").contradicts(&advice(">=4096")));
        assert!(!advice("4-16").contradicts(&advice("8")));
        assert!(!advice("4-16").contradicts(&advice("default")));
        assert_eq!(advice("4-16").allows(Kib::new(32)), Some(false));
        assert_eq!(advice("hint:x").allows(Kib::new(32)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            VendorAdvice::parse(&text);
        }
    }
}
