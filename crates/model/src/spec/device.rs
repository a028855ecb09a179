//! The tree of devices.
//!
//! Adding a kind of device takes a line in each of the lists here, and nothing elsewhere.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use units::{Bytes, Nanos};

use super::error::SpecError;
use super::keys::{fields_of, unknown};
use super::peak::Peak;
use super::told;
use crate::Device;
use crate::array::{Array, ArraySpec};
use crate::controller::{Controller, ControllerSpec};
use crate::drive::{Drive, DriveSpec};
use crate::flash::{Flash, FlashSpec};
use crate::jitter::part_seed;
use crate::volume::{Volume, VolumeSpec};
use crate::zero::{Zero, ZeroSpec};

/// A device, and the devices that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceSpec {
    /// A mechanical drive.
    Hdd(DriveSpec),
    /// A flash drive.
    Flash(FlashSpec),
    /// A volume behind a network.
    Volume(VolumeSpec),
    /// An array of equal members, in the table `member`.
    Array(ArraySpec),
    /// A controller in front of another device, in the table `behind`.
    Controller(ControllerSpec),
    /// No time at all.
    Zero(ZeroSpec),
}

/// What the kinds are called in TOML.
const KINDS: [&str; 6] = ["hdd", "flash", "volume", "array", "controller", "zero"];

