//! Large mapped files on a device with a large window.

use units::{Bytes, Kib};

use super::Detector;
use crate::finding::{Finding, Fix, Remedy, Severity};
use crate::{Diagnosis, Evidence, HostSnapshot};

pub(super) const DETECTOR: Detector = Detector { id: "mapped-files", look };

/// With a smaller window, a random fault reads only a little more than necessary.
const LARGE_WINDOW: Kib = Kib::new(512);
/// The amount that one process must map on this bdi to be reported.
const MIN_MAPPED_BYTES: Bytes = Bytes::from_mib(64);
const MOST_NAMED: usize = 4;

fn look(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Option<Finding> {
    let value = diagnosis.read_ahead();
    if value < LARGE_WINDOW {
        return None;
    }
    let devices: Vec<_> =
        diagnosis.subject.filesystems().filter_map(|layer| layer.device).collect();
    let mut heavy: Vec<(u32, String, Bytes)> = Vec::new();
    for mapping in snapshot.mappings.iter().filter(|mapping| devices.contains(&mapping.device)) {
        match heavy.iter_mut().find(|(pid, ..)| *pid == mapping.pid) {
            Some((_, _, size)) => *size += mapping.size,
            None => heavy.push((mapping.pid, mapping.name.clone(), mapping.size)),
        }
    }
    heavy.retain(|(.., size)| *size >= MIN_MAPPED_BYTES);
    heavy.sort_by_key(|(.., size)| std::cmp::Reverse(size.get()));
    let (pid, name, _) = heavy.first()?;
    let others = match heavy.len() - 1 {
        0 => String::new(),
        1 => " and another process".to_owned(),
        others => format!(" and {others} other processes"),
    };
    let evidence = heavy.iter().take(MOST_NAMED).map(|(pid, name, size)| {
        let fact = format!("{name} ({pid}) maps {:.0} MiB of files here", size.as_mib());
        Evidence::in_file(fact, format!("/proc/{pid}/maps"))
    });
    Some(Finding {
        id: DETECTOR.id,
        severity: Severity::Warning,
        title: format!(
            "large files are mapped under a window of {value}, by {name} ({pid}){others}"
        ),
        why: format!(
            "a fault in a mapped file reads up to {value} around it, sequential or not \
             (measured for random 4 KiB: 29 times too much at 128 KiB, 242 times at 8 MiB). \
             Only MADV_RANDOM in the program, or a smaller window, helps; FADV_RANDOM does not"
        ),
        evidence: evidence.collect(),
        remedy: Remedy::Measure,
        fixes: vec![Fix::new(
            "measure random reads of mapped files and streams; if the program reads at \
             random, a window of 64 KiB or less serves it better",
            format!("foreread sweep {} --workload rand-mmap --workload seq-8", diagnosis.on),
        )],
    })
}
