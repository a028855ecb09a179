//! A shard: some cells of one trace, simulated by one process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sys::input::SourceName;
use trace::ReadOptions;

use crate::cell::SimCell;
use crate::error::BatchError;
use crate::identity::{SIMULATOR_VERSION, cell_id, sha256};
use crate::loaded::LoadedTrace;
use crate::part::{PartSummary, encode, part_path, publish};
use crate::row::{CellFigures, CellRow, CellStatus};

/// Cells of one trace. A line of a manifest is a shard as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Derived from the cell IDs.
    pub name: String,
    pub simulator_version: String,
    pub trace: PathBuf,
    pub trace_digest: String,
    /// Estimated seconds on one processor.
    pub estimated_seconds: f64,
    /// Estimated memory in bytes of a process for the trace, without the simulated caches.
    pub estimated_bytes: u64,
    pub cells: Vec<SimCell>,
}

/// Result of running a shard.
#[derive(Clone, Debug)]
pub struct ShardReport {
    pub part: PartSummary,
    pub cells: usize,
    pub errors: usize,
    pub decoding: Duration,
    pub simulating: Duration,
}

/// Returns the name of a shard with these cells.
pub(crate) fn shard_name(cell_ids: &[String]) -> String {
    let mut sorted: Vec<&String> = cell_ids.iter().collect();
    sorted.sort();
    sha256(sorted.iter().map(|id| id.as_bytes()))[..32].to_owned()
}

impl Shard {
    /// Simulates all cells and publishes the results in the directory `out`. Simulator errors are
    /// results.
    ///
    /// # Errors
    ///
    /// If the trace cannot be read or has changed, or the result cannot be written. In these cases
    /// nothing is published.
    pub fn run(&self, out: &Path) -> Result<ShardReport, BatchError> {
        self.check_version()?;
        let started = Instant::now();
        let loaded = LoadedTrace::open(&self.trace, &ReadOptions::default())?;
        let found = loaded.facts()?.digest;
        if found != self.trace_digest {
            let trace = SourceName::new(&self.trace).to_string();
            return Err(BatchError::TraceChanged {
                trace,
                planned: self.trace_digest.clone(),
                found,
            });
        }
        let decoding = started.elapsed();
        let simulated = Instant::now();
        let rows = self.rows(|cell| match loaded.simulate(cell) {
            Ok(outcome) => Ok((CellStatus::Ok, Some(CellFigures::new(&outcome)))),
            // The file is at fault, not the cell.
            Err(error @ BatchError::Trace(_)) => Err(error),
            Err(error) => Ok((CellStatus::Error(error.to_string()), None)),
        })?;
        let simulating = simulated.elapsed();
        let part = self.publish(out, &rows)?;
        let errors = rows.iter().filter(|row| row.status != CellStatus::Ok).count();
        Ok(ShardReport { part, cells: rows.len(), errors, decoding, simulating })
    }

    /// Publishes that this shard cannot be simulated because its processes died.
    ///
    /// # Errors
    ///
    /// If the result cannot be written.
    pub fn poison(&self, out: &Path, reason: &str) -> Result<PartSummary, BatchError> {
        self.check_version()?;
        let rows = self.rows(|_| Ok((CellStatus::Poisoned(reason.to_owned()), None)))?;
        self.publish(out, &rows)
    }

    /// Returns whether the directory `out` has the shard's result.
    pub fn is_finished(&self, out: &Path) -> bool {
        part_path(out, &self.name).exists()
    }

    fn check_version(&self) -> Result<(), BatchError> {
        if self.simulator_version == SIMULATOR_VERSION {
            return Ok(());
        }
        let planned = self.simulator_version.clone();
        Err(BatchError::OtherVersion { planned, own: SIMULATOR_VERSION })
    }

    fn rows(
        &self,
        mut result: impl FnMut(&SimCell) -> Result<(CellStatus, Option<CellFigures>), BatchError>,
    ) -> Result<Vec<CellRow>, BatchError> {
        let trace = self.trace.file_name().unwrap_or(self.trace.as_os_str()).to_string_lossy();
        let mut rows = Vec::with_capacity(self.cells.len());
        for cell in &self.cells {
            let cell_id = cell_id(&self.trace_digest, &cell.digest()?);
            let (status, figures) = result(cell)?;
            rows.push(CellRow {
                cell_id,
                trace: trace.to_string(),
                trace_digest: self.trace_digest.clone(),
                cell: cell.clone(),
                status,
                figures,
            });
        }
        // Verify the name: an edited manifest must not replace the results of other cells.
        let ids: Vec<String> = rows.iter().map(|row| row.cell_id.clone()).collect();
        if shard_name(&ids) != self.name {
            return Err(BatchError::Plan(format!(
                "the name of shard {:?} does not follow from its cells; make the plan again",
                self.name
            )));
        }
        Ok(rows)
    }

    fn publish(&self, out: &Path, rows: &[CellRow]) -> Result<PartSummary, BatchError> {
        let path = part_path(out, &self.name);
        let bytes = encode(rows);
        let bytes = bytes.map_err(|source| BatchError::Part { path: path.clone(), source })?;
        publish(&path, &bytes)?;
        Ok(PartSummary { path, bytes: bytes.len() as u64 })
    }
}
