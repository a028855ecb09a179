//! The syntax of a policy: TOML with `[[rule]]` tables.
//!
//! ```toml
//! version = 1
//!
//! [[rule]]
//! name = "database"
//! mount = "/srv/db"
//! min = "64K"
//! max = "1M"
//! forbidden_owners = ["unknown", "tuned"]
//! required = true
//! ```

use host::glob_matches;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::text::{SourceLocation, hint};
use units::{Bytes, Kib};

use super::storage::{CLASSES, StorageProperties};
use crate::OriginKind;

/// The version of the policy syntax that foreread reads and writes.
pub const VERSION: i64 = 1;

/// An error in a policy file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {problem}")]
pub struct CompliancePolicyError {
    /// The line number, from 1.
    pub line: usize,
    /// The problem, and a valid form.
    pub problem: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompliancePolicy {
    /// The rules; a storage must meet each rule that matches it.
    pub rules: Vec<Rule>,
}

/// A rule: its selection and its limits. The selection is lists of patterns (`*`, `?`, `[a-z]`);
/// each list that is not empty must have a pattern that matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub name: String,
    pub line: usize,
    pub class: Vec<String>,
    pub mount: Vec<String>,
    pub filesystem: Vec<String>,
    pub label: Vec<String>,
    pub device: Vec<String>,
    pub min: Option<Kib>,
    pub max: Option<Kib>,
    pub forbidden_owners: Vec<String>,
    /// True if the rule must match something; `None` if the policy does not say.
    pub required: Option<bool>,
}

const TOP_KEYS: &[&str] = &["version", "rule"];
const RULE_KEYS: &[&str] = &[
    "name",
    "class",
    "mount",
    "filesystem",
    "label",
    "device",
    "min",
    "max",
    "forbidden_owners",
    "required",
];

impl Rule {
    /// Returns whether the rule matches a storage. Only a rule with `device`, or with the class
    /// `member` or `vacant`, can match an empty device or a member of an array.
    pub fn is_about(&self, facts: &StorageProperties) -> bool {
        let fits = |patterns: &[String], values: &[String]| {
            patterns.is_empty()
                || patterns
                    .iter()
                    .any(|pattern| values.iter().any(|value| glob_matches(pattern, value)))
        };
        let classes: Vec<String> = facts.classes.iter().map(|class| (*class).to_owned()).collect();
        let hidden = classes.iter().any(|class| class == "member" || class == "vacant");
        let named = !self.device.is_empty()
            || self.class.iter().any(|class| class == "member" || class == "vacant");
        (named || !hidden)
            && fits(&self.class, &classes)
            && fits(&self.mount, &facts.mounts)
            && fits(&self.filesystem, &facts.filesystems)
            && fits(&self.label, &facts.labels)
            && fits(&self.device, &facts.devices)
    }
}

impl CompliancePolicy {
    pub fn parse(text: &str) -> Result<Self, CompliancePolicyError> {
        let document = DeTable::parse(text).map_err(|error| CompliancePolicyError {
            line: SourceLocation::from_offset(text, error.span().map_or(0, |span| span.start)).line,
            problem: error.message().to_owned(),
        })?;
        let reader = Reader { text };
        let mut policy = Self::default();
        let mut versioned = false;
        for (key, value) in document.get_ref().iter() {
            match key.get_ref().as_ref() {
                "version" => {
                    reader.version(value)?;
                    versioned = true;
                }
                "rule" => policy.rules = reader.rules(value)?,
                other => return Err(reader.unknown(key, other, TOP_KEYS)),
            }
        }
        if !versioned {
            let problem = format!("version = {VERSION} is missing");
            return Err(CompliancePolicyError { line: 1, problem });
        }
        if policy.rules.is_empty() {
            let problem = "there is no [[rule]]: nothing would be checked".to_owned();
            return Err(CompliancePolicyError { line: 1, problem });
        }
        policy.rules.sort_by_key(|rule| rule.line);
        Ok(policy)
    }
}

