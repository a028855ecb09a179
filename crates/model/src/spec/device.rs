//! The tree of devices. Arrays and controllers are described here too, because they contain
//! another device.
//!
//! A new kind of device takes a line in each of the lists here, and one in the module `build`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use units::text::SettingError;
use units::{Bytes, Nanos};

use super::error::{SpecError, check, check_size};
use super::flash::FlashSpec;
use super::keys::{fields_of, unknown};
use super::peak::Peak;
use super::raid::{Level, ReadPolicy};
use super::told;
use super::volume::VolumeSpec;
use super::zero::ZeroSpec;
use crate::drive::{DriveSpec, size_text};

/// A device, and the devices that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceSpec {
    Hdd(DriveSpec),
    Flash(FlashSpec),
    Volume(VolumeSpec),
    /// An array of equal members, in the table `member`.
    Array(ArraySpec),
    /// A controller in front of another device, in the table `behind`.
    Controller(ControllerSpec),
    /// No time at all.
    Zero(ZeroSpec),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// How the members are put together.
    pub level: Level,
    pub members: usize,
    /// What one member holds before the next one follows; means nothing to `raid1`.
    #[serde(default = "default::chunk", with = "size_text")]
    pub chunk: Bytes,
    #[serde(default)]
    pub read_policy: ReadPolicy,
    #[serde(skip, default = "default::inner")]
    pub member: Box<DeviceSpec>,
}

/// A controller, or a server, in front of another device. Times are in milliseconds, rates in
/// decimal MB/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// What its processor does for each command, one after another.
    #[serde(default)]
    pub overhead_ms: f64,
    /// The way back to the host: firmware, interrupt, driver.
    #[serde(default)]
    pub latency_ms: f64,
    /// The greatest extra on the way back; each command draws its own, uniformly from nothing.
    /// Closed loops without it lock onto the rotation of the disks.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Rate of the link to the host; 0 is no limit.
    #[serde(default)]
    pub link_mb_s: f64,
    /// Memory for what is read ahead.
    #[serde(default, with = "size_text")]
    pub cache: Bytes,
    /// The unit of that memory.
    #[serde(default = "default::line", with = "size_text")]
    pub cache_line: Bytes,
    /// Runs of requests that it follows.
    #[serde(default = "default::streams")]
    pub streams: usize,
    /// How far it reads ahead of a run of two or more requests; 0 is not at all.
    #[serde(default, with = "size_text")]
    pub prefetch: Bytes,
    /// It reads ahead only while no more host requests than this are open.
    #[serde(default = "default::prefetch_open")]
    pub prefetch_open: usize,
    /// Memory, safe from loss of power, for writes; 0 writes through.
    #[serde(default, with = "size_text")]
    pub write_cache: Bytes,
    #[serde(skip, default = "default::inner")]
    pub behind: Box<DeviceSpec>,
}

mod default {
    use units::Bytes;

    use super::{DeviceSpec, ZeroSpec};

