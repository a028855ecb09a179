//! Files of sysfs that a user declares as tunables in TOML:
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
//! `{device}` is each undermost device, `{bdi}` the bdi that counts, `{md}` each device of the
//! stack (for files below `md/`). `unit = "KiB"` makes amounts need a unit when they are typed;
//! `choices = ["a", "b"]` lists the words that are allowed. In journals a declared tunable has the
//! name of its file, so that it can be undone when the declaration is gone.

use std::path::{Component, Path, PathBuf};

use host::DevNo;
use serde::Deserialize;
use units::{Bytes, PageSize};

use super::form::{FormedValue, ValueForm};
use super::interned::InternedTunables;
use crate::{Tunable, TunableError, TunableScope, ValidatedValue, Value};

/// Prefix of their names in records.
const PREFIX: &str = "sysfs:";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    tunable: std::collections::BTreeMap<String, Declaration>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    file: String,
    summary: Option<String>,
    unit: Option<Unit>,
    least: Option<i64>,
    most: Option<i64>,
    choices: Option<Vec<String>>,
    order: Option<u8>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum Unit {
    #[serde(alias = "bytes")]
    B,
    KiB,
    #[serde(rename = "sectors")]
    Sectors,
}

impl Unit {
    fn bytes(self) -> u64 {
        match self {
            Self::B => 1,
            Self::KiB => 1024,
            Self::Sectors => 512,
        }
    }
}

/// A declared tunable; its values are words.
#[derive(Debug)]
struct Declared {
    /// `sysfs:/sys/…`.
    name: &'static str,
    /// The user's name for it; the file name if it comes from a journal.
    word: &'static str,
    summary: &'static str,
    pattern: &'static str,
    unit: Option<Unit>,
    least: Option<i64>,
    most: Option<i64>,
    choices: Vec<String>,
    order: u8,
}

static BY_WORD: InternedTunables = InternedTunables::new();
static BY_FILE: InternedTunables = InternedTunables::new();

/// Registers a file of declarations for the rest of the process. Returns their number.
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
        let made = BY_WORD.get(&word, |word| leak(word, &declaration));
        made.ok_or_else(|| wrong("file", "too many declarations".to_owned()))?;
    }
    Ok(count)
}

fn leak(word: &'static str, declaration: &Declaration) -> &'static dyn Tunable {
    let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let Declaration { file, summary, unit, least, most, choices, order } = declaration.clone();
    let name = keep(format!("{PREFIX}{file}"));
    Box::leak(Box::new(Declared {
        name,
        word,
        summary: summary.map_or("a file declared by the user", keep),
        pattern: &name[PREFIX.len()..],
        unit,
        least,
        most,
        choices: choices.unwrap_or_default(),
        order: order.unwrap_or(95),
    }))
}

/// The tunable that a user declared under this name.
pub(super) fn find(word: &str) -> Option<&'static dyn Tunable> {
    BY_WORD.known(word)
}

/// The tunable that a journal or record names by its file.
pub(super) fn find_by_file(name: &str) -> Option<&'static dyn Tunable> {
    let pattern = name.strip_prefix(PREFIX).filter(|pattern| is_sound(pattern))?;
    let declaration = Declaration {
        file: pattern.to_owned(),
        summary: None,
        unit: None,
        least: None,
        most: None,
        choices: None,
        order: None,
    };
    BY_FILE.get(name, |name| leak(name, &declaration))
}

/// Whether a pattern is below `/sys`, cannot escape from it, and has only our own placeholders.
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

impl Declared {
    const fn formed(&self) -> FormedValue {
        FormedValue { tunable: self.name, form: ValueForm::Text }
    }

    fn out_of_range(&self, value: &Value) -> TunableError {
        let number = |n: Option<i64>, other| Value::Number(n.unwrap_or(other));
        TunableError::OutOfRange {
            tunable: self.word,
            value: value.clone(),
            least: number(self.least, i64::MIN),
            most: number(self.most, i64::MAX),
        }
    }
}

impl Tunable for Declared {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn json_key(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn write_rank(&self) -> u8 {
        self.order
    }

    fn parse(&self, _name: &str, text: &str) -> Result<Value, TunableError> {
        let Some(unit) = self.unit else { return self.formed().parse(self.word, text) };
        let wrap = |source| TunableError::Amount { tunable: self.word, source };
        let bytes = text.trim().parse::<Bytes>().map_err(wrap)?;
        if !bytes.get().is_multiple_of(unit.bytes()) {
            let problem = format!("the file counts in {}", Bytes::new(unit.bytes()));
            return Err(TunableError::Syntax { text: text.to_owned(), problem });
        }
        Ok(Value::Word((bytes.get() / unit.bytes()).to_string()))
    }

    fn show(&self, value: &Value) -> String {
        let amount = self.unit.and_then(|unit| {
            let Value::Word(word) = value else { return None };
            word.parse::<u64>().ok()?.checked_mul(unit.bytes())
        });
        match amount {
            Some(bytes) => super::form::show_bytes(Bytes::new(bytes)),
            None => self.formed().show(value),
        }
    }

    fn to_json(&self, value: &Value) -> serde_json::Value {
        self.formed().to_json(value)
    }

    fn read_json(&self, json: &serde_json::Value) -> Result<Value, TunableError> {
        self.formed().read_json(json)
    }

    fn validate(&self, value: &Value, page: PageSize) -> Result<ValidatedValue, TunableError> {
        let checked = self.formed().validate(value, page)?;
        let Value::Word(word) = &checked.value else { return Ok(checked) };
        if !self.choices.is_empty() && !self.choices.contains(word) {
            let problem = format!("must be one of {}", self.choices.join(", "));
            return Err(TunableError::Syntax { text: format!("{}={word}", self.word), problem });
        }
        if self.least.is_some() || self.most.is_some() {
            let number: i64 = word.parse().map_err(|_| self.out_of_range(value))?;
            let range = self.least.unwrap_or(i64::MIN)..=self.most.unwrap_or(i64::MAX);
            if !range.contains(&number) {
                return Err(self.out_of_range(value));
            }
        }
        Ok(checked)
    }

    fn candidates(&self, site: &TunableScope) -> Vec<PathBuf> {
        let pattern = self.pattern.replace("{bdi}", site.bdi.as_str());
        let each = |mark: &str, devices: Vec<DevNo>| -> Vec<PathBuf> {
            let one = |d: DevNo| pattern.replace(mark, &d.to_string()).into();
            devices.into_iter().map(one).collect()
        };
        if pattern.contains("{device}") {
            each("{device}", site.undermost())
        } else if pattern.contains("{md}") {
            each("{md}", site.all_layers())
        } else {
            vec![pattern.into()]
        }
    }

    fn encode(&self, value: &Value) -> Result<String, TunableError> {
        self.formed().encode(value)
    }

    fn decode(&self, text: &str) -> Option<Value> {
        let line = text.lines().next()?;
        // A file that lists choices has the current one in brackets.
        if line.contains('[') {
            return FormedValue { tunable: self.name, form: ValueForm::Choice }.decode(text);
        }
        self.formed().decode(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // A journal finds it by its file, declared or not.
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
