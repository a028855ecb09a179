//! An interface to a target that is open for trials.

use units::Kib;
use workload::Workload;

use crate::error::StudyError;
use crate::progress::Progress;
use crate::trial::TrialRunner;

/// An open target, ready for trials.
pub(crate) trait TargetSession: TrialRunner {
    fn facts(&self) -> &TargetFacts;

    /// Returns the current values of the tunables that the plan varies in addition to read-ahead.
    fn baseline(&self) -> tunables::TunableValues {
        tunables::TunableValues::default()
    }

    /// Restores all settings, reports those that could not be restored, removes created files and
    /// disks, and describes the resulting state of the storage.
    fn close(self: Box<Self>, progress: &mut dyn Progress)
    -> Result<serde_json::Value, StudyError>;
}

/// The properties of a target before the first trial.
#[derive(Clone, Debug)]
pub struct TargetFacts {
    /// The workloads with the sizes of their files.
    pub workloads: Vec<Workload>,
    /// The values of the plan's grid, as the kernel rounds them.
    pub grid: Vec<Kib>,
    pub found: Option<Kib>,
    /// Factor by which a virtual disk runs slower than its model; 1 for other targets.
    pub dilation: f64,
    pub machine: serde_json::Value,
    pub device: serde_json::Value,
    /// Identity of the target; a run is resumed only on a target with the same identity.
    pub identity: serde_json::Value,
}

type OpenResult = Result<Box<dyn TargetSession>, StudyError>;

/// Opens the target. The argument contains the workloads of the resumed run, if there is one.
pub(crate) type Opener<'a> = dyn FnMut(Option<&[Workload]>, &mut dyn Progress) -> OpenResult + 'a;
