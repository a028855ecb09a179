//! Traces as Python objects.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use batch::{LoadedTrace, TraceFacts, WorkloadReads};
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

impl Trace {
    pub fn loaded(&self) -> Arc<LoadedTrace> {
        Arc::clone(&self.loaded)
    }

    fn facts(&self, py: Python<'_>) -> PyResult<TraceFacts> {
        py.detach(|| self.loaded.facts()).map_err(|error| raised(py, &error))
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
    #[pyo3(signature = (declaration, *, reads, file_bytes = 64 << 20, seed = 0, path = None))]
    fn from_workload(
        py: Python<'_>,
        declaration: &str,
        reads: u64,
        file_bytes: u64,
        seed: u64,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        let file_size = Bytes::new(file_bytes);
        let asked = WorkloadReads { declaration, file_size, reads, seed };
        let loaded = py.detach(|| match &path {
            None => asked.trace(),
            Some(path) => asked.write_file(path),
        });
        let loaded = loaded.map_err(|error| raised(py, &error))?;
        Ok(Self { loaded: Arc::new(loaded), path })
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let write = |path: &Path| {
            let mut out = BufWriter::new(File::create(path)?);
            self.loaded.content().write_to(&mut out)?;
            out.flush()
        };
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
        let batches: Box<dyn RecordBatchReader + Send> = Box::new(TraceBatches::new(self.loaded()));
        let reader = Bound::new(py, PyRecordBatchReader::new(batches))?;
        reader.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    #[getter]
    fn records(&self) -> u64 {
        self.loaded.content().records()
    }

    #[getter]
    fn reads(&self) -> u64 {
        self.loaded.content().reads()
    }

    #[getter]
    fn files(&self) -> Vec<(String, u64)> {
        let files = self.loaded.content().files().iter();
        files.map(|file| (file.name.clone(), file.size.get())).collect()
    }

    #[getter]
    fn is_timed(&self) -> bool {
        self.loaded.content().is_timed()
    }

    #[getter]
    fn duration_ns(&self) -> u64 {
        self.loaded.content().span().get()
    }

    #[getter]
    fn requested_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.facts(py)?.requested.get())
    }

    #[getter]
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.facts(py)?.digest)
    }

    #[getter]
    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn __len__(&self) -> usize {
        self.records() as usize
    }

    fn __repr__(&self) -> String {
        let (source, records) = (&self.loaded.source, self.records());
        format!("Trace({source:?}, records={records})")
    }
}
