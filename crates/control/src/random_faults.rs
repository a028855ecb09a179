//! Selects the window of a mapping that is read at random.
//!
//! A fault reads the pages around it, up to the size of the window. If readers need single pages,
//! most of these are wasted. If they need pieces of several pages, a small window causes several
//! faults per piece. The original window hides how long pieces are. So the mapping gets a window of
//! one page for a few pieces, an *inspection*: every touched page then faults, and from these
//! faults [`what_if`](crate::what_if) predicts the best window.
//!
//! Small files are not inspected: with the original window, they are soon cached completely.
//!
//! Readers may return to the pages next to a piece much later, for example if they read a table
//! column by column. So the prediction is repeated as faults accumulate.
//!
//! The prediction uses the first waits with the original window. If these were long by chance, a
//! smaller window is selected that is slower, and a comparison with them would not show it. So the
//! original window is observed once more, unless other mappings have smaller windows, too.

mod tally;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::backoff::Backoff;
use crate::fault_waits::{FaultWait, FaultWaits};
use crate::gain::{GainScores, GainSource, MeanGain, MeasuredGain};
use crate::tuning::{SINGLE_PAGE, Tuning};
use crate::what_if::{Candidate, FileView, PastAccess, PredictedOutcome, predict};
use policy::Window;
use units::{Bytes, Nanos, Pages};

use tally::WindowTally;

/// A piece: its first and last page that faulted, and the range of pages that was read for it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: u64,
    last: u64,
    read: (u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Fault {
    index: u64,
    think: Nanos,
}

/// The selected window, and its gain over the original one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Choice {
    window: Pages,
    predicted: f64,
    measured: Option<f64>,
    /// The next measurement takes this multiple of `min_samples` pieces. It doubles up to all waits
    /// that are remembered: many short measurements would show harm now and then by chance.
    samples_factor: u64,
}

/// Why a selected window was given up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reversal {
    /// The window, and the measured speed relative to the original one.
    Slower(Pages, f64),
    SlowedStreams,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    /// With the original window.
    #[default]
    Original,
    /// With a window of one page.
    Inspection,
    Chosen(Choice),
    /// With the original window once more, after the first pieces with a selected one.
    Comparison(Choice),
}

/// A mapping, its device, and the scores of predictions on that device.
#[derive(Debug)]
pub(super) struct MappingView<'a> {
    pub original: Pages,
    pub waits: &'a FaultWaits,
    /// The mean measured gain of the mappings on the device, including this one.
    pub gains: MeanGain,
    pub file: FileView,
    /// The time in which the device reads all of its mapped files in order, if the cache holds
    /// them.
    pub pass_time: Option<Nanos>,
    /// The number of reads that the device serves at once.
    pub parallel: usize,
    pub scores: &'a GainScores,
    /// Whether no other trial is running.
    pub may_inspect: bool,
    /// Whether all other mappings on the device that are being read have their original windows.
    /// Others with smaller ones leave the device more time for this one, whatever its window is.
    pub others_are_unchanged: bool,
    /// The pages that streams of the device have passed so far.
    pub passed: u64,
}

