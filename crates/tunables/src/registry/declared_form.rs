//! The values of tunables that a user declares.

use serde::Deserialize;
use units::Bytes;

use crate::{TunableError, Value};

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) enum FileUnit {
    #[serde(alias = "bytes")]
    B,
    KiB,
    #[serde(rename = "sectors")]
    Sectors,
}

impl FileUnit {
    fn bytes(self) -> u64 {
        match self {
            Self::B => 1,
            Self::KiB => 1024,
            Self::Sectors => 512,
        }
    }
}

/// The allowed values of a declared tunable; all values are words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeclaredForm {
    /// The user's name for the tunable, or the name of its file if a journal names it.
    pub(super) word: &'static str,
    pub(super) unit: Option<FileUnit>,
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    pub(super) choices: Vec<String>,
}

impl DeclaredForm {
    /// Parses an amount of data for a file with a unit.
    pub(super) fn amount(&self, text: &str) -> Result<Value, TunableError> {
        let wrap = |source| TunableError::Amount { tunable: self.word, source };
        let bytes = text.parse::<Bytes>().map_err(wrap)?;
        let unit = self.unit.map_or(1, FileUnit::bytes);
        if !bytes.get().is_multiple_of(unit) {
            let problem = format!("the file counts in {}", Bytes::new(unit));
            return Err(TunableError::Syntax { text: text.to_owned(), problem });
        }
        Ok(Value::Word((bytes.get() / unit).to_string()))
    }

    /// Returns the amount of data that a value stands for; `None` if the file has no unit.
    pub(super) fn to_bytes(&self, value: &Value) -> Option<Bytes> {
        let Value::Word(word) = value else { return None };
        word.parse::<u64>().ok()?.checked_mul(self.unit?.bytes()).map(Bytes::new)
    }

    /// Returns an error unless a word is one of the choices and within the limits.
    pub(super) fn validate(&self, word: String) -> Result<String, TunableError> {
        if !self.choices.is_empty() && !self.choices.contains(&word) {
            let problem = format!("must be one of {}", self.choices.join(", "));
            return Err(TunableError::Syntax { text: format!("{}={word}", self.word), problem });
        }
        let (least, most) = (self.least.unwrap_or(i64::MIN), self.most.unwrap_or(i64::MAX));
        let limited = self.least.is_some() || self.most.is_some();
        if limited && !word.parse().is_ok_and(|number: i64| (least..=most).contains(&number)) {
            return Err(TunableError::OutOfRange {
                tunable: self.word,
                value: Value::Word(word),
                least: Value::Number(least),
                most: Value::Number(most),
            });
        }
        Ok(word)
    }
}
