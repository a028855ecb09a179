//! Reads the machine's state: the bdi of a path, block device counters, memory and pressure, and
//! the facts that a record stores.
//!
//! Everything takes a [`Root`], so it also works on a captured or generated tree of `/sys` and
//! `/proc`. Only the device number of a path needs a system call ([`PathProbe`]); everything else
//! is text from sysfs and procfs.

mod above;
mod block;
pub mod cgroup;
mod counters;
mod devno;
mod dirs;
mod error;
mod glob;
mod kernel_default;
mod machine;
mod memory;
mod mount;
pub mod owners;
mod probe;
mod processes;
mod resolve;
mod root;
mod storage;
mod topology;

pub use above::bdis_on;
pub use block::{DeviceFacts, device_facts, device_gone};
pub use counters::{BlockStat, ParseStatError, block_stat, block_stats};
pub use devno::{DevNo, ParseDevNoError};
pub use dirs::Dirs;
pub use error::HostError;
pub use glob::matches as glob_matches;
pub use kernel_default::{
    KernelDefault, KernelRule, is_fuse, kernel_default, option_number, other_defaults,
};
pub use machine::{KernelRelease, Machine, page_size_of};
pub use memory::{Pressure, PressureLine, VmStat, idle_reclaim, parse_meminfo};
pub use mount::{Mount, MountInfo, mount_source, parse_mountinfo};
pub use probe::{PathProbe, ProbeKind};
pub use processes::{
    MappedFile, ProcessInfo, ProcessMapping, dpkg_packages, installed_packages, large_mappings,
    parse_maps, processes,
};
pub use resolve::{resolve, resolve_probe};
pub use root::Root;
pub use storage::{BdiId, FilesystemSpace, LargeFolios, Storage, StorageKind};
pub use sys::page_size;
pub use topology::{Layer, LayerKind, QueueLimits, Subject, Survey};
