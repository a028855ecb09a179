//! Randomised complete blocks: each block runs every cell that is still open once, in an order of
//! its own. Whatever drifts (temperature, fragmentation, a neighbour's load) so hits all cells of
//! a block alike, and their ratios are paired by block.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use stats::{Bootstrap, Estimate};

use crate::analyse::throughputs;
use crate::budget::Budget;
use crate::plan::{Repeats, Role};
use crate::session::Field;
use crate::settings::Settings;
use crate::strategy::{CellKey, Next, Progressed, Strategy};
use crate::trial::Trial;

/// A goal's cell is certain enough when its interval is no wider than this to either side.
const TIGHT: f64 = 0.03;
/// A price only has to be known roughly.
const TIGHT_PRICE: f64 = 0.10;
/// A cell that ends below this share of where the best begins needs not be tight.
const CLEARLY_WORSE: f64 = 0.90;

/// The strategy of `sweep`.
#[derive(Debug)]
pub(crate) struct Blocks {
    workloads: Vec<(String, Role)>,
    settings: Vec<Settings>,
    repeats: Repeats,
    /// When to end if the repeats are not in yet; the first block is measured whole.
    budget: Option<Budget>,
    seed: u64,
    block: u32,
    order: Vec<CellKey>,
}

impl Blocks {
    pub(crate) fn new(field: &Field<'_>, repeats: Repeats) -> Self {
        let (workloads, settings) = (field.workloads.to_vec(), field.settings.to_vec());
        let seed = field.seed;
        let mut blocks =
            Self { workloads, settings, repeats, budget: None, seed, block: 0, order: Vec::new() };
        blocks.order = blocks.shuffled(blocks.cells().collect(), 0);
        blocks
    }

    /// The same, but ended when the budget is spent.
    pub(crate) fn within(self, budget: Option<Budget>) -> Self {
        Self { budget, ..self }
    }

    fn cells(&self) -> impl Iterator<Item = CellKey> + use<'_> {
        (0..self.workloads.len()).flat_map(|workload| {
            self.settings.iter().map(move |settings| CellKey { workload, settings: *settings })
        })
    }

    fn shuffled(&self, mut cells: Vec<CellKey>, block: u32) -> Vec<CellKey> {
        let seed = self.seed ^ u64::from(block + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        cells.shuffle(&mut Pcg64::seed_from_u64(seed));
        cells
    }

    fn names(&self) -> Vec<String> {
        self.workloads.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The cells of the next block, judged by all blocks before it.
    fn open_cells(&self, trials: &[Trial], block: u32) -> Vec<CellKey> {
        if block < self.repeats.min {
            return self.cells().collect();
        }
        if block >= self.repeats.max {
            return Vec::new();
        }
        let earlier: Vec<&Trial> = trials.iter().filter(|trial| trial.block < block).collect();
        let mut open = Vec::new();
        for (workload, (name, role)) in self.workloads.iter().enumerate() {
            let estimates: Vec<Option<Estimate>> =
                self.settings.iter().map(|s| self.estimate(&earlier, name, *s)).collect();
            let best = estimates
                .iter()
                .flatten()
                .max_by(|a, b| a.median.total_cmp(&b.median))
                .map_or(f64::INFINITY, |best| best.low);
            for (settings, estimate) in self.settings.iter().zip(&estimates) {
                if !estimate.is_some_and(|e| certain(&e, best, *role)) {
                    open.push(CellKey { workload, settings: *settings });
                }
            }
        }
        open
    }

    fn estimate(&self, trials: &[&Trial], workload: &str, settings: Settings) -> Option<Estimate> {
        let values = throughputs(trials.iter().copied(), workload, settings);
        let values: Vec<f64> = values.into_values().collect();
        Bootstrap::new(self.seed).median(&values)
    }
}

fn certain(estimate: &Estimate, best_low: f64, role: Role) -> bool {
    let width = estimate.relative_half_width();
    match role {
        Role::Price => width <= TIGHT_PRICE,
        Role::Goal => {
            let worse = estimate.high < CLEARLY_WORSE * best_low;
            width <= TIGHT || (worse && width <= TIGHT_PRICE)
        }
    }
}

impl Strategy for Blocks {
    fn next(&mut self, trials: &[Trial]) -> Option<Next> {
        loop {
            let progressed = Progressed::of(trials, &self.names());
            let open = |cell: &&CellKey| !progressed.settled(self.block, **cell);
            let over = self.block > 0 && self.budget.is_some_and(|budget| budget.is_spent(trials));
            if over {
                return None;
            }
            if let Some(cell) = self.order.iter().find(open) {
                return Some(Next { block: self.block, cell: *cell });
            }
            if self.order.is_empty() {
                return None;
            }
            self.block += 1;
            self.order = self.shuffled(self.open_cells(trials, self.block), self.block);
        }
    }

    fn expected(&self, trials: &[Trial]) -> usize {
        let progressed = Progressed::of(trials, &self.names());
        let open = |cell: &&CellKey| !progressed.settled(self.block, **cell);
        let here = self.order.iter().filter(open).count();
        let whole = self.repeats.min.saturating_sub(self.block + 1) as usize;
        here + whole * self.workloads.len() * self.settings.len()
    }
}
