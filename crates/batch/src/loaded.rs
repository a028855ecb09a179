//! A trace in memory, decoded once for all of its simulations.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use policy::cache::PAGE;
use sim::oracle::{OracleWork, clairvoyant, lower_bound};
use sim::{AccessSteps, Scenario, SimError, SimMachine, SimOutcome, lay_out};
use trace::{ReadOptions, Trace};
use units::{Bytes, Nanos, Pages};
use workload::{ReplayPace, Workload};

use crate::cell::SimCell;
use crate::error::BatchError;
use crate::identity::trace_digest;

/// How fast the reads of a trace can be at all on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimLimits {
    /// No schedule is faster.
    pub lower_bound: Nanos,
    /// What the device needs for every page once.
    pub device: Nanos,
    /// What the busiest reader needs if it never waits.
    pub processor: Nanos,
    /// Pages that must be read from the device at least.
    pub fetches: Pages,
    /// What read-ahead reaches that knows every read beforehand; `None` if it was not asked for.
    pub clairvoyant: Option<Nanos>,
}

/// A trace with the workloads made from it.
#[derive(Debug)]
pub struct LoadedTrace {
    /// Where it came from.
    pub source: String,
    pub trace: Trace,
    pub digest: String,
    workloads: Mutex<Vec<((ReplayPace, bool), Workload)>>,
}

impl LoadedTrace {
    /// Reads a trace in any format that `foreread trace` reads.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is no trace.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self, BatchError> {
        let (trace, _) = trace::read(path, options)?;
        Ok(Self::new(path.display().to_string(), trace))
    }

    pub fn new(source: String, trace: Trace) -> Self {
        let digest = trace_digest(&trace);
        Self { source, trace, digest, workloads: Mutex::new(Vec::new()) }
    }

    /// The reads of the trace; made once for each pace and form.
    fn workload(&self, cell: &SimCell) -> Result<Workload, BatchError> {
        let key = (cell.replay_pace()?, cell.compact);
        if key.0 != ReplayPace::Asap && !self.trace.is_timed() {
            let problem = "the trace has no times: give pace=asap";
            return Err(units::text::SettingError::invalid("pace", &cell.pace, problem).into());
        }
        let mut made = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, workload)) = made.iter().find(|(made, _)| *made == key) {
            return Ok(workload.clone());
        }
        let workload = self.trace.to_workload("trace", &self.source, key.0, key.1);
        let workload = workload.map_err(SimError::from)?;
        made.push((key, workload.clone()));
        Ok(workload)
    }

    fn scenario(
        &self,
        cell: &SimCell,
        machine: &SimMachine,
    ) -> Result<Scenario<AccessSteps>, BatchError> {
        let workload = self.workload(cell)?;
        let sizes = workload.data_files(Bytes::ZERO);
        let layout = machine.filesystem.layout;
        let footprint = sizes.iter().map(|size| layout.footprint(*size)).sum::<Bytes>();
        let (needed, capacity) = (machine.files_at + footprint, machine.model.capacity());
        if needed > capacity {
            return Err(SimError::DeviceTooSmall { needed, capacity }.into());
        }
        let files = lay_out(&sizes, workload.layout, layout, machine.files_at);
        let scenario = Scenario::of_workload(&workload, files, cell.seed);
        Ok(scenario.map_err(SimError::from)?)
    }

    /// Simulates the trace to its end.
    ///
    /// # Errors
    ///
    /// If the cell is invalid, or the trace does not fit on its device.
    pub fn simulate(&self, cell: &SimCell) -> Result<SimOutcome, BatchError> {
        let machine = cell.machine()?;
        let scenario = self.scenario(cell, &machine)?;
        Ok(sim::run(&machine, scenario)?)
    }

    /// Computes what no policy can beat; `with_clairvoyant` takes several simulations.
    ///
    /// # Errors
    ///
    /// As [`LoadedTrace::simulate`].
    pub fn limits(&self, cell: &SimCell, with_clairvoyant: bool) -> Result<SimLimits, BatchError> {
        let machine = cell.machine()?;
        let Scenario { files, opens, readers, .. } = self.scenario(cell, &machine)?;
        let readers = readers.into_iter().map(|reader| reader.steps.into_iter().collect());
        let work = OracleWork { files, opens, readers: readers.collect() };
        let bound = lower_bound(&machine, &work);
        let seen = with_clairvoyant.then(|| clairvoyant(&machine, &work)).transpose()?;
        Ok(SimLimits {
            lower_bound: bound.time(),
            device: bound.device,
            processor: bound.processor,
            fetches: bound.fetches,
            clairvoyant: seen.map(|seen| seen.time),
        })
    }

    /// Bytes and pages that the trace's reads ask for.
    pub fn requested(&self) -> (Bytes, Pages) {
        let bytes: Bytes = self.trace.reads().map(|record| record.length).sum();
        (bytes, bytes.to_pages_ceil(PAGE))
    }
}
