//! Values that an owner set.

use host::owners::{Certainty, Claim, OwnerKind, Wanted};

use super::{Case, Confidence, Origin, OriginKind};
use crate::{Evidence, OwnChange};

pub(super) fn of_journal(case: &Case<'_>) -> Option<Origin> {
    let bdi = case.layer.bdi.as_ref()?;
    let fits =
        |change: &&OwnChange| change.values.contains(&case.present) || change.measured_by.is_some();
    let change = case.snapshot.own_changes_of(bdi).find(fits)?;
    if let Some(pid) = change.measured_by {
        return Some(Origin {
            kind: OriginKind::Foreread,
            confidence: Confidence::High,
            summary: format!("foreread, which is measuring here (process {pid})"),
            evidence: vec![
                case.value(),
                Evidence::in_file("it puts everything back when it ends", &change.journal),
            ],
        });
    }
    let before = change.original.map_or_else(String::new, |kib| format!(" (it was {kib} before)"));
    Some(Origin {
        kind: OriginKind::Foreread,
        confidence: Confidence::Certain,
        summary: format!("foreread, as its journal says{before}"),
        evidence: vec![
            case.value(),
            Evidence::in_file("foreread wrote this value and has not put it back", &change.journal),
        ],
    })
}

/// The last owner to act whose claim is the present value.
pub(super) fn of_claims(case: &Case<'_>) -> Option<Origin> {
    let sure = |claim: &&Claim| claim.certainty == Certainty::Sure && gives(case, claim);
    let claim = case.claims.iter().rev().find(sure)?;
    let others =
        case.claims.iter().filter(|other| other.owner != claim.owner && gives(case, other)).count();
    let confidence = if others == 0 { Confidence::High } else { Confidence::Medium };
    Some(of_claim(case, claim, confidence))
}

/// An owner whose claim is the present value, if it is about this device and in force.
pub(super) fn of_doubtful_claims(case: &Case<'_>) -> Option<Origin> {
    let fitting = case.claims.iter().rev().find(|claim| gives(case, claim));
    if let Some(claim) = fitting {
        return Some(of_claim(case, claim, Confidence::Medium));
    }
    // An owner whose value is unknown may have set this one.
    let silent = |claim: &&Claim| matches!(claim.wanted, Wanted::Unknown | Wanted::Times(_));
    let claim = case.claims.iter().rev().find(silent)?;
    Some(of_claim(case, claim, Confidence::Low))
}

/// Whether a claim would leave the present value behind.
pub(crate) fn gives(case: &Case<'_>, claim: &Claim) -> bool {
    claim.wanted.kib().is_some_and(|kib| case.snapshot.floored(kib) == case.present)
}

fn of_claim(case: &Case<'_>, claim: &Claim, confidence: Confidence) -> Origin {
    let mut evidence = vec![case.value(), Evidence::at(claim.text.clone(), claim.place.clone())];
    if claim.certainty == Certainty::Perhaps {
        evidence.push(Evidence::of(match claim.owner {
            OwnerKind::Tuned => "whether TuneD runs, or takes this device, could not be seen",
            OwnerKind::Csi => "the driver's configuration is not on this machine",
            _ => "whether it applies to this device could not be looked up",
        }));
    }
    if case.is_default() {
        evidence.push(Evidence::of("the kernel's own choice would have been the same"));
    }
    let (kind, name) = if claim.by_foreread {
        (OriginKind::Foreread, format!("foreread's {}", claim.owner.name()))
    } else {
        (OriginKind::Owner(claim.owner), claim.owner.name().to_owned())
    };
    let summary = match claim.owner {
        OwnerKind::Csi => format!("perhaps the {name} {}", claim.text),
        _ if confidence == Confidence::Low => format!("perhaps {name} {}", claim.place),
        _ => format!("{name} {}", claim.place),
    };
    Origin { kind, confidence, summary, evidence }
}
