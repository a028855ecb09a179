//! Searches for the window of all streams of a device by trials (hill climbing).
//!
//! Streams get larger windows, in large steps, up to the one with which each stream still gets its
//! turn soon: streams that compete cost a seek per window, and a short scan has no time for small
//! steps. After a gain of a single stream, one smaller window is tried, too. If the large window
//! gains nothing, smaller ones are tried until one does. A window that gains nothing or slows down
//! other readers is reverted, but only if the streams still read as they did before it.

use std::sync::Arc;

use units::{Bytes, Nanos, Pages};

use super::busy_clock::BusyClock;
use super::limited_window::{LimitReason, LimitedWindow};
use super::rates::{ReadCounts, ReadRates};
use super::sizes;
use crate::tuning::Tuning;

/// Smallest growth factor that is worth a step: windows are powers of two.
const MIN_GROWTH: u64 = 2;

/// A summary of all streams of a device at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamSummary {
    /// The number of open files that are read forward now.
    pub active: u64,
    /// The largest share of the time that one of them waits; at least the mean over all.
    pub waiting: f64,
    pub counts: ReadCounts,
    /// The median of their windows.
    pub typical: Pages,
    /// The largest window that any of them may have.
    pub most: LimitedWindow,
    pub page: Bytes,
    /// True if open files besides the streams are read, and the time of their last event.
    pub other_reads: bool,
    pub others_seen: Nanos,
    /// True if a mapping on the device is read at random, and if it is being inspected.
    pub mapped: bool,
    pub inspects: bool,
    /// True if a stream shares its file with another open file. Where a reader misses then depends
    /// on how far the others have read ahead.
    pub shared: bool,
    /// True if a window without a gain is reverted.
    pub trials: bool,
    /// True if the device has completed no read since the last tick, and no wait has ended.
    pub rests: bool,
}

impl StreamSummary {
    fn is_waiting(&self, tuning: &Tuning) -> bool {
        self.waiting > tuning.min_effect
    }
}

/// The outcome of one tick of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SearchOutcome {
    Unchanged,
    Trying,
    /// The window becomes smaller, for this reason: the trial has failed, or it may be too large.
    Lowered(String),
}

#[derive(Clone, Copy, Debug)]
struct SearchTrial {
    before: Option<Pages>,
    reason_before: LimitReason,
    /// `before`, or the median window of the streams if that is `None`.
    from: Pages,
    rates: ReadRates,
    /// When measurement may start, and the time and the counts when it did.
    begins: Nanos,
    begun: Option<(Nanos, ReadCounts)>,
    ends: Nanos,
    /// True if the trial was extended because its result was unclear.
    longer: bool,
}

/// A finished search. It is valid for the time `holds` if the streams, their rate and the largest
/// window that they may have stay similar.
#[derive(Clone, Copy, Debug)]
struct Converged {
    since: Nanos,
    holds: Nanos,
    active: u64,
    rate: f64,
    most: Pages,
}

/// The search for the window of the streams of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowSearch {
    window: Option<Pages>,
    reason: LimitReason,
    trial: Option<SearchTrial>,
    converged: Option<Converged>,
    /// Consecutive trials without a gain.
    failed_trials: u32,
    bad: Option<Pages>,
    last: Option<(Nanos, ReadCounts)>,
    begun: Option<Nanos>,
    measured: u32,
    /// A moving average; `None` if there is no comparable measurement.
    rates: Option<ReadRates>,
    /// Since when nothing else has changed, and the counts at that time.
    calm: Option<(Nanos, ReadCounts)>,
    clock: BusyClock,
    tuning: Arc<Tuning>,
}

impl WindowSearch {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Records the first read on the device.
    pub fn begin(&mut self, at: Nanos) {
        if self.begun.is_none() {
            self.clock = BusyClock::default();
        }
        self.last.get_or_insert((at, ReadCounts::default()));
        self.begun.get_or_insert(at);
    }

    /// Restarts the undisturbed measurement, because something other than the window has changed.
    pub fn disturb(&mut self) {
        self.calm = None;
    }

    /// Returns whether a trial is running.
    pub fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Aborts the trial and discards the rates: they no longer show the effect of a window.
    pub fn abort_trial(&mut self) {
        if let Some(trial) = self.trial.take() {
            (self.window, self.reason) = (trial.before, trial.reason_before);
        }
        (self.rates, self.calm) = (None, None);
    }

