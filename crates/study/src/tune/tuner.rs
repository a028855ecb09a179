//! The strategy of `tune`.
//!
//! 1. A coarse block: seven settings from end to end, including the current one.
//! 2. A few single probes, where the model predicts that a better setting is possible.
//! 3. The open questions of the recommendation, most important first, while the budget lasts: the
//!    smallest sufficient setting, repeats of the compared settings, their costs, and the best
//!    setting without such costs. The recommendation lists the remaining questions as caveats.
//!
//! If the budget is too small for the coarse block, the block has fewer settings.

use std::collections::BTreeSet;

use stats::Posterior;

use super::model::Model;
use crate::analyse::{Curve, MeasurementScope, OpenQuestion, TrialEvidence, throughputs};
use crate::budget::{spent, would_exceed};
use crate::plan::{Repeats, Role};

use crate::settings::CellSettings;
use crate::strategy::{CellKey, Next, Strategy, StrategyInput, TrialIndex};
use crate::trial::Trial;

const COARSE_SETTINGS: usize = 7;
/// Maximum number of single probes after the coarse block.
const MAX_PROBES: usize = 3;
/// Maximum number of further settings that are measured to answer questions.
const MAX_SEARCHES: usize = 7;
/// Maximum number of blocks; no study should need more.
const MAX_BLOCKS: u32 = 64;
/// Minimum possible improvement over the best, in ln, that justifies a probe.
const MIN_PROBE_GAIN_LN: f64 = 0.01;
/// The assumed variation of trials until the noise is known, with the weight of [`NOISE_WEIGHT`]
/// measurements.
const NOISE_GUESS: f64 = 0.01;
const NOISE_WEIGHT: f64 = 3.0;
/// Share of the budget after which no new setting is measured.
const SEARCH_BUDGET_SHARE: f64 = 0.5;
/// Usual number of trials per workload, to estimate the duration.
const USUAL_TRIALS: usize = 20;

#[derive(Debug)]
pub(crate) struct Tuner {
    input: StrategyInput,
    repeats: Repeats,
    budget_seconds: f64,
    block: u32,
    order: Vec<CellKey>,
}

impl Tuner {
    /// Creates a strategy that may spend this many seconds in trials.
    pub(crate) fn new(field: &StrategyInput, repeats: Repeats, budget_seconds: f64) -> Self {
        let found = field.found.clone().filter(|found| field.settings.contains(found));
        let input = StrategyInput { found, ..field.clone() };
        let mut tuner = Self { input, repeats, budget_seconds, block: 0, order: Vec::new() };
        tuner.order = tuner.cells(tuner.coarse(), Role::Goal, 0);
        tuner
    }

