//! Waits for pages that had been in memory before.

use rangemap::{RangeMap, RangeSet};
use units::{Bytes, Nanos};

use crate::recording::{FileAccess, PageEviction, ProfileRecording, StorageWait};
use crate::spans::{covered, merged};
use crate::stream::FileStream;

/// How a page that is waited for had left the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Dropped by the program's advice.
    Advised,
    /// Reclaimed after it was used.
    ReclaimedUsed,
    /// Reclaimed before the program came to it.
    ReclaimedUnused,
}

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepeatedWaits {
    pub count: u64,
    pub waited: Nanos,
}

/// What happens to one file, in the order of time.
enum Step<'a> {
    Access(&'a FileAccess),
    Eviction(&'a PageEviction),
    Wait(&'a StorageWait),
}

/// Waits of a stream for pages that had left in this way.
pub(crate) fn repeated_waits(
    recording: &ProfileRecording,
    stream: &FileStream,
    departures: &[Departure],
) -> RepeatedWaits {
    let mut result = RepeatedWaits::default();
    if !recording.evictions.iter().any(|one| one.inode == stream.inode) {
        return result;
    }
    let of_file = |inode: u32| inode == stream.inode;
    // A wait comes before its access, and after what was evicted before it began.
    let accesses = recording.accesses.iter().filter(|one| of_file(one.inode));
    let evictions = recording.evictions.iter().filter(|one| of_file(one.inode));
    let mut steps: Vec<(Nanos, Step<'_>)> =
        accesses.map(|one| (one.end, Step::Access(one))).collect();
    steps.extend(evictions.map(|one| (one.at, Step::Eviction(one))));
    steps.extend(
        stream.waits(recording).map(|one| (one.end.saturating_sub(one.blocked), Step::Wait(one))),
    );
    steps.sort_by_key(|(at, _)| *at);
    let (mut used, mut gone) = (RangeSet::new(), RangeMap::new());
    for (_, step) in steps {
        match step {
            Step::Access(access) => {
                used.extend(merged([(access.offset, access.offset + access.length)]));
            }
            Step::Eviction(one) => {
                // What happened between kept stretches is not known.
                let is_used = recording.kept_of.is_some() || used.contains(&one.offset);
                let departure = match (one.is_advised, is_used) {
                    (true, _) => Departure::Advised,
                    (false, true) => Departure::ReclaimedUsed,
                    (false, false) => Departure::ReclaimedUnused,
                };
                for pages in merged([(one.offset, one.offset + one.length)]) {
                    gone.insert(pages.clone(), departure);
                    used.remove(pages);
                }
            }
            Step::Wait(wait) => {
                let departure = gone.get(&wait.offset);
                if departure.is_some_and(|departure| departures.contains(departure)) {
                    result.count += 1;
                    result.waited += wait.blocked;
                }
            }
        }
    }
    result
}

/// What was read before the kernel first reclaimed a page of this file; `None` if it did not.
pub(crate) fn bytes_before_reclaim(recording: &ProfileRecording, inode: u32) -> Option<Bytes> {
    let reclaims = recording.evictions.iter().filter(|one| one.inode == inode && !one.is_advised);
    let first = reclaims.map(|one| one.at).min()?;
    let own = recording.requests.iter().filter(|one| one.is_read && one.neighbour.is_none());
    let reads = own.filter(|one| one.end <= first);
    Some(reads.map(|one| one.length).sum())
}

/// The bytes of a stream that no access returns to; 0 if it reads a tenth more than it covers.
pub(crate) fn one_touch_bytes(recording: &ProfileRecording, stream: &FileStream) -> u64 {
    let accesses = stream.accesses(recording);
    let ranges = accesses.map(|one| (one.offset.get(), (one.offset + one.length).get()));
    let bytes = covered(&merged(ranges));
    if stream.shape.bytes > bytes + bytes / 10 { 0 } else { bytes }
}
