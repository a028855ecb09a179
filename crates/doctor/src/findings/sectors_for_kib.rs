//! Confused units: a number of sectors used as KiB, or KiB used as sectors.

use host::owners::Claim;
use units::Kib;

use super::Detector;
use crate::claims::last_word;
use crate::finding::{Basis, Finding, Proposal, Remedy, Severity};
use crate::host_presets::running;
use crate::presets::{self, Sectors};
use crate::{Diagnosis, Evidence, HostSnapshot};

pub(super) const DETECTOR: Detector = Detector { id: "sectors-for-kib", look };

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    of_comment(diagnosis).or_else(|| of_vendor(snapshot, diagnosis))
}

const WHY: &str = "read_ahead_kb counts KiB, blockdev --setra and LVM count 512-byte sectors, and \
                   much advice gives a number without either: the window is then twice or half of \
                   what was meant";

/// Detects a comment that names another unit than the setting that it describes.
fn of_comment(diagnosis: &Diagnosis) -> Option<Finding> {
    let (claim, meant) = diagnosis.claims.iter().find_map(|claim| Some((claim, meant(claim)?)))?;
    let got = claim.wanted.kib()?;
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Warning,
        title: format!("{} sets {got}, where its comment means {meant}", claim.owner.name()),
        why: WHY.to_owned(),
        evidence: vec![
            Evidence::in_line(claim.text.clone(), claim.place.clone()),
            Evidence::in_line(
                format!("comment: {}", claim.comment.as_deref().unwrap_or("")),
                claim.place.clone(),
            ),
        ],
        // If a later owner is effective, this file has no effect.
        remedy: match last_word(&diagnosis.claims) == Some(claim) {
            true => Remedy::Set(Proposal::new(meant, Basis::Comment, "what the comment means")),
            false => Remedy::EditOwner,
        },
        fixes: Vec::new(),
    })
}

/// Returns the value that the comment of a claim states, if it is the same number in another unit.
fn meant(claim: &Claim) -> Option<Kib> {
    let got = claim.wanted.kib()?;
    let comment = claim.comment.as_deref()?.to_lowercase();
    let by_sectors = claim.text.contains("--setra") || claim.text.contains("(sectors)");
    let says = |words: &[&str]| words.iter().any(|word| comment.contains(word));
    let sectors = says(&["sector", "512-byte", "512 byte", "setra"]);
    let kib = says(&["kib", "kilobyte", " kb", "in kb"]) || comment.starts_with("kb");
    let number = if by_sectors { got.get().checked_mul(2)? } else { got.get() };
    // A comment that names both units explains the conversion.
    if sectors == kib || !comment.contains(&number.to_string()) && !sectors && !kib {
        return None;
    }
    match by_sectors {
        true if kib => Some(Kib::new(number)),
        false if sectors => Some(Kib::new(number / 2)),
        _ => None,
    }
}

/// Detects a value in KiB that equals a number which a vendor publishes in sectors.
fn of_vendor(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let value = diagnosis.read_ahead();
    // 128 KiB is the usual default, and values up to 8 KiB are rarely recommended.
    if value.get() <= 8 || value == Kib::new(128) {
        return None;
    }
    // Detecting the running software is slow, so this check comes first.
    let numbers = presets::groups().iter().filter_map(|group| group.sectors);
    if !numbers.into_iter().any(|(_, high)| high == value.get()) {
        return None;
    }
    let applying = running(snapshot);
    let (preset, Sectors { low, high }) = applying.iter().find_map(|preset| {
        let sectors = preset.preset.in_sectors()?;
        (value.get() == sectors.high && value.get() != sectors.low).then_some((preset, sectors))
    })?;
    let meant = Kib::new(high / 2);
    let range = if low == high { high.to_string() } else { format!("{low} to {high}") };
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Warning,
        title: format!(
            "{value} is the number that {} gives in sectors ({range}, so {meant})",
            preset.preset.software
        ),
        why: WHY.to_owned(),
        evidence: vec![
            Evidence::new(preset.because.clone()),
            Evidence::new(format!("{}: {}", preset.preset.source_title, preset.preset.source_ref)),
            Evidence::in_file(
                format!("read-ahead is {value}"),
                diagnosis.subject.bdi.dir().join("read_ahead_kb"),
            ),
        ],
        remedy: Remedy::Set(Proposal::new(
            meant,
            Basis::Vendor,
            format!("what {} publishes, in KiB", preset.preset.software),
        )),
        fixes: Vec::new(),
    })
}
