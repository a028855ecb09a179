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
                Evidence::in_file("it restores all settings when it exits", &change.journal),
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
            Evidence::in_file(
                "foreread wrote this value and has not restored the previous one",
                &change.journal,
            ),
        ],
    })
}

/// Returns as origin the last owner to act with a certain claim to the current value.
pub(super) fn of_claims(case: &Case<'_>) -> Option<Origin> {
    let sure = |claim: &&Claim| claim.certainty == Certainty::Sure && gives(case, claim);
    let claim = case.claims.iter().rev().find(sure)?;
    let others =
        case.claims.iter().filter(|other| other.owner != claim.owner && gives(case, other)).count();
    let confidence = if others == 0 { Confidence::High } else { Confidence::Medium };
    Some(of_claim(case, claim, confidence))
}

/// Returns as origin an owner that may have set the current value, with reduced confidence.
pub(super) fn of_doubtful_claims(case: &Case<'_>) -> Option<Origin> {
    let fitting = case.claims.iter().rev().find(|claim| gives(case, claim));
    if let Some(claim) = fitting {
        return Some(of_claim(case, claim, Confidence::Medium));
    }
    // An owner that requests an unknown value may have set this one.
    let silent = |claim: &&Claim| matches!(claim.wanted, Wanted::Unknown | Wanted::Times(_));
    let claim = case.claims.iter().rev().find(silent)?;
    Some(of_claim(case, claim, Confidence::Low))
}

/// Returns whether a claim would set the current value.
pub(crate) fn gives(case: &Case<'_>, claim: &Claim) -> bool {
    claim.wanted.kib().is_some_and(|kib| case.snapshot.floored(kib) == case.present)
}

fn of_claim(case: &Case<'_>, claim: &Claim, confidence: Confidence) -> Origin {
    let mut evidence =
        vec![case.value(), Evidence::in_line(claim.text.clone(), claim.place.clone())];
    if claim.certainty == Certainty::Perhaps {
        evidence.push(Evidence::new(match claim.owner {
            OwnerKind::Tuned => "it is unknown whether TuneD is running and uses this device",
            OwnerKind::Csi => "the driver's configuration is not on this machine",
            _ => "it is unknown whether it applies to this device",
        }));
    }
    if case.is_default() {
        evidence.push(Evidence::new("the kernel's default would be the same"));
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
