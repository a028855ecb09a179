//! Settings: tunables and their values.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Bytes;

use crate::registry::{REGISTRY, find_key};
use crate::{Tunable, TunableError, Value, find};

/// A tunable and its value, as in `read_ahead=128K`.
#[derive(Clone, Debug)]
pub struct Setting {
    pub tunable: &'static Tunable,
    pub value: Value,
}

impl Setting {
    fn key(&self) -> (u8, &'static str, &Value) {
        (self.tunable.write_rank(), self.tunable.name(), &self.value)
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Setting {}

impl PartialOrd for Setting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Setting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Setting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Parses a setting, as in `read_ahead=128K`.
impl FromStr for Setting {
    type Err = TunableError;

    fn from_str(text: &str) -> Result<Self, TunableError> {
        let (name, value) = split(text)?;
        let tunable = find(name)?;
        Ok(Self { tunable, value: tunable.parse(name, value)? })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}={}", self.tunable.name(), self.tunable.show(&self.value)))
    }
}

/// Splits `NAME=VALUE`.
pub(crate) fn split(text: &str) -> Result<(&str, &str), TunableError> {
    text.split_once('=').ok_or_else(|| TunableError::Syntax {
        text: text.to_owned(),
        problem: "write NAME=VALUE, as in read_ahead=128K".to_owned(),
    })
}

/// Settings of different tunables, in the order of writing. The text form is `read_ahead=128K`, the
/// JSON form `{"read_ahead_kib": 128}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TunableValues(Vec<Setting>);

impl TunableValues {
    pub fn read_ahead(window: Bytes) -> Self {
        Self::default().with(Setting { tunable: REGISTRY[READ_AHEAD], value: window.into() })
    }

    /// Adds or replaces a setting.
    #[must_use]
    pub fn with(mut self, setting: Setting) -> Self {
        self.0.retain(|known| known.tunable.name() != setting.tunable.name());
        self.0.push(setting);
        self.0.sort();
        self
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|setting| setting.tunable.name() == name).map(|setting| &setting.value)
    }

    pub fn window(&self) -> Option<Bytes> {
        self.get(REGISTRY[READ_AHEAD].name())?.bytes()
    }

    /// Returns the settings in the order of writing.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The index of `read_ahead` in the registry; a test verifies it.
const READ_AHEAD: usize = 0;

/// Formats the settings, separated by spaces; `unchanged` if there are none.
impl fmt::Display for TunableValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.pad("unchanged");
        }
        let words: Vec<String> = self.0.iter().map(Setting::to_string).collect();
        f.pad(&words.join(" "))
    }
}

/// Parses the output of `Display`.
impl FromStr for TunableValues {
    type Err = TunableError;

    fn from_str(text: &str) -> Result<Self, TunableError> {
        text.split_whitespace()
            .filter(|word| *word != "unchanged")
            .try_fold(Self::default(), |settings, word| Ok(settings.with(word.parse()?)))
    }
}

impl Serialize for TunableValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for Setting { tunable, value } in &self.0 {
            map.serialize_entry(tunable.json_key(), &tunable.to_json(value))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TunableValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
        map.iter().try_fold(Self::default(), |settings, (key, json)| {
            let tunable = find_key(key)
                .ok_or_else(|| D::Error::custom(format!("unknown setting {key:?}")))?;
            let value = tunable.read_json(json).map_err(D::Error::custom)?;
            Ok(settings.with(Setting { tunable, value }))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn read_ahead_is_where_it_is_looked_for() {
        assert_eq!(REGISTRY[READ_AHEAD].name(), "read_ahead");
    }

    #[test]
    fn settings_print_and_are_json() {
        let settings = TunableValues::read_ahead(Bytes::from_kib(128));
        assert_eq!(settings.to_string(), "read_ahead=128K");
        let json = serde_json::to_string(&settings).expect("JSON");
        assert_eq!(json, r#"{"read_ahead_kib":128}"#);
        assert_eq!(serde_json::from_str::<TunableValues>(&json).expect("settings"), settings);
        assert_eq!(settings.window(), Some(Bytes::from_kib(128)));
        let other = settings.with("ra=1M".parse().expect("a setting"));
        assert_eq!(other.to_string(), "read_ahead=1M");
        assert_eq!(other.iter().count(), 1);
        assert_eq!(TunableValues::default().to_string(), "unchanged");
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for text in ["read_ahead", "read_ahead=", "=4K", "read_ahed=4K", "ra=4", "ra=4K,8K"] {
            assert!(text.parse::<Setting>().is_err(), "{text}");
        }
        for json in [r#"{"window": 1}"#, r#"{"read_ahead_kib": "128K"}"#, "[]", "{"] {
            assert!(serde_json::from_str::<TunableValues>(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(kib in 0..(1u64 << 30)) {
            let settings = TunableValues::read_ahead(Bytes::from_kib(kib));
            let parsed: TunableValues = settings.to_string().parse().expect("printed");
            prop_assert_eq!(&parsed, &settings);
            let json = serde_json::to_value(&settings).expect("JSON");
            let parsed: TunableValues = serde_json::from_value(json).expect("settings");
            prop_assert_eq!(parsed, settings);
        }

        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            let _ = text.parse::<TunableValues>();
            let _ = serde_json::from_str::<TunableValues>(&text);
        }
    }
}
