//! Values that were not set for this device: inherited, left over, or unexplained.

use host::{LayerKind, is_fuse, option_number};
use units::{Bytes, Kib};

use super::{Case, Confidence, Origin, OriginKind, unknown};
use crate::Evidence;

/// Returns a lower layer as origin: LVM and bcache use the largest read-ahead below if it exceeds
/// the kernel's choice. (LVM's `auto`: lib/activate/dev_manager.c; drivers/md/bcache/super.c.)
pub(super) fn inherited(case: &Case<'_>) -> Option<Origin> {
    let who = match &case.layer.kind {
        LayerKind::Dm { target: "lvm", .. } => "LVM",
        LayerKind::Bcache => "bcache",
        _ => return None,
    };
    let mut owners = case.layer.below.iter().flat_map(|below| {
        // A partition has the bdi of its disk.
        below.walk().into_iter().find(|layer| layer.bdi.is_some())
    });
    let giver = owners.find(|layer| layer.read_ahead == Some(case.present))?;
    let auto = host::owners::Target::new(case.subject, case.layer)
        .and_then(|target| case.snapshot.owners.lvm_is_auto(&target));
    let confidence = match auto {
        Some(true) => Confidence::High,
        _ => Confidence::Medium,
    };
    let mut evidence = vec![case.value()];
    if let Some(bdi) = &giver.bdi {
        let fact = format!("{} below it has the same", giver.name);
        evidence.push(Evidence::in_file(fact, bdi.dir().join("read_ahead_kb")));
    }
    if auto == Some(true) {
        evidence.push(Evidence::in_file("no read_ahead of its own, so auto", "/etc/lvm/backup"));
    }
    let summary = format!("{who}, from {} below it when it was activated", giver.name);
    Some(Origin { kind: OriginKind::Inherited, confidence, summary, evidence })
}

/// Returns a mount helper as origin, by the file system's type, options and value.
pub(super) fn mount_helper(case: &Case<'_>) -> Option<Origin> {
    let LayerKind::Filesystem { fstype, options, source, .. } = &case.layer.kind else {
        return None;
    };
    let origin = |confidence, summary: String, fact: String| Origin {
        kind: OriginKind::MountHelper,
        confidence,
        summary,
        evidence: vec![case.value(), Evidence::in_file(fact, "/proc/self/mountinfo")],
    };
    if matches!(fstype.as_str(), "nfs" | "nfs4") {
        let rsize = option_number(options, "rsize")?;
        let kib = Bytes::new(rsize.checked_mul(15)?).to_kib_floor();
        let fact = format!("rsize={rsize}: 15 times that is the default before Linux 5.4");
        let who = if source.contains(".efs.") { "efs-utils" } else { "a mount helper" };
        let summary = format!("perhaps {who}: 15 × rsize, as before Linux 5.4");
        return (kib == case.present).then(|| origin(Confidence::Low, summary, fact));
    }
    if !is_fuse(fstype) {
        return None;
    }
    let fact = format!("mounted as {fstype}");
    if case.present < Kib::new(128) {
        let summary = "its server, which asked FUSE for less than 128 KiB".to_owned();
        return Some(origin(Confidence::Medium, summary, fact));
    }
    let known = ["gcsfuse", "juicefs", "s3fs", "goofys", "blobfuse", "blobfuse2"];
    let helper = known.iter().find(|name| fstype.ends_with(*name) || source.contains(*name))?;
    let summary = format!("perhaps {helper}, which sets its own read-ahead");
    Some(origin(Confidence::Low, summary, fact))
}

/// Returns the previous user as origin: a loop device keeps its value when it is detached.
pub(super) fn left_over(case: &Case<'_>) -> Option<Origin> {
    let LayerKind::Loop { file } = &case.layer.kind else { return None };
    let mut evidence = vec![case.value()];
    evidence.push(Evidence::new("a loop device keeps its read-ahead when it is detached"));
    if let Some(default) = &case.default {
        let fact = format!("the kernel would choose {} ({})", default.read_ahead, default.reason);
        evidence.push(Evidence::new(fact));
    }
    let (confidence, summary) = match file {
        None => (Confidence::Medium, "the previous user of this loop device"),
        Some(_) => (Confidence::Low, "the previous user of this loop device, or a manual change"),
    };
    let summary = summary.to_owned();
    Some(Origin { kind: OriginKind::LeftOver, confidence, summary, evidence })
}

pub(super) fn unexplained(case: &Case<'_>) -> Origin {
    let mut evidence = vec![case.value()];
    let mut summary = "unknown: no known source sets this value".to_owned();
    if let Some(default) = &case.default {
        summary = format!("unknown: not the kernel's choice, which is {}", default.read_ahead);
        let fact = format!("the kernel's own choice is {}: {}", default.read_ahead, default.reason);
        evidence.push(Evidence::new(fact));
    }
    evidence.push(Evidence::new("no udev rule, TuneD profile, unit or other file sets it"));
    unknown(&summary, evidence)
}
