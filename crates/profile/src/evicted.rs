//! Waits for pages that were in memory before and left it.

use std::collections::{HashMap, HashSet};

use rangemap::{RangeMap, RangeSet};
use units::{Bytes, Nanos};

use crate::recording::{FileAccess, PageEviction, ProfileRecording, StorageWait};
use crate::spans::{covered, merged};
use crate::stream::FileStream;

/// Reason why a page had left the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    Advised,
    ReclaimedUsed,
    ReclaimedUnused,
}

/// Number and total time of waits of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitSum {
    pub count: u64,
    pub waited: Nanos,
}

/// Waits of a stream for pages that were in memory before, by reason of the eviction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepeatedWaits {
    /// Pages that the program's advice had dropped.
    pub advised: WaitSum,
    /// Pages reclaimed after they were used.
    pub used: WaitSum,
    /// Pages reclaimed before the program used them.
    pub unused: WaitSum,
}

/// An event of a file.
enum Step<'a> {
    Access(&'a FileAccess),
    Eviction(&'a PageEviction),
    /// A wait and the index of its stream.
    Wait(&'a StorageWait, usize),
}

/// Pages of a file that were used since they were read, and why other pages left the cache.
#[derive(Default)]
struct FilePages {
    used: RangeSet<Bytes>,
    gone: RangeMap<Bytes, Departure>,
}

/// Returns the waits of each stream for pages that were in memory before.
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
    // A wait counts from its start: before its access, and after earlier evictions.
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
                // Accesses between kept stretches are unknown.
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

/// Returns the bytes read before the first reclaim of a page of this file; `None` if none.
pub(crate) fn bytes_before_reclaim(recording: &ProfileRecording, inode: u32) -> Option<Bytes> {
    let reclaims = recording.evictions.iter().filter(|one| one.inode == inode && !one.is_advised);
    let first = reclaims.map(|one| one.at).min()?;
    let own = recording.requests.iter().filter(|one| one.is_read && one.neighbour.is_none());
    let reads = own.filter(|one| one.end <= first);
    Some(reads.map(|one| one.length).sum())
}

/// Returns the bytes that a stream covers; 0 if it reads over 10 % more than it covers.
pub(crate) fn one_touch_bytes(recording: &ProfileRecording, stream: &FileStream) -> u64 {
    let accesses = stream.accesses(recording);
    let ranges = accesses.map(|one| (one.offset.get(), (one.offset + one.length).get()));
    let bytes = covered(&merged(ranges));
    if stream.shape.bytes > bytes + bytes / 10 { 0 } else { bytes }
}
