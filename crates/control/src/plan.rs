//! Reads in equal steps, forward or backward, which the kernel does not foresee.

use units::{Bytes, Nanos, Pages};

use super::memory::WindowShare;
use super::pattern::EqualSteps;
use crate::tuning::steps as tuning;
use policy::{Extent, Page};

/// Pieces of `len` pages at `base + k · step`, of which the reader has had those before `at`, and
/// those before `done` were asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepPlan {
    steps: EqualSteps,
    at: u64,
    done: u64,
    depth: u64,
    moved: Nanos,
    /// Where the reader was at the last interval, and the most pieces that it came by in one.
    before: u64,
    pace: u64,
    /// The pieces that it came by in an interval without a plan.
    own: u64,
    /// How many intervals the plan has lasted, and where the reader was when it had settled.
    intervals: u64,
    settled: u64,
    /// Whether what is left out is read as well: devices that count requests are slower otherwise.
    through: bool,
}

impl StepPlan {
    /// A plan for a reader that has just read the last piece of these steps, and came by so many
    /// pages over the last interval.
    pub fn new(steps: EqualSteps, now: Nanos, came: Pages) -> Self {
        let each = if steps.filled { steps.step.unsigned_abs() } else { steps.len };
        let pace = came.get() / each.max(1);
        let depth = pace.max(tuning::FIRST_DEPTH_PIECES);
        Self {
            steps,
            at: 1,
            done: 1,
            depth,
            moved: now,
            before: 1,
            pace,
            own: pace,
            intervals: 0,
            settled: 1,
            through: false,
        }
    }

    /// The reader was seen to read the piece at this page; whether that is one of the plan's.
    pub fn reader_at(&mut self, page: u64, now: Nanos) -> bool {
        let Some(piece) = self.piece_of(page) else { return false };
        if piece >= self.at {
            self.at = piece + 1;
            self.moved = now;
            // What it overtook need not be read any more.
            self.done = self.done.max(self.at);
        }
        true
    }

    /// The reader's last read ended before this byte.
    pub fn position(&mut self, position: Bytes, page_bytes: Bytes, now: Nanos) {
        let end = position.get().div_ceil(page_bytes.get());
        if let Some(start) = end.checked_sub(self.steps.len) {
            self.reader_at(start, now);
        }
    }

    pub fn interval(&mut self) {
        let came = self.at.saturating_sub(self.before);
        (self.before, self.pace) = (self.at, came.max(self.pace - self.pace / 4));
        self.intervals += 1;
        if self.intervals == tuning::SETTLING_INTERVALS {
            self.settled = self.at;
        } else if self.intervals == tuning::JUDGE_INTERVALS {
            let got = (self.at - self.settled) as f64
                / (tuning::JUDGE_INTERVALS - tuning::SETTLING_INTERVALS) as f64;
            self.through = self.steps.filled && got < tuning::REVERT_BELOW_RATIO * self.own as f64;
        }
    }

    /// The reader waited although it was foreseen: what it will want must be asked for earlier.
    pub fn late(&mut self, share: &WindowShare) {
        self.depth = (self.depth * tuning::DEPTH_GROWTH)
            .min(self.room(share).max(tuning::FIRST_DEPTH_PIECES));
    }

    /// Pieces that may be read ahead: as many as the reader comes by until the interval after the
    /// next, also if that is more than fits into the largest window.
    fn room(&self, share: &WindowShare) -> u64 {
        let fits = |pages: Pages| pages.get() / self.piece().max(1);
        let paced = (tuning::LOOKAHEAD_INTERVALS * self.pace).min(fits(share.memory));
        fits(share.most).min(tuning::MIN_ROOM_PIECES).max(paced).max(1)
    }

    /// The pages of a piece.
    fn piece(&self) -> u64 {
        if self.through { self.steps.step.unsigned_abs() } else { self.steps.len }
    }

    /// Whether the reader went elsewhere or rests.
    pub fn is_over(&self, now: Nanos) -> bool {
        now.saturating_sub(self.moved) > tuning::IDLE_TIMEOUT
    }

    /// What is to be read now, in order of use.
    pub fn due(&mut self, file: Pages, share: &WindowShare) -> Vec<Extent> {
        let room = self.room(share);
        let until = self.at.saturating_add(self.depth.min(room));
        let mut due: Vec<Extent> = Vec::new();
        while self.done < until && due.len() < tuning::MAX_PIECES_AT_ONCE {
            let Some(start) = self.start_of(self.done) else { break };
            if start >= file.get() {
                break;
            }
            let pages = self.piece().min(file.get() - start);
            let piece = Extent::new(Page::new(start), Pages::new(pages));
            match due.last_mut() {
                Some(last) if joined(*last, piece).is_some() => {
                    *last = joined(*last, piece).unwrap_or(*last);
                }
                _ => due.push(piece),
            }
            self.done += 1;
        }
        due
    }

