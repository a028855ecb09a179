//! Chooses the next measurement as a pure function of the record, so that an interrupted run
//! continues exactly as it would have without the interruption.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::plan::{Role, StudyPurpose};
use crate::settings::CellSettings;
use crate::trial::{Trial, TrialStatus};

/// Maximum attempts for a disturbed trial in its block.
pub(crate) const ATTEMPTS_MAX: u32 = 3;

/// A pair of settings and workload; `workload` is the index in the plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CellKey {
    pub(crate) workload: usize,
    pub(crate) settings: CellSettings,
}

/// The next trial to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) block: u32,
    pub(crate) cell: CellKey,
}

/// The input of a strategy.
#[derive(Clone, Debug)]
pub(crate) struct StrategyInput {
    pub(crate) workloads: Vec<(String, Role)>,
    pub(crate) settings: Vec<CellSettings>,
    pub(crate) found: Option<CellSettings>,
    pub(crate) seed: u64,
    pub(crate) purpose: StudyPurpose,
    pub(crate) streams: u32,
    /// Expected wall-clock time of a trial.
    pub(crate) trial_seconds: f64,
}

impl StrategyInput {
    /// Returns the cells in the random order of this block.
    pub(crate) fn shuffled(&self, mut cells: Vec<CellKey>, block: u32) -> Vec<CellKey> {
        let seed = self.seed ^ u64::from(block + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        cells.shuffle(&mut Pcg64::seed_from_u64(seed));
        cells
    }
}

pub(crate) trait Strategy {
    /// Returns the next trial; `None` if no more trials are needed.
    fn next(&mut self, trials: &[Trial]) -> Option<Next>;

    /// Returns the expected number of further trials.
    fn expected(&self, trials: &[Trial]) -> usize;
}

/// The recorded attempts of each cell, by block.
pub(crate) struct TrialIndex {
    attempts: HashMap<(u32, CellKey), (u32, bool)>,
}

impl TrialIndex {
    /// Indexes the trials by block and cell; `workloads` are in the order of the plan.
    pub(crate) fn new(trials: &[Trial], workloads: &[(String, Role)]) -> Self {
        let mut attempts: HashMap<(u32, CellKey), (u32, bool)> = HashMap::new();
        for trial in trials {
            let Some(workload) = workloads.iter().position(|(name, _)| *name == trial.workload)
            else {
                continue;
            };
            let cell = CellKey { workload, settings: trial.settings.clone() };
            let entry = attempts.entry((trial.block, cell)).or_default();
            entry.0 += 1;
            entry.1 |= trial.status == TrialStatus::Clean;
        }
        Self { attempts }
    }

    /// Returns whether the cell has any trial in this block.
    pub(crate) fn tried(&self, block: u32, cell: &CellKey) -> bool {
        self.attempts.contains_key(&(block, cell.clone()))
    }

    /// Returns whether the cell needs no more trials in this block: it has an undisturbed trial, or
    /// its attempts are used up.
    pub(crate) fn settled(&self, block: u32, cell: &CellKey) -> bool {
        self.attempts
            .get(&(block, cell.clone()))
            .is_some_and(|(attempts, clean)| *clean || *attempts >= ATTEMPTS_MAX)
    }
}
