//! A claim that is not effective, or two claims that contradict each other.

use host::owners::Claim;

use super::Detector;
use crate::claims::{holds, last_of_each, last_word};
use crate::finding::{Basis, Finding, Proposal, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot};

pub(super) const DETECTOR: Detector = Detector { id: "overwritten", look };

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let present = diagnosis.read_ahead();
    let lost: Vec<&Claim> = last_of_each(&diagnosis.claims)
        .into_iter()
        .filter(|claim| !holds(snapshot, claim, present))
        .collect();
    let first = lost.first()?;
    let winner = diagnosis
        .claims
        .iter()
        .rev()
        .find(|claim| holds(snapshot, claim, present) && claim.wanted.kib().is_some());
    let by = match winner {
        Some(claim) => format!("{} has overwritten it", claim.owner.name()),
        None => "something has overwritten it, or it was never applied".to_owned(),
    };
    let mut evidence: Vec<Evidence> = lost
        .iter()
        .map(|claim| Evidence::in_line(claim.text.clone(), claim.place.clone()))
        .collect();
    evidence.extend(winner.map(|claim| Evidence::in_line(claim.text.clone(), claim.place.clone())));
    evidence.extend(diagnosis.origin.evidence.first().cloned());
    // The owner that acts last is effective. If the current value satisfies its claim, the claims
    // of other owners should be removed.
    let deciding = last_word(&diagnosis.claims).filter(|claim| !holds(snapshot, claim, present));
    let remedy = match deciding.and_then(|claim| Some((claim, claim.wanted.kib()?))) {
        Some((claim, value)) => Remedy::Set(Proposal::new(
            value,
            Basis::Owner,
            format!("the value that the {} requests ({})", claim.owner.name(), claim.place),
        )),
        None => Remedy::EditOwner,
    };
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Warning,
        title: format!("{} requests {}, but it is {present}", first.owner.name(), first.wanted),
        why: format!(
            "{by}. Writing max_sectors_kb or rotational makes the kernel recompute \
             read-ahead; of two owners the later one wins, until the next event"
        ),
        evidence,
        remedy,
        fixes: Vec::new(),
    })
}
