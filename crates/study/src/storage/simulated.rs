//! A fully simulated target: device, page cache, read-ahead and readers.

use std::time::Duration;

use bench::{
    ClassSample, ColdProof, CpuTime, DeviceDelta, DeviceMoment, ReaderSample, ResidencyMethod,
    Sample, Series, Timeline,
};
use control::POLICIES;
use serde_json::{Value as Json, json};
use sim::{
    ClassOutcome, FileOnDisk, Limits, Scenario, SimError, SimMachine, SimOutcome, SimTimeline,
};
use tunables::{Setting, TunableValues, Value};
use units::{Bytes, Kib, Nanos, PageSize};
use workload::{Pattern, Sharing, TraceReplay, Workload};

use super::sizes::{Room, bounded, with_file_sizes};
use crate::error::StudyError;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::session::{TargetFacts, TargetSession};
use crate::target::TargetSpec;
use crate::trial::{TrialRecord, TrialRequest, TrialRunner};

pub(crate) struct SimulatedSession {
    pub(super) facts: TargetFacts,
    pub(super) machine: SimMachine,
    /// The current values of the tunables that the plan varies.
    baseline: TunableValues,
    plan: Plan,
    /// Offset on the device at which the files of each workload start.
    places: Vec<(String, Bytes)>,
}

impl SimulatedSession {
    pub(crate) fn open(
        plan: &Plan,
        spec: &TargetSpec<SimMachine>,
        workloads: Option<&[Workload]>,
    ) -> Result<Self, StudyError> {
        let mut machine = spec.get()?.clone();
        machine.cache = plan.memory_limit.unwrap_or(machine.cache);
        let baseline = baseline(plan, &machine)?;
        let found = Some(machine.read_ahead);
        let grid = plan.read_ahead.values(PageSize::FOUR_KIB, found);
        let window = grid.last().copied().unwrap_or_default();
        for window in [window, machine.read_ahead] {
            // Validate before measuring: a window larger than the cache is a usage error.
            SimMachine { read_ahead: window, ..machine.clone() }
                .validate()
                .map_err(|error| explain_cache_too_small(error, plan))?;
        }
        let room = Room {
            most: Some(Bytes::new(machine.model.capacity().get() / 2)),
            peak: Some(machine.model.peak().throughput),
            trial: plan.trial,
            window: window.to_bytes(),
            unwritten: true,
        };
        let workloads = match workloads {
            Some(workloads) => workloads.to_vec(),
            None => with_file_sizes(plan, &room),
        };
        workloads.iter().try_for_each(Workload::validate).map_err(SimError::from)?;
        let (places, end) = places(&machine, &workloads);
        let capacity = machine.model.capacity();
        if end > capacity {
            return Err(SimError::DeviceTooSmall { needed: end, capacity }.into());
        }
        let facts = TargetFacts {
            identity: identity(spec.text(), &machine),
            workloads,
            grid,
            found,
            dilation: 1.0,
            device: describe(&machine, found)?,
            machine: json!({ "simulated": true, "kernel": machine.policy.to_string() }),
        };
        Ok(Self { facts, machine, baseline, plan: plan.clone(), places })
    }

    /// Predicts the computing time of a trial on an idle processor. Simulates two parts of trials
    /// under a small, a middle and a large window and extrapolates, because each trial has a fixed
    /// cost. A replay runs to its end, so it counts as zero.
    pub(super) fn processor_time_of_a_trial(&mut self) -> Result<Duration, StudyError> {
        const PARTS: [Nanos; 2] = [Nanos::from_millis(50), Nanos::from_millis(200)];
        let whole = self.plan.trial;
        let grid = &self.facts.grid;
        let last = grid.len().saturating_sub(1);
        let windows = [0, last / 2, last].map(|at| grid.get(at).copied());
        let workloads = self.facts.workloads.clone();
        let (mut seconds, mut trials) = (0.0, 0.0);
        for workload in workloads.iter().filter(|workload| workload.replay.is_none()) {
            for window in windows.iter().flatten() {
                let mut took = [0.0; 2];
                for (part, took) in PARTS.into_iter().zip(&mut took) {
                    self.plan.trial = whole.min(part);
                    let settings = &crate::CellSettings::read_ahead(*window);
                    let begun = processor_time();
                    self.trial(&TrialRequest { settings, workload, seed: 1 })?;
                    *took = processor_time().saturating_sub(begun).as_secs_f64();
                }
                let span = PARTS[1].saturating_sub(PARTS[0]).as_secs_f64();
                let each = f64::max(took[1] - took[0], 0.0) / span;
                seconds += took[1] + each * whole.saturating_sub(PARTS[1]).as_secs_f64();
                trials += 1.0;
            }
        }
        self.plan.trial = whole;
        Ok(Duration::from_secs_f64((seconds / f64::max(trials, 1.0)).min(1e9)))
    }

