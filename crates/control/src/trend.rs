//! The trend of the reads of an open file, and the pages that its reader will request next.
//!
//! The trend is the majority of the last moves from one read to the next, as in Leap (Maruf and
//! Chowdhury, ATC'20): first among the last few moves, then among more. A *move* is a step in
//! pages, or an advance to pages that touch or overlap those of the previous read, so that reads of
//! uneven size also have a trend. A [`TrendPlan`] proposes the pages ahead of the reader. It keeps
//! a score of the reads that it foresaw; a plan that foresees too few of them ends, and the next
//! one needs a longer trend.

use std::collections::VecDeque;
use std::sync::Arc;

use policy::{Extent, Page};
use units::{Bytes, Nanos, Pages};

use super::gaps::GapTrial;
use super::memory::WindowShare;
use crate::tuning::Tuning;

/// The pages of a read: the first page, and the page after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageSpan {
    first: u64,
    end: u64,
}

impl PageSpan {
    fn new(first: u64, pages: u64) -> Self {
        Self { first, end: first.saturating_add(pages.max(1)) }
    }

    fn pages(self) -> u64 {
        self.end - self.first
    }
}

/// The move from one read to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// Backward, to pages that touch or overlap those of the previous read.
    Backward,
    /// Forward, to pages that touch or overlap those of the previous read.
    Forward,
    /// By this many pages; near if the gap is no longer than the longer of the two reads.
    Step { pages: i64, is_near: bool },
}

impl Move {
    fn between(from: PageSpan, to: PageSpan) -> Self {
        if to.first < from.first && to.end >= from.first {
            return Self::Backward;
        }
        if to.first > from.first && to.first <= from.end {
            return Self::Forward;
        }
        let gap = to.first.saturating_sub(from.end).max(from.first.saturating_sub(to.end));
        let pages = to.first.wrapping_sub(from.first).cast_signed();
        Self::Step { pages, is_near: gap <= from.pages().max(to.pages()) }
    }

    fn is_near_backward(self) -> bool {
        matches!(self, Self::Backward)
            || matches!(self, Self::Step { pages, is_near: true } if pages < 0)
    }

    /// Returns whether both moves may belong to the same trend.
    fn agrees(self, other: Self) -> bool {
        self == other || (self.is_near_backward() && other.is_near_backward())
    }
}

/// Reads of `len` pages at `last + k · step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrendSteps {
    pub last: u64,
    /// Distance in pages, negative for backward; never zero.
    pub step: i64,
    pub len: u64,
    /// Pages before each of these positions that are read with it.
    pub before: u64,
    /// Whether all pages are read, in reads of any size.
    pub is_gapless: bool,
    /// Whether the kernel treats the reads as one run, and also reads the gaps.
    pub is_filled: bool,
}

impl TrendSteps {
    /// Returns steps over all pages from `last` on, `step` at a time; backward if negative.
    pub fn gapless(last: u64, step: i64) -> Self {
        let len = step.unsigned_abs();
        Self { last, step, len, before: 0, is_gapless: true, is_filled: false }
    }

    /// Returns the same steps with the pages that the kernel reads around a fault of a mapping with
    /// this window, because readers may return to those pages.
    pub fn with_window(self, window: Pages) -> Self {
        let around = window.get().min(self.step.unsigned_abs());
        if self.is_gapless || around <= self.len {
            return self;
        }
        Self { before: (around - self.len) / 2, len: around, ..self }
    }
}

/// Equal gaps before consecutive reads: the reader skips pages, although the kernel reads them
/// ahead.
#[derive(Clone, Copy, Debug, Default)]
struct EqualGaps {
    /// Pages skipped, and pages read.
    gap: (u64, u64),
    at: u64,
    count: u64,
}

