//! The settings of a trial.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tunables::TunableValues;
use units::Kib;

/// The values of the varied tunables: read-ahead, and those that `--vary` names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellSettings {
    /// `read_ahead_kb` of the storage's bdi.
    pub read_ahead: Kib,
    pub extra: ExtraSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtraSettings {
    pub tunables: TunableValues,
    pub labels: Labels,
}

/// Settings that are not tunables of the kernel, by name: a setting of the measured server, or
/// whether `foreread auto` was running.
pub type Labels = BTreeMap<String, String>;

impl ExtraSettings {
    /// Returns all settings as `name=value`, without read-ahead.
    pub fn assignments(&self) -> impl Iterator<Item = String> {
        let labels = self.labels.iter().map(|(name, value)| format!("{name}={value}"));
        self.tunables.iter().map(ToString::to_string).chain(labels)
    }
}

impl CellSettings {
    pub fn read_ahead(read_ahead: Kib) -> Self {
        Self { read_ahead, extra: ExtraSettings::default() }
    }

    pub fn tunables(&self) -> TunableValues {
        let window = TunableValues::read_ahead(self.read_ahead.to_bytes());
        self.extra.tunables.iter().cloned().fold(window, TunableValues::with)
    }

    /// Separates read-ahead from the other tunables; `None` if `all` has no read-ahead.
    pub fn from_tunables(all: &TunableValues, labels: Labels) -> Option<Self> {
        let read_ahead = all.window()?.to_kib_floor();
        let others = all.iter().filter(|setting| setting.tunable.name() != READ_AHEAD);
        let tunables = others.cloned().fold(TunableValues::default(), TunableValues::with);
        Some(Self { read_ahead, extra: ExtraSettings { tunables, labels } })
    }
}

/// The tunable that every study sets.
pub(crate) const READ_AHEAD: &str = "read_ahead";

/// Formats as `read_ahead=128K scheduler=none`.
impl fmt::Display for CellSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read_ahead={}K", self.read_ahead.get())?;
        self.extra.assignments().try_for_each(|assignment| write!(f, " {assignment}"))
    }
}

/// Serializes as `{"read_ahead_kib": 128, "scheduler": "none", "labels": {"io_method": "worker"}}`.
impl Serialize for CellSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Json<'a> {
            #[serde(flatten)]
            tunables: TunableValues,
            #[serde(skip_serializing_if = "Labels::is_empty")]
            labels: &'a Labels,
        }
        Json { tunables: self.tunables(), labels: &self.extra.labels }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CellSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        // Records of earlier versions contain the labels as `beside`.
        let labels = fields.remove("labels").or_else(|| fields.remove("beside"));
        let labels = labels.map(Labels::deserialize).transpose().map_err(D::Error::custom)?;
        let all = TunableValues::deserialize(serde_json::Value::Object(fields));
        let all = all.map_err(D::Error::custom)?;
        Self::from_tunables(&all, labels.unwrap_or_default())
            .ok_or_else(|| D::Error::custom("read_ahead_kib is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_json_with_and_without_others() {
        let plain = CellSettings::read_ahead(Kib::new(128));
        let json = serde_json::to_string(&plain).unwrap();
        assert_eq!(json, r#"{"read_ahead_kib":128}"#);
        assert_eq!(serde_json::from_str::<CellSettings>(&json).unwrap(), plain);
        let both: TunableValues = "read_ahead=1M scheduler=none nr_requests=64".parse().unwrap();
        let both = CellSettings::from_tunables(&both, Labels::new()).unwrap();
        assert_eq!(both.to_string(), "read_ahead=1024K scheduler=none nr_requests=64");
        let json = serde_json::to_string(&both).unwrap();
        assert_eq!(serde_json::from_str::<CellSettings>(&json).unwrap(), both);
        assert!(serde_json::from_str::<CellSettings>(r#"{"scheduler":"none"}"#).is_err());
        assert_ne!(both, CellSettings::read_ahead(Kib::new(1024)));
    }

    #[test]
    fn labels_are_kept_apart_from_tunables_and_read_under_their_old_key() {
        let all: TunableValues = "read_ahead=1M scheduler=none".parse().unwrap();
        let labels = Labels::from([("auto".to_owned(), "on".to_owned())]);
        let settings = CellSettings::from_tunables(&all, labels).unwrap();
        assert_eq!(settings.to_string(), "read_ahead=1024K scheduler=none auto=on");
        let json = serde_json::to_string(&settings).unwrap();
        assert!(json.ends_with(r#""labels":{"auto":"on"}}"#), "{json}");
        assert_eq!(serde_json::from_str::<CellSettings>(&json).unwrap(), settings);
        let old = json.replace("labels", "beside");
        assert_eq!(serde_json::from_str::<CellSettings>(&old).unwrap(), settings);
        assert_ne!(CellSettings::from_tunables(&all, Labels::new()).unwrap(), settings);
        let wrong = r#"{"read_ahead_kib":128,"labels":{"auto":1}}"#;
        assert!(serde_json::from_str::<CellSettings>(wrong).is_err());
    }
}
