//! Limits: the distance of the settings of a simulated study from the possible optimum.
//!
//! Trials end after a fixed time, so two settings do different amounts of work. Limits need equal
//! work: the work that the best constant setting completes in a trial (for a replay, all of it).
//! The work is repeated under every setting, by a clairvoyant read-ahead, and under the best
//! sequence of settings from phase to phase.

use serde::Serialize;
use sim::oracle::{OracleWork, best_switching, clairvoyant, headroom_captured, lower_bound};
use sim::{Limits, ReadStep, Reader, Scenario, SimError, SimMachine, SimOutcome};
use units::{Kib, Nanos, PageSize};
use workload::{TraceReplay, Workload};

use super::simulated::{SimulatedSession, limits as trial_limits};
use crate::error::StudyError;
use crate::grid::Grid;
use crate::plan::Plan;
use crate::seed::trial_seed;
use crate::target::Target;

/// Number of phases of the work; a switching tuner may change the setting between phases.
const PHASE_COUNT: usize = 8;
/// Maximum settings that it may choose from: the best constant ones, plus the current one.
const MAX_CHOICES: usize = 8;
/// Cost of a change: a write to the bdi, `pidfd_getfd`, `posix_fadvise` and back.
const CHANGE_TIME: Nanos = Nanos::from_micros(50);
/// Maximum number of files for which the best individual setting is sought.
const MAX_FILES: usize = 8;
/// Maximum page references of the work; the clairvoyant keeps all of them in memory.
const REFERENCES_MAX: u64 = 1 << 23;

/// The costs of the work under a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingOutcome {
    pub read_ahead_kib: Kib,
    pub seconds: f64,
    /// Total time that all readers waited for the device, in seconds.
    pub stall_seconds: f64,
    /// Number of device requests.
    pub device_requests: u64,
    /// Data read from the device, in MiB.
    pub device_mib: f64,
    pub wasted_mib: f64,
    /// Share of the best switching's gain over the current setting (1 is all of it).
    pub headroom_captured: Option<f64>,
    /// Share of the clairvoyant's gain over the current setting (1 is all of it).
    pub headroom_captured_clairvoyant: Option<f64>,
    /// Elapsed time ÷ lower bound.
    pub times_bound: Option<f64>,
}

/// A phase of the best switching.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitPhase {
    pub read_ahead_kib: Kib,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadLimits {
    pub workload: String,
    pub requests: u64,
    pub useful_mib: f64,
    /// The baseline: the device's current setting.
    pub default_kib: Kib,
    pub default_seconds: f64,
    /// Lower bound for any schedule: the fewest possible fetches at the device's best rate, or the
    /// processor time.
    pub bound_seconds: f64,
    /// The time of a clairvoyant read-ahead on the same device; `None` if the work is too large to
    /// keep in memory.
    pub clairvoyant_seconds: Option<f64>,
    pub static_kib: Kib,
    pub static_seconds: f64,
    /// The best constant setting of each file, if faster than the best one for all files.
    pub per_file_kib: Vec<Kib>,
    pub per_file_seconds: f64,
    /// The best setting of each phase, with a cost of 50 µs per change.
    pub switching: Vec<LimitPhase>,
    pub switching_seconds: f64,
    pub settings: Vec<SettingOutcome>,
}

/// Returns the limits of all workloads of a simulated study. `workloads` are those of the run, with
/// their file sizes.
///
/// # Errors
///
/// If the target is not simulated, or the simulation fails.
pub fn limits(
    plan: &Plan,
    workloads: &[Workload],
    seed: u64,
) -> Result<Vec<WorkloadLimits>, StudyError> {
    let Target::Simulation(spec) = &plan.target else {
        let why = "limits can be computed only for simulated targets: sim:MODEL".to_owned();
        return Err(StudyError::Plan(why));
    };
    let mut known = workloads.to_vec();
    for workload in &mut known {
        plan.workloads.iter().for_each(|planned| workload.adopt_trace(&planned.workload));
        if workload.replay.as_ref().is_some_and(TraceReplay::is_streamed) {
            let (name, why) = (&workload.name, "limits keep all requests of a trace in memory");
            return Err(StudyError::Plan(format!("{why}, and {name} has too many")));
        }
    }
    let site = SimulatedSession::open(plan, spec, Some(&known))?;
    let of = |(at, workload): (usize, &Workload)| {
        let seed = trial_seed(seed, 0, at);
        let bench = Bench::new(&site, plan, workload, seed)?;
        bench.limits()
    };
    known.iter().enumerate().map(of).collect()
}

