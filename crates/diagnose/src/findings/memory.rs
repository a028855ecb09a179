//! More read-ahead at once than there is memory.

use units::{Bytes, Kib, largest_window, read_ahead_memory};

use super::{Finding, Found, Mend, Severity, set_now, tune};
use crate::{Diagnosis, Evidence, Scene};

pub(super) struct Memory;

/// What a server may well read at once where nobody can count: clients, a backup, a scan.
const LIKELY_STREAMS: u64 = 32;

impl Finding for Memory {
    fn id(&self) -> &'static str {
        "memory"
    }

    fn summary(&self) -> &'static str {
        "Read-ahead of the likely streams needs more memory than is available."
    }

    fn look(&self, scene: &Scene, diagnosis: &Diagnosis) -> Option<Found> {
        let available = scene.memory_available.filter(|bytes| bytes.get() > 0)?;
        let value = diagnosis.read_ahead();
        let window = value.to_bytes();
        // Small files end before their window does.
        let streams = scene
            .windows
            .on(&diagnosis.subject.bdi)
            .filter(|file| file.cached && !file.random && file.size >= window)
            .count() as u64;
        let counted = streams > LIKELY_STREAMS;
        let streams = streams.max(LIKELY_STREAMS);
        let need = read_ahead_memory(window, streams);
        if need <= available {
            return None;
        }
        let fitting = fitting(scene, available, streams);
        let mib = |bytes: Bytes| format!("{:.0} MiB", bytes.as_mib());
        let from = if counted {
            "larger files are open for reading now"
        } else {
            "streams are what a busy server may well have; fewer are open now, or they could not \
             be counted"
        };
        Some(Found {
            id: self.id(),
            severity: if counted { Severity::Warning } else { Severity::Notice },
            title: format!(
                "{streams} streams at {value} would hold {}, and {} are free",
                mib(need),
                mib(available)
            ),
            why: "each stream keeps up to two windows in the page cache; when they do not fit, \
                  what was read ahead is evicted before it is used and read again (measured: 64 \
                  streams in 24 MiB read 4 to 6 times as much as they used)"
                .to_owned(),
            evidence: vec![
                Evidence::of(format!("{streams} {from}")),
                Evidence::in_file(format!("MemAvailable is {}", mib(available)), "/proc/meminfo"),
            ],
            mend: vec![
                Mend::new(
                    format!("set the largest value of which {streams} streams fit"),
                    set_now(diagnosis, fitting),
                ),
                tune(diagnosis),
            ],
        })
    }
}

/// The largest power of two of which so many streams fit.
fn fitting(scene: &Scene, available: Bytes, streams: u64) -> Kib {
    let most = largest_window(available, streams).to_kib_floor().get();
    let smallest = scene.page.bytes().to_kib_floor().get();
    let kib = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
    Kib::new(kib.max(smallest))
}
