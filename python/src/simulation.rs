//! One simulation.

use batch::{BatchError, CellFigures, SimCell};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{raised, usage};
use crate::trace_object::Trace;

pub fn cell(py: Python<'_>, json: &str) -> PyResult<SimCell> {
    serde_json::from_str(json).map_err(|error| usage(py, format!("invalid cell: {error}")))
}

/// Raises an error if there is no such device, policy or setting.
#[pyfunction]
pub fn check_cell(py: Python<'_>, json: &str) -> PyResult<()> {
    let cell = cell(py, json)?;
    cell.check().map_err(|error| raised(py, &error))
}

/// The figures of one simulation, by the names of the results' columns.
#[pyfunction]
pub fn simulate<'py>(py: Python<'py>, trace: &Trace, json: &str) -> PyResult<Bound<'py, PyDict>> {
    let cell = cell(py, json)?;
    let loaded = trace.loaded();
    let figures = py.detach(|| -> Result<CellFigures, BatchError> {
        Ok(CellFigures::new(&loaded.simulate(&cell)?))
    });
    let figures = figures.map_err(|error| raised(py, &error))?;
    let found = PyDict::new(py);
    for (name, value) in figures.numbers() {
        found.set_item(name, value)?;
    }
    let latencies: Vec<(u64, u64)> =
        figures.latency.counts().map(|(latency, count)| (latency.get(), count)).collect();
    found.set_item("latency_histogram", latencies)?;
    Ok(found)
}

/// What no policy can beat on the machine of the cell.
#[pyfunction]
pub fn limits<'py>(
    py: Python<'py>,
    trace: &Trace,
    json: &str,
    clairvoyant: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let cell = cell(py, json)?;
    let loaded = trace.loaded();
    let limits = py.detach(|| loaded.limits(&cell, clairvoyant));
    let limits = limits.map_err(|error| raised(py, &error))?;
    let found = PyDict::new(py);
    found.set_item("lower_bound_ns", limits.lower_bound.get())?;
    found.set_item("device_ns", limits.device.get())?;
    found.set_item("processor_ns", limits.processor.get())?;
    found.set_item("fetched_pages", limits.fetches.get())?;
    found.set_item("clairvoyant_ns", limits.clairvoyant.map(|time| time.get()))?;
    Ok(found)
}

/// Names and summaries of the device models.
#[pyfunction]
pub fn devices() -> Vec<(String, String)> {
    let models = model::presets().iter();
    models.map(|model| (model.name.to_owned(), model.summary().to_string())).collect()
}

/// Names and summaries of the read-ahead algorithms.
#[pyfunction]
pub fn policies() -> Vec<(String, String)> {
    let entries = control::POLICIES.entries();
    entries.map(|entry| (entry.name.to_owned(), entry.summary.to_owned())).collect()
}
