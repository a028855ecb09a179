//! Chooses one value for each device.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use host::owners::{Claim, FileLocation, Wanted};
use tunables::{DEFAULT_STREAMS, TunableScope, TunableValues, plan_apply};
use units::Kib;

use super::{Override, Reason, name};
use crate::claims::{holds, last_of_each, last_word};
use crate::finding::{Basis, Proposal};
use crate::findings::most_by_memory;
use crate::{Diagnosis, HostSnapshot, OriginKind, Remedy};

/// The value that the plan chooses for a device, with reasons.
pub(super) struct DeviceChoice {
    pub value: Kib,
    /// The basis of the value; `None` if it is the current value.
    pub basis: Option<Basis>,
    pub reasons: Vec<Reason>,
    /// Proposals that the plan does not follow.
    pub overrides: Vec<Override>,
    /// Why `apply` would refuse the proposed value; `None` if it accepts it.
    pub refused: Option<String>,
}

impl DeviceChoice {
    fn is_usable(&self) -> bool {
        !self.value.is_zero() && self.refused.is_none()
    }
}

/// The largest value that `apply` accepts with any amount of memory: 1 GiB.
const MAX_READ_AHEAD_KIB: Kib = Kib::new(1 << 20);

type Named<'a> = (&'static str, &'a Proposal);

/// Chooses the strongest proposal that fits into memory, or the current value without a proposal.
pub(super) fn choose(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> DeviceChoice {
    let present = diagnosis.read_ahead();
    let mut choice = DeviceChoice {
        value: present,
        basis: None,
        reasons: Vec::new(),
        overrides: Vec::new(),
        refused: None,
    };
    let proposals = proposals(snapshot, diagnosis);
    let strongest = proposals.iter().max_by_key(|(_, proposal)| proposal.basis);
    if let Some((finding, proposal)) = strongest.or(refinement(snapshot, diagnosis).as_ref()) {
        choice.value = snapshot.floored(proposal.value);
        choice.basis = Some(proposal.basis);
        choice.reasons.push(Reason { finding, reason: proposal.reason.clone() });
    }
    respect(snapshot, diagnosis, &mut choice);
    bound(snapshot, diagnosis, &mut choice);
    refuse(snapshot, diagnosis, &mut choice);
    let value = choice.value;
    for (finding, proposal) in proposals.iter().filter(|(_, p)| snapshot.floored(p.value) != value)
    {
        let reason = match choice.reasons.first() {
            Some(first) => format!("{}: {}", first.finding, first.reason),
            None => "it is not possible here".to_owned(),
        };
        let source = (*finding).to_owned();
        let known = choice.overrides.iter().any(|known| known.source == source);
        if !known {
            choice.overrides.push(Override { source, read_ahead_kib: proposal.value, reason });
        }
    }
    choice.overrides.extend(unrefined(diagnosis, value));
    choice
}

/// Returns a refinement that the plan does not follow, with the reason.
fn unrefined(diagnosis: &Diagnosis, value: Kib) -> Option<Override> {
    let (source, proposal) = proposed_refinement(diagnosis)?;
    if proposal.value == value {
        return None;
    }
    let reason = if value != diagnosis.read_ahead() {
        "it refines the current value, which is replaced"
    } else if is_owned(diagnosis) {
        "an owner requests the current value"
    } else {
        "it does not fit into memory"
    };
    let (source, reason) = (source.to_owned(), reason.to_owned());
    Some(Override { source, read_ahead_kib: proposal.value, reason })
}

fn proposed_refinement(diagnosis: &Diagnosis) -> Option<Named<'_>> {
    diagnosis.findings.iter().find_map(|found| match &found.remedy {
        Remedy::Refine(proposal) => Some((found.id, proposal)),
        _ => None,
    })
}

fn is_owned(diagnosis: &Diagnosis) -> bool {
    matches!(diagnosis.origin.kind, OriginKind::Owner(_) | OriginKind::Foreread)
        || last_word(&diagnosis.claims).is_some()
}

