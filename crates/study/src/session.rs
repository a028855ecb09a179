//! A target that is open for trials.

use units::Kib;
use workload::Workload;

use crate::error::StudyError;
use crate::progress::Progress;
use crate::trial::TrialRunner;

/// The target at hand, ready for trials.
pub(crate) trait TargetSession: TrialRunner {
    fn facts(&self) -> &TargetFacts;

    /// What the tunables have that the plan varies besides read-ahead.
    fn baseline(&self) -> tunables::TunableValues {
        tunables::TunableValues::default()
    }

    /// Puts everything back as it was found, tells what could not be, removes what was made, and
    /// describes the storage as it is then.
    fn close(self: Box<Self>, progress: &mut dyn Progress)
    -> Result<serde_json::Value, StudyError>;
}

/// What is known of a target before the first trial.
#[derive(Clone, Debug)]
pub(crate) struct TargetFacts {
    /// The workloads with the sizes of their files.
    pub(crate) workloads: Vec<Workload>,
    /// The values of the plan's grid, as the kernel will have them.
    pub(crate) grid: Vec<Kib>,
    pub(crate) found: Option<Kib>,
    /// How many times slower than its model it runs.
    pub(crate) dilation: f64,
    pub(crate) machine: serde_json::Value,
    pub(crate) device: serde_json::Value,
    /// What makes it the same target as in another run.
    pub(crate) identity: serde_json::Value,
}

type OpenResult = Result<Box<dyn TargetSession>, StudyError>;

/// Opens the target; gets the workloads of the run that goes on, if one does.
pub(crate) type Opener<'a> = dyn FnMut(Option<&[Workload]>, &mut dyn Progress) -> OpenResult + 'a;