/// The work of one workload, which can be repeated.
struct Bench<'a> {
    workload: &'a Workload,
    machine: SimMachine,
    shown: Vec<Kib>,
    settings: Vec<Kib>,
    work: OracleWork,
}

impl<'a> Bench<'a> {
    fn new(
        site: &SimulatedSession,
        plan: &Plan,
        workload: &'a Workload,
        seed: u64,
    ) -> Result<Self, StudyError> {
        let machine = SimMachine { seed: site.machine.seed ^ seed, ..site.machine.clone() };
        let settings = settings(&machine, &site.facts.grid);
        let scenario =
            || Scenario::of_workload(workload, site.files(workload), seed).map_err(SimError::from);
        // The work is the amount that the best setting completes.
        let mut most: Option<SimOutcome> = None;
        for setting in &settings {
            let machine = SimMachine { read_ahead: *setting, ..machine.clone() };
            let mut scenario = scenario()?;
            scenario.limits = trial_limits(plan, workload);
            let outcome = sim::run_workload(&machine, scenario)?;
            if most.as_ref().is_none_or(|most| rate(&outcome) > rate(most)) {
                most = Some(outcome);
            }
        }
        let counts = most.map_or(Vec::new(), |outcome| outcome.readers);
        let scenario = scenario()?;
        let readers = scenario.readers.into_iter().zip(&counts);
        let readers = readers.map(|(reader, done)| {
            // The clairvoyant needs no advice; for equal work, the settings run without it, too.
            let reads = reader.steps.into_iter().filter(|step| step.advice.is_none());
            reads.take(done.requests as usize).collect::<Vec<ReadStep>>()
        });
        let readers = readers.collect();
        let work = OracleWork { files: scenario.files, opens: scenario.opens, readers };
        Ok(Self { workload, machine, shown: site.facts.grid.clone(), settings, work })
    }

    /// Executes the steps that `keep` selects, in the given phases of each reader.
    fn part(
        &self,
        machine: &SimMachine,
        phases: std::ops::Range<usize>,
        keep: &dyn Fn(&ReadStep) -> bool,
    ) -> Result<SimOutcome, SimError> {
        let reader = |steps: &Vec<ReadStep>| {
            let at = |phase: usize| steps.len() * phase / PHASE_COUNT;
            steps[at(phases.start)..at(phases.end)]
                .iter()
                .copied()
                .filter(|step| keep(step))
                .collect::<Vec<ReadStep>>()
        };
        let steps: Vec<Vec<ReadStep>> = self.work.readers.iter().map(reader).collect();
        let scenario = Scenario {
            files: self.work.files.clone(),
            opens: self.work.opens.clone(),
            readers: steps.into_iter().map(|it| Reader { steps: it.into_iter() }).collect(),
            limits: Limits::default(),
        };
        sim::run_lists(machine, scenario)
    }

    fn under(&self, setting: Kib) -> SimMachine {
        SimMachine { read_ahead: setting, ..self.machine.clone() }
    }

