//! Turns the recorded accesses into steps of readers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use observe::AdviceCallKind;
use units::Nanos;
use workload::RangeAdvice;

use crate::advice_values::{DONTNEED_VALUE, WILLNEED_VALUE};
use crate::pieces::{MappedPiece, mapped_pieces};
use crate::recording::{AccessKind, AdviceRecord, FileAccess, PageEviction, ProfileRecording};
use crate::stream::{FileStream, StreamKey};
use crate::waits::PageWaits;
use crate::warm::WarmAccesses;

/// Maximum number of steps: with more calls, several contiguous ones form one step.
const MAX_STEPS: u64 = 300_000;

/// Open-file key of steps in which the kernel reclaims pages, as `DONTNEED` would.
pub(crate) const RECLAIM_KEY: u64 = u64::MAX;

/// A read, a fault or an advice call, before changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub key: StreamKey,
    /// The simulated reader: threads that ran one after another share a lane.
    pub lane: u32,
    pub tid: u32,
    pub offset: u64,
    pub length: u64,
    /// Time before the step, except waits for pages, in nanoseconds.
    pub think: u64,
    /// True if it begins where the previous step of its lane ended.
    pub is_contiguous: bool,
    /// True if its data was in memory before the recording.
    pub is_warm: bool,
    /// The advice that it gives for the range, if it is not a read.
    pub advice: Option<RangeAdvice>,
}

impl Step {
    pub(crate) fn is_reclaim(&self) -> bool {
        self.key.1 == RECLAIM_KEY
    }
}

/// Bound of the bytes that a touch of a mapping stands for, if their number is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceBound {
    /// The bytes that were certainly touched: the page itself.
    Least,
    /// The range that was mapped with the page and follows it.
    Most,
}

