//! Applies changes to the steps of a replay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use policy::PolicySpec;
use units::Bytes;
use workload::RangeAdvice;

use crate::rules::FixChange;
use crate::steps::Step;
use crate::stream::StreamKey;

/// Changes of a replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes<'a> {
    pub streams: BTreeMap<StreamKey, &'a FixChange>,
    /// Window of all files; `None` leaves them as recorded.
    pub window: Option<Bytes>,
    /// Read-ahead algorithm; by default the kernel's.
    pub policy: PolicySpec,
}

/// Returns the changed steps, each with its reader; the steps of a reader are in order.
pub(crate) fn rewritten(steps: &[Step], changes: &Changes<'_>) -> Vec<(u32, Step)> {
    let mut rewriter = Rewriter::new(steps, changes);
    let has_memory = changes.streams.values().any(|one| **one == FixChange::EnoughMemory);
    for step in steps {
        match changes.streams.get(&step.key) {
            _ if step.is_reclaim() && has_memory => {}
            _ if step.advice.is_some() => rewriter.push(*step),
            _ if step.is_warm => rewriter.think(step),
            Some(FixChange::Chunks(size)) => rewriter.chunk(step, size.get().max(4096)),
            Some(FixChange::AskedChunks(size)) => rewriter.ask_chunks(step, size.get().max(4096)),
            Some(FixChange::WholeRuns) => rewriter.whole_run(step),
            Some(FixChange::AskedPieces) => rewriter.ask(step),
            Some(FixChange::AskedAhead(count)) => rewriter.ask_ahead(step, *count),
            _ => rewriter.push(*step),
        }
    }
    rewriter.finish()
}

#[derive(Debug, Default)]
struct Rewriter {
    steps: Vec<(u32, Step)>,
    /// Time of removed steps in nanoseconds, by lane.
    thinking: BTreeMap<u32, u64>,
    /// Pieces that were already read.
    loaded: BTreeSet<(StreamKey, u64)>,
    /// Pieces that each lane will request ahead.
    ahead: BTreeMap<(StreamKey, u32), PiecesAhead>,
    /// End of the last step, for each of these.
    read_to: BTreeMap<(StreamKey, u32), u64>,
    /// Index of the last added advice, by lane.
    asked: BTreeMap<u32, usize>,
}

/// Pieces of a stream, each a run of contiguous steps.
#[derive(Debug, Default)]
struct PiecesAhead {
    to_ask: VecDeque<Step>,
    /// Number of pieces that were requested and not yet read.
    asked: usize,
}

impl Rewriter {
    /// Finds the pieces to be requested ahead.
    fn new(steps: &[Step], changes: &Changes<'_>) -> Self {
        let mut rewriter = Self::default();
        let asks =
            |step: &&Step| matches!(changes.streams.get(&step.key), Some(FixChange::AskedAhead(_)));
        for step in steps.iter().filter(asks).filter(|it| it.advice.is_none() && !it.is_warm) {
            let pieces = &mut rewriter.ahead.entry((step.key, step.lane)).or_default().to_ask;
            match pieces.back_mut() {
                Some(last) if last.offset + last.length == step.offset => {
                    last.length += step.length;
                }
                _ => pieces.push_back(*step),
            }
        }
        rewriter
    }

    fn push(&mut self, step: Step) {
        let think = step.think + self.thinking.remove(&step.lane).unwrap_or(0);
        self.steps.push((step.lane, Step { think, ..step }));
    }

    fn think(&mut self, step: &Step) {
        *self.thinking.entry(step.lane).or_default() += step.think;
    }

    /// Returns the starts of the aligned pieces of a step that no earlier step touched.
    fn new_chunks(&mut self, step: &Step, size: u64) -> Vec<u64> {
        let last = (step.offset + step.length.max(1) - 1) / size;
        let chunks = step.offset / size..=last;
        let new = chunks.filter(|chunk| self.loaded.insert((step.key, *chunk)));
        new.map(|chunk| chunk * size).collect()
    }

