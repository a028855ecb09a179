//! A setting on a device below the effective one.

use host::{Layer, LayerKind};
use units::Kib;

use super::Detector;
use crate::claims::last_word;
use crate::finding::{Basis, Finding, Proposal, Remedy, Severity};
use crate::origin::claims_on;
use crate::{Confidence, Diagnosis, Evidence, HostSnapshot, OriginKind};

pub(super) const DETECTOR: Detector = Detector { id: "wrong-layer", look };

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let subject = &diagnosis.subject;
    let top = diagnosis.read_ahead();
    // The effective layer was set, too.
    let owned = matches!(diagnosis.origin.kind, OriginKind::Owner(_) | OriginKind::Foreread);
    let seen_to = owned && diagnosis.origin.confidence > Confidence::Low
        || last_word(&diagnosis.claims).is_some();
    if seen_to || subject.filesystems().next().is_none() {
        return None;
    }
    let below = subject.stacks.iter().flat_map(|stack| members(stack, subject));
    // A smaller value below does not limit an array: it uses its stripes, and members have the
    // default of 128 KiB. A file system with a bdi of its own, such as btrfs, uses nothing from
    // its disks, whatever was intended there.
    let own = subject.owner().is_some_and(|owner| owner.fstype().is_some());
    let (layer, value, evidence) = below
        .filter(|layer| layer.read_ahead.is_some_and(|value| value > top || own && value < top))
        .filter_map(|layer| set_here(snapshot, diagnosis, layer))
        .max_by_key(|(_, value, _)| *value)?;
    let owner = subject.owner()?;
    let what = match &owner.kind {
        LayerKind::Filesystem { fstype, .. } => format!("{fstype}'s own bdi"),
        _ => owner.name.clone(),
    };
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Warning,
        title: format!("{} was set on {}, but {what} is effective, with {top}", value, layer.name),
        why: "files take read-ahead from the top of the stack when they are opened; what lies \
              below does not pass its own on"
            .to_owned(),
        evidence,
        remedy: Remedy::Set(Proposal::new(
            value,
            Basis::Layer,
            format!("the value that was set on {}, which is not effective here", layer.name),
        )),
        fixes: Vec::new(),
    })
}

/// The layers below the effective one that have a bdi of their own. The file system under a loop
/// device's file is separate.
fn members<'a>(stack: &'a Layer, subject: &host::Subject) -> Vec<&'a Layer> {
    let Some(owner) = stack.with_bdi(&subject.bdi) else { return Vec::new() };
    if matches!(owner.kind, LayerKind::Loop { .. }) {
        return Vec::new();
    }
    let all = owner.below.iter().flat_map(Layer::walk);
    all.filter(|layer| layer.bdi.is_some() && layer.fstype().is_none()).collect()
}

/// Whether this layer's read-ahead was set, and to what.
fn set_here<'a>(
    snapshot: &HostSnapshot,
    diagnosis: &Diagnosis,
    layer: &'a Layer,
) -> Option<(&'a Layer, Kib, Vec<Evidence>)> {
    let bdi = layer.bdi.as_ref()?;
    let value = layer.read_ahead?;
    let origin = diagnosis.origins.get(bdi)?;
    let mut evidence = origin.evidence.clone();
    evidence.push(Evidence::in_file(
        format!("the effective layer has {}", diagnosis.read_ahead()),
        diagnosis.subject.bdi.dir().join("read_ahead_kb"),
    ));
    match origin.kind {
        OriginKind::Owner(_) | OriginKind::Foreread => {
            let claims = claims_on(snapshot, &diagnosis.subject, layer);
            // A rule for all disks is not specific to this one.
            let aimed = claims.iter().any(|claim| claim.wanted.kib().is_some());
            aimed.then_some((layer, value, evidence))
        }
        // Neither the kernel nor a file set it, so it was set manually.
        OriginKind::Unknown => Some((layer, value, evidence)),
        _ => None,
    }
}
