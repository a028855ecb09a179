//! The tree of device specifications. Arrays and controllers are here too, because they contain
//! other devices.
//!
//! A new kind of device needs an entry in each of the lists here, and one in the module `build`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};
use toml::{Table, Value};
use units::text::SettingError;
use units::{Bytes, Nanos};

use super::drive::{DriveSpec, size_text};
use super::error::{SpecError, check, check_size};
use super::flash::FlashSpec;
use super::keys::{fields_of, unknown};
use super::peak::Peak;
use super::raid::{Level, ReadPolicy};
use super::toml_error;
use super::volume::VolumeSpec;
use super::zero::ZeroSpec;

/// A device specification, with the devices that it contains.
#[derive(Clone, Debug, PartialEq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum DeviceSpec {
    Hdd(DriveSpec),
    Flash(FlashSpec),
    Volume(VolumeSpec),
    /// An array of equal members, which the table `member` specifies.
    Array(ArraySpec),
    /// A controller in front of the device that the table `behind` specifies.
    Controller(ControllerSpec),
    /// A device with service time zero.
    Zero(ZeroSpec),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// The RAID level.
    pub level: Level,
    pub members: usize,
    /// Number of consecutive bytes on one member; ignored for `raid1`.
    #[serde(default = "default::chunk", with = "size_text")]
    pub chunk: Bytes,
    #[serde(default)]
    pub read_policy: ReadPolicy,
    #[serde(skip, default = "default::inner")]
    pub member: Box<DeviceSpec>,
}

/// A controller or server in front of another device. Times are in milliseconds, rates in decimal
/// MB/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Processing time of a command; commands are processed one after another.
    #[serde(default)]
    pub overhead_ms: f64,
    /// Latency of the completion: firmware, interrupt, driver.
    #[serde(default)]
    pub latency_ms: f64,
    /// Maximum random addition to `latency_ms`, uniform from zero. Without it, closed loops
    /// synchronise with the disks' rotation.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Rate of the link to the host; 0 means no limit.
    #[serde(default)]
    pub link_mb_s: f64,
    /// Size of the cache for read-ahead data.
    #[serde(default, with = "size_text")]
    pub cache: Bytes,
    /// Size of a cache line.
    #[serde(default = "default::line", with = "size_text")]
    pub cache_line: Bytes,
    /// Number of request runs that the controller tracks.
    #[serde(default = "default::streams")]
    pub streams: usize,
    /// Amount of read-ahead after a run of two or more requests; 0 disables it.
    #[serde(default, with = "size_text")]
    pub prefetch: Bytes,
    /// Maximum number of open host requests at which the controller reads ahead.
    #[serde(default = "default::prefetch_open")]
    pub prefetch_open: usize,
    /// Size of the non-volatile write cache; 0 means write-through.
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

impl DeviceSpec {
    /// Returns the name of the device's kind in TOML.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Returns the device inside this one and the name of its table; `None` if there is none.
    pub fn inner(&self) -> Option<(&'static str, &DeviceSpec)> {
        match self {
            Self::Array(array) => Some(("member", &array.member)),
            Self::Controller(controller) => Some(("behind", &controller.behind)),
            _ => None,
        }
    }

    /// Returns whether the data is on rotating platters.
    pub fn rotates(&self) -> bool {
        let is_inside = || self.inner().is_some_and(|(_, inner)| inner.rotates());
        matches!(self, Self::Hdd(_)) || is_inside()
    }

    /// Returns the keys of this kind of device, without the table of the inner device.
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

    /// Parses a device from the table at `path`.
    pub(super) fn from_table(mut table: Table, path: &str) -> Result<Self, SpecError> {
        let kind = match table.remove("kind") {
            Some(Value::String(kind)) => kind,
            _ => {
                let problem = format!("needs a kind, one of {}", Self::VARIANTS.join(", "));
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
                let problem = format!("use one of {}", Self::VARIANTS.join(", "));
                Err(SettingError::invalid(&format!("{path}.kind"), kind, problem).into())
            }
        }
    }

    fn read_inner(table: &mut Table, path: &str, name: &str) -> Result<Self, SpecError> {
        let path = format!("{path}.{name}");
        // The depth of a table is the number of dots in its path.
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

    /// Returns the table from which [`from_table`](Self::from_table) restores the device.
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

    /// Returns an error for a value that no device can have. A valid specification can be built.
    pub(super) fn validate(&self, path: &str) -> Result<(), SpecError> {
        // Inner devices first, because the constraints of an array depend on its members.
        if let Some((name, inner)) = self.inner() {
            inner.validate(&format!("{path}.{name}"))?;
        }
        let own = match self {
            Self::Hdd(spec) => spec.validate(),
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

    /// Returns upper bounds of the device's performance.
    pub(crate) fn peak(&self) -> Peak {
        match self {
            Self::Hdd(spec) => Peak::from_drive(spec),
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

/// Maximum depth of nested devices; real ones have three levels.
const DEPTH_MAX: usize = 8;

fn read<T: DeserializeOwned>(table: Table, path: &str) -> Result<T, SpecError> {
    unknown(&table, fields_of::<T>(), path)?;
    Value::Table(table)
        .try_into()
        .map_err(|error: toml::de::Error| toml_error::in_table(path, &error))
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
    /// Creates an array with a placeholder as its member.
    pub fn new(level: Level, members: usize, chunk: Bytes) -> Self {
        let read_policy = ReadPolicy::default();
        Self { level, members, chunk, read_policy, member: default::inner() }
    }

    /// Returns an error for a value that no array can have.
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

    /// Returns the number of consecutive bytes on one member of `member` bytes.
    pub(crate) fn chunk_bytes(&self, member: u64) -> u64 {
        if self.level == Level::Raid1 { member.max(1) } else { self.chunk.get() }
    }

    /// Returns the usable bytes of the array if each member has `member` bytes.
    pub(crate) fn usable_bytes(&self, member: u64) -> u64 {
        let data = self.level.row_members(self.members as u64).data;
        (member - member % self.chunk_bytes(member)).saturating_mul(data)
    }

    fn peak(&self) -> Peak {
        let member = self.member.peak();
        // Parity chunks hold no data: a stream uses all members but skips one or two parts of each
        // row.
        let data = match self.level {
            Level::Raid5 => self.members - 1,
            Level::Raid6 => self.members - 2,
            _ => self.members,
        };
        let throughput = member.throughput.get() * data as f64;
        Peak::new(throughput, member.requests * self.members as f64)
    }

    /// The busiest member reads at least its equal share. Reads that skip parity lose no time to
    /// it.
    fn least_time(&self, bytes: Bytes) -> Nanos {
        self.member.least_time(Bytes::new(bytes.get() / self.members.max(1) as u64))
    }
}

impl ControllerSpec {
    /// Returns an error for a value that no controller can have.
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
        // Cached data does not require the device behind.
        let cached = if self.prefetch.is_zero() { 0.0 } else { behind.throughput.get() / 4096.0 };
        Peak::new(behind.throughput.get().min(link), commands.min(behind.requests.max(cached)))
    }

    /// The slower of the link and the device behind.
    fn least_time(&self, bytes: Bytes) -> Nanos {
        let link = if self.link_mb_s > 0.0 { self.link_mb_s * 1e6 } else { f64::INFINITY };
        let passing = Nanos::from_secs_f64(bytes.get() as f64 / link);
        self.behind.least_time(bytes).max(passing)
    }
}