    /// Reads whole aligned pieces at the first access of each; other accesses only take the
    /// program's time.
    fn chunk(&mut self, step: &Step, size: u64) {
        self.think(step);
        for offset in self.new_chunks(step, size) {
            self.push(Step { offset, length: size, think: 0, ..*step });
        }
    }

    /// Requests whole aligned pieces before the first access of each.
    fn ask_chunks(&mut self, step: &Step, size: u64) {
        self.think(step);
        let advice = Some(RangeAdvice::WillNeed);
        for offset in self.new_chunks(step, size) {
            self.push(Step { offset, length: size, think: 0, advice, ..*step });
        }
        self.push(Step { think: 0, ..*step });
    }

    /// Merges a run of contiguous steps into one read.
    fn whole_run(&mut self, step: &Step) {
        match self.steps.last_mut() {
            Some((lane, run))
                if step.is_contiguous
                    && *lane == step.lane
                    && run.key == step.key
                    && run.advice.is_none() =>
            {
                run.length += step.length;
                self.think(step);
            }
            _ => self.push(*step),
        }
    }

    /// Requests a piece before its first step.
    fn ask(&mut self, step: &Step) {
        let last = self.asked.get(&step.lane).map(|place| &mut self.steps[*place].1);
        let is_next =
            |last: &&mut Step| last.key == step.key && last.offset + last.length == step.offset;
        match last.filter(is_next) {
            Some(last) => {
                last.length += step.length;
                self.push(*step);
            }
            None => {
                self.asked.insert(step.lane, self.steps.len());
                self.push(Step { advice: Some(RangeAdvice::WillNeed), ..*step });
                self.push(Step { think: 0, ..*step });
            }
        }
    }

    /// Requests pieces until `count` are outstanding besides the one that begins here.
    fn ask_ahead(&mut self, step: &Step, count: usize) {
        self.think(step);
        let key = (step.key, step.lane);
        if self.read_to.insert(key, step.offset + step.length) != Some(step.offset)
            && let Some(mut pieces) = self.ahead.remove(&key)
        {
            pieces.asked = pieces.asked.saturating_sub(1);
            while pieces.asked <= count
                && let Some(piece) = pieces.to_ask.pop_front()
            {
                self.push(Step { advice: Some(RangeAdvice::WillNeed), think: 0, ..piece });
                pieces.asked += 1;
            }
            self.ahead.insert(key, pieces);
        }
        self.push(Step { think: 0, ..*step });
    }

