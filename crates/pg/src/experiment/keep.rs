//! Stores the trials in the record, like those of a study, for reports, comparisons and live
//! display.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bench::{ColdProof, DeviceDelta, ReaderSample, ResidencyMethod, Sample, Series, ToolReport};
use serde_json::{Value as Json, json};
use study::{
    CellSettings, Design, Environment, Factor, Grid, NewRun, Plan, PlannedWorkload, Progress,
    Repeats, RunCommand, RunRecording, Store, StudyError, Target, TargetFacts, TrialRecord,
    describe_storage,
};
use units::{Bytes, Kib, Nanos};
use vdisk::VirtualDisk;
use workload::{Pattern, Workload};

use super::{PgArm, Test, Trial};
use crate::error::PgError;
use study::LiveTarget;

pub(super) struct Intent<'a> {
    pub(super) target: &'a Target,
    pub(super) tests: &'a [Test],
    pub(super) arms: &'a [PgArm],
    pub(super) clients: u32,
    pub(super) repeats: u32,
    pub(super) seed: u64,
    /// True if each trial started with a cache that was verified to be empty.
    pub(super) cold: bool,
    /// Other facts for the reports of the run, by name.
    pub(super) facts: Json,
}

/// A run of the record to which trials are added.
pub(super) struct Keeper<'a> {
    recording: RunRecording<'a>,
    settings: Vec<CellSettings>,
    dilation: f64,
    seed: u64,
    cold: bool,
}

impl<'a> Keeper<'a> {
    pub(super) fn begin(
        store: &'a mut Store,
        intent: &Intent<'_>,
        place: &LiveTarget,
        environment: &Environment,
    ) -> Result<Self, PgError> {
        // Storage without its own read-ahead has none to vary.
        let found = place.read_ahead().ok();
        let settings: Vec<CellSettings> =
            intent.arms.iter().filter_map(|arm| settings(arm, found)).collect();
        let mut grid: Vec<Kib> = settings.iter().map(|settings| settings.read_ahead).collect();
        grid.sort_unstable();
        grid.dedup();
        let plan = plan(intent, &grid);
        let facts = TargetFacts {
            workloads: plan.workloads.iter().map(|planned| planned.workload.clone()).collect(),
            grid,
            found,
            dilation: place.dilation,
            machine: machine(intent, environment),
            device: describe_storage(environment, &place.storage, place.disk.as_ref()),
            identity: Json::Null,
        };
        let new = NewRun { command: RunCommand::Pg, plan: &plan, seed: intent.seed, facts: &facts };
        let recording = store.record(&new).map_err(StudyError::from)?;
        let (dilation, seed, cold) = (place.dilation, intent.seed, intent.cold);
        Ok(Self { recording, settings, dilation, seed, cold })
    }

    pub(super) fn run(&self) -> i64 {
        self.recording.run().0
    }

    /// Adds a trial of this round.
    pub(super) fn add(&mut self, round: u32, trial: &Trial) -> Result<(), PgError> {
        let record = self.record(trial);
        let took = Duration::from_secs_f64(record.sample.elapsed.as_secs_f64());
        let started = SystemTime::now() - took;
        let started = started.duration_since(UNIX_EPOCH).map_or(0.0, |at| at.as_secs_f64());
        let settings = self.settings[trial.arm].clone();
        let trial = study::Trial::new(round, settings, started, &record);
        Ok(self.recording.add(&trial, &record).map_err(StudyError::from)?)
    }

    /// Restores the storage, ends the run with the result of the measurement, and returns it.
    pub(super) fn end<T>(
        self,
        measured: Result<T, PgError>,
        place: LiveTarget,
        environment: &Environment,
        progress: &mut dyn Progress,
    ) -> Result<T, PgError> {
        let is_removed = place.disk.as_ref().is_some_and(VirtualDisk::is_ours);
        let storage = (!is_removed).then(|| place.storage.clone());
        let closed = place.close(progress);
        let look = |storage| describe_storage(environment, &storage, None);
        let after = storage.map_or(Json::Null, look);
        let ended = match &measured {
            Ok(_) => self.recording.end(None, &after),
            Err(PgError::Cancelled) => self.recording.interrupt(),
            Err(error) => self.recording.end(Some(&error.to_string()), &after),
        };
        ended.map_err(StudyError::from)?;
        let measured = measured?;
        closed?;
        Ok(measured)
    }

    fn record(&self, trial: &Trial) -> TrialRecord {
        let elapsed = Nanos::from_secs_f64(trial.seconds * self.dilation);
        let (useful, requests) = (trial.useful, requests(trial));
        let method = if self.cold { ResidencyMethod::Cachestat } else { ResidencyMethod::Denied };
        let cold = ColdProof { evictions: u32::from(self.cold), ..ColdProof::new(method) };
        let sample = Sample {
            elapsed,
            readers: vec![ReaderSample { requests, useful, elapsed }],
            device: Some(delta(trial)),
            settled: Nanos::from_secs_f64(trial.device.seconds),
            series: series(trial, self.dilation),
            tool: Some(tool_report(trial, self.dilation)),
            ..Sample::new(&name(trial.test), self.seed, self.dilation, cold)
        };
        let late = "priming ran out of time before all was cached".to_owned();
        let spoiled = if trial.complete { Vec::new() } else { vec![late] };
        TrialRecord { sample, virtual_disk: None, spoiled }
    }
}

pub(super) fn name(test: Test) -> String {
    format!("pg-{}", test.name())
}

