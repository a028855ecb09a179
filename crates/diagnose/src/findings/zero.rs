//! No read-ahead at all.

use host::KernelRule;

use super::{Basis, Finding, Found, Proposal, Remedy, Severity, tune, usual};
use crate::{Diagnosis, Evidence, OriginKind, Scene};

pub(super) struct Zero;

impl Finding for Zero {
    fn id(&self) -> &'static str {
        "zero"
    }

    fn summary(&self) -> &'static str {
        "Read-ahead is 0, which cuts large reads into single pages."
    }

    fn look(&self, scene: &Scene, diagnosis: &Diagnosis) -> Option<Found> {
        let subject = &diagnosis.subject;
        let own = matches!(diagnosis.origin.kind, OriginKind::Kernel(KernelRule::None));
        if subject.read_ahead.get() != 0 || own {
            return None;
        }
        let page = scene.page.bytes();
        let requests = 65536 / page.get();
        Some(Found {
            id: self.id(),
            severity: Severity::Warning,
            title: format!("read-ahead is 0: a read of 64 KiB becomes {requests} requests"),
            why: format!(
                "0 does not mean \"only what is asked for\": the kernel then reads one page \
                 ({page}) at a time, even within one read. Random reads gain nothing by it, as \
                 they are not read ahead anyway."
            ),
            evidence: vec![Evidence::in_file(
                "read-ahead is 0",
                subject.bdi.dir().join("read_ahead_kb"),
            )],
            remedy: Remedy::Set(Proposal::new(
                usual(scene, diagnosis),
                Basis::Usual,
                "the kernel's usual value for this device",
            )),
            mend: vec![tune(diagnosis)],
        })
    }
}
