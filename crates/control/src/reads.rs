//! Prefetching in addition to windows: along trends, of the next files, and priming.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Bytes, Nanos, Pages};

use super::action::{ActionKind, FileAction};
use super::controller::BdiController;
use super::gain::GainSource;
use super::history::AccessLog;
use super::inputs::{Bounds, FileKey, FileState, Inputs};
use super::memory::{kept, room};
use super::pace::PrimingHaste;
use super::prime::{FilePriming, lately};
use super::stream::{Stream, StreamKind};
use super::trend::{TrendPlan, TrendSteps};
use super::windows::file_view;
use crate::tuning::{SINGLE_PAGE, Tuning};
use crate::what_if::{Candidate, DeviceTimes, Extra, PastAccess, predict};
use policy::OpenFileId;

impl BdiController {
    pub(super) fn plans(&mut self, inputs: &Inputs) -> Vec<FileAction> {
        let now = inputs.now;
        let mut actions = Vec::new();
        let keys: Vec<OpenFileId> = self.streams.keys().copied().collect();
        let shared = self.shared();
        let (device, mut reports) = (self.assumed_device_times(Bytes::from_kib(4)), Vec::new());
        let what_if = self.bounds.features.what_if;
        let max_skip = self.max_skip();
        let most = self.pages_per_second();
        // Reading the gaps takes time of the device from all others.
        let is_alone = self.streams.values().filter(|stream| stream.stalls > 0).count() == 1;
        for key in keys {
            let Some(facts) = self.streams.get(&key).and_then(|stream| stream.facts) else {
                continue;
            };
            let Some(stream) = self.streams.get(&key) else { continue };
            // All of a prefetched file comes anyway.
            if facts.unmanaged || self.siblings.has_prefetched(stream.file) {
                continue;
            }
            let share = self.share(inputs, &facts);
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            // Readers that divide a file among themselves appear to skip what the others read.
            let deals = shared.contains(&stream.file);
            let steps = stream.steps(&facts).filter(|steps| !deals || steps.step < 0);
            let mut why = String::new();
            let is_late = stream.waiting > self.tuning.min_effect && stream.stalls > 0;
            // Threads have several pieces read at once without a plan. Waits for large pieces are
            // long, so whether several readers wait is not known at first.
            let original = stream.original.unwrap_or_default().get();
            let are_large = steps.is_some_and(|steps| !steps.is_gapless && steps.len > original);
            let are_threads = stream.waiting > self.tuning.several_readers()
                || stream.calls.is_some()
                || (are_large && stream.is_young(now));
            if let Some(plan) = &mut stream.plan {
                plan.interval(max_skip);
                let trials = self.bounds.features.trials;
                let may_try = trials && is_late && is_alone && self.gap_trials.is_over(now);
                let most = Some(most).filter(|_| may_try);
                if plan.judge_gaps(now, most) == Some(false) {
                    self.gap_trials.fail(now, &self.tuning);
                }
            }
            match (&mut stream.plan, steps) {
                (Some(plan), _) if plan.is_over(now) => stream.end_plan(),
                (Some(plan), _) if is_late => plan.late(&share),
                (None, Some(steps)) if now >= stream.no_trend_before && !are_threads => {
                    let tuning = Arc::clone(&self.tuning);
                    let plan = TrendPlan::new(steps, stream.seen, max_skip, tuning)
                        .at_pace(stream.pages_passed());
                    why = plan.why();
                    let predicted = what_if
                        .then(|| {
                            predict_trend(
                                stream,
                                steps,
                                &facts,
                                &device,
                                share.memory,
                                &self.bounds,
                                &self.tuning,
                            )
                        })
                        .flatten();
                    if let Some((predicted, replayed)) = predicted {
                        self.predict_at = now + self.tuning.replay_pause * replayed;
                        if !self.scores.is_worth(GainSource::Trend, predicted) {
                            stream.no_trend_before = self.predict_at;
                            continue;
                        }
                        why += &format!(": predicted ×{predicted:.2}");
                    }
                    stream.begin_plan(plan, predicted.map(|(predicted, _)| predicted));
                }
                (Some(_), _) | (None, _) => {}
            }
            let gain = stream.judge_plan(now, self.bounds.features.trials);
            reports.extend(gain.map(|gain| (key, gain)));
            let Some(plan) = &mut stream.plan else { continue };
            let due = plan.due(facts.file_pages, &share);
            for piece in &due {
                let (start, end) = (piece.start.get(), piece.end().get());
                stream.ahead.submit(start, end, end, 0, now);
            }
            if !due.is_empty() {
                actions.push(FileAction::new(key, ActionKind::Prefetch(due), why));
            }
        }
        for (key, gain) in reports {
            actions.push(self.report(key, GainSource::Trend, gain));
        }
        actions
    }

