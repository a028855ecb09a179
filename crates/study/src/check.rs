//! What can be wrong with a plan before anything is measured.

use units::Nanos;

use crate::error::StudyError;
use crate::plan::{Plan, Role};
use crate::storage::SimulatedSession;
use crate::target::Target;

/// Less than this and the start of the readers is a part of the figures.
const SHORTEST_TRIAL: Nanos = Nanos::from_millis(20);

impl Plan {
    /// Says what is wrong with it, as far as that can be told before anything is touched.
    ///
    /// # Errors
    ///
    /// For what no target can do, and what a simulated one cannot.
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
                    "{name} is run by {}, which no simulation does: name a real or a virtual \
                     target, or for a job file --engine native",
                    outside.program()
                ));
            }
            if planned.workload.writes() && matches!(self.target, Target::Simulation(_)) {
                return wrong(format!("{name} writes, which no simulation does yet"));
            }
            if planned.workload.writes() && self.memory_limit.is_some() {
                return wrong(format!(
                    "{name} writes: --memory-limit is for workloads that read; what waits to be \
                     written is limited by --vary dirty_bytes=…"
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
                "a trial of {} is too short: {SHORTEST_TRIAL} at least",
                self.trial
            ));
        }
        match &self.target {
            Target::Simulation(spec) => SimulatedSession::open(self, spec, None).map(drop),
            _ => Ok(()),
        }
    }
}
