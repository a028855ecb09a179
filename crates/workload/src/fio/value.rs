//! Amounts in fio's syntax.

use units::{Bytes, Nanos};

use super::error::{FioError, FioLocation};
use super::ini::shortened;

/// A size, or a percentage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// In bytes.
    Bytes(Bytes),
    Percent(u32),
}

/// An option's value, with its location for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) place: &'a FioLocation,
    pub(crate) option: &'a str,
    pub(crate) value: &'a str,
    /// Meaning of `k`, 1000 or 1024 (`kb_base`).
    pub(crate) kilo: u64,
}

impl Given<'_> {
    pub(crate) fn wrong(&self, wanted: impl Into<String>) -> FioError {
        FioError::Value {
            place: self.place.clone(),
            option: self.option.to_owned(),
            value: shortened(self.value),
            wanted: wanted.into(),
        }
    }

    pub(crate) fn refused(&self, why: impl Into<String>) -> FioError {
        FioError::Refused {
            place: self.place.clone(),
            option: format!("{}={}", self.option, shortened(self.value)),
            why: why.into(),
        }
    }

    /// Returns a part of the value, with the same option name.
    pub(crate) fn part<'b>(&'b self, value: &'b str) -> Given<'b> {
        Given { value, ..*self }
    }

    /// Parses 0 or 1.
    pub(crate) fn boolean(&self) -> Result<bool, FioError> {
        match self.value {
            "1" => Ok(true),
            "0" => Ok(false),
            _ => Err(self.wrong("0 or 1")),
        }
    }

    /// Parses a signed number with a suffix.
    pub(crate) fn signed(&self) -> Result<i64, FioError> {
        let (negative, text) = match self.value.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, self.value.strip_prefix('+').unwrap_or(self.value)),
        };
        let amount =
            i64::try_from(self.part(text).number()?).map_err(|_| self.wrong("less than 8 EiB"))?;
        Ok(if negative { -amount } else { amount })
    }

    /// Parses a whole number with a size suffix, which all of fio's numbers may have.
    pub(crate) fn number(&self) -> Result<u64, FioError> {
        let wanted = "a number, as in 64k or 8g";
        let (digits, radix) = match self.value.strip_prefix("0x") {
            Some(rest) => (rest, 16),
            None => (self.value, 10),
        };
        let length = digits.bytes().take_while(|b| char::from(*b).is_digit(radix)).count();
        let (digits, suffix) = digits.split_at(length);
        let number = u64::from_str_radix(digits, radix).map_err(|_| self.wrong(wanted))?;
        let factor = self.factor(suffix).ok_or_else(|| self.wrong(wanted))?;
        number.checked_mul(factor).ok_or_else(|| self.wrong("less than 16 EiB"))
    }

    /// Returns the factor of a suffix. With `kb_base=1024`, the default, `k` is 1024 and `kib` is
    /// 1000, for compatibility with old job files; with `kb_base=1000` it is the other way round.
    fn factor(&self, suffix: &str) -> Option<u64> {
        let suffix = suffix.to_ascii_lowercase();
        if matches!(suffix.as_str(), "" | "b") {
            return Some(1);
        }
        let power = "kmgtp".find(suffix.chars().next()?)? as u32 + 1;
        let base = match &suffix[1..] {
            "" | "b" | "i" => self.kilo,
            "ib" if self.kilo == 1000 => 1024,
            "ib" => 1000,
            _ => return None,
        };
        base.checked_pow(power)
    }

    /// Parses a number from `least` to `most`.
    pub(crate) fn count(&self, least: u32, most: u32) -> Result<u32, FioError> {
        let wanted = || self.wrong(format!("{least} to {most}"));
        let number = u32::try_from(self.number()?).map_err(|_| wanted())?;
        if (least..=most).contains(&number) { Ok(number) } else { Err(wanted()) }
    }

    /// Parses a size in bytes or percent.
    pub(crate) fn size(&self) -> Result<Size, FioError> {
        if let Some(percent) = self.value.strip_suffix('%') {
            return self.part(percent).count(0, 100).map(Size::Percent);
        }
        if self.value.ends_with('z') {
            return Err(self.refused("zones are not supported"));
        }
        if self.value.starts_with('(') {
            return Err(self.refused("arithmetic is not supported: write the number"));
        }
        self.number().map(|number| Size::Bytes(Bytes::new(number)))
    }

    /// Parses a size in bytes.
    pub(crate) fn bytes(&self) -> Result<Bytes, FioError> {
        match self.size()? {
            Size::Bytes(bytes) => Ok(bytes),
            Size::Percent(_) => Err(self.wrong("a size in bytes, as in 64k")),
        }
    }

    /// Parses a time. A number without a unit is in the option's unit.
    pub(crate) fn time(&self, unit: Nanos) -> Result<Nanos, FioError> {
        let wanted = "a time, as in 30s, 5m or 200ms";
        let length = self.value.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, suffix) = self.value.split_at(length);
        let number: u64 = digits.parse().map_err(|_| self.wrong(wanted))?;
        let factor = match suffix.to_ascii_lowercase().as_str() {
            "" => unit,
            "us" | "usec" => Nanos::from_micros(1),
            "ms" | "msec" => Nanos::from_millis(1),
            "s" => Nanos::from_secs(1),
            "m" => Nanos::from_secs(60),
            "h" => Nanos::from_secs(3600),
            "d" => Nanos::from_secs(24 * 3600),
            _ => return Err(self.wrong(wanted)),
        };
        let time = number.checked_mul(factor.get()).ok_or_else(|| self.wrong("less"))?;
        Ok(Nanos::new(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(value: &str, kilo: u64, read: impl Fn(&Given<'_>) -> T) -> T {
        let place = FioLocation { file: None, line: 7 };
        read(&Given { place: &place, option: "size", value, kilo })
    }

    #[test]
    fn suffixes_are_those_of_kb_base() {
        let number = |text: &str, kilo| with(text, kilo, |given| given.number().ok());
        assert_eq!(number("64g", 1024), Some(64 << 30));
        assert_eq!(number("8K", 1024), Some(8192));
        assert_eq!(number("8kb", 1024), Some(8192));
        assert_eq!(number("8kib", 1024), Some(8000), "fio's way round");
        assert_eq!(number("8kib", 1000), Some(8192));
        assert_eq!(number("8k", 1000), Some(8000));
        assert_eq!(number("0x10", 1024), Some(16));
        assert_eq!(number("512b", 1024), Some(512));
        for wrong in ["", "k", "4x", "4kk", "-1", "4.5k", "99999999999999999999", "20000p"] {
            assert_eq!(number(wrong, 1024), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_may_be_shares_and_times_have_units() {
        with("50%", 1024, |given| assert_eq!(given.size(), Ok(Size::Percent(50))));
        with("-8k", 1024, |given| assert_eq!(given.signed(), Ok(-8192)));
        let time = |text: &str| with(text, 1024, |given| given.time(Nanos::from_secs(1)).ok());
        assert_eq!(time("1m"), Some(Nanos::from_secs(60)));
        assert_eq!(time("900"), Some(Nanos::from_secs(900)));
        assert_eq!(time("200ms"), Some(Nanos::from_millis(200)));
        assert_eq!(time("1w"), None);
    }

    #[test]
    fn complaints_name_line_option_and_value() {
        let message = with("200%", 1024, |given| given.size().unwrap_err().to_string());
        assert_eq!(message, "line 7: size=200: must be 0 to 100");
        let message = with("3z", 1024, |given| given.size().unwrap_err().to_string());
        assert!(message.starts_with("line 7: size=3z: zones"), "{message}");
    }
}