    /// Returns the prefetch of the next files of a sequence; `None` if there is nothing to read.
    pub(super) fn next_files(&mut self, inputs: &Inputs) -> Option<FileAction> {
        let facts = self.sequences.facts()?;
        let share = self.share(inputs, &facts);
        let (key, due, why) = self.sequences.due(&share, self.bounds.samples)?;
        Some(FileAction::new(key, ActionKind::PrefetchFiles(due), why))
    }

    pub(super) fn prime(&mut self, inputs: &Inputs, elapsed: Nanos) -> Vec<FileAction> {
        let now = inputs.now;
        let waits = self.waits(now, elapsed);
        let least = Bytes::new(self.tuning.min_stream_rate.get() as u64);
        let rate = self.device.sequential_rate(self.bounds.rotates).max(least);
        let mut actions = Vec::new();
        let mut files = BTreeMap::new();
        // One action per file, even if it is open many times.
        for (key, stream) in &self.streams {
            if let Some(facts) = stream.facts.filter(FileState::has_read_ahead) {
                files.entry(stream.file).or_insert((*key, facts));
            }
        }
        for (file, priming) in &mut self.primings {
            if !files.contains_key(file) {
                priming.stop();
            }
        }
        for (file, (key, facts)) in &files {
            let random = waits.random.get(file).copied().unwrap_or_default();
            let Some(priming) = self.primings.get_mut(file) else { continue };
            let mut stalled = Nanos::new(random.stalled);
            if waits.primed {
                // Waits that priming causes are no reason to prime more.
                let alone = priming.alone().map(|(_, wait)| wait).or(self.pace.wait_alone());
                let usual = alone.map(|wait| Nanos::from_secs_f64(wait * random.stalls as f64));
                stalled = usual.map_or(stalled, |usual| stalled.min(usual));
            } else {
                priming.waited_alone(random.stalls, stalled);
            }
            priming.waited(random.stalls, stalled, waits.random_share, elapsed);
            if random.stalls > 0 {
                self.siblings.on_wait(*file, facts.file_pages, now);
            }
            if self.siblings.has_prefetched(*file) {
                priming.touch(0, facts.file_pages.get());
            }
            if priming.is_at_work() || random.stalls == 0 || inputs.memory.under_pressure {
                continue;
            }
            let room = room(inputs, facts, &self.tuning);
            let asked = inputs.memory.prefetched.map(|asked| kept(asked, facts, &self.tuning));
            let room = asked.map_or(room, |asked| room.min(asked));
            // All randomly read files must fit together, or they evict each other.
            let others = waits.pages.saturating_sub(facts.file_pages.get());
            let room = Pages::new(room.get().saturating_sub(others));
            let asked =
                facts.prime.then(|| priming.begin_as_asked(facts.file_pages, room)).flatten();
            let begin =
                || priming.begin(facts.file_pages, facts.page, rate, room, random.is_forward);
            if let Some(why) = asked.or_else(begin) {
                let kind = ActionKind::Prefetch(Vec::new());
                actions.push(FileAction { file: *key, kind, why, primes: true });
            }
        }
        if self.bounds.features.files {
            if inputs.memory.under_pressure {
                self.siblings.stop();
            }
            actions.extend(self.await_files(rate, now));
        }
        let worth =
            |file: &FileKey, facts: &FileState| self.primings.get(file)?.worth(facts.file_pages);
        let mut work: Vec<(f64, FileKey, OpenFileId, FileState)> = files
            .iter()
            .filter_map(|(file, (key, facts))| Some((worth(file, facts)?, *file, *key, *facts)))
            .collect();
        // Files whose pages save the most wait time come first.
        work.sort_by(|a, b| b.0.total_cmp(&a.0));
        let Some((_, file, _, first)) = work.first().filter(|_| !inputs.memory.under_pressure)
        else {
            return actions;
        };
        let alone = self.primings.get(file).and_then(FilePriming::alone);
        self.pace.primes(*file, alone);
        let missing = self.missing(&files);
        self.pace.completed(self.device.now(), first.page, elapsed);
        let haste = self.haste(&work, rate);
        let budget_pages = self.pace.allows(missing, rate, first.page, elapsed, haste);
        let before = *budget_pages;
        for (_, file, key, facts) in work {
            let Some(priming) = self.primings.get_mut(&file) else { continue };
            let due = priming.due(facts.file_pages, budget_pages);
            if due.is_empty() {
                continue;
            }
            match actions.iter_mut().find(|action| action.file == key) {
                Some(action) => action.kind = ActionKind::Prefetch(due),
                None => {
                    let why = String::new();
                    actions.push(FileAction {
                        file: key,
                        kind: ActionKind::Prefetch(due),
                        why,
                        primes: true,
                    });
                }
            }
        }
        let taken = before - *budget_pages;
        self.pace.took(taken as u64);
        actions
    }

