//! What a trial is run under.

use std::cmp::Ordering;
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

/// Settings of other tunables than read-ahead, as small as a pointer: there are at most as many
/// different ones as a study has cells, each is kept once and for good.
#[derive(Clone, Copy, Debug)]
pub struct Others(Option<&'static tunables::Settings>);

/// Each that was ever named.
static KNOWN: Mutex<Vec<&'static tunables::Settings>> = Mutex::new(Vec::new());

impl Others {
    /// No other tunable.
    pub const NONE: Self = Self(None);

    /// These.
    pub fn of(settings: tunables::Settings) -> Self {
        if settings.is_empty() {
            return Self::NONE;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|known| ***known == settings) {
            return Self(Some(same));
        }
        let new: &'static tunables::Settings = Box::leak(Box::new(settings));
        known.push(new);
        Self(Some(new))
    }

    /// Each setting, in the order in which they are written.
    pub fn iter(self) -> impl Iterator<Item = &'static tunables::Setting> {
        self.0.into_iter().flat_map(tunables::Settings::iter)
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

    /// All of them, read-ahead included.
    pub fn all(self) -> tunables::Settings {
        let window = tunables::Settings::read_ahead(self.read_ahead.to_bytes());
        self.others.iter().fold(window, |all, setting| all.with(setting.clone()))
    }

    /// The same in the words of [`tunables`]; `None` without read-ahead.
    pub fn from_all(all: &tunables::Settings) -> Option<Self> {
        let window = all.window()?;
        let others = all
            .iter()
            .filter(|setting| setting.tunable.name() != READ_AHEAD)
            .fold(tunables::Settings::default(), |others, setting| others.with(setting.clone()));
        Some(Self { read_ahead: window.to_kib_floor(), others: Others::of(others) })
    }
}

/// The tunable that every study sets.
pub(crate) const READ_AHEAD: &str = "read_ahead";

/// `read_ahead=128K scheduler=none`.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read_ahead={}K", self.read_ahead.get())?;
        self.others.iter().try_for_each(|setting| write!(f, " {setting}"))
    }
}

/// `{"read_ahead_kib": 128, "scheduler": "none"}`.
impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = tunables::Settings::deserialize(deserializer)?;
        Self::from_all(&all).ok_or_else(|| D::Error::custom("read_ahead_kib is missing"))
    }
}

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
}
