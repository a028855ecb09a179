//! Compares recommendations with the current values and with each other.

use host::BdiId;
use serde::Serialize;
use units::Kib;

use super::running;
use crate::HostSnapshot;
use crate::presets::{Applies, AppliesTo};

/// How a storage's current value compares with a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    Follows,
    Below,
    Above,
    /// The recommendation is not a number, or not about the device.
    NoNumber,
}

/// A storage's current value compared with a recommendation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub bdi: BdiId,
    #[serde(rename = "read_ahead_kib")]
    pub present: Kib,
    pub position: Position,
}

/// Two recommendations for one storage that no single value satisfies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    pub bdi: BdiId,
    pub one: Applies,
    pub other: Applies,
}

/// Compares a recommendation with the current value of each storage that it applies to.
pub fn compare(snapshot: &HostSnapshot, applies: &Applies) -> Vec<Comparison> {
    let AppliesTo::Bdis(bdis) = &applies.storage else { return Vec::new() };
    let subjects = bdis.iter().filter_map(|bdi| snapshot.subject(bdi));
    subjects
        .map(|subject| {
            let present = subject.read_ahead;
            let range = applies.preset.advice.range().filter(|_| applies.preset.about_device());
            let position = match range {
                None => Position::NoNumber,
                Some((low, _)) if present < low => Position::Below,
                Some((_, high)) if present > high => Position::Above,
                Some(_) => Position::Follows,
            };
            Comparison { bdi: subject.bdi.clone(), present, position }
        })
        .collect()
}

/// Returns all pairs of contradictory recommendations for one storage.
pub fn contradictions(snapshot: &HostSnapshot) -> Vec<Contradiction> {
    let counts = |applies: &&Applies| applies.preset.about_device() && !applies.preset.outdated();
    let running: Vec<&Applies> = running(snapshot).iter().filter(counts).collect();
    let mut found = Vec::new();
    for (index, one) in running.iter().enumerate() {
        for other in &running[index + 1..] {
            if !one.preset.advice.contradicts(&other.preset.advice) {
                continue;
            }
            let (AppliesTo::Bdis(here), AppliesTo::Bdis(there)) = (&one.storage, &other.storage)
            else {
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