impl MappingView<'_> {
    /// Returns whether faults with the original window may soon have read all files.
    fn is_soon_cached(&self, tuning: &Tuning) -> bool {
        self.pass_time.is_some_and(|time| time < tuning.min_pass_time)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct RandomFaults {
    phase: Phase,
    original: WindowTally,
    inspection: WindowTally,
    /// The time of a piece with the original window, in seconds, and when the inspection ends at
    /// the latest.
    piece_time: f64,
    inspection_ends: Nanos,
    chosen: WindowTally,
    /// The time of the last step, and the pages that streams had passed then.
    stepped: Option<(Nanos, u64)>,
    reversal: Option<Reversal>,
    /// Whether the original window was observed again, after the inspection and the last harm.
    has_new_baseline: bool,
    /// The faults with a smaller window than the original one since the inspection started, and how
    /// many of them the last prediction used.
    history: VecDeque<Fault>,
    decided_at: usize,
    /// The windows of the last prediction, each with its gain over the original one.
    candidates: Vec<(Pages, f64)>,
    /// The page after those that the last fault read, and the time at which its wait ended.
    end: Option<(u64, Nanos)>,
    /// The window and the adjacency of the last fault, and its time.
    last: Option<(Pages, bool)>,
    last_at: Option<Nanos>,
    recent: VecDeque<Piece>,
    /// Waits since the last interval.
    waits: Vec<FaultWait>,
    /// The number of recent pieces and of their pages; both decay.
    pieces: f64,
    pages: f64,
    backoff: Backoff,
    tuning: Arc<Tuning>,
}

impl RandomFaults {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Adds a fault that read `window`, in a mapping with this original window.
    pub fn fault(&mut self, at: Nanos, index: u64, window: Window, original: Pages) {
        let (read, most) = ((window.start, window.end()), self.tuning.max_remembered);
        let extends = self.extend_piece(index, read, original);
        if !extends {
            if self.recent.len() == self.tuning.max_current_pieces() {
                self.recent.pop_front();
            }
            self.recent.push_back(Piece { first: index, last: index, read });
            (self.pieces, self.pages) = (self.pieces + 1.0, self.pages + 1.0);
        }
        let before = self.end.replace((read.1, at));
        let ready = before.map_or(at, |(_, ready)| ready);
        let think = at.saturating_sub(ready).min(self.tuning.max_think_time);
        if let (Some((window, is_adjacent)), Some(last)) = (self.last, self.last_at.replace(at))
            && let Some(tally) = self.tally(window, original)
        {
            let gaps = &mut tally.gaps;
            (if is_adjacent { &mut gaps.1 } else { &mut gaps.0 })
                .add(ready.saturating_sub(last) + think, most);
        }
        let is_adjacent = before.is_some_and(|(end, _)| end == index);
        self.last = Some((window.size, is_adjacent));
        if self.phase != Phase::Original && window.size < original {
            if self.history.len() == self.tuning.max_fault_history() {
                self.history.pop_front();
                self.decided_at = self.decided_at.saturating_sub(1);
            }
            self.history.push_back(Fault { index, think });
        }
        if let Some(tally) = self.tally(window.size, original) {
            let faults = &mut tally.faults;
            *(if is_adjacent { &mut faults.1 } else { &mut faults.0 }) += 1;
            tally.pieces += u64::from(!extends);
        }
    }

    fn tally(&mut self, window: Pages, original: Pages) -> Option<&mut WindowTally> {
        match self.phase {
            Phase::Original | Phase::Comparison(_) if window == original => {
                Some(&mut self.original)
            }
            Phase::Inspection if window == SINGLE_PAGE => Some(&mut self.inspection),
            Phase::Chosen(choice) if window == choice.window => Some(&mut self.chosen),
            _ => None,
        }
    }

    /// Records that a reader reached a mark at `index`, among pages read before.
    pub fn mark(&mut self, index: u64, original: Pages) {
        self.extend_piece(index, (index, index), original);
    }

    /// Adds a fault to a recent piece near it. Returns whether there is one.
    fn extend_piece(&mut self, index: u64, read: (u64, u64), original: Pages) -> bool {
        let near = |piece: &Piece| {
            let (start, end) = piece.read;
            let around = original.get();
            (start.saturating_sub(around)..=end.saturating_add(around)).contains(&index)
        };
        let Some(at) = self.recent.iter().rposition(near) else { return false };
        let Some(mut piece) = self.recent.remove(at) else { return false };
        let before = piece.last - piece.first;
        (piece.first, piece.last) = (piece.first.min(index), piece.last.max(index));
        piece.read = (piece.read.0.min(read.0), piece.read.1.max(read.1));
        self.pages += (piece.last - piece.first - before) as f64;
        self.recent.push_back(piece);
        true
    }

    /// Adds a wait. `original` is `None` before the state of the file is first sampled; until then,
    /// its window is unchanged.
    pub fn waited(&mut self, wait: Nanos, original: Option<Pages>) {
        if let Some((_, at)) = &mut self.end {
            *at += wait;
        }
        let Some((window, is_adjacent)) = self.last else { return };
        let of_phase = match self.phase {
            Phase::Original => original.unwrap_or(window),
            Phase::Inspection => SINGLE_PAGE,
            // Other readers may read more by then, so these waits are not comparable.
            Phase::Chosen(_) | Phase::Comparison(_) => return,
        };
        if self.waits.len() < self.tuning.max_remembered && window == of_phase {
            self.waits.push(FaultWait { window, is_adjacent, wait });
        }
    }

    /// Takes the waits since the last call.
    pub fn take_waits(&mut self) -> Vec<FaultWait> {
        std::mem::take(&mut self.waits)
    }

    /// Returns the measured gain of the selected window; `None` if none was measured.
    pub fn measured(&self) -> Option<f64> {
        match self.phase {
            Phase::Chosen(choice) | Phase::Comparison(choice) => choice.measured,
            Phase::Original | Phase::Inspection => None,
        }
    }

    /// Discards the observations, because windows of other readers change: the times per piece
    /// before and after are not comparable.
    pub fn disturb(&mut self) {
        for tally in [&mut self.original, &mut self.inspection, &mut self.chosen] {
            *tally = WindowTally::new(tally.window);
        }
        self.has_new_baseline = false;
    }

    /// Multiplies the weight of pieces so far by `part`, for their mean length.
    pub fn fade(&mut self, part: f64) {
        (self.pieces, self.pages) = (self.pieces * part, self.pages * part);
    }

    /// Returns whether pieces are on average no longer than the original window: a random pattern.
    pub fn is_random(&self, original: Pages) -> bool {
        self.pieces > 0.0 && self.pages <= self.pieces * original.get() as f64
    }

    /// Returns whether a smaller window is being tried or in use.
    pub fn is_reduced(&self) -> bool {
        match self.phase {
            Phase::Original => false,
            Phase::Inspection => true,
            Phase::Chosen(choice) | Phase::Comparison(choice) => {
                choice.window != self.original.window
            }
        }
    }

    /// Returns whether a window of one page shows how long pieces are.
    pub fn is_inspected(&self) -> bool {
        self.phase == Phase::Inspection
    }

    /// Decides on the next phase after an interval. Returns a gain once it has been measured.
    pub fn step(
        &mut self,
        now: Nanos,
        mapping: &MappingView<'_>,
        trials: bool,
    ) -> Option<MeasuredGain> {
        let original = mapping.original;
        if let Some((then, before)) = self.stepped.replace((now, mapping.passed)) {
            let (passed, elapsed) =
                (mapping.passed.saturating_sub(before), now.saturating_sub(then));
            match self.phase {
                Phase::Original | Phase::Comparison(_) => {
                    self.original.add_streams(passed, elapsed);
                }
                Phase::Inspection => {}
                Phase::Chosen(_) => self.chosen.add_streams(passed, elapsed),
            }
        }
        match self.phase {
            Phase::Original => {
                if mapping.may_inspect
                    && self.original.is_judged(1, &self.tuning)
                    && !mapping.is_soon_cached(&self.tuning)
                    && self.backoff.is_over(now)
                    && self.is_random(original)
                    && original > SINGLE_PAGE
                {
                    self.history.clear();
                    (self.decided_at, self.reversal, self.has_new_baseline) = (0, None, false);
                    self.inspection = WindowTally::new(SINGLE_PAGE);
                    self.piece_time = self.original.per_piece().unwrap_or(f64::INFINITY);
                    let pieces = self.tuning.few_samples + self.tuning.min_repeats();
                    // Windows of other readers may change so often that too little is observed.
                    let most = Nanos::from_secs_f64(2.0 * pieces as f64 * self.piece_time);
                    self.inspection_ends = Nanos::new(now.get().saturating_add(most.get()));
                    self.phase = Phase::Inspection;
                }
                None
            }
            Phase::Inspection => {
                if self.is_inspection_done() || now >= self.inspection_ends {
                    self.choose(now, mapping);
                }
                None
            }
            Phase::Chosen(choice) => {
                // In a full history, new faults replace those that the last prediction used.
                if self.history.len() >= (2 * self.decided_at).min(self.tuning.max_fault_history())
                    && self.history.len() > self.decided_at + self.decided_at / 2
                {
                    self.choose(now, mapping);
                    return None;
                }
                self.measure(now, choice, mapping, trials)
            }
            Phase::Comparison(choice) => {
                if !self.original.is_judged(1, &self.tuning) {
                    return None;
                }
                (self.phase, self.has_new_baseline) = (Phase::Chosen(choice), true);
                self.measure(now, choice, mapping, trials)
            }
        }
    }

    /// Returns whether the inspection has shown enough, or has cost the time of several pieces:
    /// each fault may wait for the requests of another reader, and each piece may need many.
    fn is_inspection_done(&self) -> bool {
        let inspection = &self.inspection;
        let lost = inspection.time() - inspection.pieces as f64 * self.piece_time;
        let is_costly = lost >= self.tuning.min_repeats() as f64 * self.piece_time;
        inspection.pieces > self.tuning.few_samples
            || inspection.faults() >= self.tuning.inspection_faults()
            || (inspection.faults() >= self.tuning.few_samples && is_costly)
    }

    /// Judges a selected window, or starts its comparison. Streams may lose more than the mapping
    /// gains: an array, for example, may read ahead for itself.
    fn measure(
        &mut self,
        now: Nanos,
        choice: Choice,
        mapping: &MappingView<'_>,
        trials: bool,
    ) -> Option<MeasuredGain> {
        if choice.window == self.original.window {
            return None;
        }
        if trials && let Some(measured) = self.chosen.slows_streams(&self.original, &self.tuning) {
            self.give_up(now, Some(Reversal::SlowedStreams));
            return Some(MeasuredGain { predicted: choice.predicted, measured });
        }
        if !self.chosen.is_judged(choice.samples_factor, &self.tuning) {
            return None;
        }
        if trials && mapping.others_are_unchanged && !self.has_new_baseline {
            // The time of a few pieces is too short to observe streams anew.
            let WindowTally { window, streams, .. } = self.original;
            self.original = WindowTally { streams, ..WindowTally::new(window) };
            self.phase = Phase::Comparison(choice);
            return None;
        }
        self.compare(now, choice, mapping.gains, trials)
    }

    /// Compares the time per piece with that of the original window. It also depends on chance and
    /// on other readers, so harm counts only if it is large, or if several mappings show it
    /// together, or this one twice, with a new baseline.
    fn compare(
        &mut self,
        now: Nanos,
        choice: Choice,
        gains: MeanGain,
        trials: bool,
    ) -> Option<MeasuredGain> {
        let measured = self.original.per_piece()? / self.chosen.per_piece()?;
        let gain = MeasuredGain { predicted: choice.predicted, measured };
        let others = choice.measured.map_or(gains, |before| gains.without(before));
        let is_harm = |gain| gain < self.tuning.revert_below_ratio();
        let is_confirmed = measured < self.tuning.plainly_below_ratio
            || (!others.is_empty() && is_harm(others.with(measured).mean()))
            || choice.measured.is_some_and(is_harm);
        if trials && is_harm(measured) && is_confirmed {
            self.give_up(now, Some(Reversal::Slower(choice.window, measured)));
            return Some(gain);
        }
        // The window is measured again, and must not be harmful then either.
        self.has_new_baseline &= !is_harm(measured);
        let most = self.tuning.max_remembered as u64 / self.tuning.min_samples;
        let samples_factor = (2 * choice.samples_factor).min(most.max(1));
        self.phase = Phase::Chosen(Choice { measured: Some(measured), samples_factor, ..choice });
        self.chosen = WindowTally::new(choice.window);
        choice.measured.is_none().then_some(gain)
    }

    /// Returns to the original window, which is measured again.
    fn give_up(&mut self, now: Nanos, reversal: Option<Reversal>) {
        self.backoff.fail(now, &self.tuning);
        self.original = WindowTally::new(self.original.window);
        self.phase = Phase::Original;
        self.reversal = reversal;
    }

    /// Selects the window by the predicted outcome of each for the faults since the inspection
    /// started. A window smaller than the current one would require another inspection.
    fn choose(&mut self, now: Nanos, mapping: &MappingView<'_>) {
        let MappingView { original, waits, ref file, parallel, scores, .. } = *mapping;
        self.decided_at = self.history.len();
        let Some(device) = waits.device(original, parallel) else {
            return self.give_up(now, None);
        };
        let least = match self.phase {
            Phase::Chosen(choice) => choice.window,
            _ => SINGLE_PAGE,
        };
        let outcome = |window| {
            let access = |fault: &Fault| PastAccess {
                first: fault.index,
                pages: 1,
                think: fault.think,
                mapped: true,
            };
            let history = self.history.iter().map(access);
            (window, predict(history, file, &device, Candidate::window(window), &self.tuning))
        };
        let sizes = std::iter::successors(Some(least), |window| Some(Pages::new(2 * window.get())));
        let mut outcomes: Vec<(Pages, PredictedOutcome)> =
            sizes.take_while(|window| *window < original).map(outcome).collect();
        let (_, of_original) = outcome(original);
        let overhead = self.overhead(waits);
        let cost = |prediction: &PredictedOutcome| prediction.cost(overhead).max(1e-9);
        outcomes.push((original, of_original));
        let best = outcomes.iter().map(|(_, one)| cost(one)).fold(f64::INFINITY, f64::min);
        // Of the windows that are about as fast as the best, the one that reads least.
        let enough =
            |one: &&(Pages, PredictedOutcome)| cost(&one.1) <= self.tuning.min_gain_ratio() * best;
        let choice = outcomes.iter().filter(enough).min_by_key(|(_, one)| one.read);
        let Some((window, outcome)) = choice else { return };
        let gain = |outcome: &PredictedOutcome| cost(&of_original) / cost(outcome);
        let predicted = gain(outcome);
        let is_worth = scores.is_worth(GainSource::MappedWindow, predicted);
        let window = if is_worth { *window } else { original };
        self.candidates = outcomes.iter().map(|(window, one)| (*window, gain(one))).collect();
        if let Phase::Chosen(before) = self.phase
            && before.window == window
        {
            return;
        }
        self.phase = Phase::Chosen(Choice { window, predicted, measured: None, samples_factor: 1 });
        self.chosen = WindowTally::new(window);
        self.original.window = original;
    }

    /// Returns the cost of a fault besides its wait, measured between adjacent faults of the
    /// inspection.
    fn overhead(&self, waits: &FaultWaits) -> Nanos {
        let wait = waits.mean(SINGLE_PAGE, true);
        let both = wait.zip(self.inspection.gaps.1.trimmed_mean());
        both.map_or(self.tuning.wake_time, |(wait, gap)| gap.saturating_sub(wait))
    }

    /// Returns the window for the mapping. If its file is being primed (`primed`), the pages read
    /// around a fault contribute to priming.
    pub fn window(&self, original: Pages, primed: bool) -> Pages {
        match self.phase {
            Phase::Original | Phase::Comparison(_) => original,
            Phase::Inspection => SINGLE_PAGE,
            Phase::Chosen(choice) => {
                let gain = choice.measured.unwrap_or(choice.predicted);
                let serves = !primed || gain * self.tuning.plainly_below_ratio > 1.0;
                if serves { choice.window } else { original }
            }
        }
    }

    /// Returns the reason for that window, with the candidates that it was selected from.
    pub fn why(&self, original: Pages, page: Bytes, primed: bool) -> String {
        match self.phase {
            Phase::Chosen(choice)
                if choice.window != original && self.window(original, primed) == original =>
            {
                "its mapping is read at random, and its file is being primed: larger reads around \
                 each fault help with that"
                    .to_owned()
            }
            Phase::Inspection => {
                "its mapping is read at random: a few pieces are read page by page to see how long \
                 they are"
                    .to_owned()
            }
            Phase::Comparison(choice) => format!(
                "its mapping is read at random: comparing its original window with {}",
                Bytes::new(choice.window.get() * page.get())
            ),
            Phase::Chosen(choice) if choice.window != original => format!(
                "its mapping is read at random: predicted ×{:.2} ({})",
                choice.predicted,
                self.describe_candidates(page)
            ),
            Phase::Chosen(_) => format!(
                "its mapping is read at random, and no smaller window is predicted to be faster \
                 ({})",
                self.describe_candidates(page)
            ),
            Phase::Original => match self.reversal {
                Some(Reversal::Slower(window, measured)) => format!(
                    "with a window of {}, its mapping was read {measured:.2} times as fast",
                    Bytes::new(window.get() * page.get())
                ),
                Some(Reversal::SlowedStreams) => {
                    "with a smaller window for its mapping, streams of the device were slower"
                        .to_owned()
                }
                None => "its mapping is read at random: back to its original window".to_owned(),
            },
        }
    }

    /// Formats the candidates: `from 40 faults: 4 KiB ×0.80, 8 KiB ×1.02`.
    fn describe_candidates(&self, page: Bytes) -> String {
        let one = |(window, gain): &(Pages, f64)| {
            format!("{} ×{gain:.2}", Bytes::new(window.get() * page.get()))
        };
        let all: Vec<String> = self.candidates.iter().map(one).collect();
        format!("from {} faults: {}", self.decided_at, all.join(", "))
    }
}

#[cfg(test)]
mod tests;