    fn limits(&self) -> Result<WorkloadLimits, StudyError> {
        let mut outcomes = Vec::with_capacity(self.settings.len());
        for setting in &self.settings {
            outcomes.push(self.part(&self.under(*setting), 0..PHASE_COUNT, &|_| true)?);
        }
        let time = |setting: Kib| {
            let at = self.settings.iter().position(|known| *known == setting);
            at.map_or(Nanos::MAX, |at| outcomes[at].elapsed)
        };
        let best = |settings: &[Kib]| settings.iter().copied().min_by_key(|it| time(*it));
        let default = self.machine.read_ahead;
        let constant = best(&self.settings).unwrap_or(default);
        let (per_file, per_file_time) = self.per_file(constant, time(constant))?;
        let mut choices = self.settings.clone();
        choices.sort_by_key(|setting| time(*setting));
        choices.truncate(MAX_CHOICES);
        if !choices.contains(&default) {
            choices.push(default);
        }
        let bound = lower_bound(&self.machine, &self.work).time();
        let (switching, switching_time) =
            self.switching(&choices, (constant, time(constant)), bound)?;
        let foreseen = self.foreseen()?;
        let yardsticks =
            Yardsticks { default: time(default), bound, foreseen, switching: switching_time };
        let shown = self.settings.iter().zip(&outcomes);
        let shown = shown.filter(|(setting, _)| self.shown.contains(setting));
        let requests = self.work.readers.iter().map(|steps| steps.len() as u64).sum();
        Ok(WorkloadLimits {
            workload: self.workload.name.clone(),
            requests,
            useful_mib: outcomes.first().map_or(0.0, |outcome| outcome.useful().as_mib()),
            default_kib: default,
            default_seconds: yardsticks.default.as_secs_f64(),
            bound_seconds: yardsticks.bound.as_secs_f64(),
            clairvoyant_seconds: foreseen.map(Nanos::as_secs_f64),
            static_kib: constant,
            static_seconds: time(constant).as_secs_f64(),
            per_file_kib: per_file,
            per_file_seconds: per_file_time.as_secs_f64(),
            switching: switching
                .into_iter()
                .map(|kib| LimitPhase { read_ahead_kib: kib })
                .collect(),
            switching_seconds: switching_time.as_secs_f64(),
            settings: shown.map(|(kib, outcome)| yardsticks.measure(*kib, outcome)).collect(),
        })
    }

    /// Returns the time of the clairvoyant; `None` if the work is too large for it.
    fn foreseen(&self) -> Result<Option<Nanos>, StudyError> {
        let pages = |step: &ReadStep| step.length.get() / 4096 + 1;
        let references: u64 = self.work.readers.iter().flatten().map(pages).sum();
        if references > REFERENCES_MAX {
            return Ok(None);
        }
        Ok(Some(clairvoyant(&self.machine, &self.work)?.time))
    }

    /// Returns the best setting of each file alone, tested for all files together. Files affect
    /// each other, so one setting for all files may be faster; then the function returns that.
    fn per_file(&self, constant: Kib, time: Nanos) -> Result<(Vec<Kib>, Nanos), StudyError> {
        let files = self.work.files.len();
        if files < 2 {
            return Ok((vec![constant; files], time));
        }
        let mut bytes = vec![0u64; files];
        for step in self.work.readers.iter().flatten() {
            bytes[self.work.opens[step.open as usize].file as usize] += step.length.get();
        }
        let mut hot: Vec<usize> = (0..files).collect();
        hot.sort_by_key(|file| std::cmp::Reverse(bytes[*file]));
        hot.truncate(MAX_FILES);
        let mut own = vec![constant; files];
        for file in hot {
            let of_file =
                |step: &ReadStep| self.work.opens[step.open as usize].file as usize == file;
            let mut best: Option<(Nanos, Kib)> = None;
            for setting in self.settings.iter().step_by(2).chain([&constant]) {
                let outcome = self.part(&self.under(*setting), 0..PHASE_COUNT, &of_file)?;
                let taken = (outcome.elapsed, *setting);
                best = Some(best.map_or(taken, |best| best.min(taken)));
            }
            own[file] = best.map_or(constant, |(_, setting)| setting);
        }
        let machine = SimMachine { file_read_ahead: own.clone(), ..self.under(constant) };
        let together = self.part(&machine, 0..PHASE_COUNT, &|_| true)?.elapsed;
        if together < time { Ok((own, together)) } else { Ok((vec![constant; files], time)) }
    }

