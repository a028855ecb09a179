//! What may go wrong when looking into the kernel.

use std::io;

use thiserror::Error;

/// Why the kernel could not be looked into.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// This foreread was built without clang.
    #[error(
        "this foreread has no kernel probes, as it was built on a machine without clang: \
         install clang and build again"
    )]
    NotBuilt,
    /// The right is missing.
    #[error(
        "not permitted to load kernel probes: root would see every open file with the window \
         that it has (the capabilities CAP_BPF and CAP_PERFMON do; inside a container they may \
         be withheld from root, too)"
    )]
    NotPermitted {
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel describes its types nowhere.
    #[error(
        "this kernel does not describe its types (/sys/kernel/btf/vmlinux is missing: \
         CONFIG_DEBUG_INFO_BTF), so no probe can be fitted to it"
    )]
    NoTypes,
    /// The kernel does not take a program.
    #[error("the kernel refuses the probe {program}: {problem}")]
    Refused {
        /// The program's name.
        program: &'static str,
        /// What it, or the loader, says.
        problem: String,
    },
    /// Reading from the kernel failed on the way.
    #[error("reading from the probe {program} failed")]
    Read {
        /// The program's name.
        program: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}
