//! Which device, and behind what host: the tree that TOML files and the command line describe.
//!
//! ```toml
//! name = "pair"
//!
//! [host]
//! max_request = "128KiB"
//!
//! [device]
//! kind = "array"
//! level = "raid1"
//! members = 2
//! read_policy = "gmirror-load"
//!
//! [device.member]
//! kind = "hdd"
//! capacity = "465GiB"
//! rpm = 7200
//! # …
//! ```

mod describe;
mod device;
mod error;
mod flash;
mod host;
mod keys;
mod peak;
mod raid;
mod told;
mod volume;
mod zero;

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use units::text::SettingError;
use units::{Bytes, Nanos};

pub use device::{ArraySpec, ControllerSpec, DeviceSpec};
pub use error::SpecError;
pub use flash::FlashSpec;
pub use host::{HostLimits, Scheduler};
use keys::{fields_of, meanings, unknown};
pub use peak::Peak;
pub(crate) use raid::RowMembers;
pub use raid::{Level, ReadPolicy};
pub(crate) use told::placed;
pub use volume::VolumeSpec;
pub use zero::ZeroSpec;

/// A device and the host limits in front of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub name: String,
    /// What it is, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Where its numbers come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// What the block layer in front of it allows.
    #[serde(default)]
    pub host: HostLimits,
    pub device: DeviceSpec,
}

impl Spec {
    /// Reads a whole description.
    ///
    /// # Errors
    ///
    /// If it is no TOML, has keys that do not exist or lacks some that must, or describes what
    /// cannot be.
    pub fn from_toml(text: &str) -> Result<Self, SpecError> {
        let table: Table = toml::from_str(text)
            .map_err(|error| SpecError::Syntax { message: placed(text, &error) })?;
        let spec = Self::from_table(table)?;
        spec.validate()?;
        Ok(spec)
    }

