//! JSON, the interface for other programs. docs/json.md explains it; docs/foreread.schema.json
//! specifies it.

use serde::Serialize;
use serde_json::Value;
use study::{
    Cell, Combination, FactorEffect, FactorInteraction, Recommendation, Role, Run, RunCommand,
    RunStatus, Target, WorkloadLimits, WorkloadVerdict,
};
use units::{Bytes, Kib};

use crate::engines::{EnginePair, engine_pairs};
use crate::run_report::RunReport;

/// Increases when a field changes its meaning or is removed, but not when a field is added.
pub const SCHEMA_VERSION: u32 = 2;

#[derive(Debug, Serialize)]
struct Planned<'a> {
    name: &'a str,
    role: Role,
    streams: u32,
    /// Total size of the created files; absent for existing data.
    data_bytes: Option<Bytes>,
    /// The command's own figure that `throughput_mib_s` of the cells contains, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<Figure>,
    declaration_toml: String,
}

/// A command's own figure.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    unit: Option<String>,
}

/// A document with its schema version.
#[derive(Debug, Serialize)]
pub struct Versioned<T> {
    schema_version: u32,
    #[serde(flatten)]
    document: T,
}

impl<T> Versioned<T> {
    pub fn new(document: T) -> Self {
        Self { schema_version: SCHEMA_VERSION, document }
    }
}

/// An object with more fields.
#[derive(Debug, Serialize)]
pub(crate) struct With<T> {
    #[serde(flatten)]
    pub object: T,
    #[serde(flatten)]
    pub more: Value,
}

/// The document of a run: the output of `sweep`, `tune` and `runs show` with `--json`.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// Absent for a simulation, so that the same command prints the same document.
    run: Option<i64>,
    command: RunCommand,
    status: RunStatus,
    error: Option<&'a str>,
    version: &'a str,
    created_unix_s: Option<f64>,
    target: &'a str,
    seed: u64,
    measured_seconds: f64,
    trial_seconds: f64,
    trials: usize,
    dilation: f64,
    current_kib: Option<Kib>,
    grid_kib: &'a [Kib],
    workloads: Vec<Planned<'a>>,
    cells: &'a [Cell],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    limits: &'a [WorkloadLimits],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    engines: Vec<EnginePair>,
    recommendation: &'a Recommendation,
    per_workload: &'a [WorkloadVerdict],
    #[serde(skip_serializing_if = "<[FactorEffect]>::is_empty")]
    effects: &'a [FactorEffect],
    #[serde(skip_serializing_if = "<[FactorInteraction]>::is_empty")]
    interactions: &'a [FactorInteraction],
    #[serde(skip_serializing_if = "Option::is_none")]
    combination: Option<&'a Combination>,
    notes: &'a [String],
    machine: &'a Value,
    device_before: &'a Value,
    device_after: &'a Value,
}

/// Returns the document of a run. Numbers that are not finite are `null`.
pub fn json<'a>(report: &RunReport<'a>) -> Versioned<Document<'a>> {
    let (run, analysis) = (report.run, report.analysis);
    let simulated = matches!(run.plan.target, Target::Simulation(_));
    let planned = run.plan.workloads.iter().map(|planned| Planned {
        name: &planned.workload.name,
        role: planned.role,
        streams: planned.workload.streams(),
        data_bytes: data_bytes(run, &planned.workload.name),
        figure: planned.workload.figure().map(|it| Figure { name: it.name, unit: it.unit }),
        declaration_toml: planned.workload.to_toml(),
    });
    Versioned::new(Document {
        run: (!simulated).then_some(run.summary.id.0),
        command: run.summary.command,
        status: run.summary.status,
        error: run.summary.error.as_deref(),
        version: &run.summary.version,
        created_unix_s: (!simulated).then_some(run.summary.created_unix_s),
        target: &run.summary.target,
        seed: run.seed,
        measured_seconds: analysis.measured_seconds,
        trial_seconds: run.plan.trial.as_secs_f64(),
        trials: run.trials.len(),
        dilation: analysis.dilation,
        current_kib: run.found,
        grid_kib: &run.grid,
        workloads: planned.collect(),
        cells: &analysis.cells,
        limits: &analysis.limits,
        engines: engine_pairs(report),
        recommendation: &analysis.recommendation,
        per_workload: &analysis.per_workload,
        effects: &analysis.effects,
        interactions: &analysis.interactions,
        combination: analysis.combination.as_ref(),
        notes: &analysis.notes,
        machine: &run.machine,
        device_before: &run.device_before,
        device_after: &run.device_after,
    })
}

/// Returns the recorded size of a workload's data.
fn data_bytes(run: &Run, workload: &str) -> Option<Bytes> {
    let declared = run.workloads.iter().find(|declared| declared.name == workload)?;
    let data: Bytes = declared.data_files(Bytes::ZERO).into_iter().sum();
    (!data.is_zero()).then_some(data)
}