/// Returns the settings for the record; `None` if read-ahead is unknown.
fn settings(arm: &PgArm, found: Option<Kib>) -> Option<CellSettings> {
    let base = tunables::TunableValues::read_ahead(found.unwrap_or_default().to_bytes());
    let all = arm.tunables.iter().fold(base, |all, setting| all.with(setting.clone()));
    CellSettings::from_tunables(&all, arm.labels().collect())
}

fn plan(intent: &Intent<'_>, grid: &[Kib]) -> Plan {
    let mut plan = Plan::new(intent.target.clone());
    plan.workloads = intent.tests.iter().map(|test| declared(*test, intent.clients)).collect();
    plan.read_ahead = Grid::Values(grid.to_vec());
    plan.factors = factors(intent.arms);
    plan.design = Design::Full;
    plan.repeats = Repeats::exactly(intent.repeats);
    plan.trial = Nanos::ZERO;
    plan.seed = Some(intent.seed);
    plan
}

/// Returns the workload that is most similar to the server's.
fn declared(test: Test, clients: u32) -> PlannedWorkload {
    let page = Bytes::from_kib(8);
    let (pattern, readers) = match test {
        Test::Seq => (Pattern::Sequential, 1),
        Test::Index | Test::Bitmap => (Pattern::Uniform, 1),
        Test::Prime | Test::Pgbench => (Pattern::Uniform, clients),
    };
    let workload = Workload { readers, ..Workload::new(name(test), pattern, page) };
    PlannedWorkload::goal(workload)
}

/// Returns all factors besides read-ahead that have several levels.
fn factors(arms: &[PgArm]) -> Vec<Factor> {
    let mut all: Vec<Factor> = Vec::new();
    for (name, level) in arms.iter().flat_map(PgArm::levels) {
        match all.iter_mut().find(|factor| factor.tunable == name) {
            Some(known) if known.levels.contains(&level) => {}
            Some(known) => known.levels.push(level),
            None => all.push(Factor { tunable: name, levels: vec![level] }),
        }
    }
    all.retain(|factor| factor.levels.len() > 1);
    all
}

fn machine(intent: &Intent<'_>, environment: &Environment) -> Json {
    let mut machine = host::Machine::read(&environment.root)
        .ok()
        .and_then(|machine| serde_json::to_value(machine).ok())
        .unwrap_or_else(|| json!({}));
    if let Some(fields) = machine.as_object_mut() {
        fields.insert("postgres".to_owned(), intent.facts.clone());
        fields.extend(note(intent).map(|note| ("unit_note".to_owned(), note.into())));
    }
    machine
}

/// Returns a note on figures that are not the readers' own.
fn note(intent: &Intent<'_>) -> Option<String> {
    let given = !intent.cold;
    let of = |test: &Test| match test {
        Test::Seq => "pg-seq: MiB/s of the whole table".to_owned(),
        Test::Index | Test::Bitmap => {
            format!("{}: MiB/s of the table's pages with the requested rows", name(*test))
        }
        Test::Prime if given => "pg-prime: not MiB/s, but selects a second".to_owned(),
        Test::Prime => {
            "pg-prime: MiB/s of table and index that came into the page cache".to_owned()
        }
        Test::Pgbench => "pg-pgbench: not MiB/s, but transactions a second".to_owned(),
    };
    let parts: Vec<String> = intent.tests.iter().map(of).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn requests(trial: &Trial) -> u64 {
    trial.per_second.map_or(1, |rate| (rate * trial.seconds).round() as u64)
}

fn delta(trial: &Trial) -> DeviceDelta {
    let stat = &trial.device.stat;
    DeviceDelta {
        requests: stat.reads,
        merges: stat.read_merges,
        bytes: stat.read_bytes,
        read_time: stat.read_time,
        queue_time: stat.queue_time,
        busy: stat.busy,
        elapsed: Nanos::from_secs_f64(trial.device.seconds),
        writes: stat.writes,
        write_bytes: stat.write_bytes,
        own_bytes: None,
    }
}

/// Returns the time series, in wall time.
fn series(trial: &Trial, dilation: f64) -> Vec<Series> {
    let what = if trial.test == Test::Pgbench { "transactions" } else { "queries" };
    let mut rate = Series::rate(what, &format!("{what}/s"));
    for moment in &trial.moments {
        let at = Nanos::from_secs_f64(moment.seconds * dilation);
        rate.push(at, moment.per_second / dilation);
    }
    let rate = (!rate.at.is_empty()).then_some(rate);
    rate.into_iter().chain(trial.watched.clone()).chain(trial.device.series.clone()).collect()
}

/// Returns the programs' own report. Its metric applies if the amount of data is unknown.
fn tool_report(trial: &Trial, dilation: f64) -> ToolReport {
    let program = match trial.test {
        Test::Prime | Test::Pgbench => "pgbench",
        Test::Seq | Test::Index | Test::Bitmap => "psql",
    };
    let rate = trial.per_second.map(|rate| ("transactions_per_s".to_owned(), rate));
    let seconds = ("seconds".to_owned(), trial.seconds);
    let wall = (dilation > 1.0).then(|| ("wall_seconds".to_owned(), trial.seconds * dilation));
    ToolReport {
        program: program.to_owned(),
        metric: trial.per_second.filter(|_| trial.useful.is_zero()),
        figures: rate.into_iter().chain([seconds]).chain(wall).collect(),
        ..ToolReport::default()
    }
}
