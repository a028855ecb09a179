//! Parses, checks, formats and encodes the values of a tunable.

use units::{Bytes, Nanos, PageSize};

use super::tunable::{Tunable, ValidatedValue, ValueForm};
use super::window;
use crate::{TunableError, Value};

/// The word for an array that follows the machine's rate, as in md(4).
const OF_SYSTEM: &str = "system";

/// The maximum rate per second: more than any storage transfers.
const MAX_RATE: Bytes = Bytes::from_gib(1024);
const MAX_SPAN: Nanos = Nanos::from_secs(86_400);
/// The maximum length of a value; longer texts are invalid.
const MAX_TEXT_BYTES: usize = 256;

impl Tunable {
    /// Parses user input; `name` is the name or alias that the user typed.
    pub fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        let (name, text) = (&*name.trim().to_ascii_lowercase(), text.trim());
        match self.form {
            ValueForm::Count { .. } => {
                let number = text.parse().map_err(|_| self.syntax(text, "a whole number"))?;
                Ok(Value::Number(number))
            }
            ValueForm::Amount { .. } | ValueForm::Window => self.amount(name, text),
            ValueForm::ArrayRate if text == OF_SYSTEM => Ok(Value::Word(text.to_owned())),
            ValueForm::Rate | ValueForm::ArrayRate => {
                self.amount(name, text.strip_suffix("/s").unwrap_or(text).trim_end())
            }
            ValueForm::Span { unit } => self.span(name, text, unit),
            ValueForm::Declared(form) if form.unit.is_some() => form.amount(text),
            _ => Ok(Value::Word(self.word(text)?)),
        }
    }

    /// Parses an amount. A name such as `max_sectors_kb` implies the unit of a bare number.
    fn amount(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let in_kib = ["_kb", "_kib", "_kbytes", "_kib_s"].iter().any(|end| name.ends_with(end));
        let unit = match bare {
            true if in_kib => "K",
            true if name.ends_with("_bytes") => "B",
            _ => "",
        };
        let wrap = |source| TunableError::Amount { tunable: self.name, source };
        Ok(format!("{text}{unit}").parse::<Bytes>().map_err(wrap)?.into())
    }

    fn span(&self, name: &str, text: &str, unit: u64) -> Result<Value, TunableError> {
        let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_unit = ["_usec", "_us", "_centisecs"].iter().any(|end| name.ends_with(end));
        if bare && (has_unit || text == "0") {
            let nanos = text.parse::<u64>().ok().and_then(|count| count.checked_mul(unit));
            let nanos = nanos.ok_or_else(|| self.syntax(text, "a span of time"))?;
            return Ok(Value::Time(Nanos::new(nanos)));
        }
        let span = text.parse::<Nanos>();
        let nanos = span.map_err(|source| TunableError::Amount { tunable: self.name, source })?;
        Ok(Value::Time(nanos))
    }

    /// Returns a line of printable characters; in a list, commas stand for spaces.
    fn word(&self, text: &str) -> Result<String, TunableError> {
        let choice = self.form == ValueForm::Choice;
        let spaced = if choice { text.to_owned() } else { text.replace(',', " ") };
        let word = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
        let fits = |c: char| match c {
            ' ' | ',' => !choice,
            c => c.is_ascii_graphic(),
        };
        if word.is_empty() || word.len() > MAX_TEXT_BYTES || !word.chars().all(fits) {
            return Err(self.syntax(text, "a word of printable characters"));
        }
        Ok(word)
    }

    fn syntax(&self, text: &str, wanted: &str) -> TunableError {
        let text = format!("{}={text}", self.name);
        TunableError::Syntax { text, problem: format!("write {wanted}") }
    }

    fn wrong(&self, value: &Value) -> TunableError {
        TunableError::WrongSort { tunable: self.name, value: value.clone() }
    }

    /// Formats a value so that [`Tunable::parse`] can read it.
    pub fn show(&self, value: &Value) -> String {
        if let ValueForm::Declared(form) = self.form
            && let Some(bytes) = form.to_bytes(value)
        {
            return show_bytes(bytes);
        }
        match value {
            Value::Bytes(bytes) => show_bytes(*bytes),
            Value::Number(number) => number.to_string(),
            Value::Time(time) if time.get().is_multiple_of(1_000_000) => {
                format!("{}ms", time.get() / 1_000_000)
            }
            Value::Time(time) => format!("{}us", time.get() / 1_000),
            Value::Word(word) => word.replace(' ', ","),
        }
    }

    /// Returns the unit of the number in the file: bytes or nanoseconds.
    fn unit(&self) -> u64 {
        match self.form {
            ValueForm::Amount { unit, .. } | ValueForm::Span { unit } => unit,
            _ => 1024,
        }
    }

    /// Returns the amount or time for a number in the file.
    fn scaled(&self, count: u64) -> Option<Value> {
        let scaled = count.checked_mul(self.unit())?;
        Some(match self.form {
            ValueForm::Span { .. } => Value::Time(Nanos::new(scaled)),
            _ => Bytes::new(scaled).into(),
        })
    }

    /// Converts a value to a JSON number or string, in the unit of [`Tunable::json_key`].
    pub fn to_json(&self, value: &Value) -> serde_json::Value {
        match value {
            Value::Bytes(bytes) => (bytes.get() / self.unit()).into(),
            Value::Time(time) => (time.get() / self.unit()).into(),
            Value::Number(number) => (*number).into(),
            Value::Word(word) => word.as_str().into(),
        }
    }

    /// Parses the result of [`Tunable::to_json`].
    pub fn read_json(&self, json: &serde_json::Value) -> Result<Value, TunableError> {
        let value = match self.form {
            ValueForm::Count { .. } => json.as_i64().map(Value::Number),
            ValueForm::ArrayRate if json == OF_SYSTEM => Some(Value::Word(OF_SYSTEM.to_owned())),
            ValueForm::Choice | ValueForm::Text | ValueForm::Declared(_) => {
                json.as_str().and_then(|text| self.word(text).ok()).map(Value::Word)
            }
            _ => json.as_u64().and_then(|count| self.scaled(count)),
        };
        value.ok_or_else(|| self.syntax(&json.to_string(), "a value of its kind"))
    }

    /// Checks a value and rounds it as the kernel does.
    pub fn validate(&self, value: &Value, page: PageSize) -> Result<ValidatedValue, TunableError> {
        let tunable = self.name;
        if let (ValueForm::Window, Value::Bytes(window)) = (self.form, value) {
            return window::validate(*window, page);
        }
        let range = |least: Value, most: Value| TunableError::OutOfRange {
            tunable,
            value: value.clone(),
            least,
            most,
        };
        let mut notes = Vec::new();
        let value = match (self.form, value) {
            (ValueForm::Count { least, most }, Value::Number(number)) => {
                if !(least..=most).contains(number) {
                    return Err(range(Value::Number(least), Value::Number(most)));
                }
                value.clone()
            }
            (ValueForm::Amount { unit, least, most }, Value::Bytes(bytes)) => {
                // The minimum of one page depends on this machine's page size.
                let least = if least == PageSize::FOUR_KIB.bytes() { page.bytes() } else { least };
                if !(least..=most).contains(bytes) {
                    return Err(range(least.into(), most.into()));
                }
                rounded(tunable, *bytes, unit, &mut notes).into()
            }
            (ValueForm::ArrayRate, Value::Word(word)) if word == OF_SYSTEM => value.clone(),
            (ValueForm::Rate | ValueForm::ArrayRate, Value::Bytes(bytes)) => {
                if *bytes > MAX_RATE {
                    return Err(range(Bytes::ZERO.into(), MAX_RATE.into()));
                }
                rounded(tunable, *bytes, 1024, &mut notes).into()
            }
            (ValueForm::Span { unit }, Value::Time(time)) => {
                if *time > MAX_SPAN {
                    return Err(range(Value::Time(Nanos::ZERO), Value::Time(MAX_SPAN)));
                }
                Value::Time(Nanos::new(time.get() / unit * unit))
            }
            (ValueForm::Choice | ValueForm::Text, Value::Word(word)) => {
                Value::Word(self.word(word)?)
            }
            (ValueForm::Declared(form), Value::Word(word)) => {
                Value::Word(form.validate(self.word(word)?)?)
            }
            _ => return Err(self.wrong(value)),
        };
        Ok(ValidatedValue { value, notes })
    }

    /// Returns the text to write to the file.
    pub fn encode(&self, value: &Value) -> Result<String, TunableError> {
        let unit = self.unit();
        let whole = |amount: u64| amount.is_multiple_of(unit).then(|| (amount / unit).to_string());
        let text = match (self.form, value) {
            (ValueForm::Count { .. }, Value::Number(number)) => Some(number.to_string()),
            (ValueForm::ArrayRate, Value::Word(word)) if word == OF_SYSTEM => Some(word.clone()),
            (
                ValueForm::Amount { .. }
                | ValueForm::Window
                | ValueForm::Rate
                | ValueForm::ArrayRate,
                Value::Bytes(bytes),
            ) => whole(bytes.get()),
            (ValueForm::Span { .. }, Value::Time(time)) => whole(time.get()),
            (ValueForm::Choice | ValueForm::Text | ValueForm::Declared(_), Value::Word(word)) => {
                self.word(word).ok().filter(|same| same == word)
            }
            _ => None,
        };
        text.ok_or_else(|| self.wrong(value))
    }

    /// Parses the file's text; `None` if it is not a value of this tunable. An array that follows
    /// the machine's rate shows `1000 (system)`; writing 1000 would give it a rate of its own
    /// (`1000 (local)`).
    pub fn decode(&self, text: &str) -> Option<Value> {
        let line = text.lines().next()?.trim();
        let first = line.split_whitespace().next();
        match self.form {
            ValueForm::Count { .. } => first?.parse().ok().map(Value::Number),
            ValueForm::ArrayRate if line == OF_SYSTEM || line.ends_with("(system)") => {
                Some(Value::Word(OF_SYSTEM.to_owned()))
            }
            ValueForm::Amount { .. }
            | ValueForm::Window
            | ValueForm::Rate
            | ValueForm::ArrayRate
            | ValueForm::Span { .. } => self.scaled(first?.parse().ok()?),
            // A declared file may list its choices in the same way.
            ValueForm::Choice | ValueForm::Declared(_) if line.contains('[') => {
                let chosen = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                let word = chosen.map_or(line, |(chosen, _)| chosen);
                self.word(word).ok().map(Value::Word)
            }
            ValueForm::Choice => self.word(line).ok().map(Value::Word),
            ValueForm::Text | ValueForm::Declared(_) => {
                let word = line.split_whitespace().collect::<Vec<_>>().join(" ");
                (word.len() <= MAX_TEXT_BYTES * 16).then_some(Value::Word(word))
            }
        }
    }
}

fn rounded(tunable: &str, bytes: Bytes, unit: u64, notes: &mut Vec<String>) -> Bytes {
    let whole = Bytes::new(bytes.get() / unit * unit);
    if whole != bytes {
        let unit = Bytes::new(unit);
        notes.push(format!("{tunable}={bytes} becomes {whole}: the kernel counts in {unit}"));
    }
    whole
}

/// Formats an amount in the largest unit that divides it, as in `128K`.
fn show_bytes(bytes: Bytes) -> String {
    match bytes.get() {
        0 => "0".to_owned(),
        n if n.is_multiple_of(1 << 30) => format!("{}G", n >> 30),
        n if n.is_multiple_of(1 << 20) => format!("{}M", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{}K", n >> 10),
        n => format!("{n}B"),
    }
}
