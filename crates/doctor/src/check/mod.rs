//! Checks a machine against a policy: allowed ranges and forbidden owners, selected by device
//! class, mount, file system or label. For image tests, admission checks and fleet audits.

mod emit;
mod idle;
mod policy;
mod storage;

use host::BdiId;
use serde::Serialize;
use units::Kib;

use crate::{Diagnosis, HostSnapshot, Origin, OriginKind};

pub use emit::emit;
pub use policy::{CompliancePolicy, CompliancePolicyError, Rule};
pub use storage::{CLASSES, StorageProperties};

/// The result of checking a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// One outcome for each rule and matching storage, in the policy's order.
    pub results: Vec<CheckOutcome>,
    /// Rules that match nothing on this machine.
    pub idle_rules: Vec<IdleRule>,
    /// Names of storage that no rule matches.
    pub uncovered: Vec<String>,
}

/// A rule that matches nothing on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleRule {
    pub rule: String,
    pub line: usize,
    /// True if the rule has `required = true`.
    pub required: bool,
    /// An existing name that the rule probably means and that no other rule matches.
    pub suggestion: Option<String>,
    /// Why the idle rule is a violation; `None` if it is not.
    pub violation: Option<String>,
}

/// The outcome of one rule for one storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckOutcome {
    pub rule: String,
    pub line: usize,
    pub storage: String,
    pub bdi: BdiId,
    #[serde(rename = "read_ahead_kib")]
    pub read_ahead: Kib,
    pub origin: Origin,
    /// The violations; empty if the storage meets the rule.
    pub violations: Vec<String>,
}

impl CheckReport {
    /// Returns the number of failed checks: storage that violates a rule, and idle rules that are a
    /// violation.
    pub fn broken(&self) -> usize {
        let results = self.results.iter().filter(|outcome| !outcome.violations.is_empty()).count();
        results + self.idle_rules.iter().filter(|rule| rule.violation.is_some()).count()
    }

    /// Returns the number of checks: one for each rule and matching storage, and one for each idle
    /// rule that is a violation.
    pub fn checks(&self) -> usize {
        let idle = self.idle_rules.iter().filter(|rule| rule.violation.is_some()).count();
        self.results.len() + idle
    }

    pub fn kept(&self) -> bool {
        self.broken() == 0
    }
}

/// Checks the storage of a machine against a policy.
pub fn check(
    policy: &CompliancePolicy,
    snapshot: &HostSnapshot,
    diagnoses: &[Diagnosis],
) -> CheckReport {
    let all: Vec<(&Diagnosis, StorageProperties)> = diagnoses
        .iter()
        .map(|diagnosis| (diagnosis, StorageProperties::new(snapshot, diagnosis)))
        .collect();
    let mut report =
        CheckReport { results: Vec::new(), idle_rules: Vec::new(), uncovered: Vec::new() };
    let mut covered = vec![false; all.len()];
    let mut idle = Vec::new();
    for rule in &policy.rules {
        let mut about = 0;
        for (index, (diagnosis, facts)) in all.iter().enumerate() {
            if rule.is_about(facts) {
                about += 1;
                covered[index] = true;
                report.results.push(apply(rule, diagnosis, facts));
            }
        }
        if about == 0 {
            idle.push(rule);
        }
    }
    let facts: Vec<&StorageProperties> = all.iter().map(|(_, facts)| facts).collect();
    let checked = !report.results.is_empty();
    report.idle_rules =
        idle.into_iter().map(|rule| idle::explain(rule, policy, &facts, checked)).collect();
    let open = all.iter().zip(&covered).filter(|((diagnosis, _), covered)| {
        !**covered && !diagnosis.subject.member && !diagnosis.subject.vacant()
    });
    report.uncovered = open.map(|((_, facts), _)| facts.name.clone()).collect();
    report
}

fn apply(rule: &Rule, diagnosis: &Diagnosis, facts: &StorageProperties) -> CheckOutcome {
    let value = diagnosis.read_ahead();
    let mut violations = Vec::new();
    let both = |kib: Kib| format!("{kib} ({})", kib.to_sectors());
    if let Some(min) = rule.min.filter(|min| value < *min) {
        violations.push(format!("{} is less than the {} allowed", both(value), both(min)));
    }
    if let Some(max) = rule.max.filter(|max| value > *max) {
        violations.push(format!("{} is more than the {} allowed", both(value), both(max)));
    }
    let kind = diagnosis.origin.kind;
    if rule.forbidden_owners.iter().any(|word| word == kind.word()) {
        let what = match kind {
            OriginKind::Unknown => "the origin is unknown, which is forbidden".to_owned(),
            kind => format!("set by {}, which is forbidden", kind.word()),
        };
        violations.push(format!("{what} ({})", diagnosis.origin.summary));
    }
    CheckOutcome {
        rule: rule.name.clone(),
        line: rule.line,
        storage: facts.name.clone(),
        bdi: diagnosis.subject.bdi.clone(),
        read_ahead: value,
        origin: diagnosis.origin.clone(),
        violations,
    }
}