    /// Advances the search by one tick. Returns the window for streams that wait, and the outcome.
    ///
    /// A program that computes between its reads, such as a sort, would seem to become slower. So
    /// rests do not count, except for the age of a result.
    pub fn step(
        &mut self,
        now: Nanos,
        streams: &StreamSummary,
    ) -> (Option<LimitedWindow>, SearchOutcome) {
        // Pages that were read ahead may still be used.
        let rests = streams.rests && self.last.is_some_and(|(_, counts)| counts == streams.counts);
        let outcome = if self.clock.advance(now, rests, &self.tuning) {
            let others_seen = self.clock.without_rests(streams.others_seen);
            let streams = StreamSummary { others_seen, ..*streams };
            self.go_on(self.clock.without_rests(now), &streams)
        } else {
            SearchOutcome::Unchanged
        };
        (self.window.map(|pages| LimitedWindow::new(pages, self.reason)), outcome)
    }

    /// `now` and all times of `streams` are without rests.
    fn go_on(&mut self, now: Nanos, streams: &StreamSummary) -> SearchOutcome {
        self.measure(now, streams.counts);
        match self.trial {
            Some(trial) => self.judge(now, streams, trial),
            None => self.try_more(now, streams),
        }
    }

    fn measure(&mut self, now: Nanos, counts: ReadCounts) {
        if let Some((then, before)) = self.last.replace((now, counts)) {
            let seconds = now.saturating_sub(then).as_secs_f64();
            if seconds > 0.0 {
                self.measured = self.measured.saturating_add(1);
                let weight = (seconds / 0.3).max(1.0 / f64::from(self.measured)).min(1.0);
                let rates = ReadRates::over(before, counts, seconds);
                // Progress is 0 until the first streams are classified: no rate to average with.
                let known = self.rates.filter(|known| known.progress > 0.0).unwrap_or(rates);
                self.rates = Some(known.towards(&rates, weight));
            }
        }
    }

    /// Returns the largest window to try: within its share of memory, and such that no stream waits
    /// too long for the others.
    fn ceiling(&self, streams: &StreamSummary, rates: &ReadRates, before: Pages) -> LimitedWindow {
        let round = if streams.active <= self.tuning.max_runs as u64 {
            self.tuning.idle_timeout.as_secs_f64()
        } else {
            self.tuning.max_crowded_round_time().as_secs_f64()
        };
        let round = (rates.progress * round) as u64 / streams.active.max(1);
        let times = |growth| Pages::new(before.get().saturating_mul(growth));
        let (step, leap) = (times(self.tuning.growth_factor), times(self.tuning.max_growth()));
        // If readers seldom wait, a window can gain little, so a trial may cost little.
        let may_leap = streams.waiting > self.tuning.minority_share;
        let most = if may_leap && round > step.get() {
            // A window 16 times as large has most of the gain, and wastes less if runs end soon.
            LimitedWindow::new(Pages::new(round), LimitReason::Round)
                .at_most(leap, LimitReason::Step)
        } else {
            LimitedWindow::new(step, LimitReason::Step)
        };
        let mut most = most.at_most(streams.most.pages, streams.most.reason);
        if streams.mapped && (streams.other_reads || rates.is_scattered(&self.tuning)) {
            // A trial slows down those faults, which wait for each page.
            let reason = if streams.other_reads {
                LimitReason::OtherReads
            } else {
                LimitReason::RandomReads
            };
            most = most.at_most(times(MIN_GROWTH), reason);
        }
        if let Some(bad) = self.bad {
            let less = Pages::new(bad.get() / self.tuning.growth_factor);
            most = most.at_most(less, LimitReason::Harm);
        }
        most
    }

