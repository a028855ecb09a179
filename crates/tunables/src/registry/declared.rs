//! Sysfs files that a user declares as tunables in TOML:
//!
//! ```toml
//! [tunable.io_timeout]
//! file = "/sys/dev/block/{device}/queue/io_timeout"
//! summary = "milliseconds that a request may take"
//! least = 1000
//! most = 600000
//! order = 55
//! ```
//!
//! `{device}` stands for each lowest device, `{bdi}` for the effective bdi, `{md}` for each device
//! of the stack (for files below `md/`). With `unit = "KiB"`, typed amounts need a unit; `choices =
//! ["a", "b"]` lists the allowed words. In journals, the name of a declared tunable is that of its
//! file, so that it can be undone when the declaration is gone.

use std::path::{Component, Path};

use super::declared_form::{DeclaredForm, FileUnit};
use super::interned::{InternedTunables, leak};
use super::tunable::{FileScope, Tunable, ValueForm};
use crate::TunableError;
use serde::Deserialize;

/// The prefix of a declared tunable's name in records.
const PREFIX: &str = "sysfs:";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    tunable: std::collections::BTreeMap<String, Declaration>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    file: String,
    /// A comment for readers of the TOML file.
    #[serde(rename = "summary")]
    _summary: Option<String>,
    unit: Option<FileUnit>,
    least: Option<i64>,
    most: Option<i64>,
    choices: Option<Vec<String>>,
    order: Option<u8>,
}

static BY_WORD: InternedTunables = InternedTunables::new();
static BY_FILE: InternedTunables = InternedTunables::new();

/// Registers declarations for the rest of the process; returns their number.
pub fn declare(toml: &str) -> Result<usize, TunableError> {
    let wrong = |name: &str, problem: String| TunableError::Syntax {
        text: format!("declaration {name}"),
        problem,
    };
    let document: Document =
        toml::from_str(toml).map_err(|e| wrong("file", e.message().to_owned()))?;
    let count = document.tunable.len();
    for (word, declaration) in document.tunable {
        let named = !word.is_empty()
            && word.len() <= 64
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !named {
            let problem = "names consist of lower-case letters, digits and _".to_owned();
            return Err(wrong(&word, problem));
        }
        if super::find_fixed(&word).is_some() {
            return Err(wrong(&word, "foreread already has a tunable with this name".to_owned()));
        }
        if !is_sound(&declaration.file) {
            let problem = format!(
                "{:?} is not a file below /sys; placeholders are {{device}}, {{bdi}} and {{md}}",
                declaration.file
            );
            return Err(wrong(&word, problem));
        }
        if declaration.order.is_some_and(|order| order >= 200) {
            return Err(wrong(
                &word,
                "order must be below 200: read-ahead is written last".to_owned(),
            ));
        }
        let made = BY_WORD.get(&word, |word| make(word, declaration));
        made.ok_or_else(|| wrong("file", "too many declarations".to_owned()))?;
    }
    Ok(count)
}

fn make(word: &'static str, declaration: Declaration) -> Tunable {
    let Declaration { file, unit, least, most, choices, order, .. } = declaration;
    let name = leak(format!("{PREFIX}{file}"));
    let choices = choices.unwrap_or_default();
    let form = Box::leak(Box::new(DeclaredForm { word, unit, least, most, choices }));
    Tunable {
        name,
        write_rank: order.unwrap_or(95),
        file_scope: FileScope::Declared(&name[PREFIX.len()..]),
        form: ValueForm::Declared(form),
        ..Tunable::PLAIN
    }
}

/// Returns the tunable that a user declared under this name.
pub(super) fn find(word: &str) -> Option<&'static Tunable> {
    BY_WORD.known(word)
}

/// Returns the tunable that a journal or record names by its file.
pub(super) fn find_by_file(name: &str) -> Option<&'static Tunable> {
    let pattern = name.strip_prefix(PREFIX).filter(|pattern| is_sound(pattern))?;
    let declaration = Declaration { file: pattern.to_owned(), ..Declaration::default() };
    BY_FILE.get(name, |name| make(name, declaration))
}

/// Returns whether a pattern is below `/sys`, cannot leave it, and has valid placeholders.
fn is_sound(pattern: &str) -> bool {
    let plain = pattern.replace("{device}", "d").replace("{bdi}", "b").replace("{md}", "m");
    let fits = |c: char| c.is_ascii_alphanumeric() || "/-_.:,+@".contains(c);
    let marks = ["{device}", "{md}"].iter().filter(|mark| pattern.contains(**mark)).count();
    plain.starts_with("/sys/")
        && plain.len() <= 256
        && marks <= 1
        && plain.chars().all(fits)
        && Path::new(&plain).components().skip(1).all(|part| matches!(part, Component::Normal(_)))
        && !plain.contains("/.")
        && !plain.ends_with('/')
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use units::PageSize;

    use super::*;
    use crate::TunableScope;

    #[test]
    fn a_declared_file_is_a_tunable() {
        let toml = r#"
            [tunable.test_timeout]
            file = "/sys/dev/block/{device}/queue/io_timeout"
            least = 1000
            most = 600000
            [tunable.test_discard]
            file = "/sys/dev/block/{device}/queue/discard_max_bytes"
            unit = "B"
        "#;
        assert_eq!(declare(toml).expect("declarations"), 2);
        let timeout = crate::find("test_timeout").expect("it");
        let value = timeout.parse("test_timeout", "30000").expect("a number");
        assert!(timeout.validate(&value, PageSize::FOUR_KIB).is_ok());
        let low = timeout.parse("test_timeout", "5").expect("a number");
        let error = timeout.validate(&low, PageSize::FOUR_KIB).expect_err("too low");
        assert!(error.to_string().contains("1000"), "{error}");
        let file = timeout.file(&TunableScope::nowhere());
        assert_eq!(file, PathBuf::from("/sys/dev/block/0:0/queue/io_timeout"));
        let discard = crate::find("test_discard").expect("it");
        assert!(discard.parse("test_discard", "4096").is_err(), "it needs a unit");
        let value = discard.parse("test_discard", "2M").expect("an amount");
        assert_eq!(discard.encode(&value).expect("text"), "2097152");
        assert_eq!(discard.show(&value), "2M");
        // A journal finds the tunable by its file, with or without a declaration.
        let found = crate::registry::find_exactly(timeout.name()).expect("by file");
        assert_eq!(found.file(&TunableScope::nowhere()), file);
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for file in [
            "/etc/shadow",
            "/sys/../etc/shadow",
            "sys/x",
            "/sys/{dev}/x",
            "/sys/./x",
            "/sys/a b",
            "/sys/{device}/{md}",
            "/sys/",
        ] {
            let toml = format!("[tunable.test_x]\nfile = {file:?}\n");
            assert!(declare(&toml).is_err(), "{file}");
            assert!(find_by_file(&format!("{PREFIX}{file}")).is_none(), "{file}");
        }
        for toml in [
            "",
            "x = 1",
            "[tunable.read_ahead]\nfile = \"/sys/x\"",
            "[tunable.\"A b\"]\nfile = \"/sys/x\"",
            "[tunable.test_y]\nfile = \"/sys/x\"\nfoo = 1",
            "[tunable.test_y]\nfile = \"/sys/x\"\norder = 200",
        ] {
            assert!(declare(toml).is_err(), "{toml}");
        }
    }
}
