//! Owners of read-ahead and other tunables on this machine: udev rules, TuneD, LVM, nfs.conf,
//! fstab, systemd units, tmpfiles, boot scripts. Each has a module here that reads its
//! configuration and returns its claims. The caller compares these with the current value.
//!
//! A claim is the value that a file requests. It is `Perhaps` if it depends on something unknown:
//! the result of a program, a shell variable, or a profile whose daemon is not running.

pub mod boot_script;
pub mod csi;
pub mod fstab;
pub mod lvm;
pub mod nfs_conf;
mod places;
mod setters;
pub mod shell;
pub mod sysctl;
pub mod sysfs_conf;
pub mod systemd;
pub mod tmpfiles;
pub mod tuned;
pub mod udev;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use strum::IntoStaticStr;
use units::{Kib, Sectors};

pub use setters::{Setter, setters};

use places::READ_AHEAD;

use crate::{BdiId, Layer, LayerKind, Root, Subject};

/// A kind of owner, in the order in which the owners act: later ones overwrite earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, Serialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum OwnerKind {
    /// LVM's metadata, applied when the volume is activated.
    Lvm,
    Udev,
    /// nfs.conf, which nfsrahead reads. A udev rule runs nfsrahead.
    NfsConf,
    /// A mount option, in fstab or on the mounted file system.
    MountOption,
    /// The Kubernetes storage driver that mounted the volume.
    Csi,
    SysfsConf,
    Tmpfiles,
    /// A systemd unit.
    Systemd,
    /// rc.local or a cron job that runs at boot.
    BootScript,
    /// TuneD, which starts late and acts again when devices appear.
    Tuned,
}

impl OwnerKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Lvm => "LVM metadata",
            Self::Udev => "udev rule",
            Self::NfsConf => "nfs.conf",
            Self::MountOption => "mount option",
            Self::Csi => "CSI driver",
            Self::SysfsConf => "sysfs.conf",
            Self::Tmpfiles => "tmpfiles.d",
            Self::Systemd => "systemd unit",
            Self::BootScript => "boot script",
            Self::Tuned => "TuneD profile",
        }
    }

    /// Returns the owner's name in policies and JSON.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    Exactly(Kib),
    /// A lower limit: larger values are kept.
    AtLeast(Kib),
    /// An upper limit: smaller values are kept.
    AtMost(Kib),
    Times(u32),
    /// The file does not contain the value.
    Unknown,
}

impl Wanted {
    /// Converts a number of 512-byte sectors, the unit of `blockdev` and LVM.
    pub fn sectors(count: u64) -> Self {
        match count.checked_mul(512) {
            Some(_) => Self::Exactly(Sectors::new(count).to_bytes().to_kib_floor()),
            None => Self::Unknown,
        }
    }

    pub fn kib(self) -> Option<Kib> {
        match self {
            Self::Exactly(kib) | Self::AtLeast(kib) | Self::AtMost(kib) => Some(kib),
            Self::Times(_) | Self::Unknown => None,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Exactly(kib) => kib.to_string(),
            Self::AtLeast(kib) => format!("at least {kib}"),
            Self::AtMost(kib) => format!("at most {kib}"),
            Self::Times(factor) => format!("{factor} times the previous value"),
            Self::Unknown => "a value that is not in the file".to_owned(),
        };
        f.pad(&text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileLocation {
    pub file: PathBuf,
    /// Line number, from 1; 0 for the whole file.
    pub line: usize,
}

impl FileLocation {
    pub fn new(file: impl Into<PathBuf>, line: usize) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.pad(&self.file.display().to_string()),
            line => f.pad(&format!("{}:{line}", self.file.display())),
        }
    }
}

/// How certain it is that a claim applies to the device in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The claim may apply: part of its condition is unknown.
    Perhaps,
    Sure,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    pub owner: OwnerKind,
    pub wanted: Wanted,
    pub place: FileLocation,
    /// The line itself. `comment` holds the comment around it, where administrators note units.
    pub text: String,
    pub comment: Option<String>,
    /// Whether the claim applies to this device and is active.
    pub certainty: Certainty,
    pub by_foreread: bool,
}

impl Claim {
    /// Returns whether this claim is nfsrahead's default without nfs.conf: the udev rule of
    /// nfs-utils, which requests no value of its own.
    pub fn is_nfsrahead_default(&self) -> bool {
        self.owner == OwnerKind::NfsConf && !self.place.file.starts_with("/etc")
    }
}

