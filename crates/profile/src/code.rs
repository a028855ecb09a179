//! Finds the part of a file that is code.

use std::collections::BTreeMap;

use observe::AdviceCallKind;
use policy::{Extent, Page};
use units::Pages;

use crate::advice_values::SEQUENTIAL_VALUE;
use crate::recording::{AccessKind, AdviceRecord, FileAccess, PAGE_BYTES, ProfileRecording};

/// Minimum number of faults that identify code.
const MIN_CODE_FAULTS: usize = 2;
/// Maximum number of other faults between them, as a share of the faults of code.
const MAX_OTHER_SHARE: f64 = 0.1;

/// Returns the part of each file that is mapped executable. Since Linux 6.17, a miss there reads
/// from its page on; elsewhere it reads as much before the page as after it. On architectures that
/// want larger folios for code, such as arm64, windows begin before the page, and no code is found.
pub(crate) fn mapped_code(recording: &ProfileRecording) -> BTreeMap<u32, Extent> {
    // Windows of mappings with `MADV_SEQUENTIAL` also begin at the fault.
    let is_sequential =
        |one: &AdviceRecord| one.call == AdviceCallKind::Madvise && one.advice == SEQUENTIAL_VALUE;
    if recording.advice.iter().any(is_sequential) {
        return BTreeMap::new();
    }
    let mut faults: BTreeMap<u32, Vec<&FileAccess>> = BTreeMap::new();
    for one in &recording.accesses {
        let has_window = one.marks == 0 && one.largest_window.get() > PAGE_BYTES;
        if one.kind == AccessKind::Fault && has_window {
            faults.entry(one.inode).or_default().push(one);
        }
    }
    let code = faults.iter().map(|(inode, faults)| Some((*inode, code_of(recording, faults)?)));
    code.flatten().collect()
}

/// Returns the part of a file that is code, inferred from faults that read a window.
fn code_of(recording: &ProfileRecording, faults: &[&FileAccess]) -> Option<Extent> {
    let (mut code, mut others) = (Vec::new(), Vec::new());
    for fault in faults {
        let Some((start, end)) = recording.first_window(fault) else { continue };
        match start == fault.offset.get() && start > 0 {
            true => code.push((start, end)),
            false => others.push(fault.offset.get()),
        }
    }
    let start = code.iter().map(|(start, _)| *start).min()?;
    let end = code.iter().map(|(_, end)| *end).max()?;
    let between = others.iter().filter(|at| (start..end).contains(at)).count();
    let is_code =
        code.len() >= MIN_CODE_FAULTS && between as f64 <= MAX_OTHER_SHARE * code.len() as f64;
    let pages = Pages::new((end - start).div_ceil(PAGE_BYTES));
    is_code.then(|| Extent::new(Page::new(start / PAGE_BYTES), pages))
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Nanos};

    use super::*;
    use crate::recording::SubmittedPages;

    /// Records faults, given as pairs of the faulting page and the first page of its window.
    fn recorded(faults: &[(u64, u64)]) -> ProfileRecording {
        let mut recording = ProfileRecording::default();
        for (number, (page, window)) in (1..).zip(faults) {
            let at = Nanos::from_millis(number);
            let bytes = |pages: u64| Bytes::new(pages * PAGE_BYTES);
            recording.accesses.push(FileAccess {
                kind: AccessKind::Fault,
                offset: bytes(*page),
                largest_window: bytes(32),
                ..FileAccess::cached(at, at + Nanos::from_micros(500))
            });
            recording.submitted.push(SubmittedPages {
                at: at + Nanos::from_micros(1),
                tid: 1,
                inode: 0,
                offset: bytes(*window),
                length: bytes(32),
                is_window: true,
            });
        }
        recording
    }

    #[test]
    fn code_is_where_windows_begin_at_the_fault() {
        let recording = recorded(&[(4, 0), (500, 500), (300, 300), (900, 884), (700, 700)]);
        let code = mapped_code(&recording);
        assert_eq!((code[&0].start.get(), code[&0].end().get()), (300, 732));
        assert_eq!(code.get(&1), None);
    }

    #[test]
    fn a_mapping_whose_faults_differ_is_none() {
        assert!(mapped_code(&recorded(&[(50, 34), (300, 284), (20, 4)])).is_empty());
        assert!(mapped_code(&recorded(&[(50, 50), (70, 54), (90, 90)])).is_empty());
    }
}