    /// Returns the best setting of each phase. Each phase is simulated alone, from a cold cache,
    /// under every choice. The constant settings include these cold starts, too, so only the ratio
    /// of the best switching to the best constant setting is used.
    fn switching(
        &self,
        choices: &[Kib],
        (constant, time): (Kib, Nanos),
        bound: Nanos,
    ) -> Result<(Vec<Kib>, Nanos), StudyError> {
        let mut costs = vec![Vec::new(); PHASE_COUNT];
        for setting in choices {
            for (phase, costs) in costs.iter_mut().enumerate() {
                let outcome = self.part(&self.under(*setting), phase..phase + 1, &|_| true)?;
                costs.push(outcome.elapsed);
            }
        }
        let of_choice = |at: usize| costs.iter().map(|phase| phase[at]).sum::<Nanos>();
        let alone = (0..choices.len()).map(of_choice).min().unwrap_or_default();
        match best_switching(&costs, CHANGE_TIME).filter(|found| found.time < alone) {
            Some(found) => {
                let ratio = found.time.as_secs_f64() / alone.as_secs_f64();
                let settings = found.settings.iter().map(|at| choices[*at]).collect();
                Ok((settings, time.scaled(ratio).max(bound)))
            }
            None => Ok((vec![constant; PHASE_COUNT], time)),
        }
    }
}

/// The times with which an outcome is compared.
struct Yardsticks {
    default: Nanos,
    bound: Nanos,
    foreseen: Option<Nanos>,
    switching: Nanos,
}

impl Yardsticks {
    fn measure(&self, setting: Kib, outcome: &SimOutcome) -> SettingOutcome {
        let page = PageSize::FOUR_KIB;
        let time = outcome.elapsed;
        let captured = |limit| headroom_captured(self.default, time, limit);
        let bound = self.bound.as_secs_f64();
        SettingOutcome {
            read_ahead_kib: setting,
            seconds: time.as_secs_f64(),
            stall_seconds: outcome.stalled().as_secs_f64(),
            device_requests: outcome.device.requests,
            device_mib: outcome.device.bytes.as_mib(),
            wasted_mib: outcome.cache.wasted().to_bytes(page).as_mib(),
            headroom_captured: captured(self.switching),
            headroom_captured_clairvoyant: self.foreseen.and_then(captured),
            times_bound: (bound > 0.0).then(|| time.as_secs_f64() / bound),
        }
    }
}

fn rate(outcome: &SimOutcome) -> f64 {
    outcome.useful().get() as f64 / outcome.elapsed.as_secs_f64().max(1e-9)
}

/// Returns the grid, the current setting, and both families of windows that the machine allows.
fn settings(machine: &SimMachine, shown: &[Kib]) -> Vec<Kib> {
    let mut settings = Grid::Full.values(PageSize::FOUR_KIB, Some(machine.read_ahead));
    settings.retain(|setting| {
        SimMachine { read_ahead: *setting, ..machine.clone() }.validate().is_ok()
    });
    settings.extend(shown);
    settings.sort_unstable();
    settings.dedup();
    settings
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;
    use crate::plan::{PlannedWorkload, Repeats};

    #[test]
    fn limits_are_in_order_and_the_default_captures_nothing() {
        let target = Target::parse("sim:hdd-2008").unwrap();
        let workload = Workload { file_size: Some(Bytes::from_mib(4)), ..seq_8() };
        let plan = Plan {
            workloads: vec![PlannedWorkload::goal(workload.clone())],
            read_ahead: Grid::Values([32, 128, 1024].map(Kib::new).to_vec()),
            repeats: Repeats::exactly(1),
            trial: Nanos::from_millis(100),
            ..Plan::new(target)
        };
        let limits = limits(&plan, &[workload], 1).unwrap().remove(0);
        assert!(limits.bound_seconds <= limits.static_seconds, "{limits:?}");
        assert!(limits.bound_seconds <= limits.switching_seconds, "{limits:?}");
        assert!(limits.switching_seconds <= limits.static_seconds, "{limits:?}");
        assert!(limits.per_file_seconds <= limits.static_seconds, "{limits:?}");
        assert!(limits.clairvoyant_seconds.unwrap() >= limits.bound_seconds, "{limits:?}");
        assert_eq!(limits.settings.len(), 3);
        let default = &limits.settings[1];
        assert_eq!(default.read_ahead_kib, limits.default_kib);
        assert!(default.headroom_captured.is_none_or(|share| share == 0.0), "{limits:?}");
        let path = Plan::new(Target::Path("/data".into()));
        assert!(super::limits(&path, &[seq_8()], 1).is_err());
    }

    fn seq_8() -> Workload {
        Workload::named("seq-8").unwrap()
    }
}
