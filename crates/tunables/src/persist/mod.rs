//! Settings that outlive a boot: files of udev, sysctl.d, nfs.conf, TuneD and systemd.
//!
//! Each file says that foreread manages it and carries a checksum of itself, so that an edit by
//! somebody else is noticed; and a record in the state directory says what it is for. A setting
//! has one owner: where another file of the machine sets it already, nothing is written unless
//! that was asked for.

mod emit;
mod lvm;
mod readers;
mod record;
mod render;
mod tuned;

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Classified, ErrorKind};

pub use crate::marks::{is_known_after_boot, lasting_name};
pub use emit::{ansible, cloud_init, freebsd, kubernetes};
pub use readers::obstacle;
pub use record::{Persisted, PersistedState, Removed, install, persisted, persisted_state, remove};
pub use render::{boot_check, drafts};
pub use tuned::parent as tuned_parent;

use crate::{Setting, TunableError, TunableValues};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PersistBackend {
    /// A rule of udev, matched by serial, WWN, UUID of array, volume or file system.
    Udev,
    /// A file in `/etc/sysctl.d`.
    Sysctl,
    /// `[nfsrahead]` in a file of `/etc/nfs.conf.d`.
    NfsConf,
    /// A child of TuneD's profile in force.
    Tuned,
    /// A unit of systemd, for what udev cannot do.
    Systemd,
    /// The metadata of a logical volume.
    Lvm,
}

impl fmt::Display for PersistBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Udev => "udev",
            Self::Sysctl => "sysctl.d",
            Self::NfsConf => "nfs.conf",
            Self::Tuned => "TuneD",
            Self::Systemd => "systemd",
            Self::Lvm => "LVM metadata",
        })
    }
}

/// Why a setting cannot be made to last, or a file not be removed.
#[derive(Debug, Error)]
pub enum PersistError {
    /// Another file of the machine sets it.
    #[error(
        "{setting} has an owner already: {owner} at {place}; change it there, or use --force-owner \
         to have two, of which the later wins"
    )]
    Owned { setting: String, owner: String, place: String },
    /// A file of ours was changed by somebody else.
    #[error(
        "{path} was edited by somebody else since foreread wrote it: it is left alone; move it \
         away, and call again", path = path.display()
    )]
    Edited { path: PathBuf },
    /// A file that is not ours stands in the place of ours.
    #[error("{path} is there and not of foreread: it is left alone", path = path.display())]
    Foreign { path: PathBuf },
    /// The device has nothing that it could be known by after a boot.
    #[error(
        "device {device} has no serial number, WWN or UUID to know it by after a boot: put a file \
         system on it, or use --with systemd with a mount point"
    )]
    NoIdentity { device: String },
    /// This owner cannot hold this setting.
    #[error("{backend} cannot set {setting}: choose another owner with --with")]
    Unfit { setting: String, backend: PersistBackend },
    /// TuneD has no profile in force.
    #[error("TuneD has no profile in force here (/etc/tuned/active_profile): use another owner")]
    NoTuned,
    /// A program that had to do it could not.
    #[error("`{command}` failed: {problem}")]
    Program { command: String, problem: String },
    #[error("{tunable} is a tunable of {system}: --emit freebsd prints the lines for it")]
    OtherSystem { tunable: &'static str, system: &'static str },
    /// A file could not be read or written.
    #[error("cannot {doing} {path}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// A record is not one that foreread writes.
    #[error("{path} is no record of foreread: {problem}", path = path.display())]
    Record { path: PathBuf, problem: String },
    #[error(transparent)]
    Tunable(#[from] TunableError),
}

impl Classified for PersistError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Owned { .. } | Self::Edited { .. } | Self::Foreign { .. } => ErrorKind::Refused,
            Self::Unfit { .. } => ErrorKind::Usage,
            Self::NoIdentity { .. } | Self::NoTuned | Self::OtherSystem { .. } => {
                ErrorKind::Unsupported
            }
            Self::Io { source, .. } => ErrorKind::from_io(source),
            Self::Record { .. } | Self::Program { .. } => ErrorKind::Failed,
            Self::Tunable(error) => error.kind(),
        }
    }
}

/// A file that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub backend: PersistBackend,
    pub path: PathBuf,
    /// The settings that are in it.
    pub settings: TunableValues,
    lines: Vec<String>,
    /// In the place of a file.
    volume: Option<lvm::LvmVolume>,
}

impl Draft {
    fn new(backend: PersistBackend, path: PathBuf) -> Self {
        Self { backend, path, settings: TunableValues::default(), lines: Vec::new(), volume: None }
    }

    /// The command that does it, where it is not a file.
    pub fn command(&self) -> Option<Vec<String>> {
        self.volume.as_ref().map(lvm::LvmVolume::command)
    }

    /// Adds lines, but no head of a section a second time.
    fn add(&mut self, setting: &Setting, lines: &[String]) {
        for line in lines {
            if !self.lines.contains(line) {
                self.lines.push(line.clone());
            }
        }
        self.settings = std::mem::take(&mut self.settings).with(setting.clone());
    }

    /// The whole text: what it is, its checksum, the lines; or the command that does it.
    pub fn text(&self) -> String {
        if let Some(command) = self.command() {
            return command.join(" ") + "\n";
        }
        let mut body = self.lines.join("\n");
        body.push('\n');
        let sum = record::checksum(&body);
        format!(
            "# managed by foreread; undo with: foreread rollback all\n# settings: {}\n# checksum: \
             {sum}\n{body}",
            self.settings
        )
    }
}
