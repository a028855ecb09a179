//! Decides the window of each open file.

use std::collections::BTreeSet;

use units::{Bytes, Nanos, Pages};

use super::action::{ActionKind, FileAction};
use super::choice::{self, RunsChoice, RunsView};
use super::climb::{SearchOutcome, StreamSummary};
use super::controller::BdiController;
use super::gain::{GainSource, MeasuredGain};
use super::inputs::{Bounds, FileKey, FileState, Inputs};
use super::limited_window::{LimitReason, LimitedWindow};
use super::memory::room;
use super::prime::FilePriming;
use super::runs::RunsChange;
use super::shrink::Shrink;
use super::sizes;
use super::stream::{Stream, StreamKind};
use crate::tuning::SINGLE_PAGE;
use crate::what_if::{Candidate, DeviceTimes, Extra, FileView};
use policy::MissPrefetch;
use policy::OpenFileId;

impl BdiController {
    pub(super) fn windows(&mut self, inputs: &Inputs, elapsed: Nanos) -> Vec<FileAction> {
        let now = inputs.now;
        let (mut wanted, outcome) = self.step_search(inputs, elapsed);
        let features = self.bounds.features;
        if !features.streams {
            (wanted, self.new_file_window) = (None, None);
        }
        let shared = self.shared();
        let (mut actions, mut others_changed) = (Vec::new(), false);
        let keys: Vec<OpenFileId> = self.streams.keys().copied().collect();
        let mappings = self.mappings(now);
        let are_disturbed = self.climb.is_trying() || outcome != SearchOutcome::Unchanged;
        for stream in self.streams.values_mut() {
            stream.shares_file = shared.contains(&stream.file);
            stream.rotates = self.bounds.rotates;
            stream
                .faults
                .take_waits()
                .into_iter()
                .for_each(|one| self.fault_waits.add(one, self.tuning.max_remembered));
            if are_disturbed {
                stream.faults.disturb();
            }
        }
        for key in keys {
            if features.what_if {
                self.choose(key, inputs);
            }
            let answers = self.answer(key, inputs);
            let is_change = |one: &FileAction| !matches!(one.kind, ActionKind::Report { .. });
            others_changed |= answers.iter().any(is_change);
            actions.extend(answers);
            if let Some(gain) = self.step_mapping(key, &mappings, inputs) {
                actions.push(self.report(key, GainSource::MappedWindow, gain));
            }
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            // Even if its program has given advice meanwhile: it must not stay without a window.
            if let Some(shrink) = &stream.shrink {
                if let Some((window, why)) = shrink.over(now, &self.tuning) {
                    stream.shrink = None;
                    // Without a descriptor the window cannot be set any more.
                    if !stream.facts.is_some_and(|facts| facts.only_mapped) {
                        actions.push(FileAction::new(key, ActionKind::SetWindow(window), why));
                    }
                }
                continue;
            }
            let Some(stream) = self.streams.get(&key) else { continue };
            let Some(facts) = stream.facts.filter(FileState::may_set_window) else { continue };
            let is_idle = stream.is_idle(now) || stream.is_done();
            if is_idle || stream.answer.is_some() {
                continue;
            }
            let decision = match stream.reading() {
                _ if stream.mapped && stream.plan.is_some() => along_a_trend(stream, &facts),
                StreamKind::MappedRandom => {
                    let priming = self.primings.get(&stream.file);
                    let primed = priming.is_some_and(FilePriming::is_at_work)
                        && !inputs.memory.under_pressure;
                    at_random(stream, &facts, primed)
                }
                _ if is_beyond_limit(stream, &facts) => back_to_limit(stream),
                StreamKind::Forward => self.forward(inputs, stream, &facts, wanted, &outcome),
                StreamKind::Other => reverted_window(stream, &facts, wanted, &outcome),
            };
            let Some((window, why)) = decision else { continue };
            let given = stream.requested_window;
            let again = given.is_some_and(|(ordered, at)| {
                ordered == window && now.saturating_sub(at) < self.tuning.retry_interval
            });
            if !again && let Some(stream) = self.streams.get_mut(&key) {
                stream.requested_window = Some((window, now));
                let runs = matches!(stream.reading(), StreamKind::Forward);
                others_changed |= !runs;
                // Above its limit, runs are short: the next one soon starts with the new window.
                let within = |limit: Pages| facts.window <= limit;
                // A mapping might lose its descriptor meanwhile, and stay without a window.
                let smaller = runs
                    && !stream.mapped
                    && window < facts.window
                    && stream.window_limit().is_none_or(within);
                let (window, why) = if smaller {
                    stream.shrink = Some(Shrink::new(window, why, now));
                    (Pages::ZERO, String::new())
                } else {
                    (window, why)
                };
                actions.push(FileAction::new(key, ActionKind::SetWindow(window), why));
            }
        }
        if others_changed {
            self.climb.disturb();
        }
        actions
    }

