//! A large value that the kernel chose.

use host::{KernelRule, LayerKind};
use units::Kib;

use super::{Detector, tune};
use crate::finding::{Basis, Finding, Proposal, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot, OriginKind};

pub(super) const DETECTOR: Detector = Detector { id: "jumped", look };

pub(super) const FAR_ABOVE_DEFAULT_KIB: Kib = Kib::new(4096);
/// The kernel's value for devices that report no limits (`VM_READAHEAD_PAGES`).
pub(super) const DEFAULT_READ_AHEAD_KIB: Kib = Kib::new(128);

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let value = diagnosis.read_ahead();
    let rule = match diagnosis.origin.kind {
        OriginKind::Kernel(rule) | OriginKind::KernelEarlier(rule) => rule,
        _ => return None,
    };
    let owner = diagnosis.subject.owner()?;
    // A large value is intended for the stripes of an array and for device mapper.
    let meant = matches!(owner.kind, LayerKind::Md { .. } | LayerKind::Dm { .. });
    let because = match rule {
        KernelRule::Rotational if value > DEFAULT_READ_AHEAD_KIB => {
            "since Linux 6.17, devices that appear rotational get twice their largest \
             request; before, this device had 128 KiB"
        }
        KernelRule::OptimalIo if value >= FAR_ABOVE_DEFAULT_KIB && !meant => {
            "the device reports a large optimal_io_size, and the kernel uses twice that"
        }
        _ => return None,
    };
    let turns = matches!(&owner.kind, LayerKind::Disk { transport: "scsi", .. });
    let looks = owner.queue.as_ref().is_some_and(|queue| queue.rotational == Some(true));
    let severity = if value >= FAR_ABOVE_DEFAULT_KIB && !(turns && looks) {
        Severity::Warning
    } else {
        Severity::Notice
    };
    let mut why = format!(
        "{because}. Long sequential reads gain from it; random reads of mapped files read up \
         to {value} for each 4 KiB, and each stream may hold twice the window in memory"
    );
    if looks && !turns {
        why.push_str(". It is marked rotational; a virtual disk or loop device seldom is");
    }
    let mut evidence = diagnosis.origin.evidence.clone();
    evidence.push(Evidence::in_file(
        format!("the kernel is {}", snapshot.kernel),
        "/proc/sys/kernel/osrelease",
    ));
    // A real disk may be faster with it; only a measurement can show that.
    let remedy = match severity {
        Severity::Warning => Remedy::Set(Proposal::new(
            DEFAULT_READ_AHEAD_KIB,
            Basis::Usual,
            "the kernel's value for devices without a size of their own",
        )),
        Severity::Notice => Remedy::Measure,
    };
    Some(Finding {
        id: DETECTOR.id,
        severity,
        title: format!(
            "the kernel chose {value}: {} times the old default",
            value.get() / DEFAULT_READ_AHEAD_KIB.get()
        ),
        why,
        evidence,
        remedy,
        fixes: vec![tune(diagnosis)],
    })
}
