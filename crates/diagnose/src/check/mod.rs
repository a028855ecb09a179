//! Whether a machine keeps a policy: allowed ranges and forbidden owners, by kind of device, mount,
//! file system or label. For images, admission and audits of fleets.

mod emit;
mod policy;
mod storage;

use host::BdiId;
use serde::Serialize;
use units::Kib;

use crate::{Diagnosis, Origin, OriginKind, Scene};

pub use emit::emit;
pub use policy::{Policy, PolicyError, Rule};
pub use storage::{CLASSES, Facts};

/// What came of checking a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One for each rule and storage that it is about, in the policy's order.
    pub results: Vec<Outcome>,
    /// Rules that are about nothing here.
    pub idle_rules: Vec<IdleRule>,
    /// Storage that no rule is about.
    pub uncovered: Vec<String>,
}

/// A rule that is about nothing on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleRule {
    /// Its name.
    pub rule: String,
    /// Its line in the policy.
    pub line: usize,
    /// Whether it says that it must be about something.
    pub required: bool,
}

/// A rule applied to a storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The rule.
    pub rule: String,
    /// Its line in the policy.
    pub line: usize,
    /// The storage, as people call it.
    pub storage: String,
    /// Its bdi.
    pub bdi: BdiId,
    /// What it has.
    #[serde(rename = "read_ahead_kib")]
    pub read_ahead: Kib,
    /// Where that came from.
    pub origin: Origin,
    /// What breaks the rule; empty if it is kept.
    pub violations: Vec<String>,
}

impl Report {
    /// How many rules are broken, those that had to be about something among them.
    pub fn broken(&self) -> usize {
        let results = self.results.iter().filter(|outcome| !outcome.violations.is_empty()).count();
        results + self.idle_rules.iter().filter(|rule| rule.required).count()
    }

    /// Whether the policy is kept.
    pub fn kept(&self) -> bool {
        self.broken() == 0
    }
}

/// Holds a policy against the storage of a machine.
pub fn check(policy: &Policy, scene: &Scene, diagnoses: &[Diagnosis]) -> Report {
    let all: Vec<(&Diagnosis, Facts)> =
        diagnoses.iter().map(|diagnosis| (diagnosis, Facts::of(scene, diagnosis))).collect();
    let mut report = Report { results: Vec::new(), idle_rules: Vec::new(), uncovered: Vec::new() };
    let mut covered = vec![false; all.len()];
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
            let (name, line, required) = (rule.name.clone(), rule.line, rule.required);
            report.idle_rules.push(IdleRule { rule: name, line, required });
        }
    }
    let open = all.iter().zip(&covered).filter(|((diagnosis, _), covered)| {
        !**covered && !diagnosis.subject.member && !diagnosis.subject.vacant()
    });
    report.uncovered = open.map(|((_, facts), _)| facts.name.clone()).collect();
    report
}

fn apply(rule: &Rule, diagnosis: &Diagnosis, facts: &Facts) -> Outcome {
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
            OriginKind::Unknown => "nobody knows who set it, which is forbidden".to_owned(),
            kind => format!("set by {}, which is forbidden", kind.word()),
        };
        violations.push(format!("{what} ({})", diagnosis.origin.summary));
    }
    Outcome {
        rule: rule.name.clone(),
        line: rule.line,
        storage: facts.name.clone(),
        bdi: diagnosis.subject.bdi.clone(),
        read_ahead: value,
        origin: diagnosis.origin.clone(),
        violations,
    }
}