    fn try_more(&mut self, now: Nanos, streams: &StreamSummary) -> SearchOutcome {
        let Some(mut rates) = self.rates else { return SearchOutcome::Unchanged };
        let seen = now.saturating_sub(self.begun.unwrap_or(now));
        let (places, alone) = (streams.counts.forward, streams.active == 1);
        let observed_long = if seen < self.tuning.min_first_trial_time() {
            alone && places >= self.tuning.min_places_alone()
        } else {
            places >= self.tuning.min_places()
        };
        if !observed_long && seen < self.tuning.observation_time {
            return SearchOutcome::Unchanged;
        }
        if let Some(found) = self.converged {
            // A lower rate, or another number of streams, means that the workload has changed.
            let slower = rates.progress < self.tuning.plainly_below_ratio * found.rate;
            let as_many = found.active / 2 < streams.active && streams.active <= found.active * 2;
            let is_other_work = !as_many || (slower && streams.is_waiting(&self.tuning));
            // For example, runs that turned out to be long no longer limit windows.
            let limit = found.most.get().saturating_mul(self.tuning.max_growth());
            let as_limited = streams.most.pages.get() < limit;
            let age = self.clock.now().saturating_sub(found.since);
            if !is_other_work && as_limited && age < found.holds {
                return SearchOutcome::Unchanged;
            }
            if is_other_work {
                self.failed_trials = 0;
            }
            (self.converged, self.bad) = (None, None);
        }
        // Two trials at once would disturb each other.
        if !streams.is_waiting(&self.tuning)
            || streams.active == 0
            || rates.progress <= 0.0
            || streams.inspects
        {
            return SearchOutcome::Unchanged;
        }
        if streams.other_reads {
            let (since, counts) = *self.calm.get_or_insert((now, streams.counts));
            let span = now.saturating_sub(since);
            let seen = streams.counts.other_reads.saturating_sub(counts.other_reads);
            if span < self.tuning.observation_time
                || (seen < self.tuning.min_other_reads() && span < self.tuning.max_calm_time())
            {
                return SearchOutcome::Unchanged;
            }
            rates = ReadRates::over(counts, streams.counts, span.as_secs_f64());
        }
        let before = self.window.unwrap_or(streams.typical);
        if before.is_zero() {
            return SearchOutcome::Unchanged;
        }
        let most = self.ceiling(streams, &rates, before);
        let crowd = streams.active > self.tuning.max_runs as u64;
        let compete = streams.active > 1 || rates.switches() > self.tuning.minority_share;
        let window = if compete && !crowd {
            sizes::at_most(most.pages)
        } else {
            sizes::even_at_most(most.pages)
        };
        let reason_before = std::mem::replace(&mut self.reason, most.reason);
        if window.get() < before.get().saturating_mul(MIN_GROWTH) {
            self.settle(streams, rates.progress);
            return SearchOutcome::Unchanged;
        }
        self.attempt(now, streams, rates, window, reason_before)
    }

    fn attempt(
        &mut self,
        now: Nanos,
        streams: &StreamSummary,
        rates: ReadRates,
        window: Pages,
        reason_before: LimitReason,
    ) -> SearchOutcome {
        let pages = streams.active.saturating_mul(window.get()) as f64;
        let span =
            Nanos::from_secs_f64(self.tuning.min_windows as f64 * pages / rates.progress.max(1.0));
        let least = if streams.shared {
            self.tuning.min_shared_trial_time()
        } else {
            self.tuning.min_trial_time()
        };
        let mut span = span.max(least).min(self.tuning.trial_time());
        // Windows requested before are used up then.
        let begins = now + span.scaled(1.0 / 3.0);
        if streams.other_reads {
            let seen = Nanos::from_secs_f64(
                1.5 * self.tuning.min_other_reads() as f64 / rates.other_reads.max(1.0),
            );
            span = span.max(seen.min(self.tuning.max_calm_time()));
        }
        let (from, ends) = (self.window.unwrap_or(streams.typical), now + span);
        self.trial = Some(SearchTrial {
            before: self.window,
            reason_before,
            from,
            rates,
            begins,
            begun: None,
            ends,
            // A smaller window without a clear gain is not worth a longer trial.
            longer: self.window > Some(window),
        });
        self.window = Some(window);
        SearchOutcome::Trying
    }

    fn settle(&mut self, streams: &StreamSummary, rate: f64) {
        let holds = self.tuning.backoff_time
            * (1 << self.failed_trials.min(self.tuning.max_backoff_doublings));
        let (active, most) = (streams.active, streams.most.pages);
        self.converged = Some(Converged { since: self.clock.now(), holds, active, rate, most });
    }

