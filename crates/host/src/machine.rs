//! The machine's own facts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use units::{Bytes, PageSize};

use crate::{HostError, Root};

/// What a record keeps of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release, as `uname -r` says it.
    pub kernel: String,
    /// The processor's architecture, as `uname -m` says it.
    pub architecture: String,
    /// Processors that this process may run on.
    pub cpus: u32,
    /// The processor's name.
    pub cpu_model: Option<String>,
    /// All memory.
    pub memory: Bytes,
    /// Memory that could be had without swapping, when this was read.
    pub memory_available: Bytes,
    /// The size of a page.
    pub page_size: PageSize,
    /// Whether it runs under a hypervisor; `None` where that cannot be told.
    pub virtualised: Option<bool>,
    /// The machine's name.
    pub hostname: Option<String>,
    /// Changes with each boot.
    pub boot_id: Option<String>,
}

impl Machine {
    /// Reads the facts.
    pub fn read(_root: &Root) -> Result<Self, HostError> {
        todo!()
    }
}

/// The two numbers that start a kernel's release: `6.18` of `6.18.44-generic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelRelease {
    /// The first.
    pub major: u32,
    /// The second.
    pub minor: u32,
}

impl fmt::Display for KernelRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl FromStr for KernelRelease {
    type Err = String;

    fn from_str(_text: &str) -> Result<Self, String> {
        todo!()
    }
}
