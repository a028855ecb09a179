//! Opens real storage or a virtual disk for trials.

use std::collections::HashSet;

use bench::{
    BenchError, CacheStart, Cancel, Dataset, LayOutOptions, Sample, TrialOptions, run_trial,
};
use host::{Machine, Storage, StorageKind};
use serde_json::Value as Json;
use tunables::{BdiLease, RestoreOutcome as UndoOutcome, RestoreReport, Tunable, Value};
use units::{Bytes, BytesPerSecond, Kib};
use vdisk::{DiskCounters, Lateness, VirtualDisk};
use workload::Workload;

use super::identity::identity;
use super::live::{DiskUse, LiveTarget};
use super::simulated::SimulatedSession;
use super::sizes::{Room, bounded, shrunk, with_file_sizes};
use super::windows::WindowProbe;
use crate::environment::Environment;
use crate::error::StudyError;
use crate::plan::Plan;
use crate::progress::{Progress, ProgressEvent, StudyPhase};
use crate::session::{Opener, TargetFacts, TargetSession};
use crate::settings::CellSettings;
use crate::target::Target;
use crate::trial::{TrialRecord, TrialRequest, TrialRunner};

pub(crate) fn opener<'a>(plan: &'a Plan, environment: &'a Environment) -> Box<Opener<'a>> {
    Box::new(move |workloads, progress| {
        if let Target::Simulation(spec) = &plan.target {
            let site = SimulatedSession::open(plan, spec, workloads)?;
            return Ok(Box::new(site) as Box<dyn TargetSession>);
        }
        let site = LiveSession::open(plan, environment, workloads, progress)?;
        Ok(Box::new(site) as Box<dyn TargetSession>)
    })
}

/// Storage under the real kernel. The order of the fields matters: `lease` is dropped, and restores
/// the settings, before `target` removes the disk.
struct LiveSession {
    facts: TargetFacts,
    lease: BdiLease,
    dataset: Dataset,
    own_files: bool,
    target: LiveTarget,
    read_ahead: &'static Tunable,
    /// The current values of the tunables that are varied in addition to read-ahead.
    baseline: tunables::TunableValues,
    plan: Plan,
    environment: Environment,
    /// Names of workloads of external programs that have succeeded at least once.
    proven: HashSet<String>,
    window_probe: WindowProbe,
}

impl LiveSession {
    fn open(
        plan: &Plan,
        environment: &Environment,
        workloads: Option<&[Workload]>,
        progress: &mut dyn Progress,
    ) -> Result<Self, StudyError> {
        let root = &environment.root;
        let machine = Machine::read(root)?;
        let read_ahead = tunables::find("read_ahead")?;
        // Validate before creating anything: a value that cannot be set is a usage error.
        checked(read_ahead, &plan.read_ahead.values(machine.page_size, None), &machine, progress)?;
        programs(plan, progress)?;
        plan.memory_limit.map_or(Ok(()), bench::check_memory_limit)?;
        let target = LiveTarget::open_for(DiskUse::Files, &plan.target, environment, progress)?;
        if let Some(disk) = target.disk.as_ref().filter(|disk| !disk.is_ours()) {
            progress.step(&ProgressEvent::Note(known_disk(disk)));
        }
        let storage = &target.storage;
        only_in_directories(plan, storage)?;
        let mut lease = target.begin()?;
        for undone in lease.inherited() {
            progress.step(&ProgressEvent::Note(format!("left by a killed run: {undone}")));
        }
        let found = Some(target.read_ahead()?);
        // Report a missing permission before files are created. Measuring the current setting needs
        // no permission.
        let wanted = plan.read_ahead.values(machine.page_size, found);
        if wanted.iter().any(|kib| Some(*kib) != found) {
            let site = tunables::TunableScope::with_layers(root, storage);
            tunables::check_writable(root, read_ahead, &site)?;
        }
        let baseline = try_factors(plan, &mut lease, progress)?;
        let grid = checked(read_ahead, &wanted, &machine, progress)?;
        let room = room(&target, plan, machine.memory_available, &grid)?;
        let workloads = match workloads {
            Some(workloads) => workloads.to_vec(),
            None => with_file_sizes(plan, &room),
        };
        for note in shrunk(plan, &workloads) {
            progress.step(&ProgressEvent::Note(note));
        }
        let own_files = storage.kind == StorageKind::Directory;
        let dataset = lay_out(&target, &workloads, plan, environment, progress)?;
        let facts = TargetFacts {
            identity: identity(root, storage, &machine, target.disk.as_ref()),
            workloads,
            grid,
            found,
            dilation: target.dilation,
            device: target.describe(),
            machine: serde_json::to_value(&machine).unwrap_or_default(),
        };
        let (plan, environment) = (plan.clone(), environment.clone());
        Ok(Self {
            facts,
            lease,
            dataset,
            own_files,
            target,
            read_ahead,
            baseline,
            plan,
            environment,
            proven: HashSet::new(),
            window_probe: WindowProbe::default(),
        })
    }
}

