//! Waits for pages that had been in memory before.

use std::collections::{HashMap, HashSet};

use rangemap::{RangeMap, RangeSet};
use units::{Bytes, Nanos};

use crate::recording::{FileAccess, PageEviction, ProfileRecording, StorageWait};
use crate::spans::{covered, merged};
use crate::stream::FileStream;

/// How a page that is waited for had left the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    Advised,
    ReclaimedUsed,
    ReclaimedUnused,
}

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitSum {
    pub count: u64,
    pub waited: Nanos,
}

/// Waits of a stream for pages that had been in memory before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepeatedWaits {
    /// For pages that the program's advice had dropped.
    pub advised: WaitSum,
    /// For pages that were reclaimed after they were used.
    pub used: WaitSum,
    /// For pages that were reclaimed before the program came to them.
    pub unused: WaitSum,
}

/// What happens to a file, in the order of time.
enum Step<'a> {
    Access(&'a FileAccess),
    Eviction(&'a PageEviction),
    /// With the place of its stream.
    Wait(&'a StorageWait, usize),
}

/// Which pages of a file were used since they came, and how the others had left.
#[derive(Default)]
struct FilePages {
    used: RangeSet<Bytes>,
    gone: RangeMap<Bytes, Departure>,
}

/// The repeated waits of each of these streams.
pub(crate) fn repeated_waits(
    recording: &ProfileRecording,
    streams: &[&FileStream],
) -> Vec<RepeatedWaits> {
    let mut result = vec![RepeatedWaits::default(); streams.len()];
    let evicted: HashSet<u32> = recording.evictions.iter().map(|one| one.inode).collect();
    let of_streams = streams.iter().map(|stream| stream.inode);
    let mut files: HashMap<u32, FilePages> = of_streams
        .filter(|inode| evicted.contains(inode))
        .map(|inode| (inode, FilePages::default()))
        .collect();
    if files.is_empty() {
        return result;
    }
    // A wait comes before its access, and after what was evicted before it began.
    let mut steps: Vec<(Nanos, u32, Step<'_>)> = Vec::new();
    steps.extend(recording.accesses.iter().map(|one| (one.end, one.inode, Step::Access(one))));
    steps.extend(recording.evictions.iter().map(|one| (one.at, one.inode, Step::Eviction(one))));
    for (place, stream) in streams.iter().enumerate() {
        for one in stream.waits(recording) {
            steps.push((one.start(), stream.inode, Step::Wait(one, place)));
        }
    }
    steps.retain(|(_, inode, _)| files.contains_key(inode));
    steps.sort_by_key(|(at, ..)| *at);
    for (_, inode, step) in steps {
        let Some(file) = files.get_mut(&inode) else { continue };
        match step {
            Step::Access(access) => {
                file.used.extend(merged([(access.offset, access.offset + access.length)]));
            }
            Step::Eviction(one) => {
                // What happened between kept stretches is not known.
                let is_used = recording.kept_of.is_some() || file.used.contains(&one.offset);
                let departure = match (one.is_advised, is_used) {
                    (true, _) => Departure::Advised,
                    (false, true) => Departure::ReclaimedUsed,
                    (false, false) => Departure::ReclaimedUnused,
                };
                for pages in merged([(one.offset, one.offset + one.length)]) {
                    file.gone.insert(pages.clone(), departure);
                    file.used.remove(pages);
                }
            }
            Step::Wait(wait, place) => {
                let sum = match file.gone.get(&wait.offset) {
                    Some(Departure::Advised) => &mut result[place].advised,
                    Some(Departure::ReclaimedUsed) => &mut result[place].used,
                    Some(Departure::ReclaimedUnused) => &mut result[place].unused,
                    None => continue,
                };
                sum.count += 1;
                sum.waited += wait.blocked;
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
