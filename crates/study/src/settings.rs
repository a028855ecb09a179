//! What a trial is run under.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Kib;

/// The values of the tunables that a study varies: read-ahead always, and whatever `--vary` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Settings {
    /// `read_ahead_kb` of the storage's bdi.
    pub read_ahead: Kib,
    /// The other tunables.
    pub others: Others,
}

/// Whatever is set besides read-ahead, as small as a pointer: there are at most as many different
/// ones as a study has cells, each is kept once and for good.
#[derive(Clone, Copy, Debug)]
pub struct Others(Option<&'static Known>);

/// One combination.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Known {
    tunables: tunables::Settings,
    beside: Beside,
}

/// What is set that is no tunable of the kernel, by name: a setting of the server that was
/// measured, who was in control meanwhile.
pub type Beside = BTreeMap<String, String>;

/// Each that was ever named.
static KNOWN: Mutex<Vec<&'static Known>> = Mutex::new(Vec::new());

impl Others {
    /// Nothing else.
    pub const NONE: Self = Self(None);

    /// These tunables.
    pub fn of(settings: tunables::Settings) -> Self {
        Self::with(settings, Beside::new())
    }

    /// These tunables, and what is none.
    pub fn with(tunables: tunables::Settings, beside: Beside) -> Self {
        if tunables.is_empty() && beside.is_empty() {
            return Self::NONE;
        }
        let wanted = Known { tunables, beside };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|known| ***known == wanted) {
            return Self(Some(same));
        }
        let new: &'static Known = Box::leak(Box::new(wanted));
        known.push(new);
        Self(Some(new))
    }

    /// Each tunable's setting, in the order in which they are written.
    pub fn iter(self) -> impl Iterator<Item = &'static tunables::Setting> {
        self.0.into_iter().flat_map(|known| known.tunables.iter())
    }

    /// What is no tunable, by name.
    pub fn beside(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = self.0.into_iter().flat_map(|known| &known.beside);
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The tunables alone.
    pub fn tunables(self) -> Self {
        self.0.map_or(Self::NONE, |known| Self::of(known.tunables.clone()))
    }

    /// All of it as `name=value`.
    pub fn words(self) -> impl Iterator<Item = String> {
        let beside = self.beside().map(|(name, value)| format!("{name}={value}"));
        self.iter().map(ToString::to_string).chain(beside)
    }
}

impl PartialEq for Others {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Others {}

impl PartialOrd for Others {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Others {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl Hash for Others {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Settings {
    /// Read-ahead of this much.
    pub const fn read_ahead(read_ahead: Kib) -> Self {
        Self { read_ahead, others: Others::NONE }
    }

    /// All tunables, read-ahead included.
    pub fn all(self) -> tunables::Settings {
        let window = tunables::Settings::read_ahead(self.read_ahead.to_bytes());
        self.others.iter().fold(window, |all, setting| all.with(setting.clone()))
    }

    /// The same in the words of [`tunables`]; `None` without read-ahead.
    pub fn from_all(all: &tunables::Settings) -> Option<Self> {
        Self::with(all, Beside::new())
    }

    /// As [`Settings::from_all`], with what is no tunable.
    pub fn with(all: &tunables::Settings, beside: Beside) -> Option<Self> {
        let window = all.window()?;
        let others = all
            .iter()
            .filter(|setting| setting.tunable.name() != READ_AHEAD)
            .fold(tunables::Settings::default(), |others, setting| others.with(setting.clone()));
        Some(Self { read_ahead: window.to_kib_floor(), others: Others::with(others, beside) })
    }
}

/// The tunable that every study sets.
pub(crate) const READ_AHEAD: &str = "read_ahead";

/// `read_ahead=128K scheduler=none`.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read_ahead={}K", self.read_ahead.get())?;
        self.others.words().try_for_each(|word| write!(f, " {word}"))
    }
}

/// `{"read_ahead_kib": 128, "scheduler": "none", "beside": {"io_method": "worker"}}`.
impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(Known { beside, .. }) = self.others.0.filter(|known| !known.beside.is_empty())
        else {
            return self.all().serialize(serializer);
        };
        #[derive(Serialize)]
        struct Both<'a> {
            #[serde(flatten)]
            tunables: tunables::Settings,
            beside: &'a Beside,
        }
        Both { tunables: self.all(), beside }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let beside = fields.remove(BESIDE).map(Beside::deserialize).transpose();
        let beside = beside.map_err(D::Error::custom)?.unwrap_or_default();
        let all = tunables::Settings::deserialize(serde_json::Value::Object(fields));
        let all = all.map_err(D::Error::custom)?;
        Self::with(&all, beside).ok_or_else(|| D::Error::custom("read_ahead_kib is missing"))
    }
}

/// Where what is no tunable stands in JSON.
const BESIDE: &str = "beside";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_json_with_and_without_others() {
        let plain = Settings::read_ahead(Kib::new(128));
        let json = serde_json::to_string(&plain).unwrap();
        assert_eq!(json, r#"{"read_ahead_kib":128}"#);
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), plain);
        let both: tunables::Settings =
            "read_ahead=1M scheduler=none nr_requests=64".parse().unwrap();
        let both = Settings::from_all(&both).unwrap();
        assert_eq!(both.to_string(), "read_ahead=1024K scheduler=none nr_requests=64");
        let json = serde_json::to_string(&both).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), both);
        assert!(serde_json::from_str::<Settings>(r#"{"scheduler":"none"}"#).is_err());
        assert_ne!(both, Settings::read_ahead(Kib::new(1024)));
    }

    #[test]
    fn what_is_no_tunable_stands_beside() {
        let all: tunables::Settings = "read_ahead=1M scheduler=none".parse().unwrap();
        let beside = Beside::from([("auto".to_owned(), "on".to_owned())]);
        let settings = Settings::with(&all, beside).unwrap();
        assert_eq!(settings.to_string(), "read_ahead=1024K scheduler=none auto=on");
        let json = serde_json::to_string(&settings).unwrap();
        assert!(json.ends_with(r#""beside":{"auto":"on"}}"#), "{json}");
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
        assert_ne!(Settings::from_all(&all).unwrap(), settings);
        let wrong = r#"{"read_ahead_kib":128,"beside":{"auto":1}}"#;
        assert!(serde_json::from_str::<Settings>(wrong).is_err());
    }
}
