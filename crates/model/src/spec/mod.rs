//! Specifications of a device and its host, as a tree that TOML files and the command line define.
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
mod drive;
mod error;
mod flash;
mod host;
mod keys;
mod peak;
mod raid;
mod toml_error;
mod volume;
mod zero;

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use units::text::SettingError;
use units::{Bytes, Nanos};

pub use device::{ArraySpec, ControllerSpec, DeviceSpec};
pub use drive::{DriveSpec, QueueOrder, ReadBefore};
pub use error::SpecError;
pub use flash::FlashSpec;
pub use host::{HostLimits, Scheduler};
use keys::{fields_of, meanings, unknown};
pub use peak::Peak;
pub(crate) use raid::RowMembers;
pub use raid::{Level, ReadPolicy};
pub(crate) use toml_error::with_position;
pub use volume::VolumeSpec;
pub use zero::ZeroSpec;

/// A device, and the host's limits in front of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The sources of the specification's numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The limits of the block layer in front of the device.
    #[serde(default)]
    pub host: HostLimits,
    pub device: DeviceSpec,
}

impl Spec {
    /// Parses a specification.
    ///
    /// # Errors
    ///
    /// If it is not TOML, has unknown keys, lacks required keys, or has values out of range.
    pub fn from_toml(text: &str) -> Result<Self, SpecError> {
        let table: Table = toml::from_str(text)
            .map_err(|error| SpecError::Syntax { message: with_position(text, &error) })?;
        let spec = Self::from_table(table)?;
        spec.validate()?;
        Ok(spec)
    }

    /// Formats the specification so that [`from_toml`](Self::from_toml) restores it.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Sets one value by its key: a full path (`device.member.rpm`) or an unambiguous suffix of it
    /// (`chunk`, `member.rpm`); `disk.` stands for the innermost device. If the key ends in a unit,
    /// the value may be a bare number or have a unit of its own.
    ///
    /// `build` checks the relations between values, so that a caller can set several values one
    /// after another.
    ///
    /// # Errors
    ///
    /// If there is no such key (the error suggests the most similar one), if it is ambiguous, or if
    /// the value has the wrong type.
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
                // The first meaning is the most likely, so its error would be the best one; but a
                // text that is not a number has only the last meaning.
                Err(error) => problem = problem_of(error, last),
            }
        }
        Err(SettingError::invalid(&path, value, problem).into())
    }

    /// Returns the value of a key as text: the default if it was not set, an empty string if there
    /// is no default. Keys are those of [`set`](Self::set).
    ///
    /// # Errors
    ///
    /// If there is no such key, or it is ambiguous.
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

    /// Returns all keys that can be set, as full paths.
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

    /// Checks all values.
    ///
    /// # Errors
    ///
    /// The first value that is out of range, with the allowed range.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.host.validate().map_err(|error| error.within("host"))?;
        self.device.validate("device")
    }

    /// Returns upper bounds of the device's performance.
    pub fn peak(&self) -> Peak {
        self.device.peak()
    }

    /// Returns a lower bound of the time to read this many different bytes, in any order and from
    /// any offset. Unlike [`Self::peak`], it accounts for bursts above a limit and for reads that
    /// skip parity.
    pub fn least_time(&self, bytes: Bytes) -> Nanos {
        self.device.least_time(bytes)
    }

    /// Returns whether the host takes the device for a rotating disk.
    pub fn is_rotational(&self) -> bool {
        self.host.rotational.unwrap_or_else(|| self.device.rotates())
    }

    /// Returns the limits of the block layer in front of the device.
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
            .map_err(|error: toml::de::Error| toml_error::in_table("", &error))?;
        let Head { name, summary, sources } = head;
        Ok(Self { name, summary, sources, host, device })
    }
}

/// Returns the path of the specification if `name` is a file and not a preset: it contains a `/`,
/// ends with `.toml`, or is `-` for standard input.
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

/// Returns the problem with the value of `key`, without repeating the key.
fn problem_of(error: SpecError, key: &str) -> String {
    match error {
        SpecError::Table { problem, .. } => {
            let known = format!("{key}: ");
            problem.strip_prefix(&known).map(str::to_owned).unwrap_or(problem)
        }
        other => other.to_string(),
    }
}

/// Sets a value at a path whose tables exist.
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
