//! A setting on a device below the effective layer.

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
    // An owner or foreread has set the effective layer as well.
    let owned = matches!(diagnosis.origin.kind, OriginKind::Owner(_) | OriginKind::Foreread);
    let seen_to = owned && diagnosis.origin.confidence > Confidence::Low
        || last_word(&diagnosis.claims).is_some();
    if seen_to || subject.filesystems().next().is_none() {
        return None;
    }
    let below = subject.stacks.iter().flat_map(|stack| members(stack, subject));
    // A smaller value on a member does not limit an array: the array uses its stripes, and members
    // have the default of 128 KiB. A file system with a bdi of its own, such as btrfs, ignores the
    // value of its disks, larger or smaller.
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

/// Returns the layers below the effective one that have a bdi. Excludes the file system that holds
/// the backing file of a loop device, which is separate storage.
fn members<'a>(stack: &'a Layer, subject: &host::Subject) -> Vec<&'a Layer> {
    let Some(owner) = stack.with_bdi(&subject.bdi) else { return Vec::new() };
    if matches!(owner.kind, LayerKind::Loop { .. }) {
        return Vec::new();
    }
    let all = owner.below.iter().flat_map(Layer::walk);
    all.filter(|layer| layer.bdi.is_some() && layer.fstype().is_none()).collect()
}

/// Returns the layer, its value and evidence if its read-ahead was set deliberately.
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
            // A rule without a value for this layer does not count as a setting.
            let aimed = claims.iter().any(|claim| claim.wanted.kib().is_some());
            aimed.then_some((layer, value, evidence))
        }
        // No file sets it and the kernel did not choose it, so it was set manually.
        OriginKind::Unknown => Some((layer, value, evidence)),
        _ => None,
    }
}