    /// Keeps the time after the last read of each lane: one byte of this read is read again.
    fn finish(mut self) -> Vec<(u32, Step)> {
        for (lane, think) in std::mem::take(&mut self.thinking) {
            let mut of_lane = self.steps.iter().rev().filter(|(_, step)| step.lane == lane);
            if let Some((_, step)) = of_lane.next().copied()
                && think > 0
            {
                self.steps.push((lane, Step { length: 1, think, advice: None, ..step }));
            }
        }
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::RECLAIM_KEY;

    const KEY: StreamKey = (0, 7);

    fn step(offset: u64, is_contiguous: bool) -> Step {
        let (is_warm, advice) = (false, None);
        Step {
            key: KEY,
            lane: 1,
            tid: 9,
            offset,
            length: 4096,
            think: 10,
            is_contiguous,
            is_warm,
            advice,
        }
    }

    fn under(change: &FixChange, steps: &[Step]) -> Vec<(u32, u64, u64, u64)> {
        let changes = Changes { streams: BTreeMap::from([(KEY, change)]), ..Changes::default() };
        let result = rewritten(steps, &changes);
        result.into_iter().map(|(lane, it)| (lane, it.offset, it.length, it.think)).collect()
    }

    #[test]
    fn runs_become_one_read_and_keep_the_time_between() {
        let steps = [step(0, false), step(4096, true), step(40960, false)];
        let runs = under(&FixChange::WholeRuns, &steps);
        assert_eq!(runs, [(1, 0, 8192, 10), (1, 40960, 4096, 20)]);
    }

    #[test]
    fn a_piece_is_read_once() {
        let steps = [step(0, false), step(8192, false), step(70_000, false), step(0, false)];
        let pieces = under(&FixChange::Chunks(Bytes::from_kib(64)), &steps);
        assert_eq!(pieces, [(1, 0, 65536, 10), (1, 65536, 65536, 20), (1, 65536, 1, 10)]);
    }

    #[test]
    fn a_piece_of_a_mapping_is_asked_for_once() {
        let steps = [step(69_632, false), step(65_536, false), step(61_440, false)];
        let asked = under(&FixChange::AskedChunks(Bytes::from_kib(64)), &steps);
        let ranges: Vec<(u64, u64)> = asked.iter().map(|it| (it.1, it.2)).collect();
        let first = [(65_536, 65_536), (69_632, 4096), (65_536, 4096)];
        assert_eq!((&ranges[..3], &ranges[3..]), (&first[..], &[(0, 65_536), (61_440, 4096)][..]));
        let think: u64 = asked.iter().map(|it| it.3).sum();
        assert_eq!(think, 30);
    }

    #[test]
    fn pieces_are_asked_for_ahead_and_keep_the_time_between() {
        let steps = [0, 40_960, 81_920, 122_880].map(|offset| step(offset, false));
        let asked = under(&FixChange::AskedAhead(1), &steps);
        let offsets: Vec<u64> = asked.iter().map(|(_, offset, ..)| *offset / 40_960).collect();
        assert_eq!(offsets, [0, 1, 0, 2, 1, 3, 2, 3]);
        let times: Vec<u64> = asked.iter().map(|(_, _, _, think)| *think).collect();
        assert_eq!(times, [10, 0, 0, 10, 0, 10, 0, 10]);
        // A piece whose first page was in memory is requested from its next page on.
        let warm = Step { is_warm: true, ..step(40_960, false) };
        let steps = [step(0, false), warm, step(45_056, true), step(81_920, false)];
        let asked = under(&FixChange::AskedAhead(1), &steps);
        let offsets: Vec<u64> = asked.iter().map(|(_, offset, ..)| *offset / 4096).collect();
        assert_eq!(offsets, [0, 11, 0, 20, 11, 20]);
    }

    #[test]
    fn with_enough_memory_nothing_is_reclaimed() {
        let reclaim = Step { advice: Some(RangeAdvice::DontNeed), ..step(0, false) };
        let reclaim = Step { key: (KEY.0, RECLAIM_KEY), ..reclaim };
        let steps = [step(0, false), reclaim, step(0, false)];
        assert_eq!(under(&FixChange::EnoughMemory, &steps).len(), 2);
        assert_eq!(under(&FixChange::DropRandom, &steps).len(), 3);
    }

    #[test]
    fn a_piece_is_asked_for_before_its_first_step() {
        let steps = [step(0, false), step(4096, true), step(40_960, false)];
        let asked = under(&FixChange::AskedPieces, &steps);
        let first = [(1, 0, 8192, 10), (1, 0, 4096, 0), (1, 4096, 4096, 10)];
        assert_eq!(asked[..3], first);
        assert_eq!(asked[3..], [(1, 40_960, 4096, 10), (1, 40_960, 4096, 0)]);
        // A page that was in memory separates two pieces.
        let warm = Step { is_warm: true, ..step(81_920, false) };
        let steps = [step(0, false), warm, step(86_016, true)];
        let asked = under(&FixChange::AskedPieces, &steps);
        let lengths: Vec<u64> = asked.iter().map(|(_, _, length, _)| *length).collect();
        assert_eq!((lengths, asked[2].1), (vec![4096; 4], 86_016));
    }

    #[test]
    fn what_was_in_memory_only_takes_time() {
        let warm = Step { is_warm: true, ..step(4096, true) };
        let steps = [step(0, false), warm, step(8192, false)];
        let unchanged = under(&FixChange::DropRandom, &steps);
        assert_eq!(unchanged, [(1, 0, 4096, 10), (1, 8192, 4096, 20)]);
    }
}
