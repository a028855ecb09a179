//! Checks a plan before any measurement.

use units::Nanos;

use crate::error::StudyError;
use crate::plan::{Plan, Role};
use crate::storage::SimulatedSession;
use crate::target::Target;

/// Minimum duration of a trial; in shorter trials, the start of the readers distorts the figures.
const SHORTEST_TRIAL: Nanos = Nanos::from_millis(20);

impl Plan {
    /// Checks the plan without touching the target.
    ///
    /// # Errors
    ///
    /// If no target can run the plan, or the simulated target cannot.
    pub fn check(&self) -> Result<(), StudyError> {
        let wrong = |text: String| Err(StudyError::Plan(text));
        if !self.workloads.iter().any(|planned| planned.role == Role::Goal) {
            return wrong("no workload to serve: name one with --workload".to_owned());
        }
        for (at, planned) in self.workloads.iter().enumerate() {
            planned.workload.validate().map_err(bench::BenchError::from)?;
            let name = &planned.workload.name;
            if let (Some(outside), Target::Simulation(_)) =
                (&planned.workload.outside, &self.target)
            {
                return wrong(format!(
                    "{name} is run by {}, which cannot be simulated: use a real or virtual \
                     target, or for a job file --engine native",
                    outside.program()
                ));
            }
            if planned.workload.writes() && matches!(self.target, Target::Simulation(_)) {
                return wrong(format!("{name} writes, which cannot be simulated yet"));
            }
            if planned.workload.writes() && self.memory_limit.is_some() {
                return wrong(format!(
                    "{name} writes: --memory-limit applies to reads only; limit dirty data with \
                     --vary dirty_bytes=…"
                ));
            }
            let block = planned.workload.block;
            if let Some(size) = self.file_size.filter(|size| *size < block && !planned.shrinks) {
                return wrong(format!(
                    "--size {size} is too small for {name}, which reads {block} at once"
                ));
            }
            if self.workloads[..at].iter().any(|other| other.workload.name == *name) {
                return wrong(format!("workload {name} is named twice"));
            }
        }
        if self.repeats.min == 0 || self.repeats.max < self.repeats.min {
            return wrong(format!("{} to {} repeats", self.repeats.min, self.repeats.max));
        }
        if self.trial < SHORTEST_TRIAL {
            return wrong(format!(
                "a trial of {} is too short: must be at least {SHORTEST_TRIAL}",
                self.trial
            ));
        }
        match &self.target {
            Target::Simulation(spec) => SimulatedSession::open(self, spec, None).map(drop),
            _ => Ok(()),
        }
    }
}
