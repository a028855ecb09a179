//! Reading a number and its unit from text.

use thiserror::Error;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseUnitError {
    /// A number without a unit.
    #[error("{text:?} has no unit: write {example}")]
    NoUnit { text: String, example: &'static str },
    /// The unit is ambiguous.
    #[error(
        "{suffix} in {text:?} is 1000-based to some tools and 1024-based to others: write K, M or G"
    )]
    Ambiguous { text: String, suffix: String },
    /// An unknown unit.
    #[error("{suffix:?} in {text:?} is not a unit here: use {known}")]
    UnknownUnit { text: String, suffix: String, known: &'static str },
    /// Not a number, or a negative or infinite one.
    #[error("{text:?} does not start with a number of zero or more")]
    NotANumber { text: String },
    #[error("{text:?} is too large")]
    TooLarge { text: String },
    /// A fraction of an indivisible unit.
    #[error("{text:?} is not a whole number of {unit}")]
    NotWhole { text: String, unit: &'static str },
}

impl crate::Classified for ParseUnitError {
    fn kind(&self) -> crate::ErrorKind {
        crate::ErrorKind::Usage
    }
}

impl ParseUnitError {
    pub(crate) fn no_unit(text: &str, example: &'static str) -> Self {
        Self::NoUnit { text: text.to_owned(), example }
    }

    pub(crate) fn ambiguous(text: &str, suffix: &str) -> Self {
        Self::Ambiguous { text: text.to_owned(), suffix: suffix.to_owned() }
    }

    pub(crate) fn unknown(text: &str, suffix: &str, known: &'static str) -> Self {
        Self::UnknownUnit { text: text.to_owned(), suffix: suffix.to_owned(), known }
    }

    pub(crate) fn too_large(text: &str) -> Self {
        Self::TooLarge { text: text.to_owned() }
    }

    pub(crate) fn not_whole(text: &str, unit: &'static str) -> Self {
        Self::NotWhole { text: text.to_owned(), unit }
    }
}

/// Splits `"1.5 MiB"` into `1.5` and `"MiB"`.
pub(crate) fn split_number(text: &str) -> Result<(f64, &str), ParseUnitError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(end);
    let number: f64 =
        number.parse().map_err(|_| ParseUnitError::NotANumber { text: text.to_owned() })?;
    // As a float, 400 digits are infinite.
    if number.is_infinite() {
        return Err(ParseUnitError::too_large(text));
    }
    Ok((number, suffix.trim_start()))
}
