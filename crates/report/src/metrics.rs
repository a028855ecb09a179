//! The output of `foreread doctor --metrics`: a host's read-ahead, for node_exporter's textfile
//! collector.
//!
//! The file has at most [`MAX_HOST_SERIES`] series, however many devices there are, and no times,
//! so that a host without changes writes the same file.

use std::collections::BTreeMap;

use doctor::check::CheckReport;
use doctor::findings::REGISTRY;
use doctor::{Diagnosis, OriginKind};
use units::text::MetricKind::Gauge;
use units::text::{Exposition, MetricSeries};

use crate::{clean, storage_name};

/// Maximum number of series that one host writes.
pub const MAX_HOST_SERIES: usize = 100;

/// Maximum number of storage with its own series, by name; the rest is only counted.
const MAX_LISTED_STORAGE: usize = 48;

/// Maximum number of violations with their own series, in the policy's order; the rest is counted.
const MAX_LISTED_VIOLATIONS: usize = 12;

/// The metrics of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostMetrics<'a> {
    pub diagnoses: &'a [Diagnosis],
    /// True if open files were examined; a captured host has none.
    pub running: bool,
    /// Result of the given policy, if any.
    pub check: Option<&'a CheckReport>,
    /// Number of settings that foreread applied and that were not rolled back.
    pub applied: usize,
    /// Number of applied settings that now have another value.
    pub drifted: usize,
    /// Number of journals that cannot be read, so that their settings are unknown.
    pub unreadable_journals: usize,
    pub version: &'a str,
    /// Kernel release.
    pub kernel: &'a str,
}

/// Returns the text of a host's metrics, in base units.
pub fn host_metrics(host: &HostMetrics<'_>) -> String {
    exposition(host).into_text()
}

fn exposition(host: &HostMetrics<'_>) -> Exposition {
    let mut text = Exposition::new();
    let info = MetricSeries::new(1.0)
        .with("version", clean::plain(host.version))
        .with("kernel", clean::plain(host.kernel.trim()));
    text.metric("host_info", Gauge, "The foreread and the kernel that were used", [info]);
    storage(&mut text, host);
    findings(&mut text, host.diagnoses);
    for (name, help, value) in [
        ("settings_applied", "Settings applied and not rolled back", host.applied),
        ("settings_drifted", "Applied settings that have another value now", host.drifted),
        ("journals_unreadable", "Journals that cannot be read", host.unreadable_journals),
    ] {
        text.value(name, Gauge, help, value as f64);
    }
    if let Some(check) = host.check {
        violations(&mut text, check);
    }
    text
}

fn storage(text: &mut Exposition, host: &HostMetrics<'_>) {
    let mut read: Vec<&Diagnosis> =
        host.diagnoses.iter().filter(|diagnosis| diagnosis.is_read_through()).collect();
    read.sort_by_cached_key(|diagnosis| storage_name(&diagnosis.subject));
    let bytes = |diagnosis: &Diagnosis| diagnosis.read_ahead().to_bytes().get() as f64;
    let series = read.iter().take(MAX_LISTED_STORAGE).map(|diagnosis| {
        MetricSeries::new(bytes(diagnosis))
            .with("storage", clean::plain(&storage_name(&diagnosis.subject)))
            .with("bdi", diagnosis.subject.bdi.to_string())
            .with("origin", diagnosis.origin.kind.word())
    });
    text.metric("read_ahead_bytes", Gauge, "Read-ahead of a storage, and its origin", series);
    let values = || read.iter().map(|diagnosis| bytes(diagnosis));
    for (name, help, value) in [
        (
            "read_ahead_min_bytes",
            "The smallest read-ahead of any storage",
            values().reduce(f64::min),
        ),
        (
            "read_ahead_max_bytes",
            "The largest read-ahead of any storage",
            values().reduce(f64::max),
        ),
    ] {
        text.metric(name, Gauge, help, value.map(MetricSeries::new));
    }
    let mut origins: BTreeMap<&str, f64> = BTreeMap::new();
    for diagnosis in &read {
        *origins.entry(diagnosis.origin.kind.word()).or_default() += 1.0;
    }
    debug_assert!(origins.len() <= OriginKind::WORDS.len());
    text.metric(
        "storage_by_origin",
        Gauge,
        "Storage by the origin of its read-ahead",
        origins.into_iter().map(|(origin, count)| MetricSeries::new(count).with("origin", origin)),
    );
    let unlisted = read.len().saturating_sub(MAX_LISTED_STORAGE);
    text.value("storage_unlisted", Gauge, "Storage without a series of its own", unlisted as f64);
    let open: Vec<usize> =
        read.iter().filter_map(|diagnosis| Some(diagnosis.open.as_ref()?.outdated.len())).collect();
    if host.running && !open.is_empty() {
        let outdated: usize = open.iter().sum();
        let help = "Open files with another window than newly opened ones";
        text.value("open_files_outdated", Gauge, help, outdated as f64);
    }
}

/// Adds one series for each kind of finding, even if it is 0, so that an alert can clear.
fn findings(text: &mut Exposition, diagnoses: &[Diagnosis]) {
    let count = |id: &str| {
        let found = diagnoses.iter().flat_map(|diagnosis| &diagnosis.findings);
        found.filter(|found| found.id == id).count() as f64
    };
    text.metric(
        "findings",
        Gauge,
        "Storage with a problem, by kind; docs/book/doctor.md explains them",
        REGISTRY.iter().map(|kind| MetricSeries::new(count(kind.id)).with("finding", kind.id)),
    );
}

fn violations(text: &mut Exposition, check: &CheckReport) {
    text.value("policy_checks", Gauge, "Checks of the policy", check.checks() as f64);
    text.value("policy_violations", Gauge, "Failed checks", check.broken() as f64);
    let broken = check.results.iter().filter(|outcome| !outcome.violations.is_empty());
    let on_storage = broken.map(|outcome| {
        MetricSeries::new(1.0)
            .with("rule", clean::plain(&outcome.rule))
            .with("storage", clean::plain(&outcome.storage))
            .with("bdi", outcome.bdi.to_string())
    });
    let idle = check.idle_rules.iter().filter(|rule| rule.violation.is_some());
    let idle = idle.map(|rule| MetricSeries::new(1.0).with("rule", clean::plain(&rule.rule)));
    let listed = on_storage.chain(idle).take(MAX_LISTED_VIOLATIONS);
    text.metric("policy_violation", Gauge, "A rule that a storage violates", listed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits leave enough series for the rest, whatever a host has.
    #[test]
    fn no_host_has_more_series_than_allowed() {
        let info_and_settings = 1 + 3;
        let storage = MAX_LISTED_STORAGE + 2 + OriginKind::WORDS.len() + 1 + 1;
        let policy = 2 + MAX_LISTED_VIOLATIONS;
        let most = info_and_settings + storage + REGISTRY.len() + policy;
        assert!(most <= MAX_HOST_SERIES, "{most}");
    }
}