/// Returns an error if a workload writes and the target is existing data, which is never written.
fn only_in_directories(plan: &Plan, storage: &Storage) -> Result<(), StudyError> {
    let mut workloads = plan.workloads.iter().map(|planned| &planned.workload);
    match workloads.find(|workload| workload.writes()) {
        Some(workload) if storage.kind != StorageKind::Directory => {
            let (path, workload) = (storage.path.clone(), workload.name.clone());
            Err(BenchError::OnlyRead { path, workload }.into())
        }
        _ => Ok(()),
    }
}

/// Finds the external programs that the plan needs, and reports their versions.
fn programs(plan: &Plan, progress: &mut dyn Progress) -> Result<(), StudyError> {
    let mut reported = Vec::new();
    for outside in plan.workloads.iter().filter_map(|planned| planned.workload.outside.as_ref()) {
        if let Some(version) = bench::find_program(outside)?
            && !reported.contains(&version)
        {
            progress.step(&ProgressEvent::Note(format!("run by {}: {version}", outside.program())));
            reported.push(version);
        }
    }
    Ok(())
}

/// Sets every level of each varied tunable once, so that impossible values are reported before
/// files are created. Returns the previous values.
fn try_factors(
    plan: &Plan,
    lease: &mut BdiLease,
    progress: &mut dyn Progress,
) -> Result<tunables::TunableValues, StudyError> {
    let mut baseline = tunables::TunableValues::default();
    for factor in &plan.factors {
        let levels = factor.settings()?;
        let Some(tunable) = levels.first().map(|level| level.tunable) else { continue };
        let value = lease.read(tunable)?;
        for level in &levels {
            lease.set(tunable, &level.value)?;
        }
        if tunable.validate(&value, host::page_size()).is_err() {
            // Such a value, for example `dirty_bytes` 0, means that another tunable applies; it
            // cannot be set. Closing the study restores it; levels are compared with the first one.
            let (name, value) = (tunable.name(), tunable.show(&value));
            let text = format!(
                "{name} is {value}, which cannot be set: levels are compared with the first one \
                                named"
            );
            progress.step(&ProgressEvent::Note(text));
            continue;
        }
        lease.set(tunable, &value)?;
        baseline = baseline.with(tunables::Setting { tunable, value });
    }
    for note in lease.take_notes() {
        progress.step(&ProgressEvent::Note(note));
    }
    Ok(baseline)
}

/// Returns the values as the kernel rounds them, or an error if one is impossible.
fn checked(
    tunable: &Tunable,
    values: &[Kib],
    machine: &Machine,
    progress: &mut dyn Progress,
) -> Result<Vec<Kib>, StudyError> {
    let mut kept = Vec::with_capacity(values.len());
    for value in values {
        let checked = tunable.validate(&Value::from(value.to_bytes()), machine.page_size)?;
        for note in checked.notes {
            progress.step(&ProgressEvent::Note(note));
        }
        kept.extend(checked.value.bytes().map(Bytes::to_kib_floor));
    }
    kept.sort_unstable();
    kept.dedup();
    Ok(kept)
}

fn room(target: &LiveTarget, plan: &Plan, memory: Bytes, grid: &[Kib]) -> Result<Room, StudyError> {
    let disk = match target.storage.kind {
        StorageKind::Directory => Some(target.storage.space()?.available),
        StorageKind::File | StorageKind::BlockDevice => None,
    };
    let window = grid.last().copied().unwrap_or_default();
    Ok(live_room(plan, disk, target.peak(), memory, window))
}

