//! A value that will be gone after a reboot.

use super::Detector;
use crate::finding::{Finding, Remedy, Severity};
use crate::{Diagnosis, HostSnapshot, OriginKind};

pub(super) struct NotPersistent;

impl Detector for NotPersistent {
    fn id(&self) -> &'static str {
        "not-persistent"
    }

    fn summary(&self) -> &'static str {
        "No file asks for the value that is there, so a reboot will take it away."
    }

    fn look(&self, snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
        if diagnosis.origin.kind != OriginKind::Unknown || diagnosis.subject.member {
            return None;
        }
        let owner = diagnosis.subject.owner()?;
        let default = host::kernel_default(snapshot.kernel, snapshot.page, owner)?;
        let value = diagnosis.read_ahead();
        Some(Finding {
            id: self.id(),
            severity: Severity::Notice,
            title: format!(
                "nothing here asks for {value}: a reboot will make it {}",
                default.read_ahead
            ),
            why: "it was written by hand, or by a program that leaves no trace; no udev rule, \
                  profile or unit that foreread can see will write it again"
                .to_owned(),
            evidence: diagnosis.origin.evidence.clone(),
            remedy: Remedy::Persist,
            fixes: Vec::new(),
        })
    }
}