    /// Predicts which action is best for an open file that is read in runs.
    fn choose(&mut self, key: OpenFileId, inputs: &Inputs) {
        let Some(stream) = self.streams.get(&key) else { return };
        let Some((facts, original)) = stream.facts.zip(stream.original) else { return };
        if stream.shrink.is_some() {
            // It has no window for a moment.
            return;
        }
        let alone = !stream.mapped && !stream.shares_file;
        let known = stream.runs.lately().filter(|_| alone && !stream.classifier.is_in_turns());
        let Some((runs, count)) = known else {
            if let Some(stream) = self.streams.get_mut(&key) {
                stream.choice = None;
            }
            return;
        };
        let before = stream.choice.map_or(0, |(_, before)| before);
        if count < before + self.tuning.min_samples.min(before.max(1))
            || inputs.now < self.predict_at
        {
            return;
        }
        // While miss prefetching is in use, the runs do not show what reads within them take.
        let prefetches = stream.answer.is_some() || stream.calls.is_some();
        let fitted = stream.choice.filter(|_| prefetches);
        let (device, read_with) = match fitted {
            Some((choice, _)) => (choice.device, None),
            None => {
                let adjacent = stream.choice.map_or(Nanos::ZERO, |(last, _)| last.device.adjacent);
                let device = DeviceTimes { adjacent, ..self.device_times(facts.page) };
                (device, Some(facts.window))
            }
        };
        let share = self.share(inputs, &facts);
        let is_used_later = || {
            facts.file_pages <= room(inputs, &facts, &self.tuning)
                && choice::is_covered_soon(runs.iter(), original, facts.file_pages, &self.tuning)
        };
        let view = RunsView {
            original,
            most: share.most,
            file: file_view(&facts, share.memory.max(original), &self.bounds),
            device,
            read_with,
            may_prefetch: fitted.is_some() || !is_used_later(),
        };
        let choice = choice::choose(runs.iter(), &view, &self.tuning);
        let replayed = choice.map_or(0, |choice| choice.replayed);
        self.predict_at = inputs.now + self.tuning.replay_pause * replayed;
        let is_worth = |choice: &RunsChoice| {
            let source = match choice.candidate.extra {
                Extra::Nothing => GainSource::StreamWindow,
                _ => GainSource::MissPrefetch,
            };
            choice.candidate.window == original || self.scores.is_worth(source, choice.gain)
        };
        let unchanged = Candidate::window(original);
        let choice = choice.map(|choice| {
            let kept = RunsChoice { candidate: unchanged, gain: choice.gain.min(1.0), ..choice };
            if is_worth(&choice) { choice } else { kept }
        });
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.choice = choice.map(|choice| (choice, count));
        }
    }

    /// Returns the service times of the device as measured so far.
    pub(super) fn device_times(&self, page: Bytes) -> DeviceTimes {
        let (fixed, transfer) = self.device.times(page, 1.0, &self.tuning);
        DeviceTimes { fixed, adjacent: fixed, page: transfer, parallel: self.parallel() }
    }

    /// Returns the service times for `assumed_parallel` or more reads at once. A reader that waits
    /// for each read shows neither the parallelism of the device nor its rate.
    pub(super) fn assumed_device_times(&self, page: Bytes) -> DeviceTimes {
        let parallel = self.parallel().max(self.tuning.assumed_parallel);
        let factor = parallel as f64 / self.parallel() as f64;
        let (fixed, transfer) = self.device.times(page, factor, &self.tuning);
        DeviceTimes { fixed, adjacent: fixed, page: transfer, parallel }
    }

    /// Returns the most pages that cost less to read in vain than another request. Readers along a
    /// trend wait for each read, so the device is assumed to be faster than it was so far.
    pub(super) fn max_skip(&self) -> Pages {
        let factor = self.tuning.max_rate_growth;
        let (fixed, page) = self.device.times(Bytes::from_kib(4), factor, &self.tuning);
        Pages::new(fixed.get() / page.get().max(1))
    }

    /// Returns how many reads the device serves at once, 1 to `max_parallel`.
    pub(super) fn parallel(&self) -> usize {
        self.device.parallelism().ceil().clamp(1.0, self.tuning.max_parallel()) as usize
    }

    /// Starts or ends miss prefetching for an open file that is read in short runs.
    fn answer(&mut self, key: OpenFileId, inputs: &Inputs) -> Vec<FileAction> {
        let now = inputs.now;
        let Some(stream) = self.streams.get_mut(&key) else { return Vec::new() };
        let Some((facts, original)) = stream.facts.zip(stream.original) else { return Vec::new() };
        let alone = !stream.mapped && !stream.shares_file && stream.plan.is_none();
        let short = alone && stream.shrink.is_none() && stream.window_limit().is_some();
        let is_idle = stream.is_idle(now);
        let may = self.bounds.prefetch
            && self.bounds.features.misses
            && facts.may_set_window()
            && !is_idle;
        let window = (short && may).then_some(facts.window);
        let trials = self.bounds.features.trials;
        let predicted = stream.choice.map_or(1.0, |(choice, _)| choice.gain);
        let Some(change) = stream.runs.step(now, window, stream.completed_run(), trials) else {
            return self.prefetch_calls(key, may, inputs).into_iter().collect();
        };
        stream.calls = None;
        let (run, window, why) = match change {
            RunsChange::Begin(run) => {
                stream.predicted = predicted;
                let bytes = Bytes::new(run.get() * facts.page.get());
                (Some(run), SINGLE_PAGE, short_runs_of(bytes, predicted))
            }
            RunsChange::Gained(measured) => {
                let gain = MeasuredGain { predicted: stream.predicted, measured };
                return vec![self.report(key, GainSource::MissPrefetch, gain)];
            }
            RunsChange::Slower => {
                (None, original, "miss prefetching ends: its reader is slower with it".to_owned())
            }
            RunsChange::TooLate => (
                None,
                original,
                "miss prefetching ends: pages arrive too late, or never".to_owned(),
            ),
            RunsChange::Ended => (
                None,
                original,
                "miss prefetching ends: it is idle, or not only read in short runs".to_owned(),
            ),
        };
        if change == RunsChange::Slower {
            let gain = MeasuredGain {
                predicted: stream.predicted,
                measured: self.tuning.revert_below_ratio(),
            };
            self.scores.add(GainSource::MissPrefetch, gain);
        }
        stream.answer = run.map(MissPrefetch::of_runs);
        let mut acts = vec![(ActionKind::PrefetchMisses(run), why)];
        if facts.may_set_window() && facts.window != window {
            stream.requested_window = Some((window, now));
            let why = match run {
                Some(_) => "the rest of a short run is prefetched on a miss instead",
                None => "back to its original window",
            };
            acts.push((ActionKind::SetWindow(window), why.to_owned()));
        }
        let action = |(kind, why)| FileAction::new(key, kind, why);
        acts.into_iter().map(action).collect()
    }

    /// Starts or ends prefetching calls that the kernel reads in parts. Their pages are certain to
    /// be needed, so there is no trial.
    fn prefetch_calls(
        &mut self,
        key: OpenFileId,
        may: bool,
        inputs: &Inputs,
    ) -> Option<FileAction> {
        let facts = self.streams.get(&key)?.facts?;
        let fits = self.share(inputs, &facts).memory.get() >= self.tuning.piece_pages;
        let may = may && fits && !inputs.memory.under_pressure;
        let stream = self.streams.get_mut(&key)?;
        let (at_once, most) =
            (stream.original?.max(self.bounds.max_request), Pages::new(self.tuning.piece_pages));
        let share = || stream.classifier.large_call_share(at_once, most);
        let wanted = may
            && stream.answer.is_none()
            && if stream.calls.is_some() {
                share() > self.tuning.minority_share
            } else {
                // What a trial measures must not change during it.
                let waits = stream.waiting > self.tuning.min_effect;
                let is_read = waits && !stream.mapped && !self.climb.is_trying();
                is_read && share() > self.tuning.majority_share
            };
        if wanted == stream.calls.is_some() {
            return None;
        }
        stream.calls = wanted.then(|| MissPrefetch::of_calls(most));
        let (kind, why) = if wanted {
            let why = "the kernel would read its calls in parts, and read ahead beyond their ends";
            (ActionKind::PrefetchCalls(most), why)
        } else {
            let why =
                "prefetching of its calls ends: it is idle, few are large, or memory is short";
            (ActionKind::PrefetchMisses(None), why)
        };
        Some(FileAction::new(key, kind, why.to_owned()))
    }

    /// Returns the files that are read through several open files.
    pub(super) fn shared(&self) -> BTreeSet<FileKey> {
        let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
        for stream in self.streams.values() {
            if !once.insert(stream.file) {
                twice.insert(stream.file);
            }
        }
        twice
    }

    fn step_search(
        &mut self,
        inputs: &Inputs,
        elapsed: Nanos,
    ) -> (Option<LimitedWindow>, SearchOutcome) {
        let now = inputs.now;
        let (mut windows, mut active, mut unknown) = (Vec::new(), 0_u64, 0_u64);
        let (mut mapped, mut inspects) = (false, false);
        let (mut other_reads, mut several) = (false, false);
        let mut others_seen = Nanos::ZERO;
        let (mut stalled, mut waiting, mut page) = (0.0, 0.0_f64, 4096);
        let mut most = LimitedWindow::default();
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            if stream.is_idle(now) || stream.has_stopped(now) || facts.unmanaged {
                continue;
            }
            let reading = stream.reading();
            mapped |= matches!(reading, StreamKind::MappedRandom);
            inspects |= stream.faults.is_inspected();
            if !facts.may_set_window() {
                continue;
            }
            unknown += u64::from(!stream.is_known());
            if reading != StreamKind::Forward {
                let is_scattered = stream.classifier.places().elsewhere > 1;
                if is_scattered && stream.plan.is_none() {
                    (other_reads, others_seen) = (true, others_seen.max(stream.seen));
                }
                continue;
            }
            // No larger window than the original one is useful.
            if stream.window_limit().is_some_and(|limit| Some(limit) == stream.original) {
                continue;
            }
            several |= stream.shares_file;
            stalled += stream.stalled as f64;
            if stream.shrink.is_none() {
                windows.push(facts.window);
            }
            let useful = stream.window_limit().unwrap_or(Pages::new(u64::MAX));
            let own = LimitedWindow::new(self.share(inputs, &facts).most, LimitReason::Memory)
                .at_most(useful, LimitReason::Runs);
            most = if own.pages > most.pages { own } else { most };
            page = facts.page.get().max(1);
            if !stream.is_done() {
                active += 1;
                waiting = waiting.max(stream.waiting);
            }
        }
        windows.sort_unstable();
        let active = active.max(u64::from(stalled > 0.0));
        // Many short files may share the wait time, each with a small part.
        waiting = waiting.max(stalled / active.max(1) as f64 / elapsed.get().max(1) as f64);
        // If readers are already active at the start, one of them is seen before the others.
        let young = self
            .begun
            .is_some_and(|begun| now.saturating_sub(begun) < self.tuning.observation_time);
        let waiting = if young && 4 * unknown > active { 0.0 } else { waiting };
        let typical = windows.get(windows.len() / 2).copied().unwrap_or_default();
        let trials = self.bounds.features.trials;
        let result = self.climb.step(
            now,
            &StreamSummary {
                active,
                waiting,
                counts: self.counts,
                typical,
                most,
                page: Bytes::new(page),
                other_reads,
                others_seen,
                mapped,
                inspects,
                shared: several,
                trials,
                // Of some devices, such as a server's, completions are unknown.
                rests: self.device.now() == Bytes::ZERO
                    && self.device.rate() > Bytes::ZERO
                    && stalled == 0.0,
            },
        );
        // A new mapping that is read at random would be slower until it is recognised as such.
        let found = result.0.map(|window| window.pages);
        self.new_file_window = found.filter(|_| !mapped && !inputs.memory.under_pressure);
        result
    }

    /// Records a measured gain; returns the action that reports it with the predicted one.
    pub(super) fn report(
        &mut self,
        file: OpenFileId,
        source: GainSource,
        gain: MeasuredGain,
    ) -> FileAction {
        self.scores.add(source, gain);
        let why = self.scores.describe(source, gain);
        FileAction::new(file, gain.report(self.tuning.max_gain()), why)
    }

    fn forward(
        &self,
        inputs: &Inputs,
        stream: &Stream,
        facts: &FileState,
        wanted: Option<LimitedWindow>,
        outcome: &SearchOutcome,
    ) -> Option<(Pages, String)> {
        let share = self.share(inputs, facts);
        let too_large = facts.window.get() > share.most.get() + share.most.get() / 4;
        if share.is_tight && too_large && (share.is_squeezed || stream.requested_window.is_some()) {
            let active = self.domains.get(&facts.domain).map_or(1, |domain| domain.active);
            let why = format!(
                "{active} streams share the memory: larger windows would evict each other's pages"
            );
            return Some((share.most, why));
        }
        if matches!(outcome, SearchOutcome::Lowered(_)) && stream.requested_window.is_some() {
            return reverted_window(stream, facts, wanted, outcome);
        }
        let file = sizes::at_least(facts.file_pages.max(self.bounds.least));
        // A window that was reduced for lack of memory is restored.
        let less = stream
            .requested_window
            .zip(stream.original)
            .filter(|(ordered, original)| ordered.0 < *original);
        let before = less.filter(|_| !share.is_squeezed).map(|(_, original)| original);
        let before = before.map(|pages| LimitedWindow::new(pages, LimitReason::Original));
        let useful = stream.window_limit().unwrap_or(Pages::new(u64::MAX));
        let wanted = (wanted.into_iter().chain(before).max_by_key(|window| window.pages)?)
            .at_most(share.most, LimitReason::Memory)
            .at_most(file, LimitReason::File)
            .at_most(useful, LimitReason::Runs);
        let larger = wanted.pages.get() > facts.window.get() + facts.window.get() / 8;
        if !larger || stream.waiting <= self.tuning.min_effect {
            return None;
        }
        let mut why = match stream.choice {
            Some((choice, _)) => format!("predicted ×{:.2} by its runs; ", choice.gain),
            None => String::new(),
        };
        why +=
            &format!("its readers wait {:.0} % of the time", (stream.waiting * 100.0).min(100.0));
        let device = &self.device;
        if device.latency() > Nanos::ZERO {
            let (latency, rate) = (device.latency().as_millis_f64(), device.rate().as_mib());
            why += &format!("; the device answers in {latency:.1} ms and reads {rate:.0} MiB/s");
        }
        why += &format!("; {}", wanted.reason.text());
        Some((wanted.pages, why))
    }
}

