//! The origin of a read-ahead value.
//!
//! The kernel does not record which process wrote a value. The value is therefore compared with
//! foreread's journal, each owner's claims on the device, the kernel's choice, and known leftovers.
//! Confidence is `Certain` only from a journal, `High` if exactly one source sets this value for
//! this device, and lower if several sources set it or a condition is unknown.

mod kernel;
mod left;
mod owner;

use host::owners::{Claim, FileLocation, OwnerKind, Target};
use host::{KernelDefault, KernelRule, Layer, LayerKind, Subject};
use serde::Serialize;
use strum::IntoStaticStr;
use units::Kib;

use crate::{Evidence, HostSnapshot};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, Serialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Confidence {
    None,
    Low,
    /// The source matches, but another source matches too, or a condition is unknown.
    Medium,
    /// The source is the only match.
    High,
    Certain,
}

impl Confidence {
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The kind of source that set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum OriginKind {
    Kernel(KernelRule),
    /// The kernel's choice under earlier limits of the device, or by a rule backported from a later
    /// kernel.
    KernelEarlier(KernelRule),
    Owner(OwnerKind),
    Foreread,
    /// The layer below; LVM and bcache use the largest read-ahead of their members.
    Inherited,
    /// A mount helper (efs-utils, gcsfuse and others).
    MountHelper,
    /// A previous user of the device; a loop device keeps read-ahead when it is detached.
    LeftOver,
    Unknown,
}

impl OriginKind {
    /// Returns the kind's name in policies and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Owner(owner) => owner.word(),
            kind => kind.into(),
        }
    }

    pub const WORDS: &[&str] = &[
        "kernel",
        "kernel-earlier",
        "lvm",
        "udev",
        "nfs-conf",
        "mount-option",
        "csi",
        "sysfs-conf",
        "tmpfiles",
        "systemd",
        "boot-script",
        "tuned",
        "foreread",
        "inherited",
        "mount-helper",
        "left-over",
        "unknown",
    ];
}

impl Serialize for OriginKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// The origin of a value, with confidence and evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    pub kind: OriginKind,
    pub confidence: Confidence,
    /// A phrase for display.
    pub summary: String,
    pub evidence: Vec<Evidence>,
}

/// A layer's value, with the claims and the kernel's default that may explain it.
pub(crate) struct Case<'a> {
    pub snapshot: &'a HostSnapshot,
    pub subject: &'a Subject,
    pub layer: &'a Layer,
    pub present: Kib,
    pub claims: &'a [Claim],
    pub default: Option<KernelDefault>,
}

impl Case<'_> {
    /// Returns whether the current value is the kernel's default.
    fn is_default(&self) -> bool {
        self.default.as_ref().is_some_and(|default| default.read_ahead == self.present)
    }

    /// Returns the current value as evidence, with its sysfs file.
    fn value(&self) -> Evidence {
        let file = self.layer.bdi.as_ref().map(|bdi| bdi.dir().join("read_ahead_kb"));
        let fact = format!("read-ahead is {}", self.present);
        match file {
            Some(file) => Evidence::in_file(fact, file),
            None => Evidence::new(fact),
        }
    }
}

/// Returns the claims of owners on the layer's bdi.
pub fn claims_on(snapshot: &HostSnapshot, subject: &Subject, layer: &Layer) -> Vec<Claim> {
    // A layer that is a subject itself has its own mounts.
    let own = layer.bdi.as_ref().and_then(|bdi| snapshot.subject(bdi)).unwrap_or(subject);
    Target::new(own, layer)
        .map(|target| snapshot.owners.claims(&snapshot.root, &target))
        .unwrap_or_default()
}

/// Determines the origin of the read-ahead of `layer`, which has a bdi.
pub fn origin(
    snapshot: &HostSnapshot,
    subject: &Subject,
    layer: &Layer,
    claims: &[Claim],
) -> Origin {
    let default = host::kernel_default(snapshot.kernel, snapshot.page, layer);
    let Some(present) = layer.read_ahead else {
        return unknown("its read-ahead cannot be read", Vec::new());
    };
    let case = Case { snapshot, subject, layer, present, claims, default };
    owner::of_journal(&case)
        .or_else(|| owner::of_claims(&case))
        .or_else(|| kernel::now(&case))
        .or_else(|| left::inherited(&case))
        .or_else(|| kernel::other(&case))
        .or_else(|| left::mount_helper(&case))
        .or_else(|| owner::of_doubtful_claims(&case))
        .or_else(|| left::left_over(&case))
        .unwrap_or_else(|| left::unexplained(&case))
}

/// Determines the origin for a bdi whose device or mount is not visible.
pub fn unseen(snapshot: &HostSnapshot, subject: &Subject) -> Origin {
    let file = FileLocation::new(subject.bdi.dir().join("read_ahead_kb"), 0);
    let mut evidence =
        vec![Evidence::in_line(format!("read-ahead is {}", subject.read_ahead), file)];
    let name = subject.bdi.as_str();
    evidence.push(Evidence::new(
        "no visible mount or block device belongs to it: it may be another container's, or one \
         unmounted while in use",
    ));
    let counted = name.split_once('-').map_or("", |(fstype, _)| fstype);
    let fs = Layer {
        kind: LayerKind::Filesystem {
            fstype: counted.to_owned(),
            source: String::new(),
            points: Vec::new(),
            options: String::new(),
        },
        bdi: Some(subject.bdi.clone()),
        read_ahead: Some(subject.read_ahead),
        ..Layer::default()
    };
    let default = host::kernel_default(snapshot.kernel, snapshot.page, &fs);
    if let Some(default) = default.filter(|default| default.read_ahead == subject.read_ahead) {
        return Origin {
            kind: OriginKind::Kernel(default.rule),
            confidence: Confidence::Medium,
            summary: default.reason,
            evidence,
        };
    }
    unknown("its mount is not visible from here", evidence)
}

fn unknown(why: &str, evidence: Vec<Evidence>) -> Origin {
    let (kind, confidence) = (OriginKind::Unknown, Confidence::None);
    Origin { kind, confidence, summary: why.to_owned(), evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_listed_once() {
        for owner in [
            OwnerKind::Lvm,
            OwnerKind::Udev,
            OwnerKind::NfsConf,
            OwnerKind::MountOption,
            OwnerKind::Csi,
            OwnerKind::SysfsConf,
            OwnerKind::Tmpfiles,
            OwnerKind::Systemd,
            OwnerKind::BootScript,
            OwnerKind::Tuned,
        ] {
            assert!(OriginKind::WORDS.contains(&OriginKind::Owner(owner).word()));
        }
        assert_eq!(OriginKind::WORDS.len(), 17);
    }
}