impl EqualGaps {
    fn read(&mut self, index: u64, pages: u64, previous: u64) {
        let Some(left_out) = index.checked_sub(previous).filter(|left_out| *left_out > 0) else {
            *self = Self { at: index, ..Self::default() };
            return;
        };
        let gap = (left_out, pages);
        let on = index.saturating_sub(self.at);
        let again = gap == self.gap && on > 0 && on.is_multiple_of(left_out + pages);
        let count = if again { self.count.saturating_add(1) } else { 0 };
        *self = Self { gap, at: index, count };
    }

    fn steps(&self, tuning: &Tuning) -> Option<TrendSteps> {
        (self.count >= tuning.min_samples).then(|| {
            let (left_out, len) = self.gap;
            let step = (left_out + len).cast_signed();
            TrendSteps { last: self.at, step, len, before: 0, is_gapless: false, is_filled: true }
        })
    }
}

/// The last moves of the readers of an open file.
#[derive(Clone, Debug, Default)]
pub(super) struct Trend {
    /// The last read, and the one before.
    last: Option<PageSpan>,
    before: Option<PageSpan>,
    moves: VecDeque<Move>,
    /// Number of recent moves that agree with each other.
    streak: u64,
    /// Minimum of `streak` after failed plans, in addition to `min_moves`.
    needed: u64,
    gaps: EqualGaps,
    tuning: Arc<Tuning>,
}

impl Trend {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Records a read of `pages` pages at `index`; several reports of one read count once. `in_run`
    /// means that the kernel continues a run: a forward move, as reads between are unreported.
    pub fn read(&mut self, index: u64, pages: u64, in_run: bool) {
        let span = PageSpan::new(index, pages);
        let Some(last) = self.last else {
            self.last = Some(span);
            return;
        };
        if span.end == last.end || span.first == last.first {
            // The same read, or the same page again.
            let whole = PageSpan { first: span.first.min(last.first), ..span };
            if whole.first < last.first && self.moves.pop_back().is_some() {
                self.moves.extend(self.before.map(|before| Move::between(before, whole)));
            }
            self.last = Some(whole);
            return;
        }
        let to = if in_run { Move::Forward } else { Move::between(last, span) };
        let agrees = self.moves.back().is_none_or(|before| before.agrees(to));
        self.streak = if agrees { self.streak.saturating_add(1) } else { self.streak / 4 };
        if self.moves.len() == self.tuning.max_moves() {
            self.moves.pop_front();
        }
        self.moves.push_back(to);
        (self.before, self.last) = (self.last, Some(span));
    }

    /// Records a read after a gap, which the kernel also reads; the last call ended at `previous`.
    pub fn record_gap(&mut self, index: u64, pages: u64, previous: u64) {
        self.gaps.read(index, pages, previous);
    }

    /// Returns how the reader continues, if there is a majority. A kernel that reads ahead foresees
    /// forward reads itself.
    pub fn steps(&self, kernel_reads_ahead: bool) -> Option<TrendSteps> {
        if self.streak < self.needed {
            return None;
        }
        let is_foreseen = |to: &Move| kernel_reads_ahead && *to == Move::Forward;
        let to = self.majority().filter(|to| !is_foreseen(to));
        to.and_then(|to| self.along(to)).or_else(|| self.gaps.steps(&self.tuning))
    }

    fn along(&self, to: Move) -> Option<TrendSteps> {
        let last = self.last?;
        let piece = |pages: u64| pages.max(self.tuning.min_piece_pages).cast_signed();
        Some(match to {
            Move::Backward => TrendSteps::gapless(last.first, -piece(last.pages())),
            Move::Forward => TrendSteps::gapless(last.first, piece(0)),
            Move::Step { pages, .. } => TrendSteps {
                last: last.first,
                step: pages,
                len: last.pages(),
                before: 0,
                is_gapless: false,
                is_filled: false,
            },
        })
    }

