//! The plan of a study.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};
use workload::{AccessMethod, Workload};

use crate::factors::{Design, Factor};
use crate::grid::Grid;
use crate::target::Target;

/// The number of trials of each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    pub min: u32,
    /// Maximum, reached if the interval stays too wide for a decision.
    pub max: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { min: 3, max: 9 }
    }
}

impl Repeats {
    pub const fn exactly(repeats: u32) -> Self {
        Self { min: repeats, max: repeats }
    }
}

/// The purpose of the storage, which determines how costs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum StudyPurpose {
    /// Not stated: a large loss of random reads becomes a condition of the recommendation.
    #[default]
    Mixed,
    /// Random reads, by `pread` and of mapped files, count like streams.
    Database,
    /// Random reads do not count.
    Streaming,
    /// Random reads of mapped files count like streams.
    Mmap,
}

impl StudyPurpose {
    pub fn is_mixed(&self) -> bool {
        *self == Self::Mixed
    }

    /// Returns the role of a cost workload for this purpose.
    fn role_of_cost(self, workload: &Workload) -> Role {
        let mapped = workload.access == AccessMethod::Mmap;
        match self {
            Self::Database if workload.has_random_part() => Role::Goal,
            Self::Mmap if mapped && workload.has_random_part() => Role::Goal,
            _ => Role::Cost,
        }
    }
}

/// The role of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Goal,
    /// A cost workload: measured only to show its change under the recommended setting.
    #[serde(rename = "price")]
    Cost,
}

/// A workload and its role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedWorkload {
    pub workload: Workload,
    pub role: Role,
    /// Whether its files may be smaller than stated if space is short, as for a job file from
    /// another machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shrinks: bool,
}

impl PlannedWorkload {
    /// Plans a goal: a workload that the recommendation should serve.
    pub fn goal(workload: Workload) -> Self {
        Self { workload, role: Role::Goal, shrinks: false }
    }

    /// Plans a cost workload.
    pub fn cost(workload: Workload) -> Self {
        Self { workload, role: Role::Cost, shrinks: false }
    }
}

/// The plan of a study. [`Plan::new`] sets the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub target: Target,
    pub read_ahead: Grid,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<Factor>,
    /// The design: how levels of several tunables are combined.
    #[serde(default, skip_serializing_if = "Design::is_default")]
    pub design: Design,
    /// The workloads; never empty.
    pub workloads: Vec<PlannedWorkload>,
    /// The purpose, which determines how costs count.
    #[serde(default, rename = "for", skip_serializing_if = "StudyPurpose::is_mixed")]
    pub purpose: StudyPurpose,
    pub repeats: Repeats,
    /// Duration of a trial in the storage's own time: with a dilation of 10, a trial takes ten
    /// times as long in wall-clock time.
    pub trial: Nanos,
    /// Seed of orders, patterns and intervals; if `None`, a seed is drawn and stored.
    pub seed: Option<u64>,
    /// Whether to drop all caches of the machine before each trial, instead of only those of the
    /// files that it reads.
    pub drop_caches: bool,
    /// Size of each file that the workloads read; `None`: chosen for the target.
    pub file_size: Option<Bytes>,
    /// Maximum page cache of a trial; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Bytes>,
}

/// Returns the default duration of a trial: 2 s of the storage's own time, but at most 10 s of wall
/// time for a virtual disk with a large dilation. Only the fastest models are cut short by this
/// limit; they still read as much.
pub fn default_trial(target: &Target) -> Nanos {
    const USUAL_TRIAL: Nanos = Nanos::from_secs(2);
    const MAX_WALL_TIME: Nanos = Nanos::from_secs(10);
    match target {
        Target::Path(_) | Target::Simulation(_) | Target::Imported(_) => USUAL_TRIAL,
        Target::Virtual(spec) => spec.get().map_or(USUAL_TRIAL, |config| {
            USUAL_TRIAL.min(MAX_WALL_TIME.scaled(1.0 / config.dilation_factor()))
        }),
    }
}

impl Plan {
    /// Creates the default plan: the full grid, 3 to 9 repeats of [`default_trial`], one reader and
    /// eight readers as goals, and random reads by `pread` and `mmap` as cost workloads.
    pub fn new(target: Target) -> Self {
        let named = |name: &str| Workload::named(name).ok();
        let goals = ["seq-1", "seq-8"].into_iter().filter_map(named).map(PlannedWorkload::goal);
        let costs = ["rand-pread", "rand-mmap"].into_iter().filter_map(named);
        Self {
            trial: default_trial(&target),
            target,
            read_ahead: Grid::Full,
            factors: Vec::new(),
            design: Design::default(),
            workloads: goals.chain(costs.map(PlannedWorkload::cost)).collect(),
            purpose: StudyPurpose::default(),
            repeats: Repeats::default(),
            seed: None,
            drop_caches: false,
            file_size: None,
            memory_limit: None,
        }
    }

    /// Adapts the plan to a purpose: the cost workloads that count fully become goals.
    pub fn for_purpose(mut self, purpose: StudyPurpose) -> Self {
        let costs = self.workloads.iter_mut().filter(|planned| planned.role == Role::Cost);
        costs.for_each(|planned| planned.role = purpose.role_of_cost(&planned.workload));
        self.purpose = purpose;
        self
    }

    /// Returns the largest number of streams of any goal.
    pub fn streams(&self) -> u32 {
        let goals = self.workloads.iter().filter(|planned| planned.role == Role::Goal);
        goals.map(|goal| goal.workload.streams()).max().unwrap_or(1)
    }

    /// Returns the names and roles of the workloads.
    pub(crate) fn roles(&self) -> Vec<(String, Role)> {
        self.workloads.iter().map(|w| (w.workload.name.clone(), w.role)).collect()
    }
}

impl Plan {
    /// Returns the number of settings that the plan measures with `windows` values of read-ahead.
    /// The current values may add one for each tunable.
    pub fn combinations(&self, windows: usize) -> usize {
        let read_ahead = (windows > 1).then_some(windows);
        let levels = || self.factors.iter().map(|factor| factor.levels.len()).chain(read_ahead);
        let all = levels().fold(1usize, usize::saturating_mul);
        match self.design {
            _ if self.factors.is_empty() => windows,
            Design::OneAtATime => 1 + levels().sum::<usize>(),
            Design::Full => all,
            Design::Fractional => all / levels().min().unwrap_or(1).max(1),
        }
    }
}
