//! Randomised complete blocks. Each block runs every open cell once, in random order. A drift
//! (temperature, fragmentation, load of a neighbour) then affects all cells of a block alike, and
//! ratios are computed within blocks.
//!
//! After the minimum number of repeats, the cells that a recommendation may name or compare
//! continue together: to at least five repeats, the minimum for an interval, and further if the
//! noise requires it. All of them share all blocks.

use std::collections::BTreeSet;

use stats::{INTERVAL_FROM, student_975};

use crate::analyse::{Curve, Ladder, SettingPoint, overall};
use crate::budget::Budget;
use crate::plan::{Repeats, Role};

use crate::settings::CellSettings;
use crate::strategy::{CellKey, Next, Strategy, StrategyInput, TrialIndex};
use crate::trial::Trial;

/// Target half width of the interval of a goal's cell, relative to its value.
const GOAL_HALF_WIDTH: f64 = 0.03;
/// The same for cost workloads, which need less precision.
const COST_HALF_WIDTH: f64 = 0.10;
/// A setting below this share of the best has only the minimum number of repeats.
const CLEARLY_WORSE_RATIO: f64 = 0.90;

/// The strategy of `sweep`.
#[derive(Debug)]
pub(crate) struct BlockStrategy {
    input: StrategyInput,
    repeats: Repeats,
    /// The time limit for repeats; the first block is always completed. `None` for no limit.
    budget: Option<Budget>,
    block: u32,
    order: Vec<CellKey>,
}

impl BlockStrategy {
    pub(crate) fn new(field: &StrategyInput, repeats: Repeats) -> Self {
        let (input, order) = (field.clone(), Vec::new());
        let mut blocks = Self { input, repeats, budget: None, block: 0, order };
        blocks.order = blocks.input.shuffled(blocks.cells().collect(), 0);
        blocks
    }

    /// Adds a budget to the strategy.
    pub(crate) fn with_budget(self, budget: Option<Budget>) -> Self {
        Self { budget, ..self }
    }

    fn cells(&self) -> impl Iterator<Item = CellKey> + use<'_> {
        (0..self.input.workloads.len()).flat_map(|workload| {
            self.input
                .settings
                .iter()
                .map(move |settings| CellKey { workload, settings: settings.clone() })
        })
    }

    /// Returns the cells of the next block.
    fn open_cells(&self, trials: &[Trial], block: u32) -> Vec<CellKey> {
        if block < self.repeats.min {
            return self.cells().collect();
        }
        if block >= self.repeats.max {
            return Vec::new();
        }
        let wanted = self.wanted(trials);
        wanted.into_iter().filter(|(_, repeats)| *repeats > block).map(|(cell, _)| cell).collect()
    }

    /// Returns the number of repeats for each cell that needs more than the minimum.
    ///
    /// The number is fixed once, from the blocks that contain every cell and from the noise of all
    /// cells of a workload together. Stopping each cell as soon as its own interval is tight would
    /// favour cells whose repeats agree by chance, and their intervals would be too narrow.
    fn wanted(&self, trials: &[Trial]) -> Vec<(CellKey, u32)> {
        let first: Vec<Trial> =
            trials.iter().filter(|trial| trial.block < self.repeats.min).cloned().collect();
        let curves: Vec<Curve> = self
            .input
            .workloads
            .iter()
            .map(|(name, _)| Curve::from_trials(&first, name, self.input.seed))
            .collect();
        let roles = || self.input.workloads.iter().map(|(_, role)| *role);
        let goals: Vec<Curve> = roles()
            .zip(&curves)
            .filter(|(role, _)| *role == Role::Goal)
            .map(|(_, curve)| curve.clone())
            .collect();
        let interest =
            Interest::new(&goals, &self.input.settings, self.input.found.as_ref(), self.input.seed);
        let mut wanted = Vec::new();
        for (workload, (role, curve)) in roles().zip(&curves).enumerate() {
            let (chosen, tight) = match role {
                Role::Goal => (&interest.compared, GOAL_HALF_WIDTH),
                Role::Cost => (&interest.named, COST_HALF_WIDTH),
            };
            let repeats = self.repeats_for(deviation(curve), tight);
            let cell = |settings: &CellSettings| {
                (CellKey { workload, settings: settings.clone() }, repeats)
            };
            wanted.extend(chosen.iter().map(cell));
        }
        wanted
    }

    /// Returns the smallest number of repeats for which the interval should be this tight.
    fn repeats_for(&self, deviation: f64, tight: f64) -> u32 {
        let half = |repeats: &u32| {
            student_975(*repeats as usize - 1) * deviation / f64::from(*repeats).sqrt()
        };
        let least = self.repeats.min.max(INTERVAL_FROM as u32).min(self.repeats.max);
        (least..self.repeats.max).find(|n| half(n) <= tight).unwrap_or(self.repeats.max)
    }
}

