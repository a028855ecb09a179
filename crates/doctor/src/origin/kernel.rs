//! Values that the kernel chose.

use host::owners::Certainty;
use host::{KernelDefault, LayerKind, other_defaults};

use super::{Case, Confidence, Origin, OriginKind};
use crate::Evidence;

/// Returns the kernel as origin if the value is its choice under the current limits.
pub(super) fn now(case: &Case<'_>) -> Option<Origin> {
    let default = case.default.clone().filter(|_| case.is_default())?;
    // If an owner may request the same value, the origin is less certain.
    let also = case.claims.iter().find(|claim| super::owner::gives(case, claim));
    let confidence = if also.is_some() { Confidence::Medium } else { Confidence::High };
    let mut evidence = evidence(case, &default);
    if let Some(claim) = also {
        let what = match claim.certainty {
            Certainty::Perhaps => "may request the same",
            Certainty::Sure => "requests the same",
        };
        let fact = format!("{} {what}: {}", claim.owner.name(), claim.text);
        evidence.push(Evidence::in_line(fact, claim.place.clone()));
    }
    let summary = format!("the kernel: {}", default.reason);
    Some(Origin { kind: OriginKind::Kernel(default.rule), confidence, summary, evidence })
}

/// Returns the kernel as origin if the value follows from earlier limits or a later kernel's rule.
pub(super) fn other(case: &Case<'_>) -> Option<Origin> {
    let is_virtual = on_virtual_disk(case);
    let mut others = other_defaults(case.snapshot.kernel, case.snapshot.page, case.layer);
    if is_virtual {
        others.push(KernelDefault::floor("128 KiB, the initial value of block devices"));
    }
    let default = others.into_iter().find(|other| other.read_ahead == case.present)?;
    let mut evidence = evidence(case, &default);
    if is_virtual {
        evidence.push(Evidence::new(
            "it is a virtual disk of foreread, which sets max_sectors_kb and rotational as its \
             model has them, and keeps the read-ahead of a new loop device",
        ));
        return Some(Origin {
            kind: OriginKind::Kernel(default.rule),
            confidence: Confidence::High,
            summary: format!("the kernel, for a new loop device: {}", default.reason),
            evidence,
        });
    }
    Some(Origin {
        kind: OriginKind::KernelEarlier(default.rule),
        confidence: Confidence::Medium,
        summary: format!("the kernel, earlier: {}", default.reason),
        evidence,
    })
}

/// Returns whether the layer is the loop device of a virtual disk.
fn on_virtual_disk(case: &Case<'_>) -> bool {
    matches!(case.layer.kind, LayerKind::Loop { .. })
        && case.layer.below.iter().any(|below| below.fstype() == Some("fuse.foreread"))
}

fn evidence(case: &Case<'_>, default: &KernelDefault) -> Vec<Evidence> {
    let mut all = vec![case.value(), Evidence::new(default.reason.clone())];
    let Some(device) = case.layer.device.filter(|_| case.layer.queue.is_some()) else {
        return all;
    };
    for input in &default.inputs {
        let file = format!("/sys/dev/block/{device}/{input}");
        if let Ok(text) = case.snapshot.root.read(&file) {
            let name = input.rsplit('/').next().unwrap_or(input);
            all.push(Evidence::in_file(format!("{name} is {text}"), file));
        }
    }
    all
}
