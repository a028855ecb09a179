//! The grammar `NAME[,KEY=VALUE…]` of devices, policies and traces on the command line.

use std::fmt::Display;
use std::str::FromStr;

use thiserror::Error;

use super::{ParseUnitError, hint};

/// A name and its settings, as `NAME[,KEY=VALUE…]` gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSettings<'a> {
    /// The text before the first comma; may be empty.
    pub name: &'a str,
    /// Keys and values in their order; no key occurs twice.
    pub settings: Vec<(&'a str, &'a str)>,
}

/// Why a text of this grammar is rejected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingError {
    #[error("{word:?} is not a setting: write key=value")]
    NotASetting { word: String },
    /// Two consecutive commas, or one at the end.
    #[error("a setting is missing after \"{before},\": write key=value there, or remove a comma")]
    Empty { before: String },
    #[error("{key} is given twice: remove one")]
    Twice { key: String },
    /// `hint` names the most similar key, or all.
    #[error("there is no key {key:?}: {hint}")]
    UnknownKey { key: String, hint: String },
    /// `problem` says what the value must be.
    #[error("invalid {key} = {value:?}: {problem}")]
    Invalid { key: String, value: String, problem: String },
}

impl<'a> NamedSettings<'a> {
    /// Splits `NAME[,KEY=VALUE…]`.
    ///
    /// # Errors
    ///
    /// If a setting is empty or has no value, or a key occurs twice.
    pub fn parse(text: &'a str) -> Result<Self, SettingError> {
        Self::parse_with(text, ',', |_, _| None)
    }

    /// As [`NamedSettings::parse`], with another separator. For the n-th word after the name, if it
    /// has no `=`, `bare` returns the key and value that it stands for.
    ///
    /// # Errors
    ///
    /// As [`NamedSettings::parse`].
    pub fn parse_with(
        text: &'a str,
        separator: char,
        bare: impl Fn(usize, &'a str) -> Option<(&'a str, &'a str)>,
    ) -> Result<Self, SettingError> {
        let mut words = text.split(separator).map(str::trim);
        let name = words.next().unwrap_or_default();
        let mut settings: Vec<(&str, &str)> = Vec::new();
        let mut before = name;
        for (nth, word) in words.enumerate() {
            if word.is_empty() {
                return Err(SettingError::Empty { before: before.to_owned() });
            }
            let pair = word.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            let pair = pair.or_else(|| bare(nth, word)).filter(|(key, _)| !key.is_empty());
            let pair = pair.ok_or_else(|| SettingError::NotASetting { word: word.to_owned() })?;
            if settings.iter().any(|(key, _)| *key == pair.0) {
                return Err(SettingError::Twice { key: pair.0.to_owned() });
            }
            settings.push(pair);
            before = word;
        }
        Ok(Self { name, settings })
    }
}

impl SettingError {
    /// Creates the error for an invalid value; `problem` says what it must be.
    pub fn invalid(key: &str, value: impl Display, problem: impl Into<String>) -> Self {
        Self::Invalid { key: key.to_owned(), value: value.to_string(), problem: problem.into() }
    }

    /// Creates the error for an unknown key; its hint has the most similar one of `known`, or all.
    pub fn unknown_key(key: &str, known: &[&str]) -> Self {
        let hint = if known.is_empty() { "it has no keys".to_owned() } else { hint(key, known) };
        Self::UnknownKey { key: key.to_owned(), hint }
    }
}

/// Parses the value of `key` as one of a few words.
///
/// # Errors
///
/// If it is another word.
pub fn parse_choice<T: Copy>(
    key: &str,
    value: &str,
    choices: &[(&str, T)],
) -> Result<T, SettingError> {
    let found = choices.iter().find(|(word, _)| *word == value);
    found.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        SettingError::invalid(key, value, format!("must be one of {}", words.join(", ")))
    })
}

/// Parses the value of `key` as a number; `wanted` describes it: "a whole number of 0 or more".
///
/// # Errors
///
/// If it is not such a number.
pub fn parse_number<T: FromStr>(key: &str, value: &str, wanted: &str) -> Result<T, SettingError> {
    value.parse().map_err(|_| SettingError::invalid(key, value, format!("must be {wanted}")))
}

/// Parses the value of `key` as an amount with a unit.
///
/// # Errors
///
/// If it is not such an amount.
pub fn parse_amount<T>(key: &str, value: &str) -> Result<T, SettingError>
where
    T: FromStr<Err = ParseUnitError>,
{
    value.parse().map_err(|error: T::Err| SettingError::invalid(key, value, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_name_and_settings() {
        let parsed = NamedSettings::parse("hdd-2008, cache = 1G,rpm=5400").unwrap();
        assert_eq!(parsed.name, "hdd-2008");
        assert_eq!(parsed.settings, [("cache", "1G"), ("rpm", "5400")]);
        let bare = |nth, word| (nth == 0).then_some(("first", word));
        let parsed = NamedSettings::parse_with("fixed:16:b=3", ':', bare).unwrap();
        assert_eq!(parsed.settings, [("first", "16"), ("b", "3")]);
        assert!(NamedSettings::parse_with("fixed:16:3", ':', bare).is_err());
    }

    #[test]
    fn errors_name_the_word_and_its_position() {
        let error = |text: &str| NamedSettings::parse(text).expect_err(text).to_string();
        assert!(error("nvme,").contains("after \"nvme,\""), "{}", error("nvme,"));
        assert!(error("nvme,,dies=4").contains("after \"nvme,\""));
        assert!(error("nvme,dies=4,,qd=3").contains("after \"dies=4,\""));
        assert!(error("nvme,dies").contains("\"dies\" is not a setting: write key=value"));
        assert!(error("nvme,=4").contains("\"=4\" is not a setting"));
        assert!(error("nvme,dies=4,dies=8").contains("dies is given twice"));
    }
}