    pub fn why(&self) -> String {
        let (len, step) = (self.steps.len, self.steps.step);
        if step.unsigned_abs() == len && step < 0 {
            return "it is read backward, which the kernel does not foresee".to_owned();
        }
        if step.unsigned_abs() == len {
            return "it is read through, but parts that are cached already upset the kernel's \
                    windows"
                .to_owned();
        }
        format!(
            "it is read {len} pages at a time in steps of {step}, which the kernel does not foresee"
        )
    }

    fn start_of(&self, piece: u64) -> Option<u64> {
        let way = i64::try_from(piece).ok()?.checked_mul(self.steps.step)?;
        self.steps.last.checked_add_signed(way)
    }

    fn piece_of(&self, page: u64) -> Option<u64> {
        let way = page.wrapping_sub(self.steps.last).cast_signed();
        let piece = way.checked_div(self.steps.step)?;
        // Without gaps any page is of a piece.
        let exact = piece.checked_mul(self.steps.step) == Some(way);
        let gapless = self.steps.step > 0 && self.steps.step.unsigned_abs() == self.steps.len;
        (exact || gapless).then_some(piece)?.try_into().ok()
    }
}

/// Two pieces in one, where they touch and are not too large.
fn joined(a: Extent, b: Extent) -> Option<Extent> {
    let pages = Pages::new(a.pages.get() + b.pages.get());
    let fits = pages.get() <= tuning::MAX_JOINED_PAGES;
    if fits && a.end() == b.start {
        Some(Extent::new(a.start, pages))
    } else if fits && b.end() == a.start {
        Some(Extent::new(b.start, pages))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(most: u64) -> WindowShare {
        let (most, memory) = (Pages::new(most), Pages::new(1 << 20));
        WindowShare { most, memory, is_tight: false, is_squeezed: false }
    }

    fn extents(plan: &mut StepPlan, file: u64) -> Vec<(u64, u64)> {
        let due = plan.due(Pages::new(file), &share(1 << 20));
        due.iter().map(|piece| (piece.start.get(), piece.pages.get())).collect()
    }

    #[test]
    fn steps_are_foreseen_up_to_the_end_of_the_file() {
        let mut plan = StepPlan::new(
            EqualSteps { last: 100, step: 10, len: 2, filled: false },
            Nanos::ZERO,
            Pages::ZERO,
        );
        assert_eq!(extents(&mut plan, 145), [(110, 2), (120, 2), (130, 2), (140, 2)]);
        assert_eq!(extents(&mut plan, 145), []);
        assert!(plan.reader_at(120, Nanos::ZERO) && !plan.reader_at(121, Nanos::ZERO));
        plan.position(Bytes::new(132 * 4096), Bytes::new(4096), Nanos::from_secs(1));
        assert_eq!(plan.at, 4);
        assert!(!plan.is_over(Nanos::from_secs(2)) && plan.is_over(Nanos::from_secs(9)));
    }

    #[test]
    fn what_is_read_backward_is_joined_and_ends_at_the_first_page() {
        let mut plan = StepPlan::new(
            EqualSteps { last: 64, step: -16, len: 16, filled: false },
            Nanos::ZERO,
            Pages::ZERO,
        );
        assert_eq!(extents(&mut plan, 1000), [(0, 64)]);
    }

    #[test]
    fn lateness_looks_further_within_bounds() {
        let mut plan = StepPlan::new(
            EqualSteps { last: 0, step: 4, len: 1, filled: false },
            Nanos::ZERO,
            Pages::ZERO,
        );
        for _ in 0..30 {
            plan.late(&share(100));
        }
        assert_eq!(plan.depth, tuning::MIN_ROOM_PIECES, "its pace is not known");
        assert_eq!(plan.due(Pages::new(1 << 30), &share(40)).len(), 40);
    }

    /// Where the next pieces begin and how long they are, if the reader comes by so many in each
    /// interval, and came by ten before.
    fn filled(came: u64) -> (u64, u64) {
        let steps = EqualSteps { last: 0, step: 2, len: 1, filled: true };
        let mut plan = StepPlan::new(steps, Nanos::ZERO, Pages::new(20));
        for interval in 1..=tuning::JUDGE_INTERVALS {
            plan.reader_at(2 * came * interval, Nanos::ZERO);
            plan.interval();
        }
        let due = plan.due(Pages::new(1 << 20), &share(1 << 20));
        (due[0].start.get(), due[0].pages.get())
    }

    #[test]
    fn what_is_left_out_is_read_only_where_single_pieces_are_slower() {
        assert_eq!(filled(10), (162, 1));
        assert_eq!(filled(3), (50, 20), "ten pieces in one");
    }

    #[test]
    fn what_is_left_out_fills_memory_like_all_else() {
        let steps = EqualSteps { last: 0, step: 50, len: 1, filled: true };
        let plan =
            StepPlan { through: true, pace: 100, ..StepPlan::new(steps, Nanos::ZERO, Pages::ZERO) };
        assert_eq!(plan.room(&WindowShare { memory: Pages::new(2000), ..share(100) }), 40);
    }
}
