//! Detects problems of read-ahead: one file and one line of [`REGISTRY`] for each finding.
//!
//! A finding states the problem, its effect, its evidence and a proposal. It prints no command that
//! changes a setting, because several findings may propose different values for a device and the
//! plan chooses one. A question of preference is not a finding.

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

pub static REGISTRY: &[Detector] = &[
    zero::DETECTOR,
    below_page::DETECTOR,
    overwritten::DETECTOR,
    wrong_layer::DETECTOR,
    sectors_for_kib::DETECTOR,
    memory::DETECTOR,
    mapped_files::DETECTOR,
    jumped::DETECTOR,
    old_windows::DETECTOR,
    power_of_two::DETECTOR,
    not_persistent::DETECTOR,
];

pub struct Detector {
    /// The finding's identifier in JSON and documentation.
    pub id: &'static str,
    /// Returns the finding if the bdi has the problem.
    look: fn(&HostSnapshot, &Diagnosis) -> Option<Finding>,
}

/// Runs all detectors on a bdi and returns the findings, most severe first.
pub(crate) fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Vec<Finding> {
    if !diagnosis.is_read_through() {
        return Vec::new();
    }
    let mut found: Vec<Finding> =
        REGISTRY.iter().filter_map(|finding| (finding.look)(snapshot, diagnosis)).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.severity));
    found
}

/// Returns the kernel's default for the device, or 128 KiB if that is 0, unknown or very large.
fn usual(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Kib {
    let owner = diagnosis.subject.owner();
    let default =
        owner.and_then(|owner| host::kernel_default(snapshot.kernel, snapshot.page, owner));
    let value = default.map(|default| snapshot.floored(default.read_ahead));
    value
        .filter(|value| !value.is_zero() && *value < jumped::FAR_ABOVE_DEFAULT_KIB)
        .unwrap_or(jumped::DEFAULT_READ_AHEAD_KIB)
}

/// Returns the fix that runs `foreread tune` on the subject.
fn tune(diagnosis: &Diagnosis) -> Fix {
    let on = &diagnosis.on;
    Fix::new("measure which value is best for it", format!("foreread tune {on}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kebab_case_and_unlike_each_other() {
        let mut ids: Vec<&str> = REGISTRY.iter().map(|finding| finding.id).collect();
        for id in &ids {
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), REGISTRY.len());
    }
}