/// Returns the window before a reverted trial, for an open file that took part in it.
fn reverted_window(
    stream: &Stream,
    facts: &FileState,
    wanted: Option<LimitedWindow>,
    outcome: &SearchOutcome,
) -> Option<(Pages, String)> {
    let SearchOutcome::Lowered(why) = outcome else { return None };
    let wanted = wanted.map(|window| window.pages);
    let before = wanted.or(stream.original).filter(|before| *before < facts.window)?;
    stream.requested_window.map(|_| (before, why.clone()))
}

/// Returns the window of a mapping along a trend: the original one, for which it is prefetched.
fn along_a_trend(stream: &Stream, facts: &FileState) -> Option<(Pages, String)> {
    let why = "its mapping is read along a trend, which is prefetched with this window";
    stream
        .original
        .filter(|original| *original != facts.window)
        .map(|original| (original, why.to_owned()))
}

/// Returns the window of a mapping that is read at random; `None` if it stays the same.
fn at_random(stream: &Stream, facts: &FileState, primed: bool) -> Option<(Pages, String)> {
    let original = stream.original?;
    let window = stream.faults.window(original, primed);
    (window != facts.window).then(|| (window, stream.faults.why(original, facts.page, primed)))
}

/// Returns the file as predictions need it; `cache` is how many of its pages may be cached.
pub(super) fn file_view(facts: &FileState, cache: Pages, bounds: &Bounds) -> FileView {
    FileView {
        pages: facts.file_pages,
        folio_limit: Some(bounds.tuning.max_folio_order),
        max_request: bounds.max_request,
        cache,
    }
}

fn short_runs_of(run: Bytes, predicted: f64) -> String {
    format!(
        "it is read in short runs from place to place, of up to {run} mostly: predicted \
         ×{predicted:.2}"
    )
}

fn is_beyond_limit(stream: &Stream, facts: &FileState) -> bool {
    stream.window_limit().is_some_and(|limit| limit < facts.window)
}

/// Returns the largest window that the runs of an open file justify.
fn back_to_limit(stream: &Stream) -> Option<(Pages, String)> {
    let why = match stream.choice {
        Some(_) => "its runs are short: a larger window is predicted to be no faster",
        None => "its runs are short: a larger window would read beyond their ends",
    };
    stream.window_limit().map(|limit| (limit, why.to_owned()))
}
