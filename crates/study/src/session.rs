//! A target that is open for trials.

use units::Kib;
use workload::Workload;

use crate::error::StudyError;
use crate::progress::Progress;
use crate::trial::TrialRunner;

/// An open target, ready for trials.
pub(crate) trait TargetSession: TrialRunner {
    fn facts(&self) -> &TargetFacts;

    /// The current values of the tunables that the plan varies besides read-ahead.
    fn baseline(&self) -> tunables::TunableValues {
        tunables::TunableValues::default()
    }

    /// Restores all settings, reports those that could not be restored, removes what was created,
    /// and describes the storage as it is then.
    fn close(self: Box<Self>, progress: &mut dyn Progress)
    -> Result<serde_json::Value, StudyError>;
}

/// What is known about a target before the first trial.
#[derive(Clone, Debug)]
pub(crate) struct TargetFacts {
    /// The workloads with the sizes of their files.
    pub(crate) workloads: Vec<Workload>,
    /// The values of the plan's grid, as the kernel rounds them.
    pub(crate) grid: Vec<Kib>,
    pub(crate) found: Option<Kib>,
    /// How many times slower than its model it runs.
    pub(crate) dilation: f64,
    pub(crate) machine: serde_json::Value,
    pub(crate) device: serde_json::Value,
    /// Identifies the target, so that a run is resumed only on the same one.
    pub(crate) identity: serde_json::Value,
}

type OpenResult = Result<Box<dyn TargetSession>, StudyError>;

/// Opens the target; the argument is the workloads of the resumed run, if there is one.
pub(crate) type Opener<'a> = dyn FnMut(Option<&[Workload]>, &mut dyn Progress) -> OpenResult + 'a;
