//! Settings that survive a reboot: files of udev, sysctl.d, nfs.conf, TuneD and systemd.
//!
//! Each file states that foreread manages it and contains a checksum, so that foreread detects
//! edits. A record in the state directory describes the file. A setting has one owner: if another
//! file of the machine already sets it, foreread writes nothing unless forced.

mod emit;
mod lvm;
mod readers;
mod record;
mod render;
mod tuned;

use std::fmt;
use std::io;
use std::path::PathBuf;

use host::{DevNo, Root};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Classified, ErrorKind};

pub use crate::marks::{is_known_after_boot, lasting_name};
pub use emit::{ansible, cloud_init, freebsd, kubernetes};
pub use readers::obstacle;
pub use record::{Persisted, PersistedState, install, persisted, persisted_state, remove};
pub use render::{boot_check, drafts};
pub use tuned::parent as tuned_parent;

use crate::{Setting, TunableError, TunableValues};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PersistBackend {
    /// A udev rule that matches by serial number, WWN, or UUID (array, volume, file system).
    Udev,
    /// A file in `/etc/sysctl.d`.
    Sysctl,
    /// `[nfsrahead]` in a file of `/etc/nfs.conf.d`.
    NfsConf,
    /// A child of TuneD's active profile.
    Tuned,
    /// A systemd unit, for settings that udev cannot make.
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

/// Why a setting cannot be persisted, or a file cannot be removed.
#[derive(Debug, Error)]
pub enum PersistError {
    /// Another file of the machine sets the tunable.
    #[error(
        "{setting} already has an owner: {owner} at {place}; change it there, or use \
         --force-owner to add a second owner (the later one wins)"
    )]
    Owned { setting: String, owner: String, place: String },
    /// A program or user has edited one of foreread's files.
    #[error(
        "{path} was edited since foreread wrote it, so it is not changed: move it away and \
         retry",
        path = path.display()
    )]
    Edited { path: PathBuf },
    /// A file with the name of foreread's exists, but foreread did not write it.
    #[error(
        "{path} exists and was not written by foreread, so it is not changed",
        path = path.display()
    )]
    Foreign { path: PathBuf },
    /// The device cannot be identified after a reboot.
    #[error(
        "device {device} has no serial number, WWN or UUID that identifies it after a boot: put a \
         file system on it, or use --with systemd with a mount point"
    )]
    NoIdentity { device: String },
    /// The device may have an identifier, but only udev's database would show it.
    #[error(
        "cannot identify device {device} after a boot: this host has no udev database \
         (/run/udev/data), which would show its serial number, WWN or UUID; start udev and retry, \
         or use --with systemd with a mount point"
    )]
    NoUdevDatabase { device: String },
    /// This owner cannot set the tunable.
    #[error("{backend} cannot set {setting}: choose another owner with --with")]
    Unfit { setting: String, backend: PersistBackend },
    /// TuneD has no active profile.
    #[error("TuneD has no active profile (/etc/tuned/active_profile): use another owner")]
    NoTuned,
    /// A required program failed.
    #[error("`{command}` failed: {problem}")]
    Program { command: String, problem: String },
    /// A file could not be read or written.
    #[error("cannot {doing} {path}", path = path.display()
    )]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// foreread did not write the record.
    #[error("{path} is not a record of foreread: {problem}", path = path.display()
    )]
    Record { path: PathBuf, problem: String },
    #[error(transparent)]
    Tunable(#[from] TunableError),
}

impl Classified for PersistError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Owned { .. } | Self::Edited { .. } | Self::Foreign { .. } => ErrorKind::Refused,
            Self::Unfit { .. } => ErrorKind::Usage,
            Self::NoIdentity { .. } | Self::NoUdevDatabase { .. } | Self::NoTuned => {
                ErrorKind::Unsupported
            }
            Self::Io { source, .. } => ErrorKind::from_io(source),
            Self::Record { .. } | Self::Program { .. } => ErrorKind::Failed,
            Self::Tunable(error) => error.kind(),
        }
    }
}

impl PersistError {
    fn unfit(setting: &Setting, backend: PersistBackend) -> Self {
        Self::Unfit { setting: setting.to_string(), backend }
    }

    /// Returns why a device cannot be identified after a reboot.
    fn without_identity(root: &Root, device: DevNo) -> Self {
        let device = device.to_string();
        if root.exists("/run/udev/data") {
            Self::NoIdentity { device }
        } else {
            Self::NoUdevDatabase { device }
        }
    }
}

/// A file to write, or LVM metadata to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub backend: PersistBackend,
    pub path: PathBuf,
    /// The settings that the file contains.
    pub settings: TunableValues,
    lines: Vec<String>,
    /// The logical volume to change instead of a file.
    volume: Option<lvm::LvmVolume>,
}

impl Draft {
    fn new(backend: PersistBackend, path: PathBuf) -> Self {
        Self { backend, path, settings: TunableValues::default(), lines: Vec::new(), volume: None }
    }

    /// Returns the command that persists the settings; `None` if a file does.
    pub fn command(&self) -> Option<Vec<String>> {
        self.volume.as_ref().map(lvm::LvmVolume::command)
    }

    /// Adds a setting and its lines, except lines that the draft already has (section headers).
    fn add(&mut self, setting: &Setting, lines: &[String]) {
        for line in lines {
            if !self.lines.contains(line) {
                self.lines.push(line.clone());
            }
        }
        self.settings = std::mem::take(&mut self.settings).with(setting.clone());
    }

    /// Returns the whole text: header, checksum and lines; or the command.
    pub fn text(&self) -> String {
        self.with_undo("undo with: foreread rollback all")
    }

    /// Returns the text for another machine, where foreread has no record of the file.
    pub fn emitted_text(&self) -> String {
        self.with_undo("to undo, remove this file")
    }

    fn with_undo(&self, undo: &str) -> String {
        if let Some(command) = self.command() {
            return command.join(" ") + "\n";
        }
        let mut body = self.lines.join("\n");
        body.push('\n');
        let sum = record::checksum(&body);
        format!(
            "# managed by foreread; {undo}\n# settings: {}\n# checksum: {sum}\n{body}",
            self.settings
        )
    }
}
