//! Advice against the present value, and against other advice.

use host::BdiId;
use serde::Serialize;
use units::Kib;

use super::{Applies, Where, running};
use crate::Scene;

/// Whether a storage has what is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It has.
    Follows,
    /// It has less.
    Below,
    /// It has more.
    Above,
    /// The advice is no number for a device.
    NoNumber,
}

/// Advice and what one storage has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The storage.
    pub bdi: BdiId,
    /// What it has.
    #[serde(rename = "read_ahead_kib")]
    pub present: Kib,
    /// How that compares.
    pub standing: Standing,
}

/// Two pieces of advice for one storage that no value follows both of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// The storage.
    pub bdi: BdiId,
    /// One.
    pub one: Applies,
    /// The other.
    pub other: Applies,
}

/// Compares advice with what its storage has.
pub fn compare(scene: &Scene, applies: &Applies) -> Vec<Comparison> {
    let Where::Bdis(bdis) = &applies.storage else { return Vec::new() };
    let subjects = bdis.iter().filter_map(|bdi| scene.subject(bdi));
    subjects
        .map(|subject| {
            let present = subject.read_ahead;
            let range = applies.preset.advice.range().filter(|_| applies.preset.about_device());
            let standing = match range {
                None => Standing::NoNumber,
                Some((low, _)) if present < low => Standing::Below,
                Some((_, high)) if present > high => Standing::Above,
                Some(_) => Standing::Follows,
            };
            Comparison { bdi: subject.bdi.clone(), present, standing }
        })
        .collect()
}

/// Every pair of present advice for one storage that contradicts itself.
pub fn contradictions(scene: &Scene) -> Vec<Contradiction> {
    let counts = |applies: &&Applies| applies.preset.about_device() && !applies.preset.outdated();
    let running: Vec<&Applies> = running(scene).iter().filter(counts).collect();
    let mut found = Vec::new();
    for (index, one) in running.iter().enumerate() {
        for other in &running[index + 1..] {
            if !one.preset.advice.contradicts(&other.preset.advice) {
                continue;
            }
            let (Where::Bdis(here), Where::Bdis(there)) = (&one.storage, &other.storage) else {
                continue;
            };
            for bdi in here.iter().filter(|bdi| there.contains(bdi)) {
                found.push(Contradiction {
                    bdi: bdi.clone(),
                    one: (*one).clone(),
                    other: (*other).clone(),
                });
            }
        }
    }
    found
}
