//! A power-of-two window on a file system with large folios.

use host::{BdiId, LargeFolios, Layer, LayerKind, Mount, Storage, StorageKind};
use units::Kib;

use super::Detector;
use crate::finding::{Basis, Finding, Fix, Proposal, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot};

pub(super) const DETECTOR: Detector = Detector { id: "power-of-two", look };

/// No difference was measured below this window.
const MIN_WINDOW_KIB: Kib = Kib::new(512);

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let value = diagnosis.read_ahead();
    if !value.get().is_power_of_two() || value < MIN_WINDOW_KIB {
        return None;
    }
    // Since 6.17 the kernel aligns the ends of windows, which makes them smaller.
    let since = host::KernelRelease { major: 6, minor: 17 };
    let filesystem = diagnosis.subject.filesystems().find(|layer| {
        large_folios(snapshot, &diagnosis.subject.bdi, layer) == Some(LargeFolios::Yes)
    })?;
    if snapshot.kernel < since {
        return None;
    }
    let fstype = filesystem.fstype().unwrap_or("it").to_owned();
    let better = Kib::new(value.get() / 16 * 17);
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Notice,
        title: format!("{value} is a power of two, and {fstype} has large folios"),
        why: format!(
            "on such file systems windows that are powers of two grow slowly after each start \
             and lose their mark when several streams share an open file; {better} (17/16 of \
             it) does not (measured on 6.18: eight streams 0.12 s instead of 0.23 s)"
        ),
        evidence: vec![
            Evidence::in_file(
                format!("{fstype} on Linux {} uses large folios", snapshot.kernel),
                "/proc/self/mountinfo",
            ),
            Evidence::in_file(
                format!("read-ahead is {value}"),
                diagnosis.subject.bdi.dir().join("read_ahead_kb"),
            ),
        ],
        remedy: Remedy::Refine(Proposal::new(
            better,
            Basis::Usual,
            format!("17/16 of {value}, which ramps better with large folios"),
        )),
        fixes: vec![Fix::new(
            "measure whether that helps your workload",
            format!(
                "foreread sweep {} --vary read_ahead={}K,{}K",
                diagnosis.on,
                value.get(),
                better.get()
            ),
        )],
    })
}

fn large_folios(snapshot: &HostSnapshot, bdi: &BdiId, layer: &Layer) -> Option<LargeFolios> {
    let LayerKind::Filesystem { fstype, source, points, options } = &layer.kind else {
        return None;
    };
    let mount = Mount {
        point: points.first()?.clone(),
        fstype: fstype.clone(),
        source: source.clone(),
        options: options.clone(),
        read_only: false,
    };
    let storage = Storage {
        path: mount.point.clone(),
        kind: StorageKind::Directory,
        mount: Some(mount),
        bdi: bdi.clone(),
        devices: Vec::new(),
        leaves: Vec::new(),
    };
    storage.large_folios(snapshot.kernel)
}
