//! What is wrong with a read-ahead: one file and one line of [`REGISTRY`] for each finding.
//!
//! A finding says what is the matter, why that matters, what it rests on, and what it proposes.
//! It prints no command that changes a setting: several findings about one device may propose
//! different values, and the plan chooses one. What is only a matter of taste is
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

use units::Kib;

use crate::finding::{Finding, Fix};
use crate::{Diagnosis, HostSnapshot};

pub(crate) use memory::most_by_memory;

pub static REGISTRY: &[&dyn Detector] = &[
    &zero::ZeroReadAhead,
    &below_page::BelowPage,
    &overwritten::Overwritten,
    &wrong_layer::WrongLayer,
    &sectors_for_kib::SectorsForKib,
    &memory::WindowMemory,
    &mapped_files::MappedFiles,
    &jumped::Jumped,
    &old_windows::OldWindows,
    &power_of_two::PowerOfTwo,
    &not_persistent::NotPersistent,
];

pub trait Detector: Sync {
    /// Its name in JSON and docs.
    fn id(&self) -> &'static str;

    fn summary(&self) -> &'static str;

    /// The finding, if the host has the problem.
    fn look(&self, snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding>;
}

/// Everything that is wrong, gravest first.
pub(crate) fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Vec<Finding> {
    if !diagnosis.is_read_through() {
        return Vec::new();
    }
    let mut found: Vec<Finding> =
        REGISTRY.iter().filter_map(|finding| finding.look(snapshot, diagnosis)).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.severity));
    found
}

/// The kernel's own value for the device, or 128 KiB where that is 0, unknown or very large.
fn usual(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Kib {
    let owner = diagnosis.subject.owner();
    let default =
        owner.and_then(|owner| host::kernel_default(snapshot.kernel, snapshot.page, owner));
    let value = default.map(|default| snapshot.floored(default.read_ahead));
    value
        .filter(|value| !value.is_zero() && *value < jumped::FAR_ABOVE_DEFAULT_KIB)
        .unwrap_or(jumped::DEFAULT_READ_AHEAD_KIB)
}

/// `foreread tune` of what the subject is.
fn tune(diagnosis: &Diagnosis) -> Fix {
    let on = &diagnosis.on;
    Fix::new("measure which value is best for it", format!("foreread tune {on}"))
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
