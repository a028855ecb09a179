//! What is known about an array.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use super::geometry::Geometry;
use super::policy::ReadPolicy;
use crate::drive::size_text;
use crate::spec::{DeviceSpec, Peak, SpecError, check, check_size};

/// How members are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Stripes over all members.
    Raid0,
    /// All members hold the same.
    Raid1,
    /// Stripes over pairs that hold the same.
    Raid10,
    /// Stripes with one parity chunk in each row.
    Raid5,
    /// Stripes with two parity chunks in each row.
    Raid6,
}

/// An array of equal members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// How the members are put together.
    pub level: Level,
    /// How many there are.
    pub members: usize,
    /// What one member holds before the next one follows; means nothing to `raid1`.
    #[serde(default = "default::chunk", with = "size_text")]
    pub chunk: Bytes,
    /// Which copy is read.
    #[serde(default)]
    pub read_policy: ReadPolicy,
    /// What each member is.
    #[serde(skip, default = "default::member")]
    pub member: Box<DeviceSpec>,
}

mod default {
    use units::Bytes;

    use crate::spec::DeviceSpec;
    use crate::zero::ZeroSpec;

    pub(super) fn chunk() -> Bytes {
        Bytes::from_kib(64)
    }
    pub(super) fn member() -> Box<DeviceSpec> {
        Box::new(DeviceSpec::Zero(ZeroSpec { capacity: Bytes::from_gib(1) }))
    }
}

impl ArraySpec {
    /// An array of members that are still to be described.
    pub fn new(level: Level, members: usize, chunk: Bytes) -> Self {
        let read_policy = ReadPolicy::default();
        Self { level, members, chunk, read_policy, member: default::member() }
    }

    /// Says which value, if any, no array can have.
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
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

    pub(crate) fn capacity(&self) -> Bytes {
        Bytes::new(Geometry::new(self, self.member.capacity().get()).capacity)
    }

    pub(crate) fn peak(&self) -> Peak {
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
    pub(crate) fn least_time(&self, bytes: Bytes) -> Nanos {
        self.member.least_time(Bytes::new(bytes.get() / self.members.max(1) as u64))
    }
}
