//! Data that was in memory before the recording.

use std::collections::{BTreeSet, HashMap};

use rangemap::RangeSet;
use units::Nanos;

use crate::pieces::MappedPiece;
use crate::recording::{PageTouch, ProfileRecording, SubmittedPages};
use crate::spans::merged;

/// Accesses to data that was in memory before the recording: they miss nothing, and no recorded
/// submission contains their data. Empty if no submissions were recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct WarmAccesses {
    accesses: BTreeSet<u32>,
    /// Touches of mapped pages, by thread and time.
    touches: BTreeSet<(u32, Nanos)>,
}

impl WarmAccesses {
    pub(crate) fn of(recording: &ProfileRecording) -> Self {
        if recording.submitted.is_empty() {
            return Self::default();
        }
        let mut order: Vec<u32> = (0..recording.accesses.len() as u32).collect();
        order.sort_by_key(|place| recording.accesses[*place as usize].end);
        let mut touches: Vec<&PageTouch> = recording.touches.iter().collect();
        touches.sort_by_key(|touch| touch.at);
        let mut touches = touches.into_iter().peekable();
        let mut submitted = SubmittedRanges::new(recording);
        let mut warm = Self::default();
        for place in order {
            let access = &recording.accesses[place as usize];
            while let Some(touch) = touches.next_if(|touch| touch.at <= access.end) {
                warm.touch(touch, &mut submitted);
            }
            submitted.advance(access.end);
            let touched = [access.offset.get(), (access.offset + access.length).get() - 1];
            let waited = access.blocked > Nanos::ZERO || access.misses > 0 || access.marks > 0;
            if !waited && !touched.into_iter().any(|at| submitted.contains(access.inode, at)) {
                warm.accesses.insert(place);
            }
        }
        touches.for_each(|touch| warm.touch(touch, &mut submitted));
        warm
    }

    fn touch(&mut self, touch: &PageTouch, submitted: &mut SubmittedRanges<'_>) {
        submitted.advance(touch.at);
        if !submitted.contains(touch.inode, touch.offset.get()) {
            self.touches.insert((touch.tid, touch.at));
        }
    }

    pub(crate) fn contains(&self, place: u32) -> bool {
        self.accesses.contains(&place)
    }

    /// Returns whether a touch without an access is warm.
    pub(crate) fn contains_touch(&self, piece: &MappedPiece) -> bool {
        self.touches.contains(&(piece.tid, piece.start))
    }
}

/// The submitted ranges of each file up to a time that only increases.
struct SubmittedRanges<'a> {
    ahead: std::iter::Peekable<std::vec::IntoIter<&'a SubmittedPages>>,
    files: HashMap<u32, RangeSet<u64>>,
}

impl<'a> SubmittedRanges<'a> {
    fn new(recording: &'a ProfileRecording) -> Self {
        let mut submitted: Vec<&SubmittedPages> = recording.submitted.iter().collect();
        submitted.sort_by_key(|pages| pages.at);
        Self { ahead: submitted.into_iter().peekable(), files: HashMap::new() }
    }

    fn advance(&mut self, to: Nanos) {
        while let Some(pages) = self.ahead.next_if(|pages| pages.at <= to) {
            let range = (pages.offset.get(), (pages.offset + pages.length).get());
            self.files.entry(pages.inode).or_default().extend(merged([range]));
        }
    }

    fn contains(&self, inode: u32, at: u64) -> bool {
        self.files.get(&inode).is_some_and(|set| set.contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{FileAccess, PAGE_BYTES};
    use units::Bytes;

    fn access(tid: u32, start: u64, end: u64) -> FileAccess {
        FileAccess { tid, ..FileAccess::cached(Nanos::new(start), Nanos::new(end)) }
    }

    #[test]
    fn what_nobody_submitted_was_in_memory_before() {
        let accesses = vec![
            access(1, 0, 10),
            FileAccess { misses: 1, ..access(1, 20, 30) },
            FileAccess { offset: Bytes::new(PAGE_BYTES), ..access(1, 40, 50) },
            FileAccess { offset: Bytes::new(9 * PAGE_BYTES), ..access(1, 60, 70) },
        ];
        let mut recording = ProfileRecording { accesses, ..ProfileRecording::default() };
        recording.submitted.push(SubmittedPages {
            at: Nanos::new(25),
            tid: 1,
            inode: 0,
            offset: Bytes::ZERO,
            length: Bytes::new(4 * PAGE_BYTES),
            is_window: true,
        });
        assert_eq!(WarmAccesses::of(&recording).accesses, BTreeSet::from([0, 3]));
    }
}