/// An action of a thread.
#[derive(Clone, Copy, Debug)]
enum Action<'a> {
    Read(&'a FileAccess, bool),
    /// A touch, its access unless the page was cached, and whether it was in memory before.
    Touch(MappedPiece, Option<&'a FileAccess>, bool),
    Advice(&'a AdviceRecord, RangeAdvice),
    /// A reclaim, meanwhile, of pages that are read again.
    Reclaim(&'a PageEviction),
}

impl Action<'_> {
    fn tid(&self) -> u32 {
        match self {
            Self::Read(access, _) => access.tid,
            Self::Touch(piece, _, _) => piece.tid,
            Self::Advice(advice, _) => advice.tid,
            Self::Reclaim(_) => 0,
        }
    }

    fn span(&self) -> (Nanos, Nanos) {
        match self {
            Self::Read(access, _) => (access.start, access.end),
            Self::Touch(piece, _, _) => (piece.start, piece.end),
            Self::Advice(advice, _) => (advice.at, advice.at),
            Self::Reclaim(eviction) => (eviction.at, eviction.at),
        }
    }

    /// Returns the stream, and the offset and the length in bytes.
    fn range(&self, bound: PieceBound) -> (StreamKey, u64, u64) {
        match self {
            Self::Read(access, _) => {
                ((access.inode, access.file), access.offset.get(), access.length.get())
            }
            Self::Touch(piece, _, _) => {
                let length = if bound == PieceBound::Least { piece.least } else { piece.most };
                ((piece.inode, 0), piece.offset, length)
            }
            Self::Advice(advice, _) => {
                let key = (advice.inode.unwrap_or_default(), advice.file);
                (key, advice.offset, advice.length.get())
            }
            Self::Reclaim(one) => ((one.inode, RECLAIM_KEY), one.offset.get(), one.length.get()),
        }
    }

    /// Returns the number of calls of equal length that it stands for.
    fn calls(&self) -> u64 {
        match self {
            Self::Read(access, _) => u64::from(access.calls.max(1)),
            Self::Touch(..) | Self::Advice(..) | Self::Reclaim(_) => 1,
        }
    }

    fn is_warm(&self) -> bool {
        matches!(self, Self::Read(_, true) | Self::Touch(_, _, true))
    }

    fn advice(&self) -> Option<RangeAdvice> {
        match self {
            Self::Advice(_, advice) => Some(*advice),
            Self::Reclaim(_) => Some(RangeAdvice::DontNeed),
            Self::Read(..) | Self::Touch(..) => None,
        }
    }

    /// Returns its time without waits for pages, in nanoseconds.
    fn working(&self, waits: &PageWaits) -> u64 {
        match self {
            Self::Read(access, _) | Self::Touch(_, Some(access), _) => waits.working(access).get(),
            Self::Touch(_, None, _) | Self::Advice(..) | Self::Reclaim(_) => 0,
        }
    }
}

/// Returns the steps of all lanes; those of each lane are in order.
pub(crate) fn steps(
    recording: &ProfileRecording,
    streams: &[&FileStream],
    warm: &WarmAccesses,
    waits: &PageWaits,
    bound: PieceBound,
) -> Vec<Step> {
    let actions = actions(recording, streams, warm);
    let all: u64 = actions.iter().map(|(_, action)| action.calls()).sum();
    let calls_of_step = all.div_ceil(MAX_STEPS).max(1);
    let mut steps: Vec<Step> = Vec::new();
    let mut before: Option<(u32, Action<'_>)> = None;
    for (lane, action) in actions {
        let last = before.filter(|(of, _)| *of == lane).map(|(_, action)| action);
        // Counted from the program start, so that a prefetcher has the time before the first read.
        let since = last.map_or(Nanos::ZERO, |last| last.span().1);
        let idle = action.span().0.saturating_sub(since).get();
        let (key, offset, length) = action.range(bound);
        let follows = last.is_some_and(|last| {
            let (of, start, length) = last.range(bound);
            (of, start + length) == (key, offset) && last.advice().is_none()
        });
        let is_reclaim = matches!(action, Action::Reclaim(_));
        let idle = if is_reclaim { 0 } else { idle };
        let (calls, working) = (action.calls(), action.working(waits));
        let length = length / calls;
        for first in (0..calls).step_by(calls_of_step as usize) {
            let count = calls_of_step.min(calls - first);
            steps.push(Step {
                key,
                lane,
                tid: action.tid(),
                offset: offset + first * length,
                length: count * length,
                think: working * count / calls + if first == 0 { idle } else { 0 },
                is_contiguous: first > 0 || follows,
                is_warm: action.is_warm(),
                advice: action.advice(),
            });
        }
        if !is_reclaim {
            before = Some((lane, action));
        }
    }
    steps
}

/// Returns the actions of all threads on the files of these streams, by lane and time.
fn actions<'a>(
    recording: &'a ProfileRecording,
    streams: &[&FileStream],
    warm: &WarmAccesses,
) -> Vec<(u32, Action<'a>)> {
    let reads = streams.iter().filter(|stream| stream.kind == AccessKind::Read);
    let reads = reads
        .flat_map(|stream| stream.accesses.iter().copied())
        .map(|place| Action::Read(&recording.accesses[place as usize], warm.contains(place)));
    let mapped: BTreeSet<u32> = streams
        .iter()
        .filter(|stream| stream.kind == AccessKind::Fault)
        .map(|stream| stream.inode)
        .collect();
    let pieces = mapped_pieces(recording).into_iter().filter(|piece| mapped.contains(&piece.inode));
    let touches = pieces.map(|piece| {
        let access = piece.access.map(|place| &recording.accesses[place as usize]);
        let is_warm = match piece.access {
            Some(place) => warm.contains(place),
            None => warm.contains_touch(&piece),
        };
        Action::Touch(piece, access, is_warm)
    });
    let opens: BTreeSet<StreamKey> = streams.iter().map(|stream| stream.key()).collect();
    let advice = recording.advice.iter().filter_map(|advice| {
        let key = (advice.inode?, advice.file);
        (advice.file != 0 && advice.result == 0 && opens.contains(&key)).then_some(())?;
        Some(Action::Advice(advice, range_advice(advice)?))
    });
    let actions: Vec<Action<'a>> = reads.chain(touches).chain(advice).collect();
    let lanes = lanes(actions.iter());
    let mut actions: Vec<(u32, Action<'a>)> =
        actions.into_iter().map(|action| (lanes[&action.tid()], action)).collect();
    let reclaims = reclaims(recording, &actions);
    actions.extend(reclaims);
    actions.sort_by_key(|(lane, action)| (*lane, action.span().0));
    actions
}

/// Returns reclaims of files that are read again, in the lane that reads the file next.
fn reclaims<'a>(
    recording: &'a ProfileRecording,
    actions: &[(u32, Action<'a>)],
) -> Vec<(u32, Action<'a>)> {
    let mut reads: BTreeMap<u32, Vec<(Nanos, u32)>> = BTreeMap::new();
    for (lane, action) in actions {
        if let Action::Read(access, _) = action {
            reads.entry(access.inode).or_default().push((access.start, *lane));
        }
    }
    reads.values_mut().for_each(|reads| reads.sort_unstable());
    let reclaimed = recording.evictions.iter().filter(|one| !one.is_advised);
    let reclaims = reclaimed.filter_map(|one| {
        let reads = reads.get(&one.inode)?;
        let (_, lane) = reads.get(reads.partition_point(|(start, _)| *start < one.at))?;
        Some((*lane, Action::Reclaim(one)))
    });
    reclaims.collect()
}

/// Returns the advice if it reads or drops pages; other advice is a property of an open file.
fn range_advice(advice: &AdviceRecord) -> Option<RangeAdvice> {
    match (advice.call, advice.advice) {
        (AdviceCallKind::Readahead, _) | (AdviceCallKind::Fadvise, WILLNEED_VALUE) => {
            Some(RangeAdvice::WillNeed)
        }
        (AdviceCallKind::Fadvise, DONTNEED_VALUE) => Some(RangeAdvice::DontNeed),
        _ => None,
    }
}

/// Returns the lane of each thread. A thread that starts after another's last access continues in
/// its lane, like the commands of a shell: if one exits earlier, the next one starts earlier.
fn lanes<'a>(actions: impl Iterator<Item = &'a Action<'a>>) -> HashMap<u32, u32> {
    let mut spans: BTreeMap<u32, (Nanos, Nanos)> = BTreeMap::new();
    for action in actions {
        let (start, end) = action.span();
        let span = spans.entry(action.tid()).or_insert((start, end));
        *span = (span.0.min(start), span.1.max(end));
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
    use units::Bytes;

    use super::*;

    fn access(tid: u32, start: u64, end: u64) -> FileAccess {
        FileAccess { tid, ..FileAccess::cached(Nanos::new(start), Nanos::new(end)) }
    }

    #[test]
    fn commands_of_a_shell_share_a_lane_and_threads_beside_one_another_do_not() {
        let accesses = [access(1, 0, 10), access(2, 5, 30), access(3, 12, 20), access(3, 20, 40)];
        let actions = accesses.each_ref().map(|access| Action::Read(access, false));
        let lanes = lanes(actions.iter());
        assert_eq!(lanes[&1], lanes[&3]);
        assert_ne!(lanes[&1], lanes[&2]);
    }

    #[test]
    fn pages_are_reclaimed_before_the_next_read_of_their_file() {
        let other = |tid, start, end| FileAccess { inode: 1, ..access(tid, start, end) };
        let accesses = [other(1, 0, 40), access(2, 10, 20), access(2, 50, 60)];
        let actions: Vec<_> = accesses.iter().map(|it| (it.tid, Action::Read(it, false))).collect();
        let eviction = |at, is_advised| PageEviction {
            at: Nanos::new(at),
            inode: 0,
            offset: Bytes::ZERO,
            length: Bytes::new(4096),
            is_advised,
        };
        // Advice is in the steps already, and evictions without a later read do not matter.
        let evictions = vec![eviction(30, false), eviction(31, true), eviction(70, false)];
        let recording = ProfileRecording { evictions, ..ProfileRecording::default() };
        let found = reclaims(&recording, &actions);
        let lanes: Vec<_> = found.iter().map(|(lane, action)| (*lane, action.span().0)).collect();
        assert_eq!(lanes, [(2, Nanos::new(30))]);
        let (key, ..) = found[0].1.range(PieceBound::Most);
        assert_eq!(key, (0, RECLAIM_KEY));
    }
}
