//! Units of published rates. All figures are converted to MiB/s, so that runs can be compared; the
//! run keeps the published unit.

use std::fmt;
use std::str::FromStr;

use super::ImportError;

/// A unit of throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateUnit {
    /// 1,048,576 bytes a second.
    #[default]
    MibS,
    /// 1,000,000 bytes a second.
    MbS,
    /// 1024 bytes a second.
    KibS,
    /// 1000 bytes a second.
    KbS,
}

impl RateUnit {
    const ALL: [(Self, &'static str, [&'static str; 3]); 4] = [
        (Self::MibS, "MiB/s", ["mib_s", "mib/s", "mib/sec"]),
        (Self::KibS, "KiB/s", ["kib_s", "kib/s", "kib/sec"]),
        (Self::MbS, "MB/s", ["mb_s", "mb/s", "mb/sec"]),
        (Self::KbS, "kB/s", ["kb_s", "kb/s", "kb/sec"]),
    ];

    fn bytes(self) -> f64 {
        match self {
            Self::MibS => 1_048_576.0,
            Self::MbS => 1e6,
            Self::KibS => 1024.0,
            Self::KbS => 1e3,
        }
    }

    pub fn mib_s(self) -> f64 {
        self.bytes() / Self::MibS.bytes()
    }

    /// Splits the unit off the end of a heading, with or without parentheses: `seq-8_mb_s`,
    /// `seq-8 (MB/s)`, `seq-8 [MiB/sec]`.
    pub(super) fn of_heading(heading: &str) -> (Option<Self>, &str) {
        const BETWEEN: [char; 6] = ['_', ' ', '\t', ',', '(', '['];
        let lower = heading.trim_end_matches([')', ']', ' ']).to_ascii_lowercase();
        for (unit, _, endings) in Self::ALL {
            for before in endings.iter().filter_map(|ending| lower.strip_suffix(ending)) {
                if before.is_empty() {
                    return (Some(unit), heading);
                }
                if before.ends_with(BETWEEN) {
                    return (Some(unit), heading[..before.len()].trim_end_matches(BETWEEN));
                }
            }
        }
        (None, heading)
    }

    /// Returns the unit that a file of published tables states in words: as the author printed it,
    /// or as corrected by a warning in the file.
    pub(super) fn in_words(printed: Option<&str>, warning: Option<&str>) -> Option<Self> {
        let decimal = |text: &str| text.contains("1e6 B/s") || text.contains("MB/s");
        if warning.is_some_and(decimal) || printed.is_some_and(decimal) {
            return Some(Self::MbS);
        }
        printed.filter(|text| text.contains("KiB/s")).map(|_| Self::KibS)
    }

    /// Returns a note for readers who know the published figures; `None` if they are unchanged.
    pub(super) fn note(self, example: f64) -> Option<String> {
        let bytes = self.bytes();
        (self != Self::MibS && example > 0.0).then(|| {
            format!(
                "published in {self} ({bytes} bytes a second) and shown in MiB/s like all runs: \
                 {example:.0} {self} is {:.0} MiB/s",
                example * self.mib_s()
            )
        })
    }
}

impl fmt::Display for RateUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(unit, _, _)| unit == self);
        f.pad(name.map_or("MiB/s", |(_, name, _)| name))
    }
}

impl FromStr for RateUnit {
    type Err = ImportError;

    fn from_str(text: &str) -> Result<Self, ImportError> {
        let found = Self::ALL.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(unit, _, _)| *unit).ok_or_else(|| ImportError::Unit(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_where_people_write_them() {
        assert_eq!(RateUnit::of_heading("seq-8_mb_s"), (Some(RateUnit::MbS), "seq-8"));
        assert_eq!(RateUnit::of_heading("seq-8"), (None, "seq-8"));
        for (heading, unit, name) in [
            ("x(MB/s)", RateUnit::MbS, "x"),
            ("8 readers (MiB/sec)", RateUnit::MibS, "8 readers"),
            ("x [kB/s]", RateUnit::KbS, "x"),
            ("x, KiB/s", RateUnit::KibS, "x"),
            ("MB/s", RateUnit::MbS, "MB/s"),
        ] {
            assert_eq!(RateUnit::of_heading(heading), (Some(unit), name), "{heading}");
        }
        for heading in ["", ")", "climb/s", "x (ms)", "é(MB"] {
            assert_eq!(RateUnit::of_heading(heading), (None, heading));
        }
        assert_eq!("kb/s".parse(), Ok(RateUnit::KbS));
        assert!("Mbit/s".parse::<RateUnit>().is_err());
        let warning = Some("Treat as MB/s = 1e6 B/s");
        assert_eq!(RateUnit::in_words(Some("MiB/sec as reported"), warning), Some(RateUnit::MbS));
        assert_eq!(RateUnit::in_words(Some("as printed: MB/sec"), None), Some(RateUnit::MbS));
        assert_eq!(RateUnit::in_words(Some("MiB/s"), None), None);
    }

    #[test]
    fn a_note_says_what_became_of_a_figure() {
        let note = RateUnit::MbS.note(651.0).unwrap();
        assert!(
            note.contains("1000000 bytes") && note.ends_with("651 MB/s is 621 MiB/s"),
            "{note}"
        );
        assert_eq!(RateUnit::MibS.note(651.0), None);
    }
}
