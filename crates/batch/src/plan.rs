//! Plans: traces × cells, divided into shards.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::{Deserialize, Serialize};
use sys::input::InputKind;
use trace::ReadOptions;
use units::Bytes;

use crate::cell::{SIM_CELL_KEYS, SimCell};
use crate::error::BatchError;
use crate::identity::{SIMULATOR_VERSION, cell_id, sha256};
use crate::loaded::LoadedTrace;
use crate::part::{finished_cells, publish};
use crate::shard::{Shard, shard_name};

/// Maximum number of grid cells: a mistyped grid fails instead of exhausting memory.
const CELLS_MAX: usize = 1_000_000;
/// Default shard duration in seconds: long compared with startup, short if a kill loses it.
const SHARD_SECONDS: f64 = 20.0;
/// Estimated simulation time of a read and of each of its pages, in nanoseconds. They only
/// determine the number of cells per shard.
const READ_NS: f64 = 400.0;
const PAGE_NS: f64 = 60.0;
/// Bytes of memory per record: decoded, and as a step of a reader.
const RECORD_BYTES: u64 = 96;
/// Bytes of memory for a trace that is read block by block, of any length.
const STREAM_BYTES: u64 = 96 << 20;

/// A plan of simulations, or a manifest with its shards.
const PLAN_INPUT: InputKind = InputKind::new("plan", "plans", Bytes::from_mib(512));

/// The simulations to run. `foreread sim plan` reads this as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchPlan {
    pub traces: Vec<PathBuf>,
    /// Values for fields of a cell; every combination is simulated.
    #[serde(default)]
    pub grid: BTreeMap<String, Vec<serde_json::Value>>,
    /// Further cells.
    #[serde(default)]
    pub cells: Vec<SimCell>,
    #[serde(default = "default_shard_seconds")]
    pub shard_seconds: f64,
}

fn default_shard_seconds() -> f64 {
    SHARD_SECONDS
}

/// Result of planning.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSummary {
    /// Cells that still have to be simulated.
    pub shards: Vec<Shard>,
    /// Number of cells of the plan, over all traces.
    pub cells: usize,
    /// Number of these cells that already have a result.
    pub finished: usize,
}

/// A written manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestSummary {
    pub path: PathBuf,
    pub shards: usize,
}

/// A trace of a plan, without its records.
struct PlannedTrace {
    path: PathBuf,
    digest: String,
    seconds_per_cell: f64,
    bytes: u64,
}

impl BatchPlan {
    /// Reads a plan in JSON.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not a plan.
    pub fn read(path: &Path) -> Result<Self, BatchError> {
        let text = sys::input::read_text(path, PLAN_INPUT)?;
        serde_json::from_str(&text)
            .map_err(|error| BatchError::Plan(format!("{}: {error}", path.display())))
    }

    /// Returns all cells: first those of the grid in the order of its keys, with the last key
    /// varying fastest, then the others. Duplicates are kept.
    ///
    /// # Errors
    ///
    /// If a key of the grid or a value is invalid.
    pub fn all_cells(&self) -> Result<Vec<SimCell>, BatchError> {
        let mut cells = Vec::new();
        if !self.grid.is_empty() || self.cells.is_empty() {
            let mut points = vec![serde_json::Map::new()];
            for (key, values) in &self.grid {
                if !SIM_CELL_KEYS.contains(&key.as_str()) {
                    let hint = match units::text::nearest(key, SIM_CELL_KEYS) {
                        Some(name) => format!("did you mean {name:?}?"),
                        None => format!("a cell has {}", SIM_CELL_KEYS.join(", ")),
                    };
                    return Err(BatchError::Plan(format!("grid: unknown key {key:?}; {hint}")));
                }
                if values.is_empty() {
                    return Err(BatchError::Plan(format!("grid: {key} has no values")));
                }
                if points.len().saturating_mul(values.len()) > CELLS_MAX {
                    return Err(BatchError::Plan(format!("more than {CELLS_MAX} cells")));
                }
                let with = |point: &serde_json::Map<_, _>, value: &serde_json::Value| {
                    let mut point = point.clone();
                    point.insert(key.clone(), value.clone());
                    point
                };
                points = points
                    .iter()
                    .flat_map(|point| values.iter().map(move |value| with(point, value)))
                    .collect();
            }
            for point in points {
                let cell = serde_json::from_value(serde_json::Value::Object(point));
                cells.push(cell.map_err(|error| BatchError::Plan(format!("grid: {error}")))?);
            }
        }
        cells.extend(self.cells.iter().cloned());
        Ok(cells)
    }

