//! A setting on a device below the one that counts.

use host::{Layer, LayerKind};
use units::Kib;

use super::{Finding, Found, Mend, Severity, set_now};
use crate::origin::claims_on;
use crate::{Diagnosis, Evidence, OriginKind, Scene};

pub(super) struct WrongLayer;

impl Finding for WrongLayer {
    fn id(&self) -> &'static str {
        "wrong-layer"
    }

    fn summary(&self) -> &'static str {
        "Read-ahead was set on a device below, where it does not count for these files."
    }

    fn look(&self, scene: &Scene, diagnosis: &Diagnosis) -> Option<Found> {
        let subject = &diagnosis.subject;
        let top = diagnosis.read_ahead();
        // Somebody has seen to the layer that counts.
        let seen_to = matches!(diagnosis.origin.kind, OriginKind::Owner(_) | OriginKind::Foreread);
        if seen_to || subject.filesystems().next().is_none() {
            return None;
        }
        let below = subject.stacks.iter().flat_map(|stack| members(stack, subject));
        let (layer, value, evidence) = below
            .filter(|layer| layer.read_ahead != Some(top))
            .find_map(|layer| set_here(scene, diagnosis, layer))?;
        let owner = subject.owner()?;
        let what = match &owner.kind {
            LayerKind::Filesystem { fstype, .. } => format!("{fstype}'s own bdi"),
            _ => owner.name.clone(),
        };
        Some(Found {
            id: self.id(),
            severity: Severity::Warning,
            title: format!("{} was set on {}, but {what} counts, with {top}", value, layer.name),
            why: "files take read-ahead from the top of the stack when they are opened; what lies \
                  below does not pass its own on"
                .to_owned(),
            evidence,
            mend: vec![Mend::new(
                format!("set it where it counts, on {what}"),
                set_now(diagnosis, value),
            )],
        })
    }
}

/// The layers below the one that counts that have a bdi of their own. The file system under a
/// loop device's file is a world of its own.
fn members<'a>(stack: &'a Layer, subject: &host::Subject) -> Vec<&'a Layer> {
    let Some(owner) = stack.with_bdi(&subject.bdi) else { return Vec::new() };
    if matches!(owner.kind, LayerKind::Loop { .. }) {
        return Vec::new();
    }
    let all = owner.below.iter().flat_map(Layer::walk);
    all.filter(|layer| layer.bdi.is_some() && layer.fstype().is_none()).collect()
}

/// Whether somebody set this layer's read-ahead, and to what.
fn set_here<'a>(
    scene: &Scene,
    diagnosis: &Diagnosis,
    layer: &'a Layer,
) -> Option<(&'a Layer, Kib, Vec<Evidence>)> {
    let bdi = layer.bdi.as_ref()?;
    let value = layer.read_ahead?;
    let origin = diagnosis.origins.get(bdi)?;
    let mut evidence = origin.evidence.clone();
    evidence.push(Evidence::in_file(
        format!("the layer that counts has {}", diagnosis.read_ahead()),
        diagnosis.subject.bdi.dir().join("read_ahead_kb"),
    ));
    match origin.kind {
        OriginKind::Owner(_) | OriginKind::Foreread => {
            let claims = claims_on(scene, &diagnosis.subject, layer);
            // A rule for every disk of the machine is not about this one.
            let aimed = claims.iter().any(|claim| claim.wanted.kib().is_some());
            aimed.then_some((layer, value, evidence))
        }
        // The kernel did not choose it and no file asks for it: somebody typed it.
        OriginKind::Unknown => Some((layer, value, evidence)),
        _ => None,
    }
}
