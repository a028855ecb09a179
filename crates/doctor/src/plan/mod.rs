//! Plans one read-ahead value for each device of a host, and the steps to set and keep it.
//!
//! Findings are independent and may propose different values for the same device. The plan takes
//! the strongest proposal, limits it by the memory and lists what it overrides. The steps are, in
//! order: edit the owner's file that would set another value again, `foreread apply`, `foreread
//! persist`. Devices that one line of a file sets get one value. The code of `apply -n` and
//! `persist -n` verifies each step.

mod choice;
mod edit;
mod name;
mod steps;

use host::BdiId;
use serde::Serialize;
use units::Kib;

use crate::{Diagnosis, HostSnapshot};

pub(crate) use name::on;

/// The plan for one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DevicePlan {
    /// The device as an argument of `--on`, not quoted: a mount point, a device file or MAJ:MIN.
    pub device: String,
    pub bdi: BdiId,
    pub setting: &'static str,
    pub present_kib: Kib,
    /// The value after the plan; equal to `present_kib` if the plan does not change it.
    pub target_kib: Kib,
    pub reasons: Vec<Reason>,
    /// Proposed or claimed values that the plan does not follow.
    pub overrides: Vec<Override>,
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
    /// What the plan cannot do, and why.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The finding that proposes the value, or `plan` for the plan's own rules.
    pub finding: &'static str,
    pub reason: String,
}

/// A value that the plan does not follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Override {
    /// The finding or owner that requests the value.
    pub source: String,
    pub read_ahead_kib: Kib,
    /// Why the plan does not follow it, as a phrase.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Edits a file that another owner reads.
    Edit,
    Apply,
    /// Makes the value survive a reboot.
    Persist,
    /// Optional: measures whether another value is better. Changes nothing permanently.
    Measure,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanStep {
    pub action: Action,
    /// The command, to run as root.
    pub command: String,
    /// The value that the step sets; `None` if it sets none.
    pub read_ahead_kib: Option<Kib>,
    pub reason: String,
}

impl DevicePlan {
    /// Returns whether the plan changes anything; measuring does not count.
    pub fn changes(&self) -> bool {
        self.steps.iter().any(|step| step.action != Action::Measure)
    }
}

/// Plans all devices of a host. A device without findings has a plan only if a file that must be
/// edited also sets that device.
pub fn plan(snapshot: &HostSnapshot, diagnoses: &[Diagnosis]) -> Vec<DevicePlan> {
    let mut subjects: Vec<&Diagnosis> = Vec::new();
    for diagnosis in diagnoses.iter().filter(|diagnosis| diagnosis.is_read_through()) {
        if !subjects.iter().any(|known| known.subject.bdi == diagnosis.subject.bdi) {
            subjects.push(diagnosis);
        }
    }
    let mut choices: Vec<choice::DeviceChoice> =
        subjects.iter().map(|diagnosis| choice::choose(snapshot, diagnosis)).collect();
    choice::agree(snapshot, &subjects, &mut choices);
    let many_nfs = subjects.iter().filter(|diagnosis| name::is_nfs(&diagnosis.subject)).count() > 1;
    let plans = subjects.iter().zip(choices).map(|(diagnosis, choice)| {
        let (steps, notes) = steps::steps(snapshot, diagnosis, &choice, many_nfs);
        let mut overrides = choice.overrides;
        overrides.extend(choice::owners_overridden(snapshot, diagnosis, choice.value));
        DevicePlan {
            device: name::plain(snapshot, &diagnosis.subject).display().to_string(),
            bdi: diagnosis.subject.bdi.clone(),
            setting: "read_ahead",
            present_kib: diagnosis.read_ahead(),
            target_kib: choice.value,
            reasons: choice.reasons,
            overrides,
            steps,
            notes,
        }
    });
    let mut plans: Vec<DevicePlan> =
        plans.filter(|plan| !plan.steps.is_empty() || !plan.notes.is_empty()).collect();
    name_shared_edits(&mut plans);
    plans
}

/// Marks an edit that several devices share, so that it is made once: later steps name the first.
fn name_shared_edits(plans: &mut [DevicePlan]) {
    let mut known: Vec<(PlanStep, String)> = Vec::new();
    for plan in plans {
        for step in plan.steps.iter_mut().filter(|step| step.action == Action::Edit) {
            match known.iter().find(|(other, _)| other == step) {
                Some((_, device)) => {
                    step.reason = format!("once for {device} and here: {}", step.reason);
                }
                None => known.push((step.clone(), plan.device.clone())),
            }
        }
    }
}
