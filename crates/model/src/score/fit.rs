//! Fits the constants to the first requests of a trace.
//!
//! The search has two stages and no randomness except the seeds of replays: a grid over the
//! behaviour of the cache, then coordinate descent from the best candidates, which also tries the
//! switches. Bus rate and overheads start at estimates from the trace: the median times by length
//! are on a line whose slope is the bus rate's inverse.

use crate::SpecError;
use crate::drive::{DriveSpec, ReadBefore};

use super::classes::{self, CLASS_COUNT};
use super::constants::Constants;
use super::replay::replay;
use super::start::first_guess;
use super::trace::TraceRequest;

/// Number of replays per evaluation; see [`replay`].
const REPLAYS_PER_EVALUATION: u64 = 3;

/// Penalty in milliseconds per unit of deviation of the seek scale from 1: the curve was measured,
/// and a short trace should not change it by chance.
const SCALE_COST: f64 = 0.3;

/// Number of grid candidates that are refined.
const REFINED_CANDIDATES: usize = 4;

/// A switch that increases the error by more than this factor is rejected.
const HOPELESS_RATIO: f64 = 1.3;

/// The search stops if a round improves the error by less than this, in milliseconds.
const MIN_GAIN_MS: f64 = 1e-4;

/// A continuous constant: its initial step and the function that changes it.
struct Knob {
    step: f64,
    turn: fn(&mut Constants, f64, f64),
}

/// Changes a value by `by` and limits it to 0 to 100.
fn shift(value: &mut f64, by: f64) {
    *value = (*value + by).clamp(0.0, 100.0);
}

/// The last argument of `turn` is the mean request length in bytes. At this length, a change of the
/// bus rate leaves the service times unchanged.
const KNOBS: [Knob; 8] = [
    Knob { step: 0.3, turn: |c, by, _| shift(&mut c.overhead_ms, by) },
    Knob { step: 0.05, turn: |c, by, _| shift(&mut c.hit_overhead_ms, by) },
    Knob { step: 0.05, turn: |c, by, _| shift(&mut c.write_overhead_ms, by) },
    Knob { step: 0.05, turn: |c, by, _| shift(&mut c.write_streak_ms, by) },
    Knob { step: 0.03, turn: turn_bus },
    Knob { step: 0.04, turn: |c, by, _| c.seek_scale = (c.seek_scale + by).clamp(0.3, 3.0) },
    Knob { step: 0.5, turn: |c, by, _| shift(&mut c.settle_ms, by) },
    Knob { step: 0.05, turn: |c, by, _| shift(&mut c.jitter_ms, by) },
];

fn turn_bus(constants: &mut Constants, by: f64, mean_length: f64) {
    let old = constants.bus_mb_s;
    constants.bus_mb_s = (old * (1.0 + by)).clamp(0.5, 1e4);
    let saved = mean_length * (1.0 / old - 1.0 / constants.bus_mb_s) / 1e3;
    shift(&mut constants.hit_overhead_ms, saved);
    shift(&mut constants.write_overhead_ms, saved);
}

/// Changes of one switch, each tried from the current state of the search.
const SWITCHES: [fn(&mut Constants); 8] = [
    |c| c.keep_delivered = !c.keep_delivered,
    |c| c.read_ahead_within_track = !c.read_ahead_within_track,
    |c| c.read_ahead_after_run = !c.read_ahead_after_run,
    |c| c.write_back = !c.write_back,
    |c| c.store_and_forward = !c.store_and_forward,
    |c| c.read_before = ReadBefore::Nothing,
    |c| c.read_before = ReadBefore::Passing,
    |c| c.read_before = ReadBefore::Track,
];
const READ_AHEADS_KIB: [u64; 10] = [0, 16, 32, 48, 64, 96, 128, 192, 256, 512];
const SEGMENTS: [usize; 7] = [1, 2, 3, 4, 6, 8, 16];

struct Fit<'a> {
    drive: &'a DriveSpec,
    trace: &'a [TraceRequest],
    kinds: Vec<usize>,
    /// Measured times in milliseconds, sorted: by class, and of all requests.
    measured: [Vec<f64>; CLASS_COUNT],
    measured_all: Vec<f64>,
    mean_length: f64,
}

/// The model's error in milliseconds, and its constants.
type Candidate = (f64, Constants);

/// Returns the constants with which the model agrees best with the trace.
pub(super) fn fit(drive: &DriveSpec, trace: &[TraceRequest]) -> Result<Constants, SpecError> {
    let fit = Fit::new(drive, trace);
    let start = first_guess(trace, &fit.kinds);
    let mut best: Option<Candidate> = None;
    for (_, constants) in fit.grid(&start)?.into_iter().take(REFINED_CANDIDATES) {
        let found = fit.descend(constants, 5, 1.0)?;
        if best.as_ref().is_none_or(|best| found.0 < best.0) {
            best = Some(found);
        }
    }
    let mut best = best.unwrap_or((f64::INFINITY, start));
    for _ in 0..2 {
        let before = best.0;
        best = fit.switch(best)?;
        best = fit.resize(best)?;
        let finer = fit.descend(best.1.clone(), 8, 0.5)?;
        best = if finer.0 < best.0 { finer } else { best };
        if before - best.0 < MIN_GAIN_MS {
            break;
        }
    }
    Ok(best.1)
}

