//! Errors of observing the kernel.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use units::ErrorKind;

/// Why the kernel could not be observed.
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
    /// The probes would report other PIDs than those of this process's PID namespace.
    #[error(
        "this PID namespace is not that of the host, as in a container, but kernel probes report \
         the host's PIDs: run foreread in the host's PID namespace (docker run --pid=host, or \
         hostPID: true in Kubernetes)"
    )]
    OwnProcessIds,
    /// The kernel provides no description of its types.
    #[error(
        "this kernel has no BTF type information, which probes need (/sys/kernel/btf/vmlinux is \
         missing: CONFIG_DEBUG_INFO_BTF)"
    )]
    NoTypes,
    /// The kernel rejects a program.
    #[error("the kernel refuses the probe {program}: {problem}")]
    Refused {
        program: &'static str,
        /// The message of the kernel or of the loader.
        problem: String,
    },
    /// The mechanism that the user named does not exist.
    #[error("FOREREAD_PROBES={value}: must be tp-btf, fentry or kprobe")]
    Mechanism { value: String },
    /// The probes reported other events than their self-test caused, so no events are shown.
    #[error("the probes of read-ahead report wrong events on this kernel: {problem}")]
    SelfTestFailed {
        /// The action of the self-test, and the reported events.
        problem: String,
    },
    /// The file for the self-test cannot be created or read.
    #[error("cannot try the probes on a file in {dir}", dir = dir.display())]
    Trial { dir: PathBuf, source: io::Error },
    /// Reading from a probe failed.
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
            Self::SelfTestFailed { .. } => ErrorKind::Failed,
        }
    }
}