impl DeviceSpec {
    /// What the kind is called in TOML.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Hdd(_) => "hdd",
            Self::Flash(_) => "flash",
            Self::Volume(_) => "volume",
            Self::Array(_) => "array",
            Self::Controller(_) => "controller",
            Self::Zero(_) => "zero",
        }
    }

    /// The device inside this one, and the table that it stands in.
    pub fn inner(&self) -> Option<(&'static str, &DeviceSpec)> {
        match self {
            Self::Array(array) => Some(("member", &array.member)),
            Self::Controller(controller) => Some(("behind", &controller.behind)),
            _ => None,
        }
    }

    /// The keys that a device of this kind has, without the table of the device inside.
    pub(super) fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::Hdd(_) => fields_of::<DriveSpec>(),
            Self::Flash(_) => fields_of::<FlashSpec>(),
            Self::Volume(_) => fields_of::<VolumeSpec>(),
            Self::Array(_) => fields_of::<ArraySpec>(),
            Self::Controller(_) => fields_of::<ControllerSpec>(),
            Self::Zero(_) => fields_of::<ZeroSpec>(),
        }
    }

    /// Reads a device from a table that stands at `path`.
    pub(super) fn from_table(mut table: Table, path: &str) -> Result<Self, SpecError> {
        let kind = match table.remove("kind") {
            Some(Value::String(kind)) => kind,
            _ => {
                let problem = format!("needs a kind, one of {}", KINDS.join(", "));
                return Err(SpecError::Table { table: path.to_owned(), problem });
            }
        };
        match kind.as_str() {
            "hdd" => read(table, path).map(Self::Hdd),
            "flash" => read(table, path).map(Self::Flash),
            "volume" => read(table, path).map(Self::Volume),
            "zero" => read(table, path).map(Self::Zero),
            "array" => {
                let member = Self::read_inner(&mut table, path, "member")?;
                let array: ArraySpec = read(table, path)?;
                Ok(Self::Array(ArraySpec { member: Box::new(member), ..array }))
            }
            "controller" => {
                let behind = Self::read_inner(&mut table, path, "behind")?;
                let controller: ControllerSpec = read(table, path)?;
                Ok(Self::Controller(ControllerSpec { behind: Box::new(behind), ..controller }))
            }
            _ => {
                let problem = format!("use one of {}", KINDS.join(", "));
                Err(SpecError::Value { key: format!("{path}.kind"), value: kind, problem })
            }
        }
    }

    fn read_inner(table: &mut Table, path: &str, name: &str) -> Result<Self, SpecError> {
        let path = format!("{path}.{name}");
        // The tables of one path are as deep as its dots.
        if path.matches('.').count() > DEPTH_MAX {
            let problem = format!("more than {DEPTH_MAX} devices inside one another");
            return Err(SpecError::Table { table: path, problem });
        }
        match table.remove(name) {
            Some(Value::Table(inner)) => Self::from_table(inner, &path),
            _ => {
                let problem = "is missing: describe the device inside here".to_owned();
                Err(SpecError::Table { table: path, problem })
            }
        }
    }

    /// The table that [`from_table`](Self::from_table) reads back as the same.
    pub(super) fn to_table(&self) -> Result<Table, SpecError> {
        let mut table = match self {
            Self::Hdd(spec) => write(spec),
            Self::Flash(spec) => write(spec),
            Self::Volume(spec) => write(spec),
            Self::Array(spec) => write(spec),
            Self::Controller(spec) => write(spec),
            Self::Zero(spec) => write(spec),
        }?;
        table.insert("kind".to_owned(), Value::String(self.kind().to_owned()));
        if let Some((name, inner)) = self.inner() {
            table.insert(name.to_owned(), Value::Table(inner.to_table()?));
        }
        Ok(table)
    }

    /// Says which value, if any, no device can have. What passes can be built.
    pub(super) fn validate(&self, path: &str) -> Result<(), SpecError> {
        // From the inside out: what an array may be depends on its members.
        if let Some((name, inner)) = self.inner() {
            inner.validate(&format!("{path}.{name}"))?;
        }
        let own = match self {
            Self::Hdd(spec) => spec.validate().map_err(SpecError::from),
            Self::Flash(spec) => spec.validate(),
            Self::Volume(spec) => spec.validate(),
            Self::Array(spec) => spec.validate(),
            Self::Controller(spec) => spec.validate(),
            Self::Zero(spec) => spec.validate(),
        };
        own.map_err(|error| error.within(path))
    }

    /// Builds a valid device.
    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Device>, SpecError> {
        Ok(match self {
            Self::Hdd(spec) => Box::new(Drive::new(spec, seed)?),
            Self::Flash(spec) => Box::new(Flash::new(spec, seed)),
            Self::Volume(spec) => Box::new(Volume::new(spec, seed)),
            Self::Zero(spec) => Box::new(Zero::new(spec)),
            Self::Array(spec) => {
                let member = |index| spec.member.build(part_seed(seed, index));
                let members = (0..spec.members as u64).map(member).collect::<Result<_, _>>()?;
                Box::new(Array::new(spec, members))
            }
            Self::Controller(spec) => {
                let behind = spec.behind.build(part_seed(seed, 0))?;
                Box::new(Controller::new(spec, behind, seed))
            }
        })
    }

    /// Usable size.
    pub fn capacity(&self) -> Bytes {
        match self {
            Self::Hdd(spec) => spec.capacity,
            Self::Flash(spec) => spec.capacity,
            Self::Volume(spec) => spec.capacity,
            Self::Zero(spec) => spec.capacity,
            Self::Array(spec) => spec.capacity(),
            Self::Controller(spec) => spec.behind.capacity(),
        }
    }

    /// What it can reach at best.
    pub(crate) fn peak(&self) -> Peak {
        match self {
            Self::Hdd(spec) => Peak::of_drive(spec),
            Self::Flash(spec) => spec.peak(),
            Self::Volume(spec) => spec.peak(),
            Self::Array(spec) => spec.peak(),
            Self::Controller(spec) => spec.peak(),
            Self::Zero(_) => Peak::new(f64::INFINITY, f64::INFINITY),
        }
    }

    /// See [`super::Spec::least_time`].
    pub(crate) fn least_time(&self, bytes: Bytes) -> Nanos {
        match self {
            Self::Volume(spec) => spec.least_time(bytes),
            Self::Array(spec) => spec.least_time(bytes),
            Self::Controller(spec) => spec.least_time(bytes),
            Self::Hdd(_) | Self::Flash(_) | Self::Zero(_) => self.peak().throughput.time_for(bytes),
        }
    }
}

/// Devices inside one another; real ones have three.
const DEPTH_MAX: usize = 8;

fn read<T: DeserializeOwned>(table: Table, path: &str) -> Result<T, SpecError> {
    unknown(&table, fields_of::<T>(), path)?;
    Value::Table(table).try_into().map_err(|error: toml::de::Error| told::broken(path, &error))
}

fn write(spec: &impl Serialize) -> Result<Table, SpecError> {
    Table::try_from(spec).map_err(|error| SpecError::Syntax { message: error.to_string() })
}

impl Serialize for DeviceSpec {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_table().map_err(serde::ser::Error::custom)?.serialize(to)
    }
}

impl<'de> Deserialize<'de> for DeviceSpec {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let table = Table::deserialize(from)?;
        Self::from_table(table, "device").map_err(serde::de::Error::custom)
    }
}
