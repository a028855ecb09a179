//! A value that will not survive a reboot.

use super::Detector;
use crate::finding::{Finding, Remedy, Severity};
use crate::{Diagnosis, HostSnapshot, OriginKind};

pub(super) const DETECTOR: Detector = Detector { id: "not-persistent", look };

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let subject = &diagnosis.subject;
    if diagnosis.origin.kind != OriginKind::Unknown || subject.member || subject.is_virtual_disk() {
        return None;
    }
    let owner = subject.owner()?;
    let default = host::kernel_default(snapshot.kernel, snapshot.page, owner)?;
    let value = diagnosis.read_ahead();
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Notice,
        title: format!("no file sets {value}: after a reboot it will be {}", default.read_ahead),
        why: "it was set manually, or by a program that leaves no trace; no udev rule, \
              profile or unit that foreread can see will set it again"
            .to_owned(),
        evidence: diagnosis.origin.evidence.clone(),
        remedy: Remedy::Persist,
        fixes: Vec::new(),
    })
}