/// A key with its position.
type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;
type Value<'a> = Spanned<DeValue<'a>>;

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn at(&self, offset: usize, problem: String) -> CompliancePolicyError {
        CompliancePolicyError { line: SourceLocation::from_offset(self.text, offset).line, problem }
    }

    fn unknown(&self, key: &Key<'_>, name: &str, known: &[&str]) -> CompliancePolicyError {
        self.at(key.span().start, format!("there is no key {name:?}: {}", hint(name, known)))
    }

    fn version(&self, value: &Value<'_>) -> Result<(), CompliancePolicyError> {
        let number = value.get_ref().as_integer().and_then(|number| number.as_str().parse().ok());
        match number {
            Some(VERSION) => Ok(()),
            Some(other) => {
                let problem =
                    format!("version {other} is not {VERSION}, which this foreread reads");
                Err(self.at(value.span().start, problem))
            }
            None => Err(self.at(value.span().start, format!("write version = {VERSION}"))),
        }
    }

    fn rules(&self, value: &Value<'_>) -> Result<Vec<Rule>, CompliancePolicyError> {
        let wrong = || self.at(value.span().start, "rules begin with [[rule]]".to_owned());
        let array = value.get_ref().as_array().ok_or_else(wrong)?;
        array
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let table = item.get_ref().as_table().ok_or_else(wrong)?;
                self.rule(item, index, table)
            })
            .collect()
    }

    fn rule(
        &self,
        item: &Value<'_>,
        index: usize,
        table: &DeTable<'_>,
    ) -> Result<Rule, CompliancePolicyError> {
        let line = SourceLocation::from_offset(self.text, item.span().start).line;
        let mut rule = Rule { name: format!("rule {}", index + 1), line, ..Rule::default() };
        for (key, value) in table.iter() {
            match key.get_ref().as_ref() {
                "name" => rule.name = self.text(value)?,
                "class" => rule.class = self.words(value, Some(CLASSES))?,
                "mount" => rule.mount = self.words(value, None)?,
                "filesystem" => rule.filesystem = self.words(value, None)?,
                "label" => rule.label = self.words(value, None)?,
                "device" => rule.device = self.words(value, None)?,
                "min" => rule.min = Some(self.size(value)?),
                "max" => rule.max = Some(self.size(value)?),
                "forbidden_owners" => {
                    rule.forbidden_owners = self.words(value, Some(OriginKind::WORDS))?;
                }
                "required" => {
                    rule.required = Some(value.get_ref().as_bool().ok_or_else(|| {
                        self.at(value.span().start, "must be true or false".to_owned())
                    })?);
                }
                other => return Err(self.unknown(key, other, RULE_KEYS)),
            }
        }
        self.sound(&rule)?;
        Ok(rule)
    }

    /// Returns an error if a rule can never be met or never be violated.
    fn sound(&self, rule: &Rule) -> Result<(), CompliancePolicyError> {
        let wrong = |problem: String| Err(CompliancePolicyError { line: rule.line, problem });
        if let (Some(min), Some(max)) = (rule.min, rule.max)
            && min > max
        {
            return wrong(format!("rule {:?} allows nothing: min {min}, max {max}", rule.name));
        }
        let asks = rule.min.is_some() || rule.max.is_some() || !rule.forbidden_owners.is_empty();
        if !asks && rule.required != Some(true) {
            return wrong(format!(
                "rule {:?} checks nothing: add min, max, forbidden_owners or required",
                rule.name
            ));
        }
        Ok(())
    }

    fn text(&self, value: &Value<'_>) -> Result<String, CompliancePolicyError> {
        value
            .get_ref()
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| self.at(value.span().start, "write a text in quotes".to_owned()))
    }

    /// Reads one word or a list of words.
    fn words(
        &self,
        value: &Value<'_>,
        known: Option<&[&str]>,
    ) -> Result<Vec<String>, CompliancePolicyError> {
        let words = match value.get_ref() {
            DeValue::Array(items) => {
                items.iter().map(|item| Ok((self.text(item)?, item.span().start))).collect()
            }
            _ => self.text(value).map(|word| vec![(word, value.span().start)]),
        }?;
        if words.is_empty() {
            let problem = "the list is empty: fill it in or remove the key".to_owned();
            return Err(self.at(value.span().start, problem));
        }
        for (word, offset) in &words {
            if known.is_none() {
                sound_pattern(word).map_err(|problem| self.at(*offset, problem))?;
            }
            if let Some(known) = known.filter(|known| !known.contains(&word.as_str())) {
                let problem = format!("there is no {word:?} here: {}", hint(word, known));
                return Err(self.at(*offset, problem));
            }
        }
        Ok(words.into_iter().map(|(word, _)| word).collect())
    }

    fn size(&self, value: &Value<'_>) -> Result<Kib, CompliancePolicyError> {
        let wrong = |problem: String| self.at(value.span().start, problem);
        let Some(text) = value.get_ref().as_str() else {
            return Err(wrong("write a size with its unit, in quotes: \"128K\"".to_owned()));
        };
        let bytes: Bytes = text.parse().map_err(|error| wrong(format!("{error}")))?;
        bytes.to_kib_exact().ok_or_else(|| wrong(format!("{text:?} is not a whole number of KiB")))
    }
}