    /// Returns the majority of the last moves; the last `min_moves` must all agree.
    fn majority(&self) -> Option<Move> {
        let mut among = self.tuning.min_moves();
        let mut least = among;
        while among <= self.moves.len() {
            let lately = || self.moves.iter().rev().take(among);
            // Boyer and Moore's vote finds the only candidate.
            let (mut candidate, mut votes) = (None, 0_usize);
            for one in lately() {
                if votes == 0 {
                    candidate = Some(*one);
                }
                votes = if candidate == Some(*one) { votes + 1 } else { votes - 1 };
            }
            let count = lately().filter(|one| candidate == Some(**one)).count();
            if count >= least {
                return candidate;
            }
            if lately().filter(|one| one.is_near_backward()).count() >= least {
                return Some(Move::Backward);
            }
            among = (among * 2).next_power_of_two();
            least = among / 2 + 1;
        }
        None
    }

    /// Ends a plan. If few of its pieces were used, the next plan needs a longer trend.
    pub fn end(&mut self, plan: &TrendPlan) {
        self.needed = if plan.used_share() < self.tuning.majority_share {
            (self.needed * 2).clamp(self.tuning.min_samples, self.tuning.max_history)
        } else {
            self.needed / 2
        };
        self.streak = 0;
    }
}

/// Pieces to prefetch along a trend. The reader has reached the pieces before `at`; those before
/// `done` are requested.
#[derive(Clone, Debug)]
pub(super) struct TrendPlan {
    steps: TrendSteps,
    at: u64,
    done: u64,
    depth: u64,
    moved: Nanos,
    /// Share of recent reads that the plan foresaw.
    score: f64,
    /// A read that skips more pages than this counts as not foreseen.
    max_skip: Pages,
    /// Pieces that the reader passed, without those that it skipped in jumps.
    passed: u64,
    /// The same at the last interval, and the decaying maximum of pieces per interval.
    passed_before: u64,
    pace: u64,
    /// Intervals since the start of the plan.
    intervals: u64,
    gaps: GapTrial,
    tuning: Arc<Tuning>,
}

impl TrendPlan {
    /// Creates a plan for a reader that has just read the piece at `steps.last`. `max_skip`: the
    /// most pages that take the device less time to read than one more request; reads that skip
    /// more do not follow the plan.
    pub fn new(steps: TrendSteps, now: Nanos, max_skip: Pages, tuning: Arc<Tuning>) -> Self {
        Self {
            steps,
            at: 1,
            done: 1,
            depth: tuning.few_samples,
            moved: now,
            score: 1.0,
            max_skip,
            passed: 0,
            passed_before: 0,
            pace: 0,
            intervals: 0,
            gaps: GapTrial::default(),
            tuning,
        }
    }

    /// Returns the plan for a reader that passed `came` pages over the last interval. A plan over
    /// all pages begins slowly all the same: its reader may have skipped many of them.
    pub fn at_pace(self, came: Pages) -> Self {
        if self.steps.is_gapless {
            return self;
        }
        let each =
            if self.steps.is_filled { self.steps.step.unsigned_abs() } else { self.steps.len };
        let pace = came.get() / each.max(1);
        Self { pace, depth: self.depth.max(pace), ..self }
    }

    /// Records a read at this page. `pages`: how many it read; `None` if only misses are reported,
    /// so that it may also have read all that was prefetched up to this page.
    pub fn reader_at(&mut self, page: u64, pages: Option<u64>, now: Nanos) {
        let runs_forward = self.steps.is_gapless && self.steps.step > 0;
        let last = page.saturating_add(pages.unwrap_or(1).saturating_sub(1));
        let piece = self.piece_of(if runs_forward { last } else { page });
        let piece = piece.filter(|piece| self.is_near(*piece));
        let passed = piece.map_or(0, |piece| (piece + 1).saturating_sub(self.at));
        let max_read = match pages {
            Some(pages) => pages.div_ceil(self.steps.len.max(1)).max(1),
            None => self.done - self.at + 1,
        };
        let skipped = Pages::new(passed.saturating_sub(max_read).saturating_mul(self.steps.len));
        // What is left out between the pieces of other trends is not prefetched.
        let reads_all = self.steps.len >= self.steps.step.unsigned_abs();
        let jumps = reads_all && skipped > self.max_skip;
        let foreseen = f64::from(u8::from(piece.is_some() && !jumps));
        // A reader of all pages that returns to earlier ones may read them in any order.
        let returns = reads_all && piece.is_some() && passed == 0;
        if !returns {
            self.score += self.tuning.score_weight() * (foreseen - self.score);
        }
        self.passed += if jumps { max_read } else { passed };
        if let Some(piece) = piece {
            self.advance(piece, now);
        }
    }

