//! Memory: what was reclaimed, what had to be read again, and how hard it is pressed.

use std::collections::BTreeMap;
use std::ops::Sub;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::{HostError, Root};

/// The counters of `/proc/vmstat` that betray a disturbed trial; or the difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmStat {
    /// Times that somebody wrote 1 or 3 to `drop_caches`.
    pub drop_pagecache: u64,
    /// Times that somebody wrote 2 or 3 to `drop_caches`.
    pub drop_slab: u64,
    /// Pages looked at by the background reclaimer.
    pub pgscan_kswapd: u64,
    /// Pages looked at by processes that had to reclaim for themselves.
    pub pgscan_direct: u64,
    /// Pages reclaimed by the background reclaimer.
    pub pgsteal_kswapd: u64,
    /// Pages reclaimed by processes that had to do it for themselves.
    pub pgsteal_direct: u64,
    /// Pages of files that were evicted and soon read again.
    pub workingset_refault_file: u64,
    /// Page faults that had to read.
    pub pgmajfault: u64,
    /// Processes killed for want of memory.
    pub oom_kill: u64,
}

impl VmStat {
    /// Reads `/proc/vmstat`; a counter that this kernel lacks is zero.
    pub fn read(_root: &Root) -> Result<Self, HostError> {
        todo!()
    }

    /// Reads the text of `/proc/vmstat`.
    pub fn parse(_text: &str) -> Self {
        todo!()
    }
}

impl Sub for VmStat {
    type Output = Self;

    fn sub(self, _earlier: Self) -> Self {
        todo!()
    }
}

/// One line of `/proc/pressure/memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureLine {
    /// Percent of the last ten seconds in which work was stalled.
    pub avg10: f64,
    /// Percent of the last minute.
    pub avg60: f64,
    /// All the time stalled since boot.
    pub total: Nanos,
}

/// Pressure on memory (PSI).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// At least one task was stalled.
    pub some: PressureLine,
    /// All tasks were stalled at once.
    pub full: PressureLine,
}

impl Pressure {
    /// Reads `/proc/pressure/memory`; `None` where the kernel has no PSI or has it off.
    pub fn memory(_root: &Root) -> Result<Option<Self>, HostError> {
        todo!()
    }

    /// Reads the text of a pressure file.
    pub fn parse(_text: &str) -> Option<Self> {
        todo!()
    }
}

/// The lines of `/proc/meminfo` that are in kB.
pub fn parse_meminfo(_text: &str) -> BTreeMap<String, Bytes> {
    todo!()
}
