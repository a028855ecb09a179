//! Experiments that consist of a sweep. The run is recorded like any other and can be reported.

pub mod memory;
pub mod mixed;
pub mod readers;

use sim::{SimError, SimMachine};
use study::{
    Analysis, Cell, Environment, Grid, Plan, PlannedWorkload, Progress, Repeats, Store, Target,
    sweep,
};
use units::{Bytes, Kib, Nanos, PageSize};
use workload::Workload;

use crate::ExperimentError;
use study::Findings;

#[derive(Clone, Debug, PartialEq)]
pub struct SweepPlan {
    pub target: Target,
    /// Read-ahead values to measure; if empty, a coarse grid.
    pub read_ahead: Vec<Kib>,
    pub repeats: u32,
    /// Duration of a trial in the storage's own time; `None` for a study's default.
    pub duration: Option<Nanos>,
    /// Size of each file; `None` for a study's default.
    pub size: Option<Bytes>,
    /// Limit for the page cache; `None` for no limit.
    pub memory_limit: Option<Bytes>,
    pub seed: Option<u64>,
    /// Start a new run even if an interrupted run of the same question could be resumed.
    pub fresh: bool,
}

impl SweepPlan {
    fn conduct(
        &self,
        (name, question): (&str, &str),
        workloads: Vec<Workload>,
        store: &mut Store,
        environment: &Environment,
        progress: &mut dyn Progress,
    ) -> Result<(Findings, Analysis), ExperimentError> {
        let mut plan = Plan::new(self.target.clone());
        plan.read_ahead = match self.read_ahead.is_empty() {
            true => Grid::Values([4, 128, 1024, 8192].map(Kib::new).to_vec()),
            false => Grid::Values(self.read_ahead.clone()),
        };
        plan.workloads = workloads.into_iter().map(PlannedWorkload::goal).collect();
        plan.repeats = Repeats::exactly(self.repeats);
        plan.trial = self.duration.unwrap_or(plan.trial);
        plan.file_size = self.size;
        plan.memory_limit = self.memory_limit;
        plan.seed = self.seed;
        let simulated = self.simulated(&plan)?;
        let outcome = sweep(&plan, None, self.fresh, store, environment, progress)?;
        if !outcome.complete {
            return Err(ExperimentError::Cancelled);
        }
        let mut answer = Findings::new(name, question, self.target.to_string());
        if let Some(machine) = simulated {
            answer.set_simulated_by(&machine);
        }
        answer.run = Some(outcome.run.0);
        answer.seed = store.load(outcome.run).map_err(study::StudyError::from)?.seed;
        answer.dilation = outcome.analysis.dilation;
        answer.notes = outcome.analysis.notes.clone();
        Ok((answer, outcome.analysis))
    }
}

impl SweepPlan {
    /// Returns the machine of a simulated target; an error if its cache cannot hold all windows.
    fn simulated(&self, plan: &Plan) -> Result<Option<SimMachine>, ExperimentError> {
        let Target::Simulation(spec) = &self.target else { return Ok(None) };
        let machine = spec.get()?;
        let found = machine.read_ahead;
        let cache = self.memory_limit.unwrap_or(machine.cache);
        let windows = plan.read_ahead.values(PageSize::FOUR_KIB, Some(found));
        let largest = windows.into_iter().max().unwrap_or_default();
        let tried = SimMachine { cache, read_ahead: largest.max(found), ..machine.clone() };
        match tried.validate() {
            Err(SimError::CacheTooSmall { what, needed, .. }) => {
                let option = if self.memory_limit.is_some() { "--memory " } else { "cache=" };
                let enough = needed.to_string().replace(' ', "");
                Err(ExperimentError::Usage(format!(
                    "a page cache of {cache} is smaller than {what}, {needed}: give \
                     {option}{enough} or more, or smaller windows with --read-ahead"
                )))
            }
            _ => Ok(Some(machine.clone())),
        }
    }
}

/// Returns the measured windows, ascending.
fn windows(analysis: &Analysis) -> Vec<Kib> {
    let mut windows: Vec<Kib> =
        analysis.cells.iter().map(|cell| cell.settings.read_ahead).collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// Returns the cell of this window and workload.
fn cell<'a>(analysis: &'a Analysis, window: Kib, workload: &str) -> Option<&'a Cell> {
    let mut cells = analysis.cells.iter();
    cells.find(|cell| cell.settings.read_ahead == window && cell.workload == workload)
}
