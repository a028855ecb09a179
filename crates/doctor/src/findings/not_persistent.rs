//! A value that will not survive a reboot.

use super::Detector;
use crate::finding::{Finding, Remedy, Severity};
use crate::{Diagnosis, HostSnapshot, OriginKind};

pub(super) struct NotPersistent;

impl Detector for NotPersistent {
    fn id(&self) -> &'static str {
        "not-persistent"
    }

    fn summary(&self) -> &'static str {
        "No file sets the present value, so it will not survive a reboot."
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
                "no file sets {value}: after a reboot it will be {}",
                default.read_ahead
            ),
            why: "it was set manually, or by a program that leaves no trace; no udev rule, \
                  profile or unit that foreread can see will set it again"
                .to_owned(),
            evidence: diagnosis.origin.evidence.clone(),
            remedy: Remedy::Persist,
            fixes: Vec::new(),
        })
    }
}
