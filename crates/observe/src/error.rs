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
        "this foreread has no kernel probes, because it was built without clang: install clang and \
         build it again"
    )]
    NotBuilt,
    #[error(
        "not permitted to load kernel probes: run as root, or with CAP_BPF and CAP_PERFMON (a \
         container may withhold these even from root)"
    )]
    NotPermitted { source: io::Error },
    /// The probes would name processes by other numbers than this process knows them by.
    #[error(
        "this PID namespace is not that of the host, as in a container, but kernel probes report \
         the host's PIDs: run foreread in the host's PID namespace (docker run --pid=host, or \
         hostPID: true in Kubernetes)"
    )]
    OwnProcessIds,
    /// The kernel describes its types nowhere.
    #[error(
        "this kernel has no BTF type information, which probes need (/sys/kernel/btf/vmlinux is \
         missing: CONFIG_DEBUG_INFO_BTF)"
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
    #[error("the probes of read-ahead report wrong events on this kernel: {problem}")]
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