/// The subject of claims: a bdi with all the names that owners use for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub bdi: BdiId,
    /// The kernel's name for the block device: `sda`, `dm-0`.
    pub name: Option<String>,
    /// The device mapper's name and uuid.
    pub dm: Option<(String, String)>,
    /// The type of file system that owns the bdi.
    pub fstype: Option<String>,
    /// Mount points of the file system that owns the bdi, or of file systems on the device.
    pub points: Vec<PathBuf>,
}

impl Target {
    /// Describes the layer that owns a bdi, with the mount points above it; `None` without a bdi.
    pub fn new(subject: &Subject, owner: &Layer) -> Option<Self> {
        let bdi = owner.bdi.clone()?;
        let own = bdi == subject.bdi;
        let points = subject.filesystems().filter(|_| own).flat_map(|layer| match &layer.kind {
            LayerKind::Filesystem { points, .. } => points.clone(),
            _ => Vec::new(),
        });
        let dm = match &owner.kind {
            LayerKind::Dm { label: Some(label), uuid, .. } => {
                Some((label.clone(), uuid.clone().unwrap_or_default()))
            }
            _ => None,
        };
        let fstype = owner.fstype().map(str::to_owned);
        let name = fstype.is_none().then(|| owner.name.clone());
        Some(Self { bdi, name, dm, fstype, points: points.collect() })
    }
}

/// All owners of read-ahead on this machine, read once.
#[derive(Debug, Default)]
pub struct Owners {
    udev: udev::UdevRules,
    tuned: Option<tuned::Active>,
    lvm: lvm::Metadata,
    nfs_conf: nfs_conf::NfsConf,
    fstab: Vec<fstab::FstabEntry>,
    writes: Vec<shell::FoundWrite>,
    csi: csi::Volumes,
    /// Files that could not be read, each with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
}

impl Owners {
    pub fn read(root: &Root) -> Self {
        let writes = writes(root, READ_AHEAD);
        let mut owners = Self {
            udev: udev::UdevRules::read(root, READ_AHEAD),
            tuned: tuned::Active::read(root),
            lvm: lvm::Metadata::default(),
            nfs_conf: nfs_conf::NfsConf::read(root),
            fstab: fstab::read(root),
            writes,
            csi: csi::Volumes::read(root),
            unreadable: Vec::new(),
        };
        match lvm::Metadata::read(root) {
            Ok(lvm) => owners.lvm = lvm,
            Err((path, error)) => owners.unreadable.push((path, error)),
        }
        owners
    }

    /// Returns all claims on a target, in the order in which the owners act.
    pub fn claims(&self, root: &Root, target: &Target) -> Vec<Claim> {
        let sought = udev::Sought::read_ahead();
        let mut claims = self.udev.claims(root, target, &sought, &self.nfs_conf);
        claims.extend(self.lvm.claim(target));
        claims.extend(fstab::claims(&self.fstab, target));
        claims.extend(self.csi.claim(target));
        claims.extend(self.writes.iter().filter_map(|found| found.claim(target)));
        if let Some(tuned) = &self.tuned {
            claims.extend(tuned.claims(root, target));
        }
        claims.sort_by_key(|claim| claim.owner);
        claims
    }

    /// Returns whether a volume's read-ahead is automatic in LVM's metadata; `None` if unreadable.
    pub fn lvm_is_auto(&self, target: &Target) -> Option<bool> {
        self.lvm.is_auto(target)
    }

    pub fn tuned_profile(&self) -> Option<&tuned::Active> {
        self.tuned.as_ref()
    }
}

/// Reads all commands and lines that write to files with this name at boot.
fn writes(root: &Root, sought: &str) -> Vec<shell::FoundWrite> {
    let mut writes = sysfs_conf::read(root, sought);
    writes.extend(tmpfiles::read(root, sought));
    writes.extend(systemd::read(root, sought));
    writes.extend(boot_script::read(root, sought));
    writes
}

/// Returns whether foreread wrote a file, judged by its name and its first five lines.
pub(crate) fn is_foreread(file: &Path, text: &str) -> bool {
    let named = file.file_name().is_some_and(|name| name.to_string_lossy().contains("foreread"));
    named || text.lines().take(5).any(|line| line.contains("managed by foreread"))
}