/// Returns an error if the pattern is empty or has an unclosed `[`.
fn sound_pattern(pattern: &str) -> Result<(), String> {
    if pattern.is_empty() {
        return Err("an empty pattern matches nothing: fill it in or remove it".to_owned());
    }
    let mut escaped = false;
    for (at, c) in pattern.char_indices() {
        if c == '[' && !escaped && !pattern[at + 1..].chars().skip(1).any(|c| c == ']') {
            return Err(format!(
                "{pattern:?} has a [ that no ] closes: close it, or write \\\\[ for the character"
            ));
        }
        escaped = c == '\\' && !escaped;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem(text: &str) -> String {
        CompliancePolicy::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_policy_is_read_with_its_lines() {
        let text = "version = 1\n\n[[rule]]\nmount = \"/\"\nmin = \"64K\"\nmax = \"256s\"\n\n\
                    [[rule]]\nname = \"db\"\nclass = [\"nvme\", \"virtio\"]\n\
                    forbidden_owners = [\"unknown\"]\nrequired = true\n";
        let policy = CompliancePolicy::parse(text).unwrap();
        assert_eq!(policy.rules.len(), 2);
        assert_eq!((policy.rules[0].line, policy.rules[1].line), (3, 8));
        assert_eq!(policy.rules[0].max, Some(Kib::new(128)));
        assert_eq!(policy.rules[1].name, "db");
        assert_eq!(policy.rules[1].required, Some(true));
    }

    #[test]
    fn mistakes_name_their_line_and_the_nearest_word() {
        for (text, said) in [
            (
                "version = 1\n[[rule]]\nmounts = \"/\"\n",
                "line 3: there is no key \"mounts\": did you mean \"mount\"",
            ),
            ("verson = 1\n", "line 1: there is no key \"verson\": did you mean \"version\""),
            ("version = 2\n", "version 2 is not 1"),
            ("[[rule]]\nmax = \"1M\"\n", "version = 1 is missing"),
            ("version = 1\n", "no [[rule]]"),
            ("version = 1\n[[rule]]\nmax = 128\n", "line 3: write a size with its unit"),
            ("version = 1\n[[rule]]\nmax = \"128\"\n", "line 3: \"128\" has no unit"),
            ("version = 1\n[[rule]]\nmax = \"1MB\"\n", "line 3"),
            ("version = 1\n[[rule]]\nclass = \"nvm\"\n", "did you mean \"nvme\""),
            ("version = 1\n[[rule]]\nforbidden_owners = [\"tuned\",\n\"systemb\"]\n", "line 4"),
            (
                "version = 1\n[[rule]]\nmin = \"1M\"\nmax = \"1K\"\n",
                "line 2: rule \"rule 1\" allows nothing",
            ),
            ("version = 1\n[[rule]]\nmount = \"/\"\n", "checks nothing"),
            ("version = 1\n[rule]\nmax = \"1M\"\n", "[[rule]]"),
            ("version = 1\n[[rule]\n", "line 2"),
            (
                "version = 1\n[[rule]]\nmax = \"1M\"\nmount = \"/srv/[db\"\n",
                "line 4: \"/srv/[db\" has",
            ),
            ("version = 1\n[[rule]]\nmax = \"1M\"\nmount = []\n", "line 4: the list is empty"),
            ("version = 1\n[[rule]]\nmax = \"1M\"\nlabel = [\"a\", \"\"]\n", "an empty pattern"),
        ] {
            let problem = problem(text);
            assert!(problem.contains(said), "{text:?}: {problem}");
        }
    }

    #[test]
    fn brackets_that_are_closed_or_escaped_are_sound() {
        for pattern in ["/srv/[ab]", "/srv/\\[db", "[]a]", "a]b", "/srv/é[x]"] {
            assert_eq!(sound_pattern(pattern), Ok(()), "{pattern}");
        }
        for pattern in ["[", "[]", "a[b", "a\\\\[b"] {
            assert!(sound_pattern(pattern).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            let _ = CompliancePolicy::parse(&text);
        }

        #[test]
        fn texts_near_the_form_are_survived(
            text in "(version|rule|min|max|class|=|\\[\\[|\\]\\]|\"|1M|\n| |,|1){0,40}"
        ) {
            let _ = CompliancePolicy::parse(&text);
        }
    }
}