/// The settings that a recommendation may name or compare.
#[derive(Default)]
struct Interest {
    /// Settings that may be recommended, their neighbours on the grid, the current and the lowest.
    named: BTreeSet<CellSettings>,
    /// The settings of `named`, and all that are not clearly worse than the best.
    compared: BTreeSet<CellSettings>,
}

impl Interest {
    fn new(
        goals: &[Curve],
        grid: &[CellSettings],
        found: Option<&CellSettings>,
        seed: u64,
    ) -> Self {
        let mut interest = Self::default();
        interest.named.extend(found.filter(|found| grid.contains(found)).cloned());
        let together = (goals.len() > 1).then(|| overall(goals, seed));
        for curve in goals.iter().chain(&together) {
            interest.add(curve, grid, found);
        }
        interest.compared.extend(interest.named.iter().cloned());
        interest
    }

    fn add(&mut self, curve: &Curve, grid: &[CellSettings], found: Option<&CellSettings>) {
        let Some(ladder) = Ladder::from_curve(curve, found) else { return };
        let (Some(best), Some(floor)) = (curve.best(), curve.points.first()) else { return };
        for point in [best, ladder.economical, ladder.best] {
            let Some(place) = grid.iter().position(|s| *s == point.settings) else { continue };
            self.named
                .extend(grid[place.saturating_sub(1)..(place + 2).min(grid.len())].iter().cloned());
        }
        self.named.insert(floor.settings.clone());
        // Two medians of this many values hardly ever differ more by chance.
        let chance = |point: &SettingPoint| {
            let counts = point.values.len().min(best.values.len()).max(1);
            (2.0 * deviation(curve) * (2.0 / counts as f64).sqrt()).exp()
        };
        let close = |point: &&SettingPoint| {
            point.median * chance(point) >= CLEARLY_WORSE_RATIO * best.median
        };
        self.compared.extend(curve.points.iter().filter(close).map(|point| point.settings.clone()));
    }
}

/// Returns the relative standard deviation of a trial, over all cells of a curve.
fn deviation(curve: &Curve) -> f64 {
    let noise = curve.noise();
    if noise.freedom > 0.0 { (noise.squares / noise.freedom).sqrt() } else { 0.0 }
}

impl Strategy for BlockStrategy {
    fn next(&mut self, trials: &[Trial]) -> Option<Next> {
        loop {
            let progressed = TrialIndex::new(trials, &self.input.workloads);
            let open = |cell: &&CellKey| !progressed.settled(self.block, cell);
            let over = self.block > 0 && self.budget.is_some_and(|budget| budget.is_spent(trials));
            if over {
                return None;
            }
            if let Some(cell) = self.order.iter().find(open) {
                return Some(Next { block: self.block, cell: cell.clone() });
            }
            if self.order.is_empty() {
                return None;
            }
            self.block += 1;
            self.order = self.input.shuffled(self.open_cells(trials, self.block), self.block);
        }
    }

    fn expected(&self, trials: &[Trial]) -> usize {
        let progressed = TrialIndex::new(trials, &self.input.workloads);
        let open = |cell: &&CellKey| !progressed.settled(self.block, cell);
        let here = self.order.iter().filter(open).count();
        if self.block + 1 < self.repeats.min || self.repeats.min == self.repeats.max {
            let whole = self.repeats.min.saturating_sub(self.block + 1) as usize;
            return here + whole * self.input.workloads.len() * self.input.settings.len();
        }
        let later = |(_, repeats): &(CellKey, u32)| repeats.saturating_sub(self.block + 1) as usize;
        here + self.wanted(trials).iter().map(later).sum::<usize>()
    }
}
