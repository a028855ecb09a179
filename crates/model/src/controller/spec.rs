//! What is known about a controller.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::drive::size_text;
use crate::spec::{DeviceSpec, Peak, SpecError, check, check_size};

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
    /// What is behind it.
    #[serde(skip, default = "default::behind")]
    pub behind: Box<DeviceSpec>,
}

mod default {
    use units::Bytes;

    use crate::spec::DeviceSpec;
    use crate::zero::ZeroSpec;

    pub(super) fn line() -> Bytes {
        Bytes::from_kib(64)
    }
    pub(super) fn streams() -> usize {
        32
    }
    pub(super) fn prefetch_open() -> usize {
        8
    }
    pub(super) fn behind() -> Box<DeviceSpec> {
        Box::new(DeviceSpec::Zero(ZeroSpec { capacity: Bytes::from_gib(1) }))
    }
}

impl ControllerSpec {
    /// Says which value, if any, no controller can have.
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
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

    pub(crate) fn peak(&self) -> Peak {
        let behind = self.behind.peak();
        let link = if self.link_mb_s > 0.0 { self.link_mb_s * 1e6 } else { f64::INFINITY };
        let commands = 1e3 / self.overhead_ms.max(1e-6);
        // What is in the cache is had without the device behind.
        let cached = if self.prefetch.is_zero() { 0.0 } else { behind.throughput.get() / 4096.0 };
        Peak::new(behind.throughput.get().min(link), commands.min(behind.requests.max(cached)))
    }

    /// Through the link, and from the device behind.
    pub(crate) fn least_time(&self, bytes: Bytes) -> Nanos {
        let link = if self.link_mb_s > 0.0 { self.link_mb_s * 1e6 } else { f64::INFINITY };
        let passing = Nanos::from_secs_f64(bytes.get() as f64 / link);
        self.behind.least_time(bytes).max(passing)
    }
}