/// Returns the values that findings propose; omits those that the kernel would round down to 0.
fn proposals<'a>(snapshot: &HostSnapshot, diagnosis: &'a Diagnosis) -> Vec<Named<'a>> {
    let set = diagnosis.findings.iter().filter_map(|found| match &found.remedy {
        Remedy::Set(proposal) => Some((found.id, proposal)),
        _ => None,
    });
    set.filter(|(_, proposal)| !snapshot.floored(proposal.value).is_zero()).collect()
}

/// Returns the proposed refinement, if no owner claims the device and the value fits into memory.
fn refinement<'a>(snapshot: &HostSnapshot, diagnosis: &'a Diagnosis) -> Option<Named<'a>> {
    let found = proposed_refinement(diagnosis).filter(|_| !is_owned(diagnosis));
    found.filter(|(_, proposal)| most_by_memory(snapshot, diagnosis, proposal.value).is_none())
}

/// Raises or lowers a usual value to the bound that an owner requests, for example TuneD.
fn respect(snapshot: &HostSnapshot, diagnosis: &Diagnosis, choice: &mut DeviceChoice) {
    let claim = last_word(&diagnosis.claims).filter(|claim| !holds(snapshot, claim, choice.value));
    let (Some(claim), Some(Basis::Usual)) = (claim, choice.basis) else { return };
    let (Wanted::AtLeast(value) | Wanted::AtMost(value)) = claim.wanted else { return };
    let value = snapshot.floored(value);
    if value.is_zero() {
        return;
    }
    let (wanted, owner) = (claim.wanted, claim.owner.name());
    let reason = format!("what meets \"{wanted}\" of the {owner} ({})", claim.place);
    choice.reasons = vec![Reason { finding: "plan", reason }];
    (choice.value, choice.basis) = (value, Some(Basis::Owner));
}

/// Lowers a value that does not fit into memory or exceeds the maximum of `apply`.
fn bound(snapshot: &HostSnapshot, diagnosis: &Diagnosis, choice: &mut DeviceChoice) {
    let by_memory = most_by_memory(snapshot, diagnosis, choice.value);
    let most = by_memory.map_or(MAX_READ_AHEAD_KIB, |(most, _)| most.min(MAX_READ_AHEAD_KIB));
    // The current value may exceed the maximum of `apply`, but not the memory.
    let stays = choice.value == diagnosis.read_ahead();
    if choice.value <= most || stays && by_memory.is_none() {
        return;
    }
    let (finding, reason) = match by_memory.filter(|(by_memory, _)| *by_memory == most) {
        Some((most, streams)) => {
            ("memory", format!("{streams} streams at more than {most} do not fit into memory"))
        }
        None => ("plan", format!("{MAX_READ_AHEAD_KIB} is the maximum that apply sets")),
    };
    let source = choice.reasons.first().map_or("current value", |first| first.finding);
    choice.overrides.push(Override {
        source: source.to_owned(),
        read_ahead_kib: choice.value,
        reason: reason.clone(),
    });
    choice.value = most;
    choice.basis = Some(Basis::Memory);
    let reason = match by_memory {
        Some((_, streams)) if finding == "memory" => {
            format!("the largest power of two of which {streams} streams fit into memory")
        }
        _ => reason,
    };
    choice.reasons = vec![Reason { finding, reason }];
}

/// Keeps the current value if `apply` would refuse the new one.
fn refuse(snapshot: &HostSnapshot, diagnosis: &Diagnosis, choice: &mut DeviceChoice) {
    let present = diagnosis.read_ahead();
    if choice.value == present {
        return;
    }
    if let Err(reason) = accepted(snapshot, diagnosis, choice.value) {
        choice.refused = Some(format!("{} cannot be set: {reason}", choice.value));
        (choice.value, choice.basis) = (present, None);
        choice.reasons.clear();
    }
}

