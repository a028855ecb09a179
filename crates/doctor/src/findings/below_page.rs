//! A setting that the kernel rounds down to zero.

use host::owners::Wanted;

use super::Detector;
use crate::finding::{Finding, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot};

pub(super) struct BelowPage;

impl Detector for BelowPage {
    fn id(&self) -> &'static str {
        "below-page"
    }

    fn summary(&self) -> &'static str {
        "A file sets less than a page, which the kernel rounds down to 0."
    }

    fn look(&self, snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
        let claim = diagnosis.claims.iter().find(|claim| {
            let Wanted::Exactly(kib) = claim.wanted else { return false };
            kib.get() > 0 && snapshot.floored(kib).get() == 0
        })?;
        let page = snapshot.page.bytes();
        Some(Finding {
            id: self.id(),
            severity: Severity::Warning,
            title: format!(
                "{} asks for {}, less than a page of {page}: that becomes 0",
                claim.owner.name(),
                claim.wanted
            ),
            why: "the kernel keeps read-ahead in whole pages and rounds down; without read-ahead, \
                  large reads are split into single pages"
                .to_owned(),
            evidence: vec![Evidence::at(claim.text.clone(), claim.place.clone())],
            remedy: Remedy::EditOwner,
            fixes: Vec::new(),
        })
    }
}
