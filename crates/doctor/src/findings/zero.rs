//! No read-ahead at all.

use host::KernelRule;

use super::{Detector, tune, usual};
use crate::finding::{Basis, Finding, Proposal, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot, OriginKind};

pub(super) const DETECTOR: Detector = Detector { id: "zero", look };

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let subject = &diagnosis.subject;
    let own = matches!(diagnosis.origin.kind, OriginKind::Kernel(KernelRule::None));
    if subject.read_ahead.get() != 0 || own {
        return None;
    }
    let page = snapshot.page.bytes();
    let requests = 65536 / page.get();
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Warning,
        title: format!("read-ahead is 0: a read of 64 KiB becomes {requests} requests"),
        why: format!(
            "0 does not mean \"only what is asked for\": the kernel then reads one page \
             ({page}) at a time, even within one read. Random reads gain nothing from it, \
             because they are not read ahead anyway."
        ),
        evidence: vec![Evidence::in_file(
            "read-ahead is 0",
            subject.bdi.dir().join("read_ahead_kb"),
        )],
        remedy: Remedy::Set(Proposal::new(
            usual(snapshot, diagnosis),
            Basis::Usual,
            "the kernel's usual value for this device",
        )),
        fixes: vec![tune(diagnosis)],
    })
}