    pub(super) fn chunk() -> Bytes {
        Bytes::from_kib(64)
    }
    pub(super) fn line() -> Bytes {
        Bytes::from_kib(64)
    }
    pub(super) fn streams() -> usize {
        32
    }
    pub(super) fn prefetch_open() -> usize {
        8
    }
    pub(super) fn inner() -> Box<DeviceSpec> {
        Box::new(DeviceSpec::Zero(ZeroSpec { capacity: Bytes::from_gib(1) }))
    }
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
                Err(SettingError::invalid(&format!("{path}.kind"), kind, problem).into())
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
    pub(super) fn least_time(&self, bytes: Bytes) -> Nanos {
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

impl ArraySpec {
    /// An array of members that are still to be described.
    pub fn new(level: Level, members: usize, chunk: Bytes) -> Self {
        let read_policy = ReadPolicy::default();
        Self { level, members, chunk, read_policy, member: default::inner() }
    }

    /// Says which value, if any, no array can have.
    fn validate(&self) -> Result<(), SpecError> {
        let least = match self.level {
            Level::Raid0 => 1.0,
            Level::Raid1 | Level::Raid10 => 2.0,
            Level::Raid5 => 3.0,
            Level::Raid6 => 4.0,
        };
        check("members", self.members as f64, least, 256.0)?;
        if self.level == Level::Raid10 && self.members % 2 == 1 {
            let value = self.members.to_string();
            return Err(SpecError::impossible("members", value, "an even number"));
        }
        let member = self.member.capacity().get();
        check_size("chunk", self.chunk, 4096, member.min(1 << 30))
    }

    fn capacity(&self) -> Bytes {
        Bytes::new(self.usable_bytes(self.member.capacity().get()))
    }

    /// What one member of this many bytes holds before the next one follows.
    pub(crate) fn chunk_bytes(&self, member: u64) -> u64 {
        if self.level == Level::Raid1 { member.max(1) } else { self.chunk.get() }
    }

    /// The usable bytes of the array if each member has this many.
    pub(crate) fn usable_bytes(&self, member: u64) -> u64 {
        let data = self.level.row_members(self.members as u64).data;
        (member - member % self.chunk_bytes(member)).saturating_mul(data)
    }

    fn peak(&self) -> Peak {
        let member = self.member.peak();
        // A parity chunk is no data: all members turn, but one or two parts of a row are passed.
        let data = match self.level {
            Level::Raid5 => self.members - 1,
            Level::Raid6 => self.members - 2,
            _ => self.members,
        };
        let throughput = member.throughput.get() * data as f64;
        Peak::new(throughput, member.requests * self.members as f64)
    }

    /// The busiest member has at least its share. Parity takes no time from reads that do not run
    /// across it.
    fn least_time(&self, bytes: Bytes) -> Nanos {
        self.member.least_time(Bytes::new(bytes.get() / self.members.max(1) as u64))
    }
}

impl ControllerSpec {
    /// Says which value, if any, no controller can have.
    fn validate(&self) -> Result<(), SpecError> {
        check("overhead_ms", self.overhead_ms, 0.0, 1e4)?;
        check("latency_ms", self.latency_ms, 0.0, 1e4)?;
        check("jitter_ms", self.jitter_ms, 0.0, 1e4)?;
        check("link_mb_s", self.link_mb_s, 0.0, 1e6)?;
        check_size("cache_line", self.cache_line, 4096, 1 << 26)?;
        check("streams", self.streams as f64, 1.0, 4096.0)?;
        check_size("prefetch", self.prefetch, 0, 1 << 30)?;
        check("prefetch_open", self.prefetch_open as f64, 1.0, 65536.0)?;
        check_size("write_cache", self.write_cache, 0, 1 << 50)?;
        let needed = 2 * (self.prefetch.get() + self.cache_line.get());
        let least = if self.prefetch.is_zero() { 0 } else { needed };
        check_size("cache", self.cache, least, 1 << 43)
    }

    fn peak(&self) -> Peak {
        let behind = self.behind.peak();
        let link = if self.link_mb_s > 0.0 { self.link_mb_s * 1e6 } else { f64::INFINITY };
        let commands = 1e3 / self.overhead_ms.max(1e-6);
        // What is in the cache is had without the device behind.
        let cached = if self.prefetch.is_zero() { 0.0 } else { behind.throughput.get() / 4096.0 };
        Peak::new(behind.throughput.get().min(link), commands.min(behind.requests.max(cached)))
    }

    /// Through the link, and from the device behind.
    fn least_time(&self, bytes: Bytes) -> Nanos {
        let link = if self.link_mb_s > 0.0 { self.link_mb_s * 1e6 } else { f64::INFINITY };
        let passing = Nanos::from_secs_f64(bytes.get() as f64 / link);
        self.behind.least_time(bytes).max(passing)
    }
}
