//! What may go wrong when looking into the kernel.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use units::ErrorKind;

/// Why the kernel could not be looked into.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// This foreread was built without clang.
    #[error(
        "this foreread has no kernel probes, as it was built on a machine without clang: \
         install clang and build again"
    )]
    NotBuilt,
    #[error(
        "not permitted to load kernel probes: root would see every open file with the window \
         that it has (the capabilities CAP_BPF and CAP_PERFMON do; inside a container they may \
         be withheld from root, too)"
    )]
    NotPermitted { source: io::Error },
    /// The probes would name processes by other numbers than this process knows them by.
    #[error(
        "processes have numbers of their own here, as in a container, and kernel probes report \
         those of the host: run foreread with the processes of the host (docker run --pid=host, \
         or hostPID: true in Kubernetes)"
    )]
    OwnProcessIds,
    /// The kernel describes its types nowhere.
    #[error(
        "this kernel does not describe its types (/sys/kernel/btf/vmlinux is missing: \
         CONFIG_DEBUG_INFO_BTF), so no probe can be fitted to it"
    )]
    NoTypes,
    /// The kernel does not take a program.
    #[error("the kernel refuses the probe {program}: {problem}")]
    Refused {
        program: &'static str,
        /// What it, or the loader, says.
        problem: String,
    },
    /// The mechanism that the user names does not exist.
    #[error("FOREREAD_PROBES={value}: must be tp-btf, fentry or kprobe")]
    Mechanism { value: String },
    /// The probes tell something else than what was done to try them: nothing they tell is shown.
    #[error("the probes of read-ahead do not tell the truth on this kernel: {problem}")]
    Untrue {
        /// What was done, and what was told.
        problem: String,
    },
    /// The file that the probes are tried on cannot be made or read.
    #[error("cannot try the probes on a file in {dir}", dir = dir.display())]
    Trial { dir: PathBuf, source: io::Error },
    /// Reading from the kernel failed on the way.
    #[error("reading from the probe {program} failed")]
    Read { program: &'static str, source: io::Error },
}

impl units::Classified for ObserveError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotPermitted { .. } => ErrorKind::NotPermitted,
            Self::NotBuilt | Self::NoTypes | Self::OwnProcessIds | Self::Refused { .. } => {
                ErrorKind::Unsupported
            }
            Self::Trial { source, .. } | Self::Read { source, .. } => ErrorKind::from_io(source),
            Self::Mechanism { .. } => ErrorKind::Usage,
            Self::Untrue { .. } => ErrorKind::Failed,
        }
    }
}
