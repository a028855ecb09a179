//! Traces as Python objects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use batch::LoadedTrace;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;
use pyo3_arrow::input::AnyRecordBatch;
use trace::ReadOptions;
use units::Bytes;

use crate::arrow::{TraceBatches, read_trace};
use crate::error::{exception, raised, usage};

/// The reads and writes of programs, in order of time.
#[pyclass(frozen, module = "foreread_sim")]
pub struct Trace {
    loaded: Arc<LoadedTrace>,
    /// The file that it was read from or saved to.
    path: Option<PathBuf>,
}

/// A trace whose batches are read while Python holds them.
struct SharedTrace(Arc<LoadedTrace>);

impl AsRef<trace::Trace> for SharedTrace {
    fn as_ref(&self) -> &trace::Trace {
        &self.0.trace
    }
}

impl Trace {
    pub fn loaded(&self) -> Arc<LoadedTrace> {
        Arc::clone(&self.loaded)
    }
}

#[pymethods]
impl Trace {
    #[staticmethod]
    #[pyo3(signature = (path, *, format = None))]
    fn open(py: Python<'_>, path: PathBuf, format: Option<String>) -> PyResult<Self> {
        let options = ReadOptions { format, ..ReadOptions::default() };
        let loaded = py.detach(|| LoadedTrace::open(&path, &options));
        let loaded = loaded.map_err(|error| raised(py, &error))?;
        Ok(Self { loaded: Arc::new(loaded), path: Some(path) })
    }

    #[staticmethod]
    #[pyo3(signature = (table, *, name = "arrow"))]
    fn from_arrow(py: Python<'_>, table: AnyRecordBatch, name: &str) -> PyResult<Self> {
        let reader = table.into_reader()?;
        let timed = reader.schema().column_with_name("time_ns").is_some();
        let trace = py.detach(|| read_trace(reader, timed));
        let trace = trace.map_err(|problem| usage(py, problem))?;
        let loaded = py.detach(|| LoadedTrace::new(name.to_owned(), trace));
        Ok(Self { loaded: Arc::new(loaded), path: None })
    }

    #[staticmethod]
    #[pyo3(signature = (declaration, *, reads, file_bytes = 64 << 20, seed = 0))]
    fn from_workload(
        py: Python<'_>,
        declaration: &str,
        reads: usize,
        file_bytes: u64,
        seed: u64,
    ) -> PyResult<Self> {
        let size = Bytes::new(file_bytes);
        let loaded = py.detach(|| LoadedTrace::of_workload(declaration, size, reads, seed));
        let loaded = loaded.map_err(|error| raised(py, &error))?;
        Ok(Self { loaded: Arc::new(loaded), path: None })
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let write = |path: &Path| std::fs::write(path, self.loaded.trace.encode());
        py.detach(|| write(&path)).map_err(|error| {
            exception(py, "ForereadError", format!("cannot write {}: {error}", path.display()))
        })?;
        Ok(Self { loaded: self.loaded(), path: Some(path) })
    }

    /// A stream of record batches, each made when it is asked for.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batches: Box<dyn RecordBatchReader + Send> =
            Box::new(TraceBatches::new(SharedTrace(self.loaded())));
        let reader = Bound::new(py, PyRecordBatchReader::new(batches))?;
        reader.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    #[getter]
    fn records(&self) -> usize {
        self.loaded.trace.records().len()
    }

    #[getter]
    fn reads(&self) -> usize {
        self.loaded.trace.reads().count()
    }

    #[getter]
    fn files(&self) -> Vec<(String, u64)> {
        let files = self.loaded.trace.files().iter();
        files.map(|file| (file.name.clone(), file.size.get())).collect()
    }

    #[getter]
    fn is_timed(&self) -> bool {
        self.loaded.trace.is_timed()
    }

    #[getter]
    fn duration_ns(&self) -> u64 {
        self.loaded.trace.span().get()
    }

    #[getter]
    fn requested_bytes(&self) -> u64 {
        self.loaded.requested().0.get()
    }

    #[getter]
    fn digest(&self) -> &str {
        &self.loaded.digest
    }

    #[getter]
    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn __len__(&self) -> usize {
        self.records()
    }

    fn __repr__(&self) -> String {
        let (source, records) = (&self.loaded.source, self.records());
        format!("Trace({source:?}, records={records}, digest={:.12}…)", self.loaded.digest)
    }
}
