//! One bdi, explained.

use std::collections::BTreeMap;

use host::owners::Claim;
use host::{BdiId, Subject};
use serde::Serialize;
use units::Kib;

use crate::findings::{self, Found};
use crate::origin::{claims_on, origin, unseen};
use crate::{OpenWindow, Origin, Scene};

/// All that is to be said about a bdi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What it is.
    pub subject: Subject,
    /// What to call it on a command line, in quotes where a shell needs them.
    pub on: String,
    /// Where its read-ahead came from.
    pub origin: Origin,
    /// The origins of all bdis in its stacks, its own among them.
    pub origins: BTreeMap<BdiId, Origin>,
    /// What owners ask for it.
    pub claims: Vec<Claim>,
    /// What is open on it; `None` if that could not be seen.
    pub open: Option<OpenHere>,
    /// What is wrong.
    pub findings: Vec<Found>,
}

/// Files open on a bdi.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenHere {
    /// How many regular files are open for reading through the page cache.
    pub files: usize,
    /// Those that have another window than files opened now get.
    pub outdated: Vec<OpenWindow>,
}

/// Explains every bdi of a scene.
pub fn diagnose(scene: &Scene) -> Vec<Diagnosis> {
    scene.survey.subjects.iter().map(|subject| of_subject(scene, subject)).collect()
}

fn of_subject(scene: &Scene, subject: &Subject) -> Diagnosis {
    let mut origins = BTreeMap::new();
    let mut own_claims = Vec::new();
    for layer in subject.stacks.iter().flat_map(host::Layer::walk) {
        let Some(bdi) = &layer.bdi else { continue };
        if origins.contains_key(bdi) {
            continue;
        }
        let claims = claims_on(scene, subject, layer);
        origins.insert(bdi.clone(), origin(scene, subject, layer, &claims));
        if *bdi == subject.bdi {
            own_claims = claims;
        }
    }
    let own = origins.get(&subject.bdi).cloned().unwrap_or_else(|| unseen(scene, subject));
    let mut diagnosis = Diagnosis {
        subject: subject.clone(),
        on: crate::plan::on(scene, subject),
        origin: own,
        origins,
        claims: own_claims,
        open: open(scene, subject),
        findings: Vec::new(),
    };
    diagnosis.findings = findings::look(scene, &diagnosis);
    diagnosis
}

fn open(scene: &Scene, subject: &Subject) -> Option<OpenHere> {
    if scene.windows.unseen.is_some() {
        return None;
    }
    let cached = || scene.windows.on(&subject.bdi).filter(|file| file.cached);
    Some(OpenHere {
        files: cached().count(),
        outdated: cached().filter(|file| file.outdated()).cloned().collect(),
    })
}

impl Diagnosis {
    /// Whether files are read through it: not a member of an array, whose read-ahead does not
    /// count, a vacant device, or what cannot be seen from here.
    pub fn is_read_through(&self) -> bool {
        !self.subject.vacant() && !self.subject.member && !self.subject.stacks.is_empty()
    }

    /// The read-ahead that counts.
    pub fn read_ahead(&self) -> Kib {
        self.subject.read_ahead
    }
}
