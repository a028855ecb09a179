//! The specification of a flash drive.

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::drive::size_text;
use super::error::{SpecError, check, check_size};
use super::peak::Peak;

/// A flash drive. Times are in microseconds, rates in decimal MB/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    #[serde(with = "size_text")]
    pub capacity: Bytes,
    /// Number of dies (or planes) that can read concurrently.
    pub dies: usize,
    /// The amount that a die reads or programs at once.
    #[serde(default = "default::page", with = "size_text")]
    pub page: Bytes,
    /// Time to read a page on its die.
    pub read_us: f64,
    /// Maximum relative deviation of `read_us` in both directions.
    #[serde(default = "default::read_spread")]
    pub read_spread: f64,
    /// Time to program a page on its die.
    #[serde(default = "default::program")]
    pub program_us: f64,
    /// Firmware time of a command; commands overlap.
    pub firmware_us: f64,
    /// Link time of a command without its data.
    #[serde(default = "default::command")]
    pub command_us: f64,
    /// Rate of the link to the host.
    pub link_mb_s: f64,
    /// Size of the write buffer.
    #[serde(default = "default::write_buffer", with = "size_text")]
    pub write_buffer: Bytes,
    /// Maximum number of commands in the drive: 32 for SATA, many for NVMe.
    #[serde(default = "default::queue_depth")]
    pub queue_depth: usize,
}

mod default {
    use units::Bytes;

    pub(super) fn page() -> Bytes {
        Bytes::from_kib(16)
    }
    pub(super) fn read_spread() -> f64 {
        0.1
    }
    pub(super) fn program() -> f64 {
        600.0
    }
    pub(super) fn command() -> f64 {
        1.0
    }
    pub(super) fn write_buffer() -> Bytes {
        Bytes::from_mib(64)
    }
    pub(super) fn queue_depth() -> usize {
        1024
    }
}

impl FlashSpec {
    /// Returns an error for a value that no flash drive can have.
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        check_size("capacity", self.capacity, 1 << 20, 1 << 60)?;
        check("dies", self.dies as f64, 1.0, 65536.0)?;
        check_size("page", self.page, 512, 1 << 20)?;
        check("read_us", self.read_us, 0.0, 1e6)?;
        check("read_spread", self.read_spread, 0.0, 1.0)?;
        check("program_us", self.program_us, 0.0, 1e6)?;
        check("firmware_us", self.firmware_us, 0.0, 1e6)?;
        check("command_us", self.command_us, 0.0, 1e6)?;
        check("link_mb_s", self.link_mb_s, 1e-3, 1e6)?;
        check_size("write_buffer", self.write_buffer, self.page.get(), 1 << 50)?;
        check("queue_depth", self.queue_depth as f64, 1.0, 65536.0)
    }

    pub(super) fn peak(&self) -> Peak {
        let dies = self.dies as f64 / (self.read_us * 1e-6).max(1e-9);
        let throughput = (self.link_mb_s * 1e6).min(dies * self.page.get() as f64);
        let commands = 1e6 / (self.command_us + 4096.0 / self.link_mb_s);
        Peak::new(throughput, dies.min(commands))
    }
}