    /// Returns both ends, the current setting, and others spread evenly between them, as many as
    /// the budget allows.
    fn coarse(&self) -> Vec<CellSettings> {
        let found = usize::from(self.input.found.is_some());
        let each = self.input.trial_seconds * self.goals().count() as f64;
        // Both ends are always needed. The cast saturates.
        let count = ((self.budget_seconds / each) as usize).clamp(2 + found, COARSE_SETTINGS);
        let last = self.input.settings.len().saturating_sub(1);
        if last < count {
            return self.input.settings.clone();
        }
        let steps = count - 1 - found;
        let mut chosen: Vec<CellSettings> = (0..=steps)
            .map(|step| self.input.settings[(step * last + steps / 2) / steps].clone())
            .collect();
        chosen.extend(self.input.found.clone());
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// Returns the cells of some settings for all workloads of a role, shuffled.
    fn cells(&self, settings: Vec<CellSettings>, role: Role, block: u32) -> Vec<CellKey> {
        let ours = self.input.workloads.iter().enumerate().filter(|(_, (_, r))| *r == role);
        let cells = ours.flat_map(|(workload, _)| {
            settings.iter().map(move |settings| CellKey { workload, settings: settings.clone() })
        });
        self.input.shuffled(cells.collect(), block)
    }

    fn goals(&self) -> impl Iterator<Item = &str> {
        self.input.workloads.iter().filter(|(_, r)| *r == Role::Goal).map(|(name, _)| name.as_str())
    }

    /// Returns the cells of the next block, chosen from all earlier blocks; empty at the end.
    fn plan(&self, trials: &[Trial], block: u32) -> Vec<CellKey> {
        let earlier: Vec<Trial> = trials.iter().filter(|t| t.block < block).cloned().collect();
        let share = spent(&earlier) / self.budget_seconds;
        if share >= 1.0 || block > MAX_BLOCKS {
            return Vec::new();
        }
        let searching = share < SEARCH_BUDGET_SHARE;
        if searching
            && block as usize <= MAX_PROBES
            && let Some(probe) = self.probe(&earlier)
        {
            return self.cells(vec![probe], Role::Goal, block);
        }
        let searching =
            searching && self.tried(&earlier) < COARSE_SETTINGS + MAX_PROBES + MAX_SEARCHES;
        let effort = match self.used(&earlier) < self.allowance() {
            true if searching => MeasurementScope::NewSettings,
            true => MeasurementScope::Repeats,
            false => MeasurementScope::Costs,
        };
        match self.question(&earlier, effort) {
            Some(OpenQuestion::Goals(settings)) => self.cells(settings, Role::Goal, block),
            Some(OpenQuestion::Costs(settings)) => self.cells(settings, Role::Cost, block),
            None => Vec::new(),
        }
    }

    /// Returns the most important open question of the recommendation.
    fn question(&self, trials: &[Trial], effort: MeasurementScope) -> Option<OpenQuestion> {
        let StrategyInput { workloads, settings, found, seed, purpose, streams, .. } = &self.input;
        let evidence =
            TrialEvidence::of(trials, workloads, *seed, found.clone(), settings, *purpose)?;
        evidence.question(*streams, self.repeats, effort)
    }

    /// Returns whether the budget is too small for another trial of average length in addition to
    /// the mandatory ones.
    fn is_spent(&self, trials: &[Trial], mandatory_cells: usize) -> bool {
        would_exceed(trials, 1 + mandatory_cells, self.budget_seconds)
    }

    /// Returns how many more trials of average length the budget allows, at least one.
    fn affordable(&self, trials: &[Trial]) -> usize {
        let spent = spent(trials);
        let each = spent / trials.len() as f64;
        // The average is unknown before the first trial; the cast saturates.
        if each > 0.0 {
            ((self.budget_seconds - spent) / each).max(1.0) as usize
        } else {
            usize::MAX
        }
    }

    /// Returns the trials that run even with the smallest budget: one of each cell of the coarse
    /// block, while that block runs.
    fn mandatory_cells(&self, progressed: &TrialIndex) -> Vec<CellKey> {
        let coarse = self.order.iter().filter(|_| self.block == 0);
        coarse.filter(|cell| !progressed.tried(0, cell)).cloned().collect()
    }

    /// Returns the maximum number of measurements of settings for the goals: half of the minimum
    /// for the whole grid; on a small grid, at least as many as an interval of the compared
    /// settings needs.
    fn allowance(&self) -> usize {
        let half = self.input.settings.len() * self.repeats.min as usize / 2;
        half.max(COARSE_SETTINGS + stats::INTERVAL_FROM * self.input.settings.len().min(4))
    }

    /// Returns the number of measurements of settings for the goals. Disturbed attempts do not
    /// count; otherwise they would use up the allowance without a result.
    fn used(&self, trials: &[Trial]) -> usize {
        let Some(goal) = self.goals().next() else { return 0 };
        let ours = trials.iter().filter(|trial| trial.workload == goal);
        ours.map(|trial| (trial.block, trial.settings.clone())).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of settings that were measured for the goals.
    fn tried(&self, trials: &[Trial]) -> usize {
        let ours = trials.iter().filter(|trial| self.goals().any(|goal| goal == trial.workload));
        ours.map(|trial| trial.settings.clone()).collect::<BTreeSet<_>>().len()
    }

    /// Returns the setting that, according to the model, may be better than all measured ones.
    fn probe(&self, trials: &[Trial]) -> Option<CellSettings> {
        let expected = self.expected_scores(trials)?;
        let best = expected.iter().map(|(_, p)| p.mean).max_by(f64::total_cmp)?;
        let measured: BTreeSet<CellSettings> =
            trials.iter().map(|trial| trial.settings.clone()).collect();
        let fresh = expected.iter().filter(|(settings, _)| !measured.contains(settings));
        let hopeful = fresh.max_by(|a, b| optimistic(&a.1).total_cmp(&optimistic(&b.1)));
        hopeful
            .filter(|(_, posterior)| optimistic(posterior) > best + MIN_PROBE_GAIN_LN)
            .map(|(settings, _)| settings.clone())
    }

    /// Returns the expected logarithm of the score over all goals, for each setting of the grid.
    fn expected_scores(&self, trials: &[Trial]) -> Option<Vec<(CellSettings, Posterior)>> {
        let curves: Vec<Curve> =
            self.goals().map(|goal| Curve::from_trials(trials, goal, self.input.seed)).collect();
        let noise = noise(&curves);
        let models: Vec<Model> = self
            .goals()
            .map(|goal| {
                let measured = self.input.settings.iter().filter_map(|settings| {
                    let values = throughputs(trials.iter(), goal, settings);
                    let logs: Vec<f64> =
                        values.values().filter(|v| **v > 0.0).map(|v| v.ln()).collect();
                    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
                    (!logs.is_empty()).then_some((settings.clone(), mean, logs.len()))
                });
                Model::learn(&measured.collect::<Vec<_>>(), noise)
            })
            .collect::<Option<_>>()?;
        let count = models.len() as f64;
        let expected = self.input.settings.iter().map(|settings| {
            let each: Vec<Posterior> = models.iter().map(|model| model.at(settings)).collect();
            let mean = each.iter().map(|p| p.mean).sum::<f64>() / count;
            let variance = each.iter().map(|p| p.deviation * p.deviation).sum::<f64>();
            (settings.clone(), Posterior { mean, deviation: variance.sqrt() / count })
        });
        Some(expected.collect())
    }
}

/// Returns the relative variation of trials of the same cell, over all cells.
fn noise(curves: &[Curve]) -> f64 {
    let mut squares = NOISE_GUESS * NOISE_GUESS * NOISE_WEIGHT;
    let mut freedom = NOISE_WEIGHT;
    for noise in curves.iter().map(Curve::noise) {
        squares += noise.squares;
        freedom += noise.freedom;
    }
    (squares / freedom).sqrt()
}

/// Returns an optimistic estimate: the mean plus one standard deviation.
fn optimistic(expected: &Posterior) -> f64 {
    expected.mean + expected.deviation
}

impl Strategy for Tuner {
    fn next(&mut self, trials: &[Trial]) -> Option<Next> {
        let progressed = TrialIndex::new(trials, &self.input.workloads);
        let mandatory_cells = self.mandatory_cells(&progressed);
        if self.is_spent(trials, mandatory_cells.len()) {
            return mandatory_cells.first().map(|cell| Next { block: 0, cell: cell.clone() });
        }
        loop {
            let open = |cell: &&CellKey| !progressed.settled(self.block, cell);
            if let Some(cell) = self.order.iter().find(open) {
                return Some(Next { block: self.block, cell: cell.clone() });
            }
            if self.order.is_empty() {
                return None;
            }
            self.block += 1;
            self.order = self.plan(trials, self.block);
        }
    }

    fn expected(&self, trials: &[Trial]) -> usize {
        let progressed = TrialIndex::new(trials, &self.input.workloads);
        let open = |cell: &&CellKey| !progressed.settled(self.block, cell);
        let here = self.order.iter().filter(open).count();
        let usual = (self.input.workloads.len() * USUAL_TRIALS).saturating_sub(trials.len() + here);
        if self.order.is_empty() { 0 } else { (here + usual).min(self.affordable(trials)) }
    }
}
