//! A requested value that the kernel rounds down to zero.

use host::owners::Wanted;

use super::Detector;
use crate::finding::{Finding, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot};

pub(super) const DETECTOR: Detector = Detector { id: "below-page", look };

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let claim = diagnosis.claims.iter().find(|claim| {
        let Wanted::Exactly(kib) = claim.wanted else { return false };
        kib.get() > 0 && snapshot.floored(kib).get() == 0
    })?;
    let page = snapshot.page.bytes();
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Warning,
        title: format!(
            "{} asks for {}, less than a page of {page}: that becomes 0",
            claim.owner.name(),
            claim.wanted
        ),
        why: "the kernel keeps read-ahead in whole pages and rounds down; without read-ahead, \
              large reads are split into single pages"
            .to_owned(),
        evidence: vec![Evidence::in_line(claim.text.clone(), claim.place.clone())],
        remedy: Remedy::EditOwner,
        fixes: Vec::new(),
    })
}
