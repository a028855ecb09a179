//! Parsers of whole numbers, with messages that state the valid range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

pub fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "must be a whole number of 0 or more".to_owned())
}

/// Returns a parser of whole numbers in this range.
pub fn within<T>(
    allowed: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        number.ok_or_else(|| {
            format!("must be a whole number from {} to {}", allowed.start(), allowed.end())
        })
    }
}

/// Parses a number of repeats, at most a thousand.
pub fn repeats(text: &str) -> Result<u32, String> {
    within(1..=1000)(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told_what_would_do() {
        assert_eq!(whole::<u64>("7"), Ok(7));
        for text in ["", "x", "-1", "1.5", "1e3", "99999999999999999999"] {
            assert_eq!(whole::<u64>(text), Err("must be a whole number of 0 or more".to_owned()));
            assert_eq!(repeats(text), Err("must be a whole number from 1 to 1000".to_owned()));
        }
        assert_eq!((repeats("1"), repeats("1000")), (Ok(1), Ok(1000)));
        assert!(repeats("0").is_err() && repeats("1001").is_err());
    }
}