    /// Records the file position: the reader's last read ended before this byte.
    pub fn position(&mut self, position: Bytes, page_bytes: Bytes, now: Nanos) {
        let end = position.get().div_ceil(page_bytes.get());
        let read = if self.steps.is_gapless { 1 } else { self.steps.len - self.steps.before };
        let piece = end.checked_sub(read).and_then(|start| self.piece_of(start));
        if let Some(piece) = piece.filter(|piece| self.is_near(*piece)) {
            self.passed += (piece + 1).saturating_sub(self.at);
            self.advance(piece, now);
        }
    }

    fn advance(&mut self, piece: u64, now: Nanos) {
        if piece >= self.at {
            self.at = piece + 1;
            self.moved = now;
            // Pieces that the reader has overtaken need no prefetch.
            self.done = self.done.max(self.at);
        }
    }

    /// Returns whether the reader may have reached a piece: it may overtake the plan, not jump.
    fn is_near(&self, piece: u64) -> bool {
        piece <= self.done.saturating_add(self.depth.max(self.tuning.min_room))
    }

    /// Ends an interval; `max_skip` may have changed, see [`Self::new`].
    pub fn interval(&mut self, max_skip: Pages) {
        self.max_skip = max_skip;
        let came = self.passed - self.passed_before;
        (self.passed_before, self.pace) = (self.passed, came.max(self.pace - self.pace / 4));
        self.intervals += 1;
    }

    /// Decides after an interval whether to prefetch the gaps, too. `most` is the highest rate of
    /// the device so far, in pages per second, if a trial of that may start. When a trial ends,
    /// returns whether the reader is faster with the gaps.
    pub fn judge_gaps(&mut self, now: Nanos, most: Option<f64>) -> Option<bool> {
        let each = self.steps.step.unsigned_abs();
        // Other gaps take longer than a request, even on a device that is faster than known.
        let has_short_gaps = !self.steps.is_gapless
            && each <= self.tuning.max_amplification * self.steps.len
            && each.saturating_sub(self.steps.len) <= self.max_skip.get();
        let most = most.filter(|_| has_short_gaps).map(|most| most / each as f64);
        self.gaps.interval(now, (self.at, self.done), most, &self.tuning)
    }

    /// Increases the depth, because the reader waited although its reads were foreseen.
    pub fn late(&mut self, share: &WindowShare) {
        self.depth = (self.depth * self.tuning.growth_factor)
            .min(self.room(share).max(self.tuning.few_samples));
    }

    /// Returns how many pieces may be prefetched: as many as the reader passes in the next
    /// intervals if they fit into memory, even if they exceed the largest window.
    fn room(&self, share: &WindowShare) -> u64 {
        let fits = |pages: Pages| pages.get() / self.piece().max(1);
        let paced = (self.tuning.lookahead_intervals * self.pace).min(fits(share.memory));
        fits(share.most).min(self.tuning.min_room).max(paced).max(1)
    }

    /// Returns the size of a piece in pages.
    fn piece(&self) -> u64 {
        if self.gaps.reads_gaps() { self.steps.step.unsigned_abs() } else { self.steps.len }
    }