fn lay_out(
    target: &LiveTarget,
    workloads: &[Workload],
    plan: &Plan,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Dataset, StudyError> {
    let storage = &target.storage;
    if storage.kind != StorageKind::Directory {
        return Ok(Dataset::existing(&storage.path)?);
    }
    progress.step(&ProgressEvent::Phase(StudyPhase::LayingOut));
    target.set_timing(false)?;
    let options = LayOutOptions {
        file_size: plan.file_size.unwrap_or(Bytes::from_gib(1)),
        seed: plan.seed.unwrap_or_default(),
        cancel: environment.cancel.clone(),
    };
    let dataset = Dataset::lay_out(&storage.path, workloads, &options, &mut |laid| {
        let (done, total) = (laid.written.get(), laid.total.get());
        progress.step(&ProgressEvent::LaidOut { done, total });
    })?;
    target.set_timing(true)?;
    Ok(dataset)
}

/// Returns the limits on file sizes under the real kernel. `peak` is known only for a virtual disk.
pub(super) fn live_room(
    plan: &Plan,
    space: Option<Bytes>,
    peak: Option<BytesPerSecond>,
    memory: Bytes,
    window: Kib,
) -> Room {
    // The data of a virtual disk is in memory, and its page cache is, too.
    let memory = peak.map(|_| Bytes::new(memory.get() / 3));
    let space = space.map(|available| Bytes::new(available.get() / 2));
    let most = [space, memory].into_iter().flatten().min();
    Room { most, peak, trial: plan.trial, window: window.to_bytes(), unwritten: false }
}

/// Returns the note for a virtual disk that another process created.
fn known_disk(disk: &VirtualDisk) -> String {
    let (name, dilation) = (disk.name(), disk.dilation());
    format!(
        "this is the virtual disk {name} with a dilation of {dilation}: all times are divided by \
         it, and the disk starts each trial with empty caches and counters at 0"
    )
}

impl TrialRunner for LiveSession {
    fn trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialRecord, StudyError> {
        let CellSettings { read_ahead, extra } = request.settings;
        // Set read-ahead last, because the other tunables may change it.
        for setting in extra.tunables.iter() {
            self.lease.set(setting.tunable, &setting.value)?;
        }
        self.lease.set(self.read_ahead, &Value::from(read_ahead.to_bytes()))?;
        let options = TrialOptions {
            duration: self.plan.trial,
            dilation: self.facts.dilation,
            seed: request.seed,
            drop_caches: self.plan.drop_caches,
            start: CacheStart::Cold,
            memory_limit: self.plan.memory_limit,
            cancel: Cancel::clone(&self.environment.cancel),
            ..TrialOptions::default()
        };
        self.target.reset_disk()?;
        let recorder = self.window_probe.at(request);
        let mut sample = self.sample(request, &options)?;
        if let Some(recorder) = recorder {
            recorder.end(&self.target.storage, &mut sample);
        }
        let virtual_disk = self.target.disk.as_ref().map(VirtualDisk::counters).transpose()?;
        let spoiled = virtual_disk.iter().filter_map(late);
        Ok(TrialRecord { sample, spoiled: spoiled.collect(), virtual_disk })
    }
}

impl LiveSession {
    /// Runs one trial. If the program fails after an earlier success, the trial counts as
    /// disturbed; otherwise the study fails, because the program would fail again.
    fn sample(
        &mut self,
        request: &TrialRequest<'_>,
        options: &TrialOptions,
    ) -> Result<Sample, StudyError> {
        let root = &self.environment.root;
        let window = request.settings.read_ahead.to_bytes();
        let workload = &*bounded(request.workload, window, self.dataset.data_of(request.workload));
        match run_trial(root, &self.target.storage, &self.dataset, workload, options) {
            Ok(sample) => {
                if workload.outside.is_some() {
                    self.proven.insert(workload.name.clone());
                }
                Ok(sample)
            }
            Err(problem @ BenchError::Tool { .. }) if self.proven.contains(&workload.name) => {
                let (seed, dilation) = (options.seed, options.dilation);
                Ok(Sample::failed(&workload.name, seed, dilation, problem.to_string()))
            }
            Err(problem) => Err(problem.into()),
        }
    }
}

/// Returns the reason if the virtual disk was too late in this trial.
fn late(counters: &DiskCounters) -> Option<String> {
    let Lateness { p50, p99, .. } = counters.lateness;
    counters.is_spoiled().then(|| {
        format!(
            "the virtual disk took {:.0} % longer than its model (late by {p50}, p99 {p99})",
            counters.late_share() * 100.0
        )
    })
}

/// Returns whether a restored value should be reported: only after an unexpected result.
fn is_news(undone: &RestoreReport) -> bool {
    !matches!(undone.outcome, UndoOutcome::Restored | UndoOutcome::AlreadySo)
}

impl TargetSession for LiveSession {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn baseline(&self) -> tunables::TunableValues {
        self.baseline.clone()
    }

    fn close(self: Box<Self>, progress: &mut dyn Progress) -> Result<Json, StudyError> {
        let site = *self;
        let restored = site.lease.restore();
        for undone in restored.iter().flatten().filter(|undone| is_news(undone)) {
            progress.step(&ProgressEvent::Note(undone.to_string()));
        }
        let after = site.target.describe();
        // Open files of this process would keep the disk's filesystem busy.
        let removed = if site.own_files { site.dataset.remove() } else { Ok(()) };
        let disk = site.target.disk.map_or(Ok(()), VirtualDisk::release);
        restored?;
        removed?;
        disk?;
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_did_not_go_back_is_news() {
        let undone = |outcome| RestoreReport {
            journal: "/journal".into(),
            bdi: host::BdiId::new("8:0").expect("a bdi"),
            tunable: "read_ahead",
            file: "/sys/class/bdi/8:0/read_ahead_kb".into(),
            original: Value::from(Bytes::from_kib(128)),
            outcome,
        };
        let present = Value::from(Bytes::from_kib(256));
        assert!(is_news(&undone(UndoOutcome::LeftAlone { present })));
        assert!(is_news(&undone(UndoOutcome::DeviceGone)));
        assert!(!is_news(&undone(UndoOutcome::Restored)));
        assert!(!is_news(&undone(UndoOutcome::AlreadySo)));
    }
}