    /// Returns how fast these files may be primed. Readers may stop at any time, so little may be
    /// read in vain until they have waited as long as the rest takes.
    fn haste(&self, work: &[(f64, FileKey, OpenFileId, FileState)], rate: Bytes) -> PrimingHaste {
        let known = work.iter().filter_map(|(_, file, _, facts)| {
            Some(self.primings.get(file)?.paid_and_price(facts.file_pages, facts.page, rate))
        });
        let (paid, price) = known.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        // Few devices are as slow as is assumed until a read has shown their rate.
        let most = self.tuning.observation_time.as_secs_f64();
        let most = if self.pace.is_rate_assumed(rate) { 2.0 * most } else { most };
        if paid < price {
            PrimingHaste::Steady
        } else if price > most {
            PrimingHaste::Bursts
        } else {
            PrimingHaste::AtOnce
        }
    }

    /// Returns the change of the files that are prefetched on their next miss.
    fn await_files(&mut self, rate: Bytes, now: Nanos) -> Option<FileAction> {
        let rate = rate.get() as f64 / self.page.get().max(1) as f64;
        let (key, files, why) = self.siblings.step(&self.primings, rate, now)?;
        Some(FileAction::new(key, ActionKind::AwaitFiles(files), why))
    }

    /// Returns the share of the readers' wait time before priming that remains, 0 to 1. The cached
    /// share of a file is taken to save the same share of the waits for it.
    fn missing(&self, files: &BTreeMap<FileKey, (OpenFileId, FileState)>) -> f64 {
        let (mut all, mut still) = (self.waits_elsewhere, self.waits_elsewhere);
        for (file, (_, facts)) in files {
            let Some(priming) = self.primings.get(file) else { continue };
            let (waits, missing) = priming.waits(facts.file_pages);
            all += waits;
            still += waits * missing;
        }
        if all > 0.0 { still / all } else { 1.0 }
    }

