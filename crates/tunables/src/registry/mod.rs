//! The registry: one file and one line for each tunable.

mod read_ahead;

use std::fmt;
use std::path::PathBuf;

use host::{BdiId, DevNo, Storage};
use serde::{Deserialize, Serialize};
use units::PageSize;

use crate::{TunableError, Value};

/// Every tunable, by the order in which they are to be written.
pub static REGISTRY: &[&dyn Tunable] = &[&read_ahead::ReadAhead];

/// Where a tunable is set: all that a [`Tunable`] may use to find its file, and what a journal
/// keeps of a [`Storage`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// The bdi.
    pub bdi: BdiId,
    /// The block devices, as in [`Storage::devices`].
    pub devices: Vec<DevNo>,
}

impl From<&Storage> for Site {
    fn from(storage: &Storage) -> Self {
        Self { bdi: storage.bdi.clone(), devices: storage.devices.clone() }
    }
}

/// A value that may be set, and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The value as the kernel will have it.
    pub value: Value,
    /// What the user should know: rounding, or an effect that surprises.
    pub notes: Vec<String>,
}

/// A setting of the kernel. It knows its names, its unit, its file and what may be put there;
/// reading, writing and undoing are the same for all ([`crate::read`], [`crate::Tenure`]).
pub trait Tunable: Sync {
    /// Its name on the command line: `read_ahead`.
    fn name(&self) -> &'static str;

    /// Other names that people type.
    fn aliases(&self) -> &'static [&'static str];

    /// Its name in JSON, unit included: `read_ahead_kib`.
    fn json_key(&self) -> &'static str;

    /// One line for help and docs.
    fn summary(&self) -> &'static str;

    /// When it is written among several: later ones are overwritten by earlier ones, as the kernel
    /// recomputes read-ahead when `max_sectors_kb` is written.
    fn order(&self) -> u8;

    /// Reads a value as typed by a user under the name `name`, which is its name or an alias.
    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError>;

    /// Shows a value so that [`Tunable::parse`] would read it: `128K`.
    fn show(&self, value: &Value) -> String;

    /// The value as a number or word of JSON, in the unit of [`Tunable::json_key`].
    fn to_json(&self, value: &Value) -> serde_json::Value;

    /// Reads what [`Tunable::to_json`] gave.
    fn read_json(&self, json: &serde_json::Value) -> Result<Value, TunableError>;

    /// Checks a value, and rounds it as the kernel would.
    fn validate(&self, value: &Value, page: PageSize) -> Result<Checked, TunableError>;

    /// The file of `/sys` or `/proc` that holds it.
    fn file(&self, site: &Site) -> PathBuf;

    /// The text to write to the file.
    fn encode(&self, value: &Value) -> Result<String, TunableError>;

    /// Reads the first line of the file's text; `None` if it is none of this tunable's values.
    fn decode(&self, text: &str) -> Option<Value>;
}

impl fmt::Debug for dyn Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The tunable of this name, JSON key or alias.
pub fn find(name: &str) -> Result<&'static dyn Tunable, TunableError> {
    let wanted = name.trim().to_ascii_lowercase().replace('-', "_");
    let named = REGISTRY.iter().find(|tunable| names(**tunable).any(|known| known == wanted));
    named
        .copied()
        .ok_or_else(|| TunableError::Unknown { name: name.to_owned(), hint: hint(&wanted) })
}

/// The tunable that a journal or JSON names: by its one name, exactly.
pub(crate) fn find_exactly(name: &str) -> Option<&'static dyn Tunable> {
    REGISTRY.iter().find(|tunable| tunable.name() == name).copied()
}

fn names(tunable: &'static dyn Tunable) -> impl Iterator<Item = &'static str> {
    [tunable.name(), tunable.json_key()].into_iter().chain(tunable.aliases().iter().copied())
}

/// Suggests the nearest name if one is near, or lists all.
fn hint(wanted: &str) -> String {
    let nearest = REGISTRY
        .iter()
        .flat_map(|tunable| names(*tunable).map(|known| (distance(wanted, known), tunable.name())))
        .min();
    match nearest {
        Some((edits, name)) if edits <= wanted.chars().count().max(2) / 2 => {
            format!(": did you mean {name}?")
        }
        _ => {
            let all: Vec<&str> = REGISTRY.iter().map(|tunable| tunable.name()).collect();
            format!("; there are: {}", all.join(", "))
        }
    }
}

/// How many letters must be put in, taken out or changed to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_found_and_typing_errors_mended() {
        for name in ["read_ahead", "read-ahead", "RA", "read_ahead_kb", "read_ahead_kib"] {
            assert_eq!(find(name).expect(name).name(), "read_ahead");
        }
        let text = |name: &str| find(name).expect_err(name).to_string();
        assert_eq!(
            text("read_ahed"),
            r#"there is no tunable "read_ahed": did you mean read_ahead?"#
        );
        assert_eq!(
            text("swappiness"),
            r#"there is no tunable "swappiness"; there are: read_ahead"#
        );
    }

    #[test]
    fn every_entry_keeps_the_contract() {
        let mut seen = BTreeSet::new();
        for tunable in REGISTRY {
            for name in names(*tunable).collect::<BTreeSet<_>>() {
                assert!(seen.insert(name), "{name} is given twice");
            }
            assert!(!tunable.summary().ends_with('.'));
            let site = Site { bdi: BdiId::new("8:0").expect("a bdi"), devices: Vec::new() };
            let file = tunable.file(&site);
            assert!(file.starts_with("/sys") || file.starts_with("/proc"), "{}", file.display());
        }
        assert!(REGISTRY.is_sorted_by_key(|tunable| tunable.order()));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    proptest! {
        #[test]
        fn any_name_is_survived(name in "\\PC*") {
            let _ = find(&name);
        }

        #[test]
        fn distance_is_the_same_both_ways(a in "[a-c]{0,6}", b in "[a-c]{0,6}") {
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
            prop_assert_eq!(distance(&a, &b) == 0, a == b);
        }
    }
}
