//! Plans, shards and results.

use std::path::PathBuf;

use batch::{BatchPlan, Shard};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyRecordBatchReader;

use crate::arrow::ChainedReader;
use crate::error::{exception, raised, usage};

fn plan(py: Python<'_>, json: &str) -> PyResult<BatchPlan> {
    serde_json::from_str(json).map_err(|error| usage(py, format!("invalid plan: {error}")))
}

fn shard(py: Python<'_>, json: &str) -> PyResult<Shard> {
    serde_json::from_str(json).map_err(|error| usage(py, format!("invalid shard: {error}")))
}

/// What remains to be simulated: shards as (name, estimated seconds, bytes, cells, JSON), the cells
/// of the plan, and how many of them are finished.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn plan_shards(
    py: Python<'_>,
    json: &str,
    out: PathBuf,
) -> PyResult<(Vec<(String, f64, u64, usize, String)>, usize, usize)> {
    let plan = plan(py, json)?;
    let summary = py.detach(|| plan.shards(&out)).map_err(|error| raised(py, &error))?;
    let mut shards = Vec::with_capacity(summary.shards.len());
    for shard in summary.shards {
        let json = serde_json::to_string(&shard).map_err(|error| usage(py, error))?;
        let (seconds, bytes) = (shard.estimated_seconds, shard.estimated_bytes);
        shards.push((shard.name, seconds, bytes, shard.cells.len(), json));
    }
    Ok((shards, summary.cells, summary.finished))
}

/// Simulates a shard and publishes its results: (cells, errors, decoding s, simulating s).
#[pyfunction]
pub fn run_shard(py: Python<'_>, json: &str, out: PathBuf) -> PyResult<(usize, usize, f64, f64)> {
    let shard = shard(py, json)?;
    let report = py.detach(|| shard.run(&out)).map_err(|error| raised(py, &error))?;
    let (decoding, simulating) = (report.decoding, report.simulating);
    Ok((report.cells, report.errors, decoding.as_secs_f64(), simulating.as_secs_f64()))
}

/// Whether a shard's results are published.
#[pyfunction]
pub fn shard_is_finished(py: Python<'_>, json: &str, out: PathBuf) -> PyResult<bool> {
    Ok(shard(py, json)?.is_finished(&out))
}

/// Publishes that a shard's cells cannot be simulated.
#[pyfunction]
pub fn poison_shard(py: Python<'_>, json: &str, out: PathBuf, reason: &str) -> PyResult<()> {
    let shard = shard(py, json)?;
    let part = py.detach(|| shard.poison(&out, reason));
    part.map(drop).map_err(|error| raised(py, &error))
}

/// Writes a manifest of what remains: its path and the number of shards.
#[pyfunction]
pub fn manifest(py: Python<'_>, json: &str, out: PathBuf) -> PyResult<(PathBuf, usize)> {
    let plan = plan(py, json)?;
    let written = py.detach(|| plan.write_manifest(&out)).map_err(|error| raised(py, &error))?;
    Ok((written.1.path, written.1.shards))
}

/// Paths, digest and number of cells by status of a directory of results.
#[pyfunction]
pub fn result_set(py: Python<'_>, out: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let set = py.detach(|| batch::read_result_set(&out)).map_err(|error| raised(py, &error))?;
    let found = PyDict::new(py);
    found.set_item("paths", set.paths)?;
    found.set_item("digest", set.digest)?;
    found.set_item("cells", set.cells)?;
    Ok(found)
}

/// The rows of result files as a stream of Arrow record batches, read as it is consumed.
#[pyfunction]
pub fn result_table(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<PyRecordBatchReader> {
    let failed = |path: &PathBuf, problem: String| {
        exception(py, "ForereadError", format!("cannot read {}: {problem}", path.display()))
    };
    let mut readers = Vec::with_capacity(paths.len());
    for path in &paths {
        let file = std::fs::File::open(path).map_err(|error| failed(path, error.to_string()))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|it| it.build());
        readers.push(reader.map_err(|error| failed(path, error.to_string()))?);
    }
    let chain = ChainedReader::new(readers).ok_or_else(|| usage(py, "there are no results"))?;
    Ok(PyRecordBatchReader::new(Box::new(chain)))
}