    /// Divides the cells without results in the directory `out` into shards. The division depends
    /// only on the plan, so an interrupted plan continues with the same shards.
    ///
    /// # Errors
    ///
    /// If a cell is invalid, a trace cannot be read (the error names all such traces), or the
    /// directory cannot be read.
    pub fn shards(&self, out: &Path) -> Result<PlanSummary, BatchError> {
        if !(self.shard_seconds.is_finite() && self.shard_seconds > 0.0) {
            return Err(BatchError::Plan("shard_seconds: must be more than 0".to_owned()));
        }
        let mut seen = HashSet::new();
        let mut cells = Vec::new();
        for cell in self.all_cells()? {
            let digest = cell.digest()?;
            if seen.insert(digest.clone()) {
                cells.push((cell, digest));
            }
        }
        let traces = self.trace_facts()?;
        let finished = finished_cells(out)?;
        let mut summary = PlanSummary { shards: Vec::new(), cells: 0, finished: 0 };
        let mut digests = HashSet::new();
        for facts in traces {
            // Simulate a trace that is listed under two names only once.
            if !digests.insert(facts.digest.clone()) {
                continue;
            }
            let per_shard = (self.shard_seconds / facts.seconds_per_cell).max(1.0) as usize;
            for cells in cells.chunks(per_shard) {
                summary.cells += cells.len();
                let open: Vec<(String, &SimCell)> = cells
                    .iter()
                    .map(|(cell, digest)| (cell_id(&facts.digest, digest), cell))
                    .filter(|(id, _)| !finished.contains(id))
                    .collect();
                summary.finished += cells.len() - open.len();
                if !open.is_empty() {
                    summary.shards.push(facts.shard(&open));
                }
            }
        }
        Ok(summary)
    }

    /// Reads the traces in parallel.
    fn trace_facts(&self) -> Result<Vec<PlannedTrace>, BatchError> {
        if self.traces.is_empty() {
            return Err(BatchError::Plan("no traces: name at least one".to_owned()));
        }
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::with_capacity(self.traces.len()));
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads.min(self.traces.len()) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(path) = self.traces.get(at) else { break };
                        let facts = PlannedTrace::read(path);
                        found.lock().unwrap_or_else(|it| it.into_inner()).push((at, facts));
                    }
                });
            }
        });
        let mut found = found.into_inner().unwrap_or_else(|it| it.into_inner());
        found.sort_by_key(|(at, _)| *at);
        let (mut facts, mut failed) = (Vec::new(), Vec::new());
        for (_, result) in found {
            match result {
                Ok(one) => facts.push(one),
                Err(error) => failed.push(error),
            }
        }
        match failed.len() {
            0 => Ok(facts),
            1 => Err(failed.remove(0)),
            count => {
                let lines: Vec<String> = failed.iter().map(ToString::to_string).collect();
                let lines = lines.join("; ");
                Err(BatchError::Plan(format!("{count} traces cannot be used: {lines}")))
            }
        }
    }

    /// Writes the remaining shards into the directory `out` as a manifest, one shard per line.
    ///
    /// # Errors
    ///
    /// As [`BatchPlan::shards`], or if the manifest cannot be written.
    pub fn write_manifest(&self, out: &Path) -> Result<(PlanSummary, ManifestSummary), BatchError> {
        let summary = self.shards(out)?;
        let mut text = String::new();
        for shard in &summary.shards {
            let line = serde_json::to_string(shard);
            text.push_str(&line.map_err(|error| BatchError::Plan(error.to_string()))?);
            text.push('\n');
        }
        let name = &sha256([text.as_bytes()])[..16];
        let path = out.join(format!("manifest-{name}.jsonl"));
        publish(&path, text.as_bytes())?;
        let shards = summary.shards.len();
        Ok((summary, ManifestSummary { path, shards }))
    }
}

/// Reads the shards of a manifest.
///
/// # Errors
///
/// If the file cannot be read or is not a manifest.
pub fn read_manifest(path: &Path) -> Result<Vec<Shard>, BatchError> {
    let text = sys::input::read_text(path, PLAN_INPUT)?;
    let line = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| BatchError::Manifest {
            path: path.to_owned(),
            problem: format!("line {}: {error}", at + 1),
        })
    };
    text.lines().enumerate().map(line).collect()
}

impl PlannedTrace {
    fn read(path: &Path) -> Result<Self, BatchError> {
        let loaded = LoadedTrace::open(path, &ReadOptions::default())?;
        let facts = loaded.facts()?;
        let nanos = facts.reads as f64 * READ_NS + facts.pages().get() as f64 * PAGE_NS;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let bytes = match loaded.content().is_stream() {
            true => STREAM_BYTES,
            false => loaded.content().records() * RECORD_BYTES,
        };
        Ok(Self { path, digest: facts.digest, seconds_per_cell: nanos.max(1.0) / 1e9, bytes })
    }

    fn shard(&self, cells: &[(String, &SimCell)]) -> Shard {
        let ids: Vec<String> = cells.iter().map(|(id, _)| id.clone()).collect();
        Shard {
            name: shard_name(&ids),
            simulator_version: SIMULATOR_VERSION.to_owned(),
            trace: self.path.clone(),
            trace_digest: self.digest.clone(),
            estimated_seconds: self.seconds_per_cell * cells.len() as f64,
            estimated_bytes: self.bytes,
            cells: cells.iter().map(|(_, cell)| (*cell).clone()).collect(),
        }
    }
}
