//! What was in memory before the recording.

use std::collections::{BTreeSet, HashMap};

use units::Nanos;

use crate::ranges::RangeMap;
use crate::recording::ProfileRecording;

/// Accesses to what was in memory before the recording began: they miss nothing, and nobody
/// submitted what they read. Where nothing is known of what was submitted, there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct WarmAccesses(BTreeSet<u32>);

impl WarmAccesses {
    pub(crate) fn of(recording: &ProfileRecording) -> Self {
        if recording.submitted.is_empty() {
            return Self::default();
        }
        let mut order: Vec<u32> = (0..recording.accesses.len() as u32).collect();
        order.sort_by_key(|place| recording.accesses[*place as usize].end);
        let mut submitted: Vec<_> = recording.submitted.iter().collect();
        submitted.sort_by_key(|pages| pages.at);
        let mut submitted = submitted.into_iter().peekable();
        let mut read: HashMap<u32, RangeMap<()>> = HashMap::new();
        let mut warm = BTreeSet::new();
        for place in order {
            let access = &recording.accesses[place as usize];
            while let Some(pages) = submitted.next_if(|pages| pages.at <= access.end) {
                let end = (pages.offset + pages.length).get();
                read.entry(pages.inode).or_default().insert(pages.offset.get(), end, ());
            }
            let touched = [access.offset.get(), (access.offset + access.length).get() - 1];
            let is_read = |at| read.get(&access.inode).is_some_and(|map| map.get(at).is_some());
            let waited = access.blocked > Nanos::ZERO || access.misses > 0 || access.marks > 0;
            if !waited && !touched.into_iter().any(is_read) {
                warm.insert(place);
            }
        }
        Self(warm)
    }

    pub(crate) fn contains(&self, place: u32) -> bool {
        self.0.contains(&place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{FileAccess, PAGE_BYTES, SubmittedPages};
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
        assert_eq!(WarmAccesses::of(&recording).0, BTreeSet::from([0, 3]));
    }
}