/// Returns an error if `foreread apply -n` would refuse this value.
fn accepted(snapshot: &HostSnapshot, diagnosis: &Diagnosis, value: Kib) -> Result<(), String> {
    let site =
        TunableScope::with_layers(&snapshot.root, &name::storage(snapshot, &diagnosis.subject));
    let settings = TunableValues::read_ahead(value.to_bytes());
    match plan_apply(&snapshot.root, &site, &settings, DEFAULT_STREAMS) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns whether a claim is in a file that must be edited. False for foreread's own files and for
/// the default of nfsrahead, which nfs.conf overrides.
pub(super) fn is_foreign(claim: &Claim) -> bool {
    !claim.by_foreread && !claim.is_nfsrahead_default()
}

/// Gives one value to all devices that one line of a file sets, if that line must change.
pub(super) fn agree(
    snapshot: &HostSnapshot,
    subjects: &[&Diagnosis],
    choices: &mut [DeviceChoice],
) {
    let mut groups: BTreeMap<&FileLocation, Vec<usize>> = BTreeMap::new();
    let mut unheld: BTreeSet<&FileLocation> = BTreeSet::new();
    for (index, diagnosis) in subjects.iter().enumerate() {
        let claim = last_word(&diagnosis.claims).filter(|claim| is_foreign(claim));
        let Some(claim) = claim.filter(|_| choices[index].is_usable()) else { continue };
        let held = holds(snapshot, claim, choices[index].value);
        // Devices that satisfy a bound keep their value even if the bound must change.
        if !held || matches!(claim.wanted, Wanted::Exactly(_)) {
            groups.entry(&claim.place).or_default().push(index);
        }
        if !held {
            unheld.insert(&claim.place);
        }
    }
    for (place, group) in groups {
        if group.len() > 1 && unheld.contains(place) {
            unite(snapshot, place, &group, subjects, choices);
            for index in group {
                refuse(snapshot, subjects[index], &mut choices[index]);
            }
        }
    }
}

/// Sets the value with the strongest basis (the smallest of several) that fits into memory.
fn unite(
    snapshot: &HostSnapshot,
    place: &FileLocation,
    group: &[usize],
    subjects: &[&Diagnosis],
    choices: &mut [DeviceChoice],
) {
    let strongest = group.iter().map(|index| choices[*index].basis).max().flatten();
    let values = group.iter().map(|index| &choices[*index]);
    let value = values.filter(|choice| choice.basis == strongest).map(|choice| choice.value).min();
    let Some(value) = value else { return };
    let most = group.iter().filter_map(|index| most_by_memory(snapshot, subjects[*index], value));
    let value = most.map(|(most, _)| most).min().map_or(value, |most| value.min(most));
    for index in group {
        let choice = &mut choices[*index];
        if choice.value == value {
            continue;
        }
        let reason = format!("the common value for all devices that {place} sets");
        choice.overrides.push(Override {
            source: choice.reasons.first().map_or("current value", |first| first.finding).into(),
            read_ahead_kib: choice.value,
            reason: format!("{place} sets several devices, which get one value"),
        });
        choice.value = value;
        choice.basis = strongest;
        choice.reasons = vec![Reason { finding: "plan", reason }];
    }
}

/// Returns the claims that the plan does not satisfy, the last to act first.
pub(super) fn unheeded<'a>(
    snapshot: &HostSnapshot,
    diagnosis: &'a Diagnosis,
    value: Kib,
) -> Vec<&'a Claim> {
    let asked = last_of_each(&diagnosis.claims).into_iter().rev();
    asked
        .filter(|claim| is_foreign(claim) && claim.wanted.kib().is_some())
        .filter(|claim| !holds(snapshot, claim, value))
        .collect()
}

/// Returns the claims that the plan does not satisfy as overrides, each with the reason.
pub(super) fn owners_overridden(
    snapshot: &HostSnapshot,
    diagnosis: &Diagnosis,
    value: Kib,
) -> Vec<Override> {
    let deciding = last_word(&diagnosis.claims);
    let described = |claim: &Claim| {
        let reason = match deciding.filter(|deciding| *deciding != claim) {
            Some(later) => format!("{} at {} acts later", later.owner.name(), later.place),
            None => format!("the plan changes it to {value}"),
        };
        let source = format!("{} at {}", claim.owner.name(), claim.place);
        Some(Override { source, read_ahead_kib: claim.wanted.kib()?, reason })
    };
    unheeded(snapshot, diagnosis, value).into_iter().filter_map(described).collect()
}

/// Returns whether a file belongs to a package, so that it must be copied before it is edited.
pub(super) fn is_packaged(file: &Path) -> bool {
    file.starts_with("/usr/lib") || file.starts_with("/lib")
}
