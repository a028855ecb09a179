//! Numbered lines of text and the words in them.

use std::borrow::Cow;
use std::str::FromStr;

use units::Nanos;

use crate::error::TraceError;

/// Returns the lines of a text that are not empty, with their numbers from 1.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, Cow<'_, str>)> {
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let texts = lines.map(|(number, line)| (number, String::from_utf8_lossy(line)));
    texts.map(trimmed).filter(|(_, line)| !line.is_empty())
}

fn trimmed((number, line): (u64, Cow<'_, str>)) -> (u64, Cow<'_, str>) {
    let trimmed = match line {
        Cow::Borrowed(line) => Cow::Borrowed(line.trim()),
        Cow::Owned(line) => Cow::Owned(line.trim().to_owned()),
    };
    (number, trimmed)
}

/// Returns the first complete lines of a file, for format detection.
pub(super) fn head(bytes: &[u8], count: usize) -> Vec<String> {
    let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &bytes[..end],
        None => bytes,
    };
    // A file with a zero byte is binary.
    if whole.contains(&0) {
        return Vec::new();
    }
    lines(whole).take(count).map(|(_, line)| line.into_owned()).collect()
}

/// Returns whether `fits` holds for the first line and for at least half of the lines. An invalid
/// line does not prevent detection, so that the parser can report it.
pub(super) fn mostly(lines: &[String], fits: impl Fn(&String) -> bool) -> bool {
    let fitting = lines.iter().filter(|line| fits(line)).count();
    lines.first().is_some_and(&fits) && 2 * fitting >= lines.len()
}

/// Parses a word of a line as a number.
pub(super) fn number<T: FromStr>(
    line: u64,
    what: &str,
    word: Option<&str>,
) -> Result<T, TraceError> {
    let Some(word) = word else {
        return Err(TraceError::line(line, format!("{what} is missing: the line is cut short")));
    };
    word.parse().map_err(|_| TraceError::line(line, format!("{what}: {word:?} is no number")))
}

/// Parses a decimal time in seconds without rounding: a float has too few digits for nanoseconds
/// since 1970.
pub(super) fn seconds(line: u64, what: &str, word: &str) -> Result<Nanos, TraceError> {
    exact_seconds(word)
        .ok_or_else(|| TraceError::line(line, format!("{what}: {word:?} is no time in seconds")))
}

pub(super) fn exact_seconds(word: &str) -> Option<Nanos> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(9)];
    let whole: u64 = whole.parse().ok()?;
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos::new)
}

/// Returns `factor` × `number`, or an error if the product overflows.
pub(super) fn times(line: u64, what: &str, number: u64, factor: u64) -> Result<u64, TraceError> {
    let product = number.checked_mul(factor);
    product.ok_or_else(|| TraceError::line(line, format!("{what}: {number} is too large")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        let read = |word| exact_seconds(word).map(Nanos::get);
        assert_eq!(read("1700000000.123456789"), Some(1_700_000_000_123_456_789));
        assert_eq!((read("0.5"), read("3")), (Some(500_000_000), Some(3_000_000_000)));
        for wrong in ["", ".5", "-1", "1e9", "1.2.3", "99999999999999999999"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let read: Vec<u64> = lines(b"a\n\n  \r\nb\r\n").map(|(number, _)| number).collect();
        assert_eq!(read, [1, 4]);
    }
}
