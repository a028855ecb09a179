//! What is wrong with a read-ahead: one file and one line of [`REGISTRY`] for each finding.
//!
//! A finding says what is the matter, why that matters, what it rests on, and what it proposes.
//! It prints no command that changes a setting: several findings about one device may propose
//! different values, and [`crate::plan`] makes one plan of them. What is only a matter of taste is
//! no finding.

mod below_page;
mod jumped;
mod mapped_files;
mod memory;
mod not_persistent;
mod old_windows;
mod overwritten;
mod power_of_two;
mod sectors_for_kib;
mod wrong_layer;
mod zero;

use serde::Serialize;
use units::Kib;

use crate::{Diagnosis, Evidence, Scene};

pub(crate) use memory::most_by_memory;

/// Every finding, gravest first.
pub static REGISTRY: &[&dyn Finding] = &[
    &zero::Zero,
    &below_page::BelowPage,
    &overwritten::Overwritten,
    &wrong_layer::WrongLayer,
    &sectors_for_kib::SectorsForKib,
    &memory::Memory,
    &mapped_files::MappedFiles,
    &jumped::Jumped,
    &old_windows::OldWindows,
    &power_of_two::PowerOfTwo,
    &not_persistent::NotPersistent,
];

/// Something that may be wrong.
pub trait Finding: Sync {
    /// Its name in JSON and docs.
    fn id(&self) -> &'static str;

    /// One line for docs.
    fn summary(&self) -> &'static str;

    /// Looks whether it is so.
    fn look(&self, scene: &Scene, diagnosis: &Diagnosis) -> Option<Found>;
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Notice,
    /// Costs time or memory, or is not what somebody asked for.
    Warning,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The finding's name.
    pub id: &'static str,
    /// How grave.
    pub severity: Severity,
    /// What is the matter, in one line.
    pub title: String,
    /// Why it matters.
    pub why: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What it proposes for the plan.
    pub remedy: Remedy,
    /// What to type to find out more; it changes no setting for good.
    pub mend: Vec<Mend>,
}

/// What a finding proposes. The plan weighs the proposals of all findings about a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remedy {
    /// Give it this value.
    Set(Proposal),
    /// Give it no more than this value.
    AtMost(Proposal),
    /// Give it this value if no owner and no other finding decides.
    Refine(Proposal),
    /// Keep the value after a reboot.
    Persist,
    /// Give files that are open already the value, too.
    OpenFiles,
    /// Change what the owner's file asks for.
    EditOwner,
    /// Measure before changing anything.
    Measure,
}

/// A value that a finding proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The value.
    #[serde(rename = "read_ahead_kib")]
    pub value: Kib,
    /// What it rests on; the strongest counts.
    pub basis: Basis,
    /// Why this value, in half a sentence.
    pub reason: String,
}

/// What a proposed value rests on, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The kernel's usual value, where nothing better is known.
    Usual,
    /// What a vendor publishes for software that runs here.
    Vendor,
    /// What was set on another layer of the stack.
    Layer,
    /// What an owner's file asks for.
    Owner,
    /// What the comment in an owner's file says that it means.
    Comment,
    /// What the memory allows.
    Memory,
}

impl Proposal {
    fn new(value: Kib, basis: Basis, reason: impl Into<String>) -> Self {
        Self { value, basis, reason: reason.into() }
    }
}

/// Something to type that finds out more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mend {
    /// What it does.
    pub what: String,
    /// What to type, as root unless it begins with `foreread`.
    pub commands: Vec<String>,
}

impl Mend {
    fn new(what: impl Into<String>, command: impl Into<String>) -> Self {
        Self { what: what.into(), commands: vec![command.into()] }
    }
}

/// Everything that is wrong, gravest first.
pub(crate) fn look(scene: &Scene, diagnosis: &Diagnosis) -> Vec<Found> {
    if !diagnosis.is_read_through() {
        return Vec::new();
    }
    let mut found: Vec<Found> =
        REGISTRY.iter().filter_map(|finding| finding.look(scene, diagnosis)).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.severity));
    found
}

/// The kernel's own value for the device, or 128 KiB where that is 0, unknown or very large.
fn usual(scene: &Scene, diagnosis: &Diagnosis) -> Kib {
    let owner = diagnosis.subject.owner();
    let default = owner.and_then(|owner| host::kernel_default(scene.kernel, scene.page, owner));
    let value = default.map(|default| scene.floored(default.read_ahead));
    value.filter(|value| !value.is_zero() && *value < jumped::FAR).unwrap_or(jumped::USUAL)
}

/// `foreread tune` of what the subject is.
fn tune(diagnosis: &Diagnosis) -> Mend {
    let on = &diagnosis.on;
    Mend::new("measure which value is best for it", format!("foreread tune {on}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kebab_case_and_unlike_each_other() {
        let mut ids: Vec<&str> = REGISTRY.iter().map(|finding| finding.id()).collect();
        for id in &ids {
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        }
        assert!(REGISTRY.iter().all(|finding| finding.summary().ends_with('.')));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), REGISTRY.len());
    }
}
