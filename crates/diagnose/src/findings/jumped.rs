//! A value that the kernel raised by itself, silently.

use host::{KernelRule, LayerKind};
use units::Kib;

use super::{Basis, Finding, Found, Proposal, Remedy, Severity, tune};
use crate::{Diagnosis, Evidence, OriginKind, Scene};

pub(super) struct Jumped;

/// Thirty-two times what everybody takes for the default.
pub(super) const FAR: Kib = Kib::new(4096);
/// What the kernel gives to devices without wishes of their own (`VM_READAHEAD_PAGES`).
pub(super) const USUAL: Kib = Kib::new(128);

impl Finding for Jumped {
    fn id(&self) -> &'static str {
        "jumped"
    }

    fn summary(&self) -> &'static str {
        "The kernel chose much more than 128 KiB by itself, as kernels before it did not."
    }

    fn look(&self, scene: &Scene, diagnosis: &Diagnosis) -> Option<Found> {
        let value = diagnosis.read_ahead();
        let rule = match diagnosis.origin.kind {
            OriginKind::Kernel(rule) | OriginKind::KernelEarlier(rule) => rule,
            _ => return None,
        };
        let owner = diagnosis.subject.owner()?;
        // An array's stripe, and what a network disk asks for, are meant.
        let meant = matches!(owner.kind, LayerKind::Md { .. } | LayerKind::Dm { .. });
        let because = match rule {
            KernelRule::Rotational if value > USUAL => {
                "Linux 6.17 began to give devices that look rotational twice their largest \
                 request; before, this device had 128 KiB"
            }
            KernelRule::OptimalIo if value >= FAR && !meant => {
                "the device names a large optimal_io_size, and the kernel takes twice that"
            }
            _ => return None,
        };
        let turns = matches!(&owner.kind, LayerKind::Disk { transport: "scsi", .. });
        let looks = owner.queue.as_ref().is_some_and(|queue| queue.rotational == Some(true));
        let severity =
            if value >= FAR && !(turns && looks) { Severity::Warning } else { Severity::Notice };
        let mut why = format!(
            "{because}. Long sequential reads gain by it; random reads of mapped files read up to \
             {value} for each 4 KiB, and each stream may hold twice the window in memory"
        );
        if looks && !turns {
            why.push_str(". It is marked rotational; a virtual disk or loop device seldom is");
        }
        let mut evidence = diagnosis.origin.evidence.clone();
        evidence.push(Evidence::in_file(
            format!("the kernel is {}", scene.kernel),
            "/proc/sys/kernel/osrelease",
        ));
        // A disk that does turn may well gain by it: there only a measurement can say.
        let remedy = match severity {
            Severity::Warning => Remedy::Set(Proposal::new(
                USUAL,
                Basis::Usual,
                "what the kernel gives to devices that name no size of their own",
            )),
            Severity::Notice => Remedy::Measure,
        };
        Some(Found {
            id: self.id(),
            severity,
            title: format!(
                "the kernel chose {value} by itself: {} times the old default",
                value.get() / USUAL.get()
            ),
            why,
            evidence,
            remedy,
            mend: vec![tune(diagnosis)],
        })
    }
}
