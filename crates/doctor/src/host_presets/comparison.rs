//! Recommendations compared with the current value and with each other.

use host::BdiId;
use serde::Serialize;
use units::Kib;

use super::running;
use crate::HostSnapshot;
use crate::presets::{Applies, Where};

/// The position of a storage relative to a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    Follows,
    Below,
    Above,
    /// The recommendation is not a number for a device.
    NoNumber,
}

/// A recommendation and the current value of a storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub bdi: BdiId,
    #[serde(rename = "read_ahead_kib")]
    pub present: Kib,
    pub position: Position,
}

/// Two recommendations for one storage that no value follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    pub bdi: BdiId,
    pub one: Applies,
    pub other: Applies,
}

/// Compares a recommendation with the current value.
pub fn compare(snapshot: &HostSnapshot, applies: &Applies) -> Vec<Comparison> {
    let Where::Bdis(bdis) = &applies.storage else { return Vec::new() };
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

/// All pairs of contradictory recommendations for one storage.
pub fn contradictions(snapshot: &HostSnapshot) -> Vec<Contradiction> {
    let counts = |applies: &&Applies| applies.preset.about_device() && !applies.preset.outdated();
    let running: Vec<&Applies> = running(snapshot).iter().filter(counts).collect();
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
