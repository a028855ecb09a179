//! Where a read-ahead came from.
//!
//! The kernel does not record who wrote a value. So this compares: with foreread's own journal,
//! with what every owner asks for this device, with what the kernel would have chosen itself, and
//! with what is known to leave values behind. `Certain` is only what a journal says; `High` is a
//! value that exactly one source gives for exactly this device; where sources agree or a rule's
//! condition cannot be looked up, it is less; and where nothing fits, it is unknown.

mod kernel;
mod left;
mod owner;

use host::owners::{Claim, FileLocation, OwnerKind, Target};
use host::{KernelDefault, KernelRule, Layer, LayerKind, Subject};
use serde::Serialize;
use units::Kib;

use crate::{Evidence, HostSnapshot};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    None,
    Low,
    /// It fits, and so does something else; or a condition could not be looked up.
    Medium,
    /// It fits exactly, and nothing else does.
    High,
    Certain,
}

impl Confidence {
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Certain => "certain",
        }
    }
}

/// What a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    Kernel(KernelRule),
    /// The kernel's choice under limits that the device does not have any more, or by a rule
    /// brought from a later kernel.
    KernelEarlier(KernelRule),
    Owner(OwnerKind),
    Foreread,
    /// What is below: LVM and bcache take the largest read-ahead of their members.
    Inherited,
    /// A program that mounts (efs-utils, gcsfuse and their like).
    MountHelper,
    /// A previous user of the device; loop devices keep read-ahead when they are detached.
    LeftOver,
    Unknown,
}

impl OriginKind {
    /// The word for it in policies and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel(_) => "kernel",
            Self::KernelEarlier(_) => "kernel-earlier",
            Self::Owner(owner) => owner.word(),
            Self::Foreread => "foreread",
            Self::Inherited => "inherited",
            Self::MountHelper => "mount-helper",
            Self::LeftOver => "left-over",
            Self::Unknown => "unknown",
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

/// Where a value came from, how sure that is and what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    pub kind: OriginKind,
    pub confidence: Confidence,
    /// The same for people, in half a sentence.
    pub summary: String,
    pub evidence: Vec<Evidence>,
}

/// A value whose origin is asked for, with all that may have set it.
pub(crate) struct Case<'a> {
    pub snapshot: &'a HostSnapshot,
    pub subject: &'a Subject,
    pub layer: &'a Layer,
    pub present: Kib,
    pub claims: &'a [Claim],
    pub default: Option<KernelDefault>,
}

impl Case<'_> {
    /// Whether the kernel would have chosen the present value.
    fn is_default(&self) -> bool {
        self.default.as_ref().is_some_and(|default| default.read_ahead == self.present)
    }

    /// Where the value can be seen.
    fn value(&self) -> Evidence {
        let file = self.layer.bdi.as_ref().map(|bdi| bdi.dir().join("read_ahead_kb"));
        let fact = format!("read-ahead is {}", self.present);
        match file {
            Some(file) => Evidence::in_file(fact, file),
            None => Evidence::of(fact),
        }
    }
}

/// What owners ask for the layer's bdi.
pub fn claims_on(snapshot: &HostSnapshot, subject: &Subject, layer: &Layer) -> Vec<Claim> {
    // A layer of another subject's stack is asked about with what stands on it itself.
    let own = layer.bdi.as_ref().and_then(|bdi| snapshot.subject(bdi)).unwrap_or(subject);
    Target::of(own, layer)
        .map(|target| snapshot.owners.claims(&snapshot.root, &target))
        .unwrap_or_default()
}

/// Where the read-ahead of `layer`, which has a bdi of its own, came from.
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

/// The origin of a bdi that nothing here explains.
pub fn unseen(snapshot: &HostSnapshot, subject: &Subject) -> Origin {
    let file = FileLocation::new(subject.bdi.dir().join("read_ahead_kb"), 0);
    let mut evidence = vec![Evidence::at(format!("read-ahead is {}", subject.read_ahead), file)];
    let name = subject.bdi.as_str();
    evidence.push(Evidence::of(
        "no mount and no block device that can be seen from here belongs to it: another \
         container's, or one unmounted while in use",
    ));
    let counted = name.split_once('-').map_or("", |(fstype, _)| fstype);
    let fs = Layer {
        kind: LayerKind::Filesystem {
            fstype: counted.to_owned(),
            source: String::new(),
            points: Vec::new(),
            options: String::new(),
        },
        name: String::new(),
        device: None,
        bdi: Some(subject.bdi.clone()),
        read_ahead: Some(subject.read_ahead),
        queue: None,
        size: None,
        below: Vec::new(),
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
    unknown("its mount cannot be seen from here", evidence)
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
