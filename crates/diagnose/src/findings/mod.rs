//! What is wrong with a read-ahead: one file and one line of [`REGISTRY`] for each finding.
//!
//! A finding says what is the matter, why that matters, what it rests on, and exactly what to
//! type to mend it. What is only a matter of taste is none.

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
    /// What to type; each alone is a way.
    pub mend: Vec<Mend>,
}

/// A way to mend something.
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
    // What nobody reads through needs no mending: members matter to what is built on them.
    let subject = &diagnosis.subject;
    if subject.vacant() || subject.member || subject.stacks.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Found> =
        REGISTRY.iter().filter_map(|finding| finding.look(scene, diagnosis)).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.severity));
    found
}

/// The command that sets read-ahead now, and can be undone by `foreread rollback`.
fn set_now(diagnosis: &Diagnosis, kib: Kib) -> String {
    format!("foreread apply read_ahead={}K --on {}", kib.get(), target(diagnosis))
}

/// `foreread tune` of what the subject is.
fn tune(diagnosis: &Diagnosis) -> Mend {
    let target = target(diagnosis);
    Mend::new("measure which value is right for it", format!("foreread tune {target}"))
}

/// What to call the subject on a command line, in quotes if a shell would split it.
fn target(diagnosis: &Diagnosis) -> String {
    let subject = &diagnosis.subject;
    let point = subject.filesystems().find_map(|layer| match &layer.kind {
        host::LayerKind::Filesystem { points, .. } => points.first(),
        _ => None,
    });
    let device = subject.stacks.first().filter(|layer| layer.device.is_some());
    let text = match (point, device) {
        (Some(point), _) => point.display().to_string(),
        (None, Some(device)) => format!("/dev/{}", device.name),
        (None, None) => subject.bdi.to_string(),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// What keeps a value after a boot; `None` where nothing can know the device then.
fn keep(scene: &Scene, diagnosis: &Diagnosis, kib: Kib) -> Option<Mend> {
    let owner = diagnosis.subject.owner()?;
    let mounted = diagnosis.subject.filesystems().next().is_some();
    let with = match owner.device {
        Some(device) if tunables::persist::is_known_after_boot(&scene.root, device) => "",
        // Without a mark of the device's own, a unit that knows the mount point.
        Some(_) if mounted => " --with systemd",
        Some(_) => return None,
        None => "",
    };
    let command =
        format!("foreread persist read_ahead={}K --on {}{with}", kib.get(), target(diagnosis));
    Some(Mend::new("keep it after a reboot", command))
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