    pub(super) fn files(&self, workload: &Workload) -> Vec<FileOnDisk> {
        let place = self.places.iter().find(|(name, _)| *name == workload.name);
        let start = place.map_or(self.machine.files_at, |(_, start)| *start);
        let sizes = workload.data_files(Bytes::ZERO);
        sim::lay_out(&sizes, workload.layout, self.machine.filesystem.layout, start)
    }
}

fn processor_time() -> Nanos {
    let used = sys::thread_usage::thread_cpu().unwrap_or_default();
    used.user + used.system
}

/// Returns the values of the simulation's tunables other than read-ahead.
fn present(machine: &SimMachine) -> Result<TunableValues, StudyError> {
    let host = machine.model.host();
    let values = [
        ("policy", Value::Word(machine.policy.to_string().replace(',', ":"))),
        ("scheduler", Value::Word(host.scheduler.name().to_owned())),
        ("nr_requests", Value::Number(host.nr_requests as i64)),
        ("max_sectors", Value::Bytes(host.max_request)),
    ];
    let mut all = TunableValues::default();
    for (name, value) in values {
        all = all.with(Setting { tunable: tunables::find(name)?, value });
    }
    Ok(all)
}

/// Returns the current values of the tunables that the plan varies; tests each of their levels.
fn baseline(plan: &Plan, machine: &SimMachine) -> Result<TunableValues, StudyError> {
    let present = present(machine)?;
    let mut all = TunableValues::default();
    for factor in &plan.factors {
        let name = tunables::find(&factor.tunable)?.name();
        let found = present.iter().find(|setting| setting.tunable.name() == name);
        let found = found.ok_or_else(|| not_simulated(name))?;
        for level in factor.settings()? {
            set(&mut machine.clone(), &level)?;
        }
        all = all.with(found.clone());
    }
    Ok(all)
}

fn not_simulated(name: &str) -> StudyError {
    let known = "read_ahead, policy, scheduler, nr_requests and max_sectors";
    StudyError::Plan(format!("a simulation has no tunable {name}: it has {known}"))
}

/// Applies a setting to a simulated machine.
fn set(machine: &mut SimMachine, setting: &Setting) -> Result<(), StudyError> {
    let text = setting.tunable.show(&setting.value);
    let key = match setting.tunable.name() {
        "policy" => {
            machine.policy = sim::parse_policy(&text, POLICIES)?;
            return Ok(());
        }
        "nr_requests" => "nr_requests",
        "max_sectors" => "max_request",
        "scheduler" => "scheduler",
        name => return Err(not_simulated(name)),
    };
    machine.model.set(key, &text).map_err(SimError::from)?;
    machine.validate()?;
    Ok(())
}