impl<'a> Fit<'a> {
    fn new(drive: &'a DriveSpec, trace: &'a [TraceRequest]) -> Self {
        let kinds = classes::kinds(trace);
        let mut measured: [Vec<f64>; CLASS_COUNT] = Default::default();
        let mut measured_all = Vec::with_capacity(trace.len());
        for (request, &kind) in trace.iter().zip(&kinds) {
            measured[kind].push(request.service_us / 1e3);
            measured_all.push(request.service_us / 1e3);
        }
        for times in measured.iter_mut().chain([&mut measured_all]) {
            times.sort_unstable_by(f64::total_cmp);
        }
        let mean_length = super::start::mean_length(trace);
        Self { drive, trace, kinds, measured, measured_all, mean_length }
    }

    /// Returns the error of the model in milliseconds: the mean of the demerit over all requests
    /// and of that by class, plus the penalty on the seek scale.
    fn distance(&self, constants: &Constants) -> Result<f64, SpecError> {
        let spec = constants.apply(self.drive);
        let mut modelled: [Vec<f64>; CLASS_COUNT] = Default::default();
        let mut modelled_all =
            Vec::with_capacity(self.trace.len() * REPLAYS_PER_EVALUATION as usize);
        for seed in 1..=REPLAYS_PER_EVALUATION {
            let times = replay(&spec, seed, self.trace)?;
            for (&time, &kind) in times.iter().zip(&self.kinds) {
                modelled[kind].push(time);
            }
            modelled_all.extend(times);
        }
        let pairs = self.measured.iter().zip(&mut modelled);
        let by_kind: f64 = pairs.map(|(measured, modelled)| squares(measured, modelled)).sum();
        let all = squares(&self.measured_all, &mut modelled_all);
        let rms = |squares: f64| (squares / self.trace.len().max(1) as f64).sqrt();
        let bent = (constants.seek_scale - 1.0).abs();
        Ok((rms(by_kind) + rms(all)) / 2.0 + SCALE_COST * bent)
    }

    /// Evaluates all combinations of cache behaviour; returns them best first.
    fn grid(&self, start: &Constants) -> Result<Vec<Candidate>, SpecError> {
        let mut all = Vec::new();
        for read_before in [ReadBefore::Nothing, ReadBefore::Passing, ReadBefore::Track] {
            for flags in 0..4 {
                for read_ahead_kib in [0, 32, 64, 128, 256] {
                    let (keep_delivered, read_ahead_within_track) =
                        (flags & 1 == 0, flags & 2 != 0);
                    let constants = Constants {
                        read_before,
                        keep_delivered,
                        read_ahead_within_track,
                        read_ahead_kib,
                        ..start.clone()
                    };
                    all.push((self.distance(&constants)?, constants));
                }
            }
        }
        all.sort_by(|left, right| left.0.total_cmp(&right.0));
        Ok(all)
    }

    /// Changes one constant after another. A step that reduces the error grows; other steps shrink.
    fn descend(
        &self,
        mut constants: Constants,
        rounds: usize,
        scale: f64,
    ) -> Result<Candidate, SpecError> {
        let mut steps = KNOBS.map(|knob| knob.step * scale);
        let mut best = self.distance(&constants)?;
        for _ in 0..rounds {
            for (knob, step) in KNOBS.iter().zip(&mut steps) {
                let mut factor = 0.6;
                for by in [*step, -*step] {
                    let mut moved = constants.clone();
                    (knob.turn)(&mut moved, by, self.mean_length);
                    if moved == constants {
                        continue;
                    }
                    let distance = self.distance(&moved)?;
                    if distance < best {
                        (best, constants, factor) = (distance, moved, 1.3);
                        break;
                    }
                }
                *step *= factor;
            }
        }
        Ok((best, constants))
    }

    /// Tries each switch, with a short descent to compensate for the change.
    fn switch(&self, mut best: Candidate) -> Result<Candidate, SpecError> {
        for switch in SWITCHES {
            let mut constants = best.1.clone();
            switch(&mut constants);
            if constants == best.1 || self.distance(&constants)? > best.0 * HOPELESS_RATIO {
                continue;
            }
            let found = self.descend(constants, 3, 0.5)?;
            if found.0 < best.0 {
                best = found;
            }
        }
        Ok(best)
    }

    /// Tries other read-ahead sizes and numbers of segments.
    fn resize(&self, mut best: Candidate) -> Result<Candidate, SpecError> {
        let mut tried = Vec::new();
        for read_ahead_kib in READ_AHEADS_KIB {
            tried.push(Constants { read_ahead_kib, ..best.1.clone() });
        }
        for segments in SEGMENTS {
            tried.push(Constants { segments, ..best.1.clone() });
        }
        for constants in tried {
            let distance = self.distance(&constants)?;
            if distance < best.0 {
                best = (distance, constants);
            }
        }
        Ok(best)
    }
}

/// Returns the sum of squared horizontal distances between two distributions. `modelled` has a
/// whole number of values for each value of `measured`, which is sorted.
fn squares(measured: &[f64], modelled: &mut [f64]) -> f64 {
    modelled.sort_unstable_by(f64::total_cmp);
    let each = modelled.len() / measured.len().max(1);
    let means = modelled.chunks(each.max(1)).map(|some| some.iter().sum::<f64>() / each as f64);
    measured.iter().zip(means).map(|(left, right)| (left - right).powi(2)).sum()
}
