//! The keys of specifications: which exist, and how a text can be parsed as the value of a key.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use toml::{Table, Value};
use units::text::SettingError;
use units::{BytesPerSecond, Nanos};

use super::SpecError;

/// Returns the keys of a structure, from its definition, so that error messages, the command line
/// and the documentation always list all of them.
pub(super) fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    match T::deserialize(Asker) {
        Err(Fields(fields)) => fields,
        Ok(_) => &[],
    }
}

/// A deserializer that only records the fields that the type requests.
struct Asker;

/// The fields that the type requests.
#[derive(Debug)]
struct Fields(&'static [&'static str]);

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl std::error::Error for Fields {}

impl serde::de::Error for Fields {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for Asker {
    type Error = Fields;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Fields> {
        Err(Fields::custom("no structure"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Fields> {
        Err(Fields(fields))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

/// Returns an error if a table has a key that is not in `known`; `path` is the table's path.
pub(super) fn unknown(table: &Table, known: &[&str], path: &str) -> Result<(), SpecError> {
    let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let dot = if path.is_empty() { "" } else { "." };
    let hint = units::text::hint(key, known);
    Err(SettingError::UnknownKey { key: format!("{path}{dot}{key}"), hint }.into())
}

/// Returns the possible values of a text for a key, the most likely first. If the key's name ends
/// in a unit, a bare number is in that unit; a number may also have a unit of its own.
pub(super) fn meanings(key: &str, text: &str) -> Vec<Value> {
    let text = text.trim();
    let span = || text.parse::<Nanos>().ok();
    let rate = || text.parse::<BytesPerSecond>().ok();
    let with_unit = if key.ends_with("_ms") {
        span().map(Nanos::as_millis_f64)
    } else if key.ends_with("_us") {
        span().map(Nanos::as_micros_f64)
    } else if key.ends_with("_mb_s") {
        rate().map(BytesPerSecond::as_mb)
    } else if key.ends_with("_mib_s") {
        rate().map(BytesPerSecond::as_mib)
    } else {
        None
    };
    let mut meanings: Vec<Value> = with_unit.map(Value::Float).into_iter().collect();
    meanings.extend(text.parse().ok().map(Value::Integer));
    meanings.extend(text.parse().ok().filter(|f: &f64| f.is_finite()).map(Value::Float));
    meanings.extend(text.parse().ok().map(Value::Boolean));
    meanings.push(Value::String(text.to_owned()));
    let list = text.starts_with('[').then(|| toml::from_str::<toml::Table>(&format!("v = {text}")));
    meanings.extend(list.and_then(Result::ok).and_then(|mut table| table.remove("v")));
    meanings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_from_the_structure_itself() {
        let fields = fields_of::<crate::zero::ZeroSpec>();
        assert_eq!(fields, ["capacity"]);
        assert!(fields_of::<crate::array::ArraySpec>().contains(&"read_policy"));
    }

    #[test]
    fn a_number_may_bring_its_unit() {
        assert_eq!(meanings("latency_ms", "500us")[0], Value::Float(0.5));
        assert_eq!(meanings("link_mb_s", "1MiB/s")[0], Value::Float(1.048576));
        assert_eq!(meanings("rpm", "7200")[0], Value::Integer(7200));
        assert_eq!(meanings("rpm", "7200")[1], Value::Float(7200.0));
    }
}
