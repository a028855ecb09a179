//! Device numbers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A device number, such as `8:0`. Major 0 marks a file system without a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DevNo {
    pub major: u32,
    /// The disk or partition within the driver that `major` selects.
    pub minor: u32,
}

impl DevNo {
    /// Converts the number that `stat(2)` returns.
    pub fn from_raw(dev: u64) -> Self {
        Self { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
    }
}

impl fmt::Display for DevNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.major, self.minor))
    }
}

/// The error for a text that is not a device number.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not a device number: write MAJOR:MINOR, as in 8:0")]
pub struct ParseDevNoError {
    text: String,
}

impl FromStr for DevNo {
    type Err = ParseDevNoError;

    fn from_str(text: &str) -> Result<Self, ParseDevNoError> {
        let number = |part: &str| -> Option<u32> {
            // `parse` alone would accept a sign.
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
        };
        text.trim()
            .split_once(':')
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }))
            .ok_or_else(|| ParseDevNoError { text: text.to_owned() })
    }
}

impl TryFrom<String> for DevNo {
    type Error = ParseDevNoError;

    fn try_from(text: String) -> Result<Self, ParseDevNoError> {
        text.parse()
    }
}

impl From<DevNo> for String {
    fn from(device: DevNo) -> String {
        device.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_strict() {
        assert_eq!("8:17".parse(), Ok(DevNo { major: 8, minor: 17 }));
        for text in ["", ":", "8:", ":1", "8", "8:1:2", "+8:1", "8:-1", "8 :1", "99999999999:1"] {
            assert!(text.parse::<DevNo>().is_err(), "{text:?}");
        }
        let device = DevNo { major: 259, minor: 3 };
        let json = serde_json::to_string(&device).expect("JSON");
        assert_eq!(json, "\"259:3\"");
        assert_eq!(serde_json::from_str::<DevNo>(&json).expect("a device"), device);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            let _ = text.parse::<DevNo>();
        }

        #[test]
        fn every_number_is_read_as_printed(major: u32, minor: u32) {
            let device = DevNo { major, minor };
            prop_assert_eq!(device.to_string().parse(), Ok(device));
        }
    }
}