    /// Returns the waits of readers over the interval.
    fn waits(&mut self, now: Nanos, elapsed: Nanos) -> Waits {
        let mut waits = Waits::default();
        let mut elsewhere = Sum::default();
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            // An inspection itself causes many short waits.
            if stream.faults.is_inspected() {
                continue;
            }
            let is_idle = stream.is_idle(now);
            // A larger window helps a stream, unless it cannot be set.
            let is_stream = stream.reading() == StreamKind::Forward && !facts.only_mapped;
            if is_idle || is_stream || stream.plan.is_some() {
                elsewhere.add(stream);
                continue;
            }
            let sum = waits.random.entry(stream.file).or_insert_with(|| {
                waits.pages = waits.pages.saturating_add(facts.file_pages.get());
                Sum::default()
            });
            sum.add(stream);
        }
        let works = self.primings.values().any(FilePriming::is_wanted);
        if !works {
            let (waits, second) = (Nanos::new(elsewhere.stalled), Nanos::from_secs(1));
            self.waits_elsewhere = lately(self.waits_elsewhere, waits, elapsed, second);
            self.pace.is_over();
        }
        // Waits of streams differ, and change with their windows, so they do not count.
        let counts = |file: &FileKey| self.pace.file().is_none_or(|primed| primed == *file);
        let counted = waits.random.iter().filter(|(file, _)| counts(file));
        let (stalls, stalled) = counted.fold((0, 0), |(stalls, stalled), (_, one)| {
            (stalls + one.stalls, one.stalled.saturating_add(stalled))
        });
        self.pace.waited(stalls, Nanos::new(stalled), elapsed);
        let random = waits.random.values().map(|sum| sum.stalled).fold(0, u64::saturating_add);
        waits.random_share = random as f64 / random.saturating_add(elsewhere.stalled).max(1) as f64;
        waits.primed = works;
        waits
    }
}

/// The number and the total time, in nanoseconds, of waits, and whether any reader reads forward.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    stalls: u64,
    stalled: u64,
    is_forward: bool,
}

impl Sum {
    fn add(&mut self, stream: &Stream) {
        self.stalls += stream.stalls;
        self.stalled = self.stalled.saturating_add(stream.stalled);
        self.is_forward |= stream.reading() == StreamKind::Forward;
    }
}

/// Waits of readers over an interval.
#[derive(Debug, Default)]
struct Waits {
    /// Waits of random reads by file, and the pages of these files.
    random: BTreeMap<FileKey, Sum>,
    pages: u64,
    /// The part of all waits that these are, 0 to 1. Streams have the others.
    random_share: f64,
    /// Whether priming is active.
    primed: bool,
}

/// Predicts the gain of prefetching along a trend that continues. Also returns the number of
/// replayed accesses. `None` if the device or the accesses are unknown.
fn predict_trend(
    stream: &Stream,
    steps: TrendSteps,
    facts: &FileState,
    device: &DeviceTimes,
    cache: Pages,
    bounds: &Bounds,
    tuning: &Arc<Tuning>,
) -> Option<(f64, u64)> {
    if device.fixed == Nanos::ZERO {
        // The service times of the device are not known yet.
        return None;
    }
    let accesses = continued(&stream.log, steps, tuning.trend_accesses())?;
    let window = stream.original.unwrap_or(facts.window);
    let file = file_view(facts, cache.max(window), bounds);
    // Under POSIX_FADV_RANDOM the kernel does not read ahead.
    let window = if facts.random { SINGLE_PAGE } else { window };
    let outcome = |extra| {
        predict(accesses.iter().copied(), &file, device, Candidate { window, extra }, tuning)
    };
    let without = outcome(Extra::Nothing);
    let interval = Nanos::new(without.elapsed.get() / tuning.min_samples);
    let along = outcome(Extra::AlongTrend(interval.min(tuning.eager_interval)));
    Some((along.gain_over(&without), 2 * accesses.len() as u64))
}

/// Returns the last accesses, and more of the same kind along the trend, `total` together; `None`
/// without any.
fn continued(log: &AccessLog, steps: TrendSteps, total: usize) -> Option<Vec<PastAccess>> {
    let mut accesses: Vec<PastAccess> = log.iter().collect();
    let missing = total.saturating_sub(accesses.len());
    let last = *accesses.last()?;
    let count = accesses.len() as u64;
    let pages = (accesses.iter().map(|access| access.pages).sum::<u64>() / count).max(1);
    let think: Nanos = accesses.iter().map(|access| access.think).sum();
    let think = Nanos::new(think.get() / count);
    let step =
        if steps.is_gapless { steps.step.signum() * pages.cast_signed() } else { steps.step };
    accesses.extend((1..=missing as i64).map_while(|number| {
        let first = last.first.checked_add_signed(step.checked_mul(number)?)?;
        Some(PastAccess { first, pages, think, ..last })
    }));
    Some(accesses)
}