    fn judge(
        &mut self,
        now: Nanos,
        streams: &StreamSummary,
        mut trial: SearchTrial,
    ) -> SearchOutcome {
        if trial.begun.is_none() && now >= trial.begins {
            trial.begun = Some((now, streams.counts));
        }
        self.trial = Some(trial);
        let Some((begun, before)) = trial.begun else { return SearchOutcome::Unchanged };
        let seconds = now.saturating_sub(begun).as_secs_f64();
        let rates = ReadRates::over(before, streams.counts, seconds.max(1e-6));
        // Readers that have stopped are not hurt.
        let hurts_plainly =
            streams.other_reads && rates.plainly_hurts_others(&trial.rates, seconds, &self.tuning);
        let window = self.window.unwrap_or(trial.from);
        let plain =
            hurts_plainly || rates.is_plainly_slower(&trial.rates, seconds, window, &self.tuning);
        let places = streams.counts.forward.saturating_sub(before.forward);
        let enough = trial.longer && places >= self.tuning.min_places() * streams.active.max(1);
        if now <= begun || (now < trial.ends && !plain && !enough) {
            return SearchOutcome::Unchanged;
        }
        let gain = rates.progress / trial.rates.progress.max(1.0);
        let clear =
            !(1.0 / self.tuning.clear_ratio()..self.tuning.clear_ratio()).contains(&gain) || plain;
        if !clear && !trial.longer {
            self.trial =
                Some(SearchTrial { ends: now + self.tuning.trial_time(), longer: true, ..trial });
            return SearchOutcome::Unchanged;
        }
        self.trial = None;
        self.calm = Some((now, streams.counts));
        let gap = Nanos::from_secs_f64(
            self.tuning.few_samples as f64 / trial.rates.other_reads.max(1e-3),
        )
        .max(self.tuning.min_first_trial_time());
        let ended = trial.rates.other_reads > self.tuning.min_other_reads_per_second()
            && now.saturating_sub(streams.others_seen) > gap;
        if ended || (!streams.shared && rates.are_of_other_work(&trial.rates, &self.tuning)) {
            // The workload has changed: this trial and the earlier rates are not comparable.
            self.rates = None;
            return SearchOutcome::Unchanged;
        }
        let hurt = streams.other_reads && rates.hurts_others(&trial.rates, seconds, &self.tuning);
        let gone = rates.progress == 0.0;
        if !streams.trials {
            self.settle(streams, rates.progress);
            return SearchOutcome::Unchanged;
        }
        if hurt
            || (gain < self.tuning.revert_below_ratio()
                && (streams.is_waiting(&self.tuning) || gone))
        {
            return self.take_back(streams, &trial, gain, hurt);
        }
        if gain >= rates.winning(seconds, self.tuning.min_gain_ratios()) {
            self.failed_trials = 0;
            // The next step must beat this window, not the one before it.
            self.rates = Some(rates);
            if rates.next_may_hurt_others(&trial.rates, &self.tuning) {
                self.reason = LimitReason::OtherReads;
            } else if self.window > Some(trial.from) {
                let Some(less) = self.between(streams, &trial) else {
                    return self.try_more(now, streams);
                };
                self.attempt(now, streams, rates, less, self.reason);
                self.reason = LimitReason::Harm;
                return SearchOutcome::Lowered("a smaller window may be faster".to_owned());
            }
        } else if streams.is_waiting(&self.tuning) {
            return self.take_back(streams, &trial, gain, false);
        }
        self.settle(streams, rates.progress);
        SearchOutcome::Unchanged
    }

    /// Returns the window to try after a leap of a single stream that gained: halfway between the
    /// windows before and after it, on a logarithmic scale. On some arrays it is faster than both.
    fn between(&self, streams: &StreamSummary, trial: &SearchTrial) -> Option<Pages> {
        let growth = self.window?.get() / trial.from.get();
        let is_leap = growth >= self.tuning.max_growth();
        let is_alone = streams.active == 1 && trial.rates.switches() <= self.tuning.minority_share;
        let less = sizes::even_at_most(Pages::new(trial.from.get() * growth.isqrt()));
        (is_leap && is_alone && !streams.other_reads).then_some(less)
    }

    fn take_back(
        &mut self,
        streams: &StreamSummary,
        trial: &SearchTrial,
        gain: f64,
        hurt: bool,
    ) -> SearchOutcome {
        let tried = std::mem::replace(&mut self.window, trial.before);
        // Rates during the trial do not apply to the restored window.
        self.rates = Some(trial.rates);
        if tried < self.window {
            self.reason = trial.reason_before;
            self.settle(streams, trial.rates.progress);
            return SearchOutcome::Unchanged;
        }
        self.reason = if hurt { LimitReason::OtherReads } else { LimitReason::Harm };
        self.failed_trials += 1;
        let tried = tried.unwrap_or_default();
        let room =
            tried.get() / self.tuning.growth_factor >= trial.from.get().saturating_mul(MIN_GROWTH);
        if room && !hurt {
            // A window in between may be better: one that is too large may gain nothing.
            self.bad = Some(self.bad.map_or(tried, |bad| bad.min(tried)));
        } else {
            self.settle(streams, trial.rates.progress);
        }
        let tried = Bytes::new(tried.get() * streams.page.get());
        SearchOutcome::Lowered(if hurt {
            format!("with a window of {tried}, other readers of the device got less")
        } else {
            format!("with a window of {tried}, it was read {gain:.2} times as fast")
        })
    }
}

#[cfg(test)]
mod tests;
