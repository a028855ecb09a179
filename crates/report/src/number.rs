//! Numbers as text: never more digits than mean something, never a number that is none.

use stats::Estimate;
use units::Kib;

/// What stands where nothing was measured.
pub(crate) const ABSENT: &str = "–";

/// Three digits that mean something: `0.0123`, `1.23`, `12.3`, `123`, `12345`; `None` for what is
/// no finite number.
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

/// Half the width of the interval, the larger half where they differ; `None` for one end only.
pub(crate) fn plus_minus(estimate: &Estimate) -> Option<f64> {
    let half = (estimate.high - estimate.median).max(estimate.median - estimate.low);
    (estimate.is_bounded() && half.is_finite()).then_some(half.max(0.0))
}

/// The `±` of a median, with as many decimals as the median is shown with, unless it is so wide
/// that they mean nothing.
pub(crate) fn plus_minus_text(estimate: &Estimate) -> Option<String> {
    let shown = short(estimate.median)?;
    let decimals = shown.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let half = plus_minus(estimate)?;
    if half > estimate.median { short(half) } else { Some(format!("{half:.decimals$}")) }
}

/// A time given in microseconds, in the unit that suits it.
pub(crate) fn time(micros: f64) -> Option<String> {
    let (value, unit) = match micros {
        m if m >= 1e6 => (m / 1e6, "s"),
        m if m >= 1e3 => (m / 1e3, "ms"),
        m => (m, "µs"),
    };
    short(value).map(|text| format!("{text} {unit}"))
}

/// A read-ahead setting as sysfs and as `blockdev` have it: `8192 KiB (16384 sectors)`.
pub(crate) fn setting(kib: Kib) -> String {
    format!("{kib} ({})", kib.to_sectors())
}

/// `1 trial`, `2 trials`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A ratio as people say it: `31 % more`, `2.31 times as much`, `12 % less`, `40.0 times less`.
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

/// The interval of a ratio in the same manner: `2.20 to 2.42`, `+25 % to +36 %`.
pub(crate) fn ratio_interval(estimate: &Estimate) -> Option<String> {
    if !estimate.is_bounded() {
        return None;
    }
    if estimate.median >= 1.995 {
        return plain_interval(estimate);
    }
    if estimate.median <= 0.505 && estimate.low > 0.0 {
        // As many times less as the ratio itself is said to be.
        return Some(format!("{} to {}", short(1.0 / estimate.high)?, short(1.0 / estimate.low)?));
    }
    let percent = |ratio: f64| format!("{:+} %", whole((ratio - 1.0) * 100.0));
    Some(format!("{} to {}", percent(estimate.low), percent(estimate.high)))
}

/// The nearest whole number; zero has no sign, which a number just below it would leave.
pub(crate) fn whole(value: f64) -> f64 {
    value.round() + 0.0
}

/// The interval of a number beside that number: `0.163 to 0.229`.
pub(crate) fn plain_interval(estimate: &Estimate) -> Option<String> {
    if !estimate.is_bounded() {
        return None;
    }
    Some(format!("{} to {}", short(estimate.low)?, short(estimate.high)?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn one_repeat_has_no_plus_minus() {
        assert_eq!(plus_minus_text(&Estimate::unbounded(5.0)), None);
        let estimate = Estimate { median: 115.2, low: 110.0, high: 118.0 };
        assert_eq!(plus_minus_text(&estimate).unwrap(), "5");
        let estimate = Estimate { median: 1.152, low: 1.1, high: 1.18 };
        assert_eq!(plus_minus_text(&estimate).unwrap(), "0.05");
    }

    #[test]
    fn ratios_read_as_people_say_them() {
        assert_eq!(ratio(1.31).unwrap(), "31 % more");
        assert_eq!(ratio(12.3).unwrap(), "12.3 times as much");
        assert_eq!(ratio(0.88).unwrap(), "12 % less");
        assert_eq!(ratio(0.1).unwrap(), "10.0 times less");
        assert_eq!(ratio(0.0).unwrap(), "nothing");
        assert_eq!(ratio(f64::INFINITY), None);
        let estimate = Estimate { median: 1.31, low: 1.25, high: 1.36 };
        assert_eq!(ratio_interval(&estimate).unwrap(), "+25 % to +36 %");
        let estimate = Estimate { median: 0.25, low: 0.2, high: 0.5 };
        assert_eq!(ratio(estimate.median).unwrap(), "4.00 times less");
        assert_eq!(ratio_interval(&estimate).unwrap(), "2.00 to 5.00");
        assert_eq!(plain_interval(&estimate).unwrap(), "0.200 to 0.500");
    }

    #[test]
    fn time_takes_the_unit_that_suits_it() {
        assert_eq!(time(85.0).unwrap(), "85.0 µs");
        assert_eq!(time(8_500.0).unwrap(), "8.50 ms");
        assert_eq!(time(1_250_000.0).unwrap(), "1.25 s");
        assert_eq!(time(f64::NAN), None);
    }
}
