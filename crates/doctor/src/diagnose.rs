//! Diagnoses the bdis of a host.

use std::collections::BTreeMap;

use host::Subject;

use crate::diagnosis::{Diagnosis, OpenHere};
use crate::origin::{claims_on, origin, unseen};
use crate::{HostSnapshot, findings};

/// Diagnoses every bdi of a snapshot.
pub fn diagnose(snapshot: &HostSnapshot) -> Vec<Diagnosis> {
    snapshot.survey.subjects.iter().map(|subject| of_subject(snapshot, subject)).collect()
}

fn of_subject(snapshot: &HostSnapshot, subject: &Subject) -> Diagnosis {
    let mut origins = BTreeMap::new();
    let mut own_claims = Vec::new();
    for layer in subject.stacks.iter().flat_map(host::Layer::walk) {
        let Some(bdi) = &layer.bdi else { continue };
        if origins.contains_key(bdi) {
            continue;
        }
        let claims = claims_on(snapshot, subject, layer);
        origins.insert(bdi.clone(), origin(snapshot, subject, layer, &claims));
        if *bdi == subject.bdi {
            own_claims = claims;
        }
    }
    let own = origins.get(&subject.bdi).cloned().unwrap_or_else(|| unseen(snapshot, subject));
    let mut diagnosis = Diagnosis {
        subject: subject.clone(),
        on: crate::plan::on(snapshot, subject),
        origin: own,
        origins,
        claims: own_claims,
        open: open(snapshot, subject),
        findings: Vec::new(),
    };
    diagnosis.findings = findings::look(snapshot, &diagnosis);
    diagnosis
}

fn open(snapshot: &HostSnapshot, subject: &Subject) -> Option<OpenHere> {
    if snapshot.windows.unseen.is_some() {
        return None;
    }
    let cached = || snapshot.windows.on(&subject.bdi).filter(|file| file.cached);
    Some(OpenHere {
        files: cached().count(),
        outdated: cached().filter(|file| file.outdated()).cloned().collect(),
    })
}
