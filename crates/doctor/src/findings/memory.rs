//! Concurrent read-ahead that does not fit into memory.

use units::{Bytes, Kib, largest_window, read_ahead_memory};

use super::{Detector, tune};
use crate::finding::{Basis, Finding, Proposal, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot};

pub(super) const DETECTOR: Detector = Detector { id: "memory", look };

/// The assumed number of concurrent streams of a server: clients, a backup, a scan.
const LIKELY_STREAMS: u64 = 32;

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let available = snapshot.memory_available.filter(|bytes| bytes.get() > 0)?;
    let value = diagnosis.read_ahead();
    let streams = streams(snapshot, diagnosis, value);
    let counted = streams > LIKELY_STREAMS;
    let need = read_ahead_memory(value.to_bytes(), streams);
    if need <= available {
        return None;
    }
    let fitting = fitting(snapshot, available, streams);
    let from = if counted {
        "larger files are open for reading now"
    } else {
        "streams are typical of a busy server; fewer are open now, or they could not be counted"
    };
    Some(Finding {
        id: DETECTOR.id,
        severity: if counted { Severity::Warning } else { Severity::Notice },
        title: format!(
            "{streams} streams at {value} need {} of memory, but only {} is available",
            need.rounded(),
            available.rounded()
        ),
        why: "each stream keeps up to two windows in the page cache; when they do not fit, \
              read-ahead data is evicted before it is used and is read again (measured: 64 \
              streams in 24 MiB read 4 to 6 times as much as they used)"
            .to_owned(),
        evidence: vec![
            Evidence::new(format!("{streams} {from}")),
            Evidence::in_file(format!("MemAvailable is {}", available.rounded()), "/proc/meminfo"),
        ],
        remedy: Remedy::AtMost(Proposal::new(
            fitting,
            Basis::Memory,
            format!("the largest power of two of which {streams} streams fit into memory"),
        )),
        fixes: vec![tune(diagnosis)],
    })
}

/// Returns the number of large files that are open for reading, or `LIKELY_STREAMS` if more.
fn streams(snapshot: &HostSnapshot, diagnosis: &Diagnosis, value: Kib) -> u64 {
    // A smaller file never fills its window.
    let window = value.to_bytes();
    let open = snapshot.windows.on(&diagnosis.subject.bdi);
    let large = open.filter(|file| file.cached && !file.random && file.size >= window);
    (large.count() as u64).max(LIKELY_STREAMS)
}

/// Returns the largest power of two that fits into memory, in KiB, and the number of streams that
/// it is for. `None` if `value` fits, or if the available memory is unknown.
pub(crate) fn most_by_memory(
    snapshot: &HostSnapshot,
    diagnosis: &Diagnosis,
    value: Kib,
) -> Option<(Kib, u64)> {
    let available = snapshot.memory_available.filter(|bytes| bytes.get() > 0)?;
    let streams = streams(snapshot, diagnosis, value);
    let fits = read_ahead_memory(value.to_bytes(), streams) <= available;
    (!fits).then(|| (fitting(snapshot, available, streams), streams))
}

/// Returns the largest power of two that fits into memory with this many streams; at least a page.
fn fitting(snapshot: &HostSnapshot, available: Bytes, streams: u64) -> Kib {
    let most = largest_window(available, streams).to_kib_floor().get();
    let smallest = snapshot.page.bytes().to_kib_floor().get();
    let kib = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
    Kib::new(kib.max(smallest))
}
