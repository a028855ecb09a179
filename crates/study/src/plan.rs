//! What a study intends.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};
use workload::{AccessMethod, Workload};

use crate::factors::{Design, Factor};
use crate::grid::Grid;
use crate::target::Target;

/// How often each cell is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    pub min: u32,
    /// At most, while the interval is not tight enough to decide anything.
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

/// The use that costs are weighed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyPurpose {
    /// Not said: what random reads lose makes a condition of the recommendation.
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

    /// What a workload is measured for where it would only show a cost.
    fn role_of_cost(self, workload: &Workload) -> Role {
        let mapped = workload.access == AccessMethod::Mmap;
        match self {
            Self::Database if workload.has_random_part() => Role::Goal,
            Self::Mmap if mapped && workload.has_random_part() => Role::Goal,
            _ => Role::Price,
        }
    }
}

impl fmt::Display for StudyPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mixed => "mixed",
            Self::Database => "database",
            Self::Streaming => "streaming",
            Self::Mmap => "mmap",
        })
    }
}

/// What a workload is measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Goal,
    /// Only to see what the recommendation costs it.
    Price,
}

/// A workload and what it is measured for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedWorkload {
    pub workload: Workload,
    pub role: Role,
    /// Whether its files may be smaller than it says where there is no room, as those of a job
    /// file that was written for another machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shrinks: bool,
}

impl PlannedWorkload {
    /// A workload that the recommendation should serve.
    pub fn goal(workload: Workload) -> Self {
        Self { workload, role: Role::Goal, shrinks: false }
    }

    /// A workload that shows the price.
    pub fn price(workload: Workload) -> Self {
        Self { workload, role: Role::Price, shrinks: false }
    }
}

/// What a study intends: [`Plan::new`] has the defaults, the fields are open to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub target: Target,
    pub read_ahead: Grid,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<Factor>,
    /// How the levels of several tunables are combined.
    #[serde(default, skip_serializing_if = "Design::is_default")]
    pub design: Design,
    /// Which workloads; never none.
    pub workloads: Vec<PlannedWorkload>,
    /// The use that costs are weighed for.
    #[serde(default, rename = "for", skip_serializing_if = "StudyPurpose::is_mixed")]
    pub purpose: StudyPurpose,
    pub repeats: Repeats,
    /// How long a trial lasts, in the storage's own time: a virtual disk that runs ten times
    /// slower than its model takes ten times as long on the wall.
    pub trial: Nanos,
    /// Seed of orders, patterns and intervals; drawn and stored when `None`.
    pub seed: Option<u64>,
    /// Drop the whole machine's caches before each trial, not only those of the files read.
    pub drop_caches: bool,
    /// Size of each file that the workloads read; chosen for the target when `None`.
    pub file_size: Option<Bytes>,
    /// What the page cache of a trial may take; all that the machine has when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Bytes>,
}

/// How long a trial of the target lasts if nobody says otherwise: 2 s of the storage's own time. Of
/// a disk that runs much slower than its model it is what passes in 10 s on the wall, which is
/// short only for the fastest of them, and they read as much in it.
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
    /// The default study of a target: the full grid, 3 to 9 repeats of [`default_trial`] each, one
    /// reader and eight readers as goals, random reads by `pread` and by `mmap` to see the price.
    pub fn new(target: Target) -> Self {
        let named = |name: &str| Workload::named(name).ok();
        let goals = ["seq-1", "seq-8"].into_iter().filter_map(named).map(PlannedWorkload::goal);
        let prices = ["rand-pread", "rand-mmap"].into_iter().filter_map(named);
        Self {
            trial: default_trial(&target),
            target,
            read_ahead: Grid::Full,
            factors: Vec::new(),
            design: Design::default(),
            workloads: goals.chain(prices.map(PlannedWorkload::price)).collect(),
            purpose: StudyPurpose::default(),
            repeats: Repeats::default(),
            seed: None,
            drop_caches: false,
            file_size: None,
            memory_limit: None,
        }
    }

    /// The same plan for a use: the cost workloads that it counts fully become goals.
    pub fn for_purpose(mut self, purpose: StudyPurpose) -> Self {
        let costs = self.workloads.iter_mut().filter(|planned| planned.role == Role::Price);
        costs.for_each(|planned| planned.role = purpose.role_of_cost(&planned.workload));
        self.purpose = purpose;
        self
    }

    /// Streams of the goal that has the most.
    pub fn streams(&self) -> u32 {
        let goals = self.workloads.iter().filter(|planned| planned.role == Role::Goal);
        goals.map(|goal| goal.workload.streams()).max().unwrap_or(1)
    }

    /// The names of the workloads and what they are measured for.
    pub(crate) fn roles(&self) -> Vec<(String, Role)> {
        self.workloads.iter().map(|w| (w.workload.name.clone(), w.role)).collect()
    }
}

impl Plan {
    /// How many settings the plan measures, where so many values of read-ahead are tried. The
    /// present value may add one for each tunable.
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