    /// Writes a description that [`from_toml`](Self::from_toml) reads back as the same.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Sets one value by its key: a full path (`device.member.rpm`) or as much of its end as is
    /// unambiguous (`chunk`, `member.rpm`); `disk.` stands for the innermost device. A value
    /// whose key says its unit may be a bare number or bring a unit of its own.
    ///
    /// What the values mean together is checked when the device is built, so that several can be
    /// set one after another.
    ///
    /// # Errors
    ///
    /// If there is no such key (the nearest is suggested), if it stands in several tables, or if
    /// the value is not of its form.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let path = self.resolve(key)?;
        let tree = self.to_table()?;
        let last = path.rsplit('.').next().unwrap_or(&path);
        let mut problem = String::new();
        for meaning in meanings(last, value) {
            let mut changed = tree.clone();
            insert(&mut changed, &path, meaning);
            match Self::from_table(changed) {
                Ok(spec) => {
                    *self = spec;
                    return Ok(());
                }
                // The first meaning is the likeliest, so it has the best complaint; but a text
                // that is no number at all has only the last.
                Err(error) => problem = problem_of(error, last),
            }
        }
        Err(SettingError::invalid(&path, value, problem).into())
    }

    /// The value of a key, as it would be written; the default's where none was set, and nothing
    /// where there is no default either. Keys are those of [`set`](Self::set).
    ///
    /// # Errors
    ///
    /// If there is no such key, or it stands in several tables.
    pub fn get(&self, key: &str) -> Result<String, SpecError> {
        let path = self.resolve(key)?;
        let tree = Value::Table(self.to_table()?);
        let value = path.split('.').try_fold(&tree, |table, key| table.get(key));
        Ok(match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        })
    }

    /// All keys that can be set, as full paths.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = vec!["name".to_owned()];
        keys.extend(fields_of::<HostLimits>().iter().map(|key| format!("host.{key}")));
        let (mut path, mut device) = ("device".to_owned(), &self.device);
        loop {
            keys.extend(device.keys().iter().map(|key| format!("{path}.{key}")));
            let Some((name, inner)) = device.inner() else { return keys };
            path = format!("{path}.{name}");
            device = inner;
        }
    }

    /// Says which value, if any, no device can have.
    ///
    /// # Errors
    ///
    /// The first such value, with what is allowed.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.host.validate().map_err(|error| error.within("host"))?;
        self.device.validate("device")
    }

    /// What the device can reach at best.
    pub fn peak(&self) -> Peak {
        self.device.peak()
    }

    /// No reads of so many different bytes take less, in whatever order and from wherever. Not
    /// what [`Self::peak`] says: a burst may pass a limit, and reads need not pass parity.
    pub fn least_time(&self, bytes: Bytes) -> Nanos {
        self.device.least_time(bytes)
    }

    /// What the block layer in front of it allows.
    pub fn host(&self) -> &HostLimits {
        &self.host
    }

    pub fn capacity(&self) -> Bytes {
        self.device.capacity()
    }

    fn resolve(&self, key: &str) -> Result<String, SpecError> {
        let keys = self.keys();
        if keys.iter().any(|path| path == key) {
            return Ok(key.to_owned());
        }
        let innermost = self.innermost();
        let matches = |path: &&String| match key.strip_prefix("disk.") {
            Some(rest) => **path == format!("{innermost}.{rest}"),
            None => path.strip_suffix(key).is_some_and(|before| before.ends_with('.')),
        };
        let mut found: Vec<&String> = keys.iter().filter(matches).collect();
        match (found.pop(), found.is_empty()) {
            (Some(path), true) => Ok(path.clone()),
            (Some(path), false) => {
                let candidates = found.into_iter().chain([path]).cloned().collect();
                Err(SpecError::AmbiguousKey { key: key.to_owned(), candidates })
            }
            (None, _) => {
                let last = key.rsplit('.').next().unwrap_or(key);
                let mut names: Vec<&str> =
                    keys.iter().filter_map(|path| path.rsplit('.').next()).collect();
                names.sort_unstable();
                names.dedup();
                let hint = units::text::hint(last, &names);
                Err(SettingError::UnknownKey { key: key.to_owned(), hint }.into())
            }
        }
    }

    fn innermost(&self) -> String {
        let (mut path, mut device) = ("device".to_owned(), &self.device);
        while let Some((name, inner)) = device.inner() {
            path = format!("{path}.{name}");
            device = inner;
        }
        path
    }

    fn to_table(&self) -> Result<Table, SpecError> {
        Table::try_from(self).map_err(|error| SpecError::Syntax { message: error.to_string() })
    }

    fn from_table(mut table: Table) -> Result<Self, SpecError> {
        unknown(&table, fields_of::<Self>(), "")?;
        let device = match table.remove("device") {
            Some(Value::Table(device)) => DeviceSpec::from_table(device, "device")?,
            _ => return Err(missing("device")),
        };
        let host = match table.remove("host") {
            Some(Value::Table(host)) => HostLimits::from_table(host)?,
            Some(_) => return Err(missing("host")),
            None => HostLimits::default(),
        };
        let head: Head = Value::Table(table)
            .try_into()
            .map_err(|error: toml::de::Error| told::broken("", &error))?;
        let Head { name, summary, sources } = head;
        Ok(Self { name, summary, sources, host, device })
    }
}

/// The path of the description, if `name` names a file instead of a preset: it has a `/`, ends in
/// `.toml`, or is `-` for standard input.
pub fn description_path(name: &str) -> Option<&Path> {
    let is_file = name.contains('/') || name.ends_with(".toml") || name == "-";
    is_file.then(|| Path::new(name))
}

#[derive(Deserialize)]
struct Head {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    sources: Vec<String>,
}

fn missing(table: &str) -> SpecError {
    let problem = "is missing, or no table: `foreread models show hdd-2008` has an example";
    SpecError::Table { table: table.to_owned(), problem: problem.to_owned() }
}

/// What is wrong with the value of `key`, which whoever hears it knows.
fn problem_of(error: SpecError, key: &str) -> String {
    match error {
        SpecError::Table { problem, .. } => {
            let known = format!("{key}: ");
            problem.strip_prefix(&known).map(str::to_owned).unwrap_or(problem)
        }
        other => other.to_string(),
    }
}

/// Puts a value at a path whose tables exist.
fn insert(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        Some((first, rest)) => {
            if let Some(Value::Table(inner)) = table.get_mut(first) {
                insert(inner, rest, value);
            }
        }
        None => {
            table.insert(path.to_owned(), value);
        }
    }
}