    /// Returns whether the reader is idle, or reads elsewhere.
    pub fn is_over(&self, now: Nanos) -> bool {
        self.score < self.tuning.majority_share
            || now.saturating_sub(self.moved) > self.tuning.idle_timeout
    }

    /// Returns whether the reader has had time to benefit from the plan.
    pub fn can_be_judged(&self) -> bool {
        self.intervals >= self.tuning.judge_intervals()
    }

    /// Returns the share of the requested pieces that the reader has reached.
    fn used_share(&self) -> f64 {
        let (used, asked) = (self.at - 1, self.done - 1);
        if asked == 0 { 0.0 } else { used.min(asked) as f64 / asked as f64 }
    }

    /// Returns the extents to prefetch now, in order of use.
    pub fn due(&mut self, file: Pages, share: &WindowShare) -> Vec<Extent> {
        let (room, most) = (self.room(share), self.tuning.max_joined_pages());
        let until = self.at.saturating_add(self.depth.min(room));
        let mut due: Vec<Extent> = Vec::new();
        while self.done < until {
            let Some(piece) = self.piece_at(self.done, file) else { break };
            match due.last_mut() {
                Some(last) if joined(*last, piece, most).is_some() => {
                    *last = joined(*last, piece, most).unwrap_or(*last);
                }
                _ => due.push(piece),
            }
            self.done += 1;
        }
        due
    }

    pub fn why(&self) -> String {
        let (len, step) = (self.steps.len, self.steps.step);
        if self.steps.is_gapless && step < 0 {
            return "it is read backward, which the kernel does not foresee".to_owned();
        }
        if self.steps.is_gapless {
            return "it is read forward under POSIX_FADV_RANDOM: the kernel does not read ahead"
                .to_owned();
        }
        format!(
            "it is read {len} pages at a time in steps of {step}, which the kernel does not foresee"
        )
    }

    /// Returns the part of a piece that lies in the file, if any.
    fn piece_at(&self, piece: u64, file: Pages) -> Option<Extent> {
        let way = i64::try_from(piece).ok()?.checked_mul(self.steps.step)?;
        let mut pages = self.piece();
        let from = self.steps.last.checked_add_signed(way);
        let start = from.map(|from| from.saturating_sub(self.steps.before)).or_else(|| {
            // The piece at the start of the file may be shorter.
            pages = self.steps.last.checked_add_signed(way.checked_add(pages.cast_signed())?)?;
            (self.steps.is_gapless && pages > 0).then_some(0)
        })?;
        let pages = pages.min(file.get().checked_sub(start)?);
        (pages > 0).then(|| Extent::new(Page::new(start), Pages::new(pages)))
    }

    fn piece_of(&self, page: u64) -> Option<u64> {
        let way = page.wrapping_sub(self.steps.last).cast_signed();
        if self.steps.is_gapless {
            let step = self.steps.step;
            let towards = if step < 0 { way.checked_neg()? } else { way };
            let pages = u64::try_from(towards).ok()?;
            let each = step.unsigned_abs();
            return Some(if step < 0 { pages.div_ceil(each) } else { pages / each });
        }
        let each = self.steps.step.checked_abs().filter(|each| *each > 0)?;
        let from = way.checked_add_unsigned(self.steps.before)?;
        let is_within = from.rem_euclid(each).cast_unsigned() < self.steps.len;
        let piece = from.div_euclid(each).checked_mul(self.steps.step.signum())?;
        is_within.then_some(piece)?.try_into().ok()
    }
}

/// Joins two pieces if they touch and the result has at most `most` pages.
fn joined(a: Extent, b: Extent, most: u64) -> Option<Extent> {
    let (first, second) = if b.end() == a.start { (b, a) } else { (a, b) };
    let pages = Pages::new(a.pages.get() + b.pages.get());
    let fits = pages.get() <= most && first.end() == second.start;
    fits.then(|| Extent::new(first.start, pages))
}

#[cfg(test)]
mod tests;
