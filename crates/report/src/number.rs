//! Formats numbers without insignificant digits.

use std::collections::BTreeSet;

use stats::{Estimate, Spread};
use units::Kib;

/// Text for a value that was not measured.
pub(crate) const ABSENT: &str = "–";

/// Formats three significant digits: `0.0123`, `1.23`, `12.3`, `12345`; `None` if not finite.
pub(crate) fn short(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let magnitude = value.abs();
    let decimals = match magnitude {
        0.0 => 0,
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.09995 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    Some(if text.trim_start_matches('-').trim_matches(['0', '.']).is_empty() {
        "0".to_owned()
    } else {
        text
    })
}

/// Like [`short`]; [`ABSENT`] if not finite.
pub(crate) fn short_or_absent(value: f64) -> String {
    short(value).unwrap_or_else(|| ABSENT.to_owned())
}

/// Formats a median with its spread: `115 ±5`.
pub(crate) fn with_spread(estimate: &Estimate) -> String {
    let spread = spread_text(estimate).map_or_else(String::new, |spread| format!(" {spread}"));
    format!("{}{spread}", short_or_absent(estimate.median))
}

/// Maximum ratio of the halves of an interval that is shown with one ±; a larger one would place an
/// end where the data exclude it. It does not apply if both halves are small.
const MAX_HALVES_RATIO: f64 = 2.0;
/// A half below this share of the value is small.
const SMALL_HALF_SHARE: f64 = 0.05;

/// Returns whether ± can show an interval: it is narrower than its value, and its halves are
/// similar or small.
fn is_plus_minus(median: f64, (low, high): (f64, f64)) -> bool {
    let (less, more) = (median - low, high - median);
    let (less, more) = (less.min(more), less.max(more));
    let narrow = more + less < median.abs() || more == 0.0;
    narrow && (more <= MAX_HALVES_RATIO * less || more <= SMALL_HALF_SHARE * median.abs())
}

/// Returns the suffix that shows the spread of a value: `±5` for an interval, with as many decimals
/// as the value; `5.00 to 312` for an interval that is wider than the value or asymmetric;
/// `110–118` for a range of a few repeats; `None` for a single measurement.
pub(crate) fn spread_text(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.bounds()?;
    if !estimate.is_interval() {
        return ends_text(estimate);
    }
    if !is_plus_minus(estimate.median, (low, high)) {
        return plain_interval(estimate);
    }
    let shown = short(estimate.median)?;
    let decimals = shown.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let half = (high - estimate.median).max(estimate.median - low);
    Some(format!("±{half:.decimals$}"))
}

/// Explains the output of `spread_text`: the meaning of ±, and the number of repeats of a range.
pub(crate) fn spread_legend<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> String {
    let (mut halves, mut ends, mut repeats) = (false, false, BTreeSet::new());
    for estimate in estimates {
        match estimate.spread() {
            Spread::Interval { low, high, .. } => {
                let plus_minus = is_plus_minus(estimate.median, (low, high));
                (halves, ends) = (halves || plus_minus, ends || !plus_minus);
            }
            Spread::Range { repeats: count, .. } => drop(repeats.insert(count)),
            Spread::Unknown => {}
        }
    }
    let mut parts = Vec::new();
    if halves {
        parts.push(
            "±: distance from the median to the farther end of its 95 % confidence interval"
                .to_owned(),
        );
    }
    if ends {
        parts.push("a to b: that interval, if it is wide or asymmetric".to_owned());
    }
    if let (Some(fewest), Some(most)) = (repeats.first(), repeats.last()) {
        let count = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
        parts.push(format!("a–b: range of {count} repeats, too few for an interval"));
    }
    parts.join("; ")
}

/// Returns the uncertainty of a ratio: `95 % CI +25 % to +36 %`, `range of 3 repeats: 2.20 to 2.42`
/// or `measured once`.
pub(crate) fn certainty(ratio: &Estimate) -> String {
    named_ends(ratio, ratio_interval(ratio))
}

/// Returns the uncertainty of a factor: `95 % CI 2.20 to 2.42`, `range of 3 repeats: 1.20 to 1.25`.
pub(crate) fn factor_certainty(ratio: &Estimate) -> String {
    named_ends(ratio, plain_interval(ratio))
}

fn named_ends(ratio: &Estimate, ends: Option<String>) -> String {
    match (ratio.spread(), ends) {
        (Spread::Interval { .. }, Some(ends)) => format!("95 % CI {ends}"),
        (Spread::Range { repeats, .. }, Some(ends)) => {
            format!("range of {repeats} repeats: {ends}")
        }
        _ => "measured once".to_owned(),
    }
}

/// Formats a number in full, for a CSV field; empty if it is not finite.
pub(crate) fn full(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// Formats a time in microseconds in a suitable unit.
pub(crate) fn time(micros: f64) -> Option<String> {
    let (value, unit) = match micros {
        m if m >= 1e6 => (m / 1e6, "s"),
        m if m >= 1e3 => (m / 1e3, "ms"),
        m => (m, "µs"),
    };
    short(value).map(|text| format!("{text} {unit}"))
}

/// Formats a setting in the units of sysfs and `blockdev`: `8192 KiB (16384 sectors)`.
pub(crate) fn setting(kib: Kib) -> String {
    format!("{kib} ({})", kib.to_sectors())
}

/// Formats a ratio as a factor: `×2.53`, `×0.53`, `×0.092`; below 1 with two significant digits.
pub(crate) fn times(ratio: f64) -> Option<String> {
    if !(0.0001..0.995).contains(&ratio) {
        return short(ratio).map(|factor| format!("×{factor}"));
    }
    // The cast cannot overflow: at most five decimals.
    let decimals = (-ratio.log10()).ceil() as usize + 1;
    Some(format!("×{ratio:.decimals$}"))
}

/// Formats a ratio in words: `31 % more`, `2.31 times as much`, `12 % less`, `40.0 times less`.
pub(crate) fn ratio(ratio: f64) -> Option<String> {
    if !ratio.is_finite() {
        return None;
    }
    Some(match ratio {
        r if r >= 1.995 => format!("{} times as much", short(r)?),
        r if r >= 1.0 => format!("{:.0} % more", (r - 1.0) * 100.0),
        r if r > 0.505 => format!("{:.0} % less", (1.0 - r) * 100.0),
        r if r > 0.0 => format!("{} times less", short(1.0 / r)?),
        _ => "nothing".to_owned(),
    })
}

/// Formats the ends of a ratio's interval or range alike: `2.20 to 2.42`, `+25 % to +36 %`.
pub(crate) fn ratio_interval(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.bounds()?;
    if estimate.median >= 1.995 {
        return plain_interval(estimate);
    }
    if estimate.median <= 0.505 && low > 0.0 {
        // In the same direction as the ratio itself.
        return Some(format!("{} to {}", short(1.0 / high)?, short(1.0 / low)?));
    }
    let percent = |ratio: f64| format!("{:+} %", whole((ratio - 1.0) * 100.0));
    Some(format!("{} to {}", percent(low), percent(high)))
}

/// Rounds to the nearest whole number, without the sign of a negative zero.
pub(crate) fn whole(value: f64) -> f64 {
    value.round() + 0.0
}

/// Formats the ends of an interval, `0.163 to 0.229`, or of a range, `0.163–0.229`.
pub(crate) fn ends_text(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.bounds()?;
    let between = if estimate.is_interval() { " to " } else { "–" };
    Some(format!("{}{between}{}", short(low)?, short(high)?))
}

/// Formats the ends of a number's interval or range: `0.163 to 0.229`.
pub(crate) fn plain_interval(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.bounds()?;
    Some(format!("{} to {}", short(low)?, short(high)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_below_one_have_two_digits() {
        let shown =
            [12.3, 2.534, 1.0, 0.9951, 0.953, 0.53, 0.1, 0.0920, 0.00004, f64::NAN].map(times);
        let shown: Vec<String> = shown.into_iter().flatten().collect();
        let expected =
            ["×12.3", "×2.53", "×1.00", "×0.995", "×0.95", "×0.53", "×0.10", "×0.092", "×0"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn three_digits_and_no_more() {
        for (value, text) in [
            (0.0, "0"),
            (0.01234, "0.0123"),
            (0.5, "0.500"),
            (1.234, "1.23"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (123.4, "123"),
            (12345.6, "12346"),
            (-1.5, "-1.50"),
        ] {
            assert_eq!(short(value).unwrap(), text);
        }
        assert_eq!(short(f64::NAN), None);
        assert_eq!(short(f64::INFINITY), None);
    }

    #[test]
    fn zero_has_no_sign() {
        let shown: Vec<_> = [-0.3, 0.4, -0.7, 12.5].map(|value| format!("{}", whole(value))).into();
        assert_eq!(shown, ["0", "0", "-1", "13"]);
    }

    #[test]
    fn only_an_interval_narrower_than_its_value_is_a_plus_minus() {
        let text = |estimate: Estimate| spread_text(&estimate);
        assert_eq!(text(Estimate::unbounded(5.0)), None);
        assert_eq!(text(Estimate::interval(115.2, 110.0, 118.0)).unwrap(), "±5");
        assert_eq!(text(Estimate::interval(1.152, 1.1, 1.18)).unwrap(), "±0.05");
        assert_eq!(text(Estimate::interval(113.0, 5.0, 312.0)).unwrap(), "5.00 to 312");
        assert_eq!(text(Estimate::range(115.2, 110.0, 118.0, 3)).unwrap(), "110–118");
        assert_eq!(text(Estimate::interval(753.0, 523.0, 755.0)).unwrap(), "523 to 755");
        assert_eq!(text(Estimate::interval(753.0, 733.0, 755.0)).unwrap(), "±20");
        assert_eq!(text(Estimate::exact(0.0)).unwrap(), "±0");
    }

    #[test]
    fn legends_and_ratios_say_what_the_ends_are() {
        let (few, fewer) = (Estimate::range(1.3, 1.2, 1.4, 3), Estimate::range(1.3, 1.2, 1.4, 2));
        let many = Estimate::interval(1.31, 1.25, 1.36);
        let lopsided = Estimate::interval(1.31, 1.0, 1.36);
        let once = Estimate::unbounded(1.3);
        assert_eq!(
            spread_legend([many, lopsided, few, fewer, once].iter()),
            "±: distance from the median to the farther end of its 95 % confidence interval; \
             a to b: that interval, if it is wide or asymmetric; a–b: range of 2 to 3 repeats, \
             too few for an interval"
        );
        assert_eq!(spread_legend([once].iter()), "");
        assert_eq!(certainty(&many), "95 % CI +25 % to +36 %");
        assert_eq!(certainty(&few), "range of 3 repeats: +20 % to +40 %");
        assert_eq!(certainty(&once), "measured once");
    }

    #[test]
    fn ratios_read_as_people_say_them() {
        assert_eq!(ratio(1.31).unwrap(), "31 % more");
        assert_eq!(ratio(12.3).unwrap(), "12.3 times as much");
        assert_eq!(ratio(0.88).unwrap(), "12 % less");
        assert_eq!(ratio(0.1).unwrap(), "10.0 times less");
        assert_eq!(ratio(0.0).unwrap(), "nothing");
        assert_eq!(ratio(f64::INFINITY), None);
        let estimate = Estimate::interval(1.31, 1.25, 1.36);
        assert_eq!(ratio_interval(&estimate).unwrap(), "+25 % to +36 %");
        let estimate = Estimate::interval(0.25, 0.2, 0.5);
        assert_eq!(ratio(estimate.median).unwrap(), "4.00 times less");
        assert_eq!(ratio_interval(&estimate).unwrap(), "2.00 to 5.00");
        assert_eq!(ends_text(&estimate).unwrap(), "0.200 to 0.500");
        assert_eq!(ends_text(&Estimate::range(0.25, 0.2, 0.5, 3)).unwrap(), "0.200–0.500");
    }

    #[test]
    fn time_takes_the_unit_that_suits_it() {
        assert_eq!(time(85.0).unwrap(), "85.0 µs");
        assert_eq!(time(8_500.0).unwrap(), "8.50 ms");
        assert_eq!(time(1_250_000.0).unwrap(), "1.25 s");
        assert_eq!(time(f64::NAN), None);
    }
}
