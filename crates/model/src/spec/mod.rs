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
mod host;
mod keys;
mod peak;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use units::Bytes;

use crate::Device;
use crate::presets::presets;
pub use device::DeviceSpec;
pub use error::SpecError;
pub(crate) use error::{check, check_size};
pub use host::{HostLimits, Scheduler};
use keys::{fields_of, meanings, nearest};
pub use peak::Peak;

/// A device and the host limits in front of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What it is called.
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
    /// The device.
    pub device: DeviceSpec,
}

impl Spec {
    /// The preset of this name.
    pub fn preset(name: &str) -> Option<Self> {
        presets().iter().find(|preset| preset.name == name)?.spec().ok()
    }

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

    /// Reads `NAME[,key=value…]`, `NAME` being a preset.
    ///
    /// # Errors
    ///
    /// If there is no such preset or a setting is wrong; see [`set`](Self::set).
    pub fn parse(words: &str) -> Result<Self, SpecError> {
        let mut words = words.split(',').map(str::trim);
        let name = words.next().unwrap_or_default();
        let mut spec = Self::preset(name).ok_or_else(|| SpecError::UnknownPreset {
            name: name.to_owned(),
            nearest: nearest(name, presets().iter().map(|preset| preset.name)),
        })?;
        for word in words.filter(|word| !word.is_empty()) {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| SpecError::NoSetting { word: word.to_owned() })?;
            spec.set(key.trim(), value.trim())?;
        }
        spec.validate()?;
        Ok(spec)
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
                Err(error) => problem = problem_of(error),
            }
        }
        Err(SpecError::Value { key: path, value: value.to_owned(), problem })
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

    /// Builds the device; the same seed gives the same device.
    ///
    /// # Errors
    ///
    /// If a value is impossible.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Device>, SpecError> {
        self.validate()?;
        self.device.build(seed)
    }

    /// What the device can reach at best.
    pub fn peak(&self) -> Peak {
        self.device.peak()
    }

    /// What the block layer in front of it allows.
    pub fn host(&self) -> &HostLimits {
        &self.host
    }

    /// The size of the device.
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
                let names = keys.iter().filter_map(|path| path.rsplit('.').next());
                let nearest = nearest(last, names);
                Err(SpecError::UnknownKey { key: key.to_owned(), nearest })
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
        let known = fields_of::<Self>();
        if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
            let nearest = nearest(key, known.iter().copied());
            return Err(SpecError::UnknownKey { key: key.clone(), nearest });
        }
        let device = match table.remove("device") {
            Some(Value::Table(device)) => DeviceSpec::from_table(device, "device")?,
            _ => return Err(missing("device")),
        };
        let host = match table.remove("host") {
            Some(Value::Table(host)) => HostLimits::from_table(host)?,
            Some(_) => return Err(missing("host")),
            None => HostLimits::default(),
        };
        let head: Head = Value::Table(table).try_into().map_err(|error: toml::de::Error| {
            SpecError::Syntax { message: error.to_string().trim().replace('\n', " ") }
        })?;
        let Head { name, summary, sources } = head;
        Ok(Self { name, summary, sources, host, device })
    }
}

/// What stands in no table.
#[derive(Deserialize)]
struct Head {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    sources: Vec<String>,
}

fn missing(table: &str) -> SpecError {
    SpecError::Table { table: table.to_owned(), problem: "is missing, or no table".to_owned() }
}

fn problem_of(error: SpecError) -> String {
    match error {
        SpecError::Table { problem, .. } => problem,
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
/// What is wrong with a text, in one line, after the place where it is.
fn placed(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', ", ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return message };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&char| char != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}