/// Includes the whole model, because presets may change with the version.
fn identity(words: &str, machine: &SimMachine) -> Json {
    json!({
        "simulation": words, "model": machine.model.to_toml(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn describe(machine: &SimMachine, read_ahead: Option<Kib>) -> Result<Json, StudyError> {
    let host = machine.model.host();
    let window = read_ahead.map(|window| TunableValues::read_ahead(window.to_bytes()));
    let window = window.iter().flat_map(TunableValues::iter).cloned();
    let tunables = window.fold(present(machine)?, TunableValues::with);
    Ok(json!({
        "simulation": {
            "model": machine.model.name,
            "policy": machine.policy.to_string(),
            "cache_bytes": machine.cache,
            "max_request_bytes": host.max_request,
            "nr_requests": host.nr_requests,
            "scheduler": host.scheduler.name(),
        },
        "tunables": tunables,
    }))
}

/// Explains the options to change if the page cache is too small for a window.
fn explain_cache_too_small(error: SimError, plan: &Plan) -> StudyError {
    let SimError::CacheTooSmall { cache, what, needed } = error else { return error.into() };
    let option = if plan.memory_limit.is_some() { "--memory-limit " } else { "cache=" };
    let size = needed.to_string().replace(' ', "");
    StudyError::Plan(format!(
        "a page cache of {cache} is smaller than {what}, {needed}: give {option}{size} or more, or \
         smaller windows with --vary read_ahead=…"
    ))
}

/// Places the files of the workloads one after another, in the order of creation. Returns the start
/// of each workload's files, and the end of the last.
fn places(machine: &SimMachine, workloads: &[Workload]) -> (Vec<(String, Bytes)>, Bytes) {
    let mut at = machine.files_at;
    let place = |workload: &Workload| {
        let start = at;
        let layout = machine.filesystem.layout;
        let sizes = workload.data_files(Bytes::ZERO);
        at += sizes.into_iter().map(|size| layout.footprint(size)).sum();
        (workload.name.clone(), start)
    };
    let places = workloads.iter().map(place).collect();
    (places, at)
}

impl TrialRunner for SimulatedSession {
    fn trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialRecord, StudyError> {
        let data = request.workload.data_files(Bytes::ZERO).into_iter().sum();
        let window = request.settings.read_ahead.to_bytes();
        let workload = &*bounded(request.workload, window, data);
        let mut machine = SimMachine {
            read_ahead: request.settings.read_ahead,
            seed: self.machine.seed ^ request.seed,
            ..self.machine.clone()
        };
        for setting in request.settings.extra.tunables.iter() {
            set(&mut machine, setting)?;
        }
        let files = self.files(workload);
        let mut scenario =
            Scenario::of_workload(workload, files, request.seed).map_err(SimError::from)?;
        scenario.limits = limits(&self.plan, workload);
        let outcome = sim::run_workload(&machine, scenario)?;
        if let Some(problem) = workload.replay.as_ref().and_then(TraceReplay::failure) {
            let name = &workload.name;
            return Err(StudyError::Plan(format!("{name} cannot be read to its end: {problem}")));
        }
        let sample = sample(workload, request.seed, outcome);
        Ok(TrialRecord { sample, virtual_disk: None, spoiled: Vec::new() })
    }
}

impl TargetSession for SimulatedSession {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn baseline(&self) -> TunableValues {
        self.baseline.clone()
    }

    fn close(self: Box<Self>, _progress: &mut dyn Progress) -> Result<Json, StudyError> {
        describe(&self.machine, self.facts.found)
    }
}

/// Returns the limits of a trial; a replay runs to its end, because its processes start and exit.
pub(super) fn limits(plan: &Plan, workload: &Workload) -> Limits {
    Limits { time: plan.trial, ends_with_first: workload.replay.is_none() }
}

/// Returns the device's part of the time series, as on real storage: sums since the start.
fn timeline(course: &SimTimeline, settled: Nanos) -> Timeline {
    let (mut at, mut queue_time) = (Nanos::ZERO, Nanos::ZERO);
    let (mut requests, mut bytes) = (0, Bytes::ZERO);
    let device = course.slots.iter().map(|slot| {
        // The last slot ends with the last request.
        at = (at + course.slot).min(settled.max(at));
        requests += slot.requests;
        bytes += slot.bytes;
        queue_time += slot.queued;
        let in_flight = slot.queued.get() / course.slot.get().max(1);
        DeviceMoment { at, requests, bytes, queue_time, in_flight }
    });
    Timeline { slot: course.slot, device: device.collect(), ..Timeline::default() }
}

/// Returns the mean window in each slot.
fn windows(course: &SimTimeline) -> Vec<Series> {
    let mut series = Series::level("window read ahead", "KiB");
    let mut at = Nanos::ZERO;
    for slot in &course.slots {
        at += course.slot;
        if slot.windows > 0 {
            let kib = slot.window_pages.get() as f64 * 4.0;
            series.push(at, kib / slot.windows as f64);
        }
    }
    if series.values.is_empty() { Vec::new() } else { vec![series] }
}

/// Returns the sample that a trial on real storage would produce.
fn sample(workload: &Workload, seed: u64, outcome: SimOutcome) -> Sample {
    let in_order = workload.pattern == Pattern::Sequential && workload.sharing == Sharing::OwnFile;
    let ahead = if in_order { outcome.ahead.iter().copied().sum() } else { Bytes::ZERO };
    let class = |class: ClassOutcome| ClassSample { useful: class.useful, latency: class.latency };
    let replay = workload.replay.is_some();
    let readers = outcome.readers.iter().map(|reader| ReaderSample {
        requests: reader.requests,
        useful: reader.useful,
        // A process that exits early counts with the total time, as on real storage.
        elapsed: if replay { outcome.elapsed } else { reader.elapsed },
    });
    Sample {
        elapsed: outcome.elapsed,
        exhausted: outcome.exhausted,
        readers: readers.collect(),
        cpu: CpuTime { system: outcome.processor, ..CpuTime::default() },
        device: Some(DeviceDelta {
            requests: outcome.device.requests,
            bytes: outcome.device.bytes,
            read_time: outcome.device.queued,
            queue_time: outcome.device.queued,
            busy: outcome.device.busy.min(outcome.settled),
            elapsed: outcome.settled,
            ..DeviceDelta::default()
        }),
        ahead,
        settled: outcome.settled,
        timeline: timeline(&outcome.timeline, outcome.settled),
        series: windows(&outcome.timeline),
        request_sizes: outcome.timeline.sizes.to_vec(),
        stream: class(outcome.stream),
        random: class(outcome.random),
        ..Sample::new(&workload.name, seed, 1.0, ColdProof::new(ResidencyMethod::Simulated))
    }
}
