//! One plan for a host: one read-ahead per device, and the steps to set and keep it.
//!
//! Findings are independent and may propose different values for the same device. The plan takes
//! the strongest proposal, limits it by the memory, lists what it overrides, and orders the steps:
//! first the owner's file that would set another value again, then `foreread apply`, then `foreread
//! persist`. Devices that one line of a file sets get one value. Every step is checked by the code
//! of `apply -n` and `persist -n`.

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
    /// The device as for `--on`, not quoted: a mount point, a device file or MAJ:MIN.
    pub device: String,
    pub bdi: BdiId,
    pub setting: &'static str,
    pub present_kib: Kib,
    /// Its target value; the current value if it stays.
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
    /// The finding that proposes it, or `plan` for the plan's own rules.
    pub finding: &'static str,
    pub reason: String,
}

/// A value that the plan does not follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Override {
    /// The finding or owner that requests it.
    pub source: String,
    pub read_ahead_kib: Kib,
    /// Why it is not followed, as a phrase.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Changes a file that another owner reads.
    Edit,
    Apply,
    /// Keeps the value after a reboot.
    Persist,
    /// Optional: measures whether another value is better. Changes nothing permanently.
    Measure,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanStep {
    pub action: Action,
    /// The command, to run as root.
    pub command: String,
    /// The value that it sets, if it sets one.
    pub read_ahead_kib: Option<Kib>,
    pub reason: String,
}

impl DevicePlan {
    /// Whether it changes anything, not only measures.
    pub fn changes(&self) -> bool {
        self.steps.iter().any(|step| step.action != Action::Measure)
    }
}

/// Makes one plan from all diagnoses of a host. Devices without findings have no plan, unless a
/// file that also sets them is to be changed.
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

/// A line that sets several devices is edited once: later plans refer to that edit.
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
