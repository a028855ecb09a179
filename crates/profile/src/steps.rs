//! The recorded accesses as steps of readers.

use std::collections::{BTreeMap, HashMap};

use units::Nanos;

use crate::recording::{AccessKind, FileAccess, PAGE_BYTES, ProfileRecording};
use crate::stream::{FileStream, StreamKey};
use crate::warm::WarmAccesses;

/// A read or fault before it is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub key: StreamKey,
    /// Who does it: threads that ran one after another share a lane.
    pub lane: u32,
    pub tid: u32,
    pub offset: u64,
    pub length: u64,
    /// The program's own time before it, in nanoseconds.
    pub think: u64,
    /// It begins where the one before it in its lane ended.
    pub goes_on: bool,
    /// What it reads was in memory before the recording.
    pub is_warm: bool,
}

/// The steps of all lanes, each lane's in order.
pub(crate) fn steps(
    recording: &ProfileRecording,
    streams: &[&FileStream],
    warm: &WarmAccesses,
) -> Vec<Step> {
    let places: Vec<u32> =
        streams.iter().flat_map(|stream| stream.accesses.iter().copied()).collect();
    let access = |place: u32| &recording.accesses[place as usize];
    let lanes = lanes(places.iter().map(|place| access(*place)));
    let mut accesses: Vec<(u32, &FileAccess, bool)> = places
        .iter()
        .map(|place| (lanes[&access(*place).tid], access(*place), warm.contains(*place)))
        .collect();
    accesses.sort_by_key(|(lane, access, _)| (*lane, access.start));
    let first = accesses.iter().map(|(_, access, _)| access.start).min().unwrap_or_default();
    let mut steps = Vec::new();
    let mut last: Option<(u32, &FileAccess)> = None;
    for (index, (lane, access, is_warm)) in accesses.iter().copied().enumerate() {
        let before = last.filter(|(before, _)| *before == lane).map(|(_, access)| access);
        let since = before.map_or(first, |last| last.end);
        let idle = access.start.saturating_sub(since).get();
        let working = access.end.saturating_sub(access.start).saturating_sub(access.blocked).get();
        let calls = u64::from(access.calls);
        let length = match access.kind {
            AccessKind::Fault => {
                let next = accesses.get(index + 1).filter(|next| next.1.tid == access.tid);
                mapped_length(access, next.map(|next| next.1))
            }
            AccessKind::Read => access.length.get() / calls.max(1),
        };
        for call in 0..calls {
            steps.push(Step {
                key: (access.inode, access.file),
                lane,
                tid: access.tid,
                offset: access.offset.get() + call * length,
                length,
                think: working / calls + if call == 0 { idle } else { 0 },
                goes_on: call > 0 || before.is_some_and(|last| follows(last, access)),
                is_warm,
            });
        }
        last = Some((lane, access));
    }
    steps
}

/// What a fault stands for: up to the next one if that goes on, as what it maps along with its own
/// page does not fault.
fn mapped_length(access: &FileAccess, next: Option<&FileAccess>) -> u64 {
    let next = next.filter(|next| next.inode == access.inode && next.kind == access.kind);
    let gap = next.and_then(|next| next.offset.get().checked_sub(access.offset.get()));
    gap.filter(|gap| (PAGE_BYTES..=64 << 10).contains(gap)).unwrap_or(access.length.get())
}

fn follows(last: &FileAccess, next: &FileAccess) -> bool {
    (last.inode, last.file) == (next.inode, next.file) && last.offset + last.length == next.offset
}

/// The lane of each thread. A thread that began after another's last access goes on in its lane, as
/// the commands of a shell do: if one is done earlier, the next one begins earlier.
fn lanes<'a>(accesses: impl Iterator<Item = &'a FileAccess>) -> HashMap<u32, u32> {
    let mut spans: BTreeMap<u32, (Nanos, Nanos)> = BTreeMap::new();
    for access in accesses {
        let span = spans.entry(access.tid).or_insert((access.start, access.end));
        *span = (span.0.min(access.start), span.1.max(access.end));
    }
    let mut spans: Vec<(u32, (Nanos, Nanos))> = spans.into_iter().collect();
    spans.sort_by_key(|(_, (start, _))| *start);
    let mut ends: Vec<Nanos> = Vec::new();
    let mut lanes = HashMap::new();
    for (tid, (start, end)) in spans {
        let over = (0..ends.len()).filter(|lane| ends[*lane] <= start);
        let lane = over.max_by_key(|lane| ends[*lane]).unwrap_or(ends.len());
        if lane == ends.len() {
            ends.push(end);
        }
        ends[lane] = end;
        lanes.insert(tid, lane as u32);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(tid: u32, start: u64, end: u64) -> FileAccess {
        FileAccess { tid, ..FileAccess::cached(Nanos::new(start), Nanos::new(end)) }
    }

    #[test]
    fn commands_of_a_shell_share_a_lane_and_threads_beside_one_another_do_not() {
        let accesses = [access(1, 0, 10), access(2, 5, 30), access(3, 12, 20), access(3, 20, 40)];
        let lanes = lanes(accesses.iter());
        assert_eq!(lanes[&1], lanes[&3]);
        assert_ne!(lanes[&1], lanes[&2]);
    }
}
