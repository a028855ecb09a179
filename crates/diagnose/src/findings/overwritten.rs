//! A setting that is not there any more, or two that contradict each other.

use std::collections::BTreeMap;

use host::owners::{Certainty, Claim, OwnerKind, Wanted};
use units::Kib;

use super::{Finding, Found, Mend, Severity, set_now};
use crate::{Diagnosis, Evidence, Scene};

pub(super) struct Overwritten;

impl Finding for Overwritten {
    fn id(&self) -> &'static str {
        "overwritten"
    }

    fn summary(&self) -> &'static str {
        "An owner asks for another value than the one that is there."
    }

    fn look(&self, scene: &Scene, diagnosis: &Diagnosis) -> Option<Found> {
        let present = diagnosis.read_ahead();
        let lost: Vec<&Claim> = last_of_each(&diagnosis.claims)
            .into_iter()
            .filter(|claim| !kept(scene, claim, present))
            .collect();
        let first = lost.first()?;
        let wanted = first.wanted.kib()?;
        let winner = diagnosis
            .claims
            .iter()
            .rev()
            .find(|claim| kept(scene, claim, present) && claim.wanted.kib().is_some());
        let by = match winner {
            Some(claim) => format!("{} has overwritten it", claim.owner.name()),
            None => "something has overwritten it, or it was never applied".to_owned(),
        };
        let mut evidence: Vec<Evidence> = lost
            .iter()
            .map(|claim| Evidence::at(claim.text.clone(), claim.place.clone()))
            .collect();
        evidence.extend(winner.map(|claim| Evidence::at(claim.text.clone(), claim.place.clone())));
        evidence.extend(diagnosis.origin.evidence.first().cloned());
        let mut mend = vec![Mend::new(
            format!("have what {} asks for now", first.owner.name()),
            set_now(diagnosis, wanted),
        )];
        mend.push(match winner {
            Some(claim) => Mend::new(
                "leave it to one owner: take the setting out of one of the two files",
                format!("editor {} {}", first.place.file.display(), claim.place.file.display()),
            ),
            None => apply_again(first),
        });
        Some(Found {
            id: self.id(),
            severity: Severity::Warning,
            title: format!("{} asks for {}, but it is {present}", first.owner.name(), first.wanted),
            why: format!(
                "{by}. Writing max_sectors_kb or rotational makes the kernel work read-ahead out \
                 anew; of two owners the later wins, until the next event"
            ),
            evidence,
            mend,
        })
    }
}

/// What each owner asks for in the end: of several claims of one, the last holds.
fn last_of_each(claims: &[Claim]) -> Vec<&Claim> {
    let mut last: BTreeMap<OwnerKind, &Claim> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| claim.certainty == Certainty::Sure) {
        last.insert(claim.owner, claim);
    }
    last.into_values().collect()
}

/// Whether the present value is what the claim would leave.
fn kept(scene: &Scene, claim: &Claim, present: Kib) -> bool {
    match claim.wanted {
        Wanted::Exactly(kib) => scene.floored(kib) == present,
        Wanted::AtLeast(kib) => scene.floored(kib) <= present,
        Wanted::AtMost(kib) => scene.floored(kib) >= present,
        Wanted::Times(_) | Wanted::Unknown => true,
    }
}

fn apply_again(claim: &Claim) -> Mend {
    let file = claim.place.file.display();
    let command = match claim.owner {
        OwnerKind::Udev | OwnerKind::NfsConf => {
            "udevadm control --reload && udevadm trigger --action=change".to_owned()
        }
        OwnerKind::Tuned => "tuned-adm verify; systemctl restart tuned".to_owned(),
        OwnerKind::Tmpfiles => format!("systemd-tmpfiles --create {file}"),
        OwnerKind::Lvm => "lvchange --refresh".to_owned(),
        _ => format!("editor {file}"),
    };
    Mend::new("let its owner apply it again, and see whether it stays", command)
}
