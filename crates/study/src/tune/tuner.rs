//! The strategy of `tune`.
//!
//! 1. A coarse block: seven settings from end to end, the one found among them.
//! 2. A few single probes, where the model says that something better may hide, and at the edges
//!    of what the full and the conservative recommendation would be.
//! 3. Confirmation in blocks of the few settings that the verdict will name, until they are
//!    repeated often enough and their ratios are certain.
//! 4. What the named settings cost the workloads that are measured for their price alone.
//!
//! All of it stays below a quarter of what measuring the whole grid would take, and within the
//! budget, once the coarse block has been through: where the budget is too small for that block,
//! it has fewer settings.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use stats::Posterior;

use super::model::Model;
use crate::analyse::{CONSERVATIVE, Curve, overall, throughputs};
use crate::budget::{spent, would_exceed};
use crate::plan::{Repeats, Role};
use crate::session::Field;
use crate::settings::Settings;
use crate::strategy::{CellKey, Next, Progressed, Strategy};
use crate::trial::Trial;

/// Settings of the coarse block.
const COARSE: usize = 7;
/// Single probes after it, at most.
const PROBES: usize = 3;
/// A setting that is expected to be this close to the best (in ln) may be recommended instead.
const CLOSE: f64 = 0.01;
/// Where the noise is not known yet, each trial is taken to vary by this much, as if that had been
/// seen [`NOISE_WEIGHT`] times.
const NOISE_GUESS: f64 = 0.01;
const NOISE_WEIGHT: f64 = 3.0;
/// The shares of the budget that may be gone when probing and confirming end.
const BUDGET_PROBING: f64 = 0.5;
const BUDGET_CONFIRMING: f64 = 0.85;

/// Chooses few of many settings.
#[derive(Debug)]
pub(crate) struct Tuner {
    workloads: Vec<(String, Role)>,
    settings: Vec<Settings>,
    found: Option<Settings>,
    repeats: Repeats,
    budget_seconds: f64,
    seed: u64,
    block: u32,
    order: Vec<CellKey>,
}

/// What the goals' curves are taken to be, after the blocks so far.
struct View {
    curve: Curve,
    /// The expected logarithm of the score of each setting.
    expected: Vec<(Settings, Posterior)>,
}

impl Tuner {
    /// May spend this many seconds in trials.
    pub(crate) fn new(field: &Field<'_>, repeats: Repeats, budget_seconds: f64) -> Self {
        let settings = field.settings.to_vec();
        let found = field.found.filter(|found| settings.contains(found));
        let (workloads, seed) = (field.workloads.to_vec(), field.seed);
        let mut tuner = Self {
            workloads,
            settings,
            found,
            repeats,
            budget_seconds,
            seed,
            block: 0,
            order: Vec::new(),
        };
        tuner.order = tuner.cells(tuner.coarse(field.trial_seconds), Role::Goal, 0);
        tuner
    }

    /// Both ends, the setting found, and others spread evenly between them, as many as the budget
    /// can hold.
    fn coarse(&self, trial_seconds: f64) -> Vec<Settings> {
        let found = usize::from(self.found.is_some());
        let each = trial_seconds * self.goals().count() as f64;
        // Nothing can be said without the ends. The cast saturates.
        let count = ((self.budget_seconds / each) as usize).clamp(2 + found, COARSE);
        let last = self.settings.len().saturating_sub(1);
        if last < count {
            return self.settings.clone();
        }
        let steps = count - 1 - found;
        let mut chosen: Vec<Settings> =
            (0..=steps).map(|step| self.settings[(step * last + steps / 2) / steps]).collect();
        chosen.extend(self.found);
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// The cells of some settings for all workloads of a role, shuffled.
    fn cells(&self, settings: Vec<Settings>, role: Role, block: u32) -> Vec<CellKey> {
        let ours = self.workloads.iter().enumerate().filter(|(_, (_, r))| *r == role);
        let mut cells: Vec<CellKey> = ours
            .flat_map(|(workload, _)| {
                settings.iter().map(move |settings| CellKey { workload, settings: *settings })
            })
            .collect();
        let seed = self.seed ^ u64::from(block + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        cells.shuffle(&mut Pcg64::seed_from_u64(seed));
        cells
    }

    fn names(&self) -> Vec<String> {
        self.workloads.iter().map(|(name, _)| name.clone()).collect()
    }

    fn goals(&self) -> impl Iterator<Item = &str> {
        self.workloads.iter().filter(|(_, r)| *r == Role::Goal).map(|(name, _)| name.as_str())
    }

    /// How many times settings may be measured: two ninths of the least that the grid would take,
    /// which keeps the time below a quarter even if what is of interest takes longer than the rest;
    /// though a grid of a few settings cannot be judged by so little.
    fn allowance(&self) -> usize {
        let least = self.repeats.min as usize;
        (self.settings.len() * least * 2 / 9).max(least * self.settings.len().min(4))
    }

    /// The cells of the next block, chosen by all blocks before it; none when enough is known.
    fn plan(&self, trials: &[Trial], block: u32) -> Vec<CellKey> {
        let earlier: Vec<Trial> = trials.iter().filter(|t| t.block < block).cloned().collect();
        let share = spent(&earlier) / self.budget_seconds;
        let Some(view) = self.view(&earlier) else { return Vec::new() };
        let used = self.used(&earlier);
        let allowance = self.allowance();
        let may_probe = block as usize <= PROBES && share < BUDGET_PROBING && used + 2 < allowance;
        if may_probe && let Some(probe) = self.probe(&view) {
            return self.cells(vec![probe], Role::Goal, block);
        }
        let left = allowance.saturating_sub(used);
        if share < BUDGET_CONFIRMING {
            let confirm = self.to_confirm(&view, left);
            if !confirm.is_empty() {
                return self.cells(confirm, Role::Goal, block);
            }
        }
        if share < 1.0 { self.price(&view, &earlier, block) } else { Vec::new() }
    }

    /// Whether the budget would not hold another trial like those so far beside those that are
    /// owed.
    fn is_spent(&self, trials: &[Trial], owed: usize) -> bool {
        would_exceed(trials, 1 + owed, self.budget_seconds)
    }

    /// How many more trials like those so far the budget holds.
    fn affordable(&self, trials: &[Trial]) -> usize {
        let spent = spent(trials);
        let each = spent / trials.len() as f64;
        // Before the first trial nothing is known; the cast saturates.
        if each > 0.0 {
            ((self.budget_seconds - spent) / each).max(1.0) as usize
        } else {
            usize::MAX
        }
    }

    /// What there must be however small the budget: one trial of each cell of the coarse block,
    /// which is the order as long as the block is the first.
    fn owed(&self, progressed: &Progressed) -> Vec<CellKey> {
        let coarse = self.order.iter().filter(|_| self.block == 0);
        coarse.filter(|cell| !progressed.tried(0, **cell)).copied().collect()
    }

    /// Times that a setting was measured for the goals; attempts that were spoiled are none, or
    /// storage that is disturbed would use up what it may before anything is known.
    fn used(&self, trials: &[Trial]) -> usize {
        let Some(goal) = self.goals().next() else { return 0 };
        let ours = trials.iter().filter(|trial| trial.workload == goal);
        ours.map(|trial| (trial.block, trial.settings)).collect::<BTreeSet<_>>().len()
    }

    fn view(&self, trials: &[Trial]) -> Option<View> {
        let curves: Vec<Curve> =
            self.goals().map(|goal| Curve::of(trials, goal, self.seed)).collect();
        let noise = noise(&curves);
        let models: Vec<Model> = self
            .goals()
            .map(|goal| {
                let measured = self.settings.iter().filter_map(|settings| {
                    let values = throughputs(trials.iter(), goal, *settings);
                    let logs: Vec<f64> =
                        values.values().filter(|v| **v > 0.0).map(|v| v.ln()).collect();
                    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
                    (!logs.is_empty()).then_some((*settings, mean, logs.len()))
                });
                Model::learn(&measured.collect::<Vec<_>>(), noise)
            })
            .collect::<Option<_>>()?;
        let count = models.len() as f64;
        let expected = self.settings.iter().map(|settings| {
            let each: Vec<Posterior> = models.iter().map(|model| model.at(*settings)).collect();
            let mean = each.iter().map(|p| p.mean).sum::<f64>() / count;
            let variance = each.iter().map(|p| p.deviation * p.deviation).sum::<f64>();
            (*settings, Posterior { mean, deviation: variance.sqrt() / count })
        });
        let expected = expected.collect();
        let curve = match <[Curve; 1]>::try_from(curves) {
            Ok([only]) => only,
            Err(curves) => overall(&curves, self.seed),
        };
        Some(View { curve, expected })
    }

    /// Where a single measurement would tell most.
    fn probe(&self, view: &View) -> Option<Settings> {
        let best = view.best_expected()?;
        let fresh = |settings: &Settings| view.curve.at(*settings).is_none();
        let hopeful = view
            .expected
            .iter()
            .filter(|(settings, _)| fresh(settings))
            .max_by(|a, b| a.1.hope().total_cmp(&b.1.hope()));
        if let Some((settings, posterior)) = hopeful
            && posterior.hope() > best + CLOSE
        {
            return Some(*settings);
        }
        [view.full(), view.conservative()].into_iter().flatten().find(fresh)
    }

    /// The settings that the verdict will name or compare with, as far as they are not certain and
    /// `left` more measurements can make them so.
    fn to_confirm(&self, view: &View, left: usize) -> Vec<Settings> {
        let repeats =
            |settings: &Settings| view.curve.at(*settings).map_or(0, |point| point.values.len());
        let missing =
            |settings: &Settings| (self.repeats.min as usize).saturating_sub(repeats(settings));
        // What cannot be confirmed any more, the verdict will not consider; found comes along.
        let best = view.best_measured(|settings| 2 * missing(settings) <= left);
        let full = view.measured_from(view.full());
        let conservative = view.measured_from(view.conservative());
        // In the order of what the verdict would miss most.
        let wanted = [best, self.found, full, conservative].into_iter().flatten();
        let mut named: Vec<Settings> = Vec::new();
        for settings in wanted {
            let rounds = named.iter().chain([&settings]).map(missing).max().unwrap_or(0);
            if !named.contains(&settings) && rounds * (named.len() + 1) <= left {
                named.push(settings);
            }
        }
        if named.iter().any(|settings| missing(settings) > 0) {
            // Pairs need both: those that have enough go along as long as others have not.
            return named;
        }
        let undecided: Vec<Settings> = [best, view.rival()].into_iter().flatten().collect();
        let more = |settings: &Settings| repeats(settings) < self.repeats.max as usize;
        let pair = undecided.len() == 2 && left >= 2 && undecided.iter().all(more);
        if pair { undecided } else { Vec::new() }
    }

    /// What the named settings cost, in as many blocks as repeats are asked for.
    fn price(&self, view: &View, trials: &[Trial], block: u32) -> Vec<CellKey> {
        let over = self.found.or(self.settings.first().copied());
        let mut named: Vec<Settings> =
            [over, view.measured_from(view.conservative()), view.measured_from(view.full())]
                .into_iter()
                .flatten()
                .collect();
        named.sort_unstable();
        named.dedup();
        let blocks: BTreeSet<u32> = trials
            .iter()
            .filter(|trial| {
                self.workloads.iter().any(|(n, r)| *n == trial.workload && *r == Role::Price)
            })
            .map(|trial| trial.block)
            .collect();
        if blocks.len() >= self.repeats.min as usize {
            return Vec::new();
        }
        self.cells(named, Role::Price, block)
    }
}

/// How much trials of the same cell vary, relative, over all cells.
fn noise(curves: &[Curve]) -> f64 {
    let mut squares = NOISE_GUESS * NOISE_GUESS * NOISE_WEIGHT;
    let mut freedom = NOISE_WEIGHT;
    for noise in curves.iter().map(Curve::noise) {
        squares += noise.squares;
        freedom += noise.freedom;
    }
    (squares / freedom).sqrt()
}

trait Hope {
    /// As good as it may well be.
    fn hope(&self) -> f64;
}

impl Hope for Posterior {
    fn hope(&self) -> f64 {
        self.mean + self.deviation
    }
}

impl View {
    fn expected_at(&self, settings: Settings) -> Option<f64> {
        self.expected.iter().find(|(s, _)| *s == settings).map(|(_, posterior)| posterior.mean)
    }

    fn best_expected(&self) -> Option<f64> {
        self.expected.iter().map(|(_, posterior)| posterior.mean).max_by(f64::total_cmp)
    }

    /// The measured setting that is expected to be best among these.
    fn best_measured(&self, among: impl Fn(&Settings) -> bool) -> Option<Settings> {
        let measured = self.curve.points.iter().filter(|point| among(&point.settings));
        let expected = measured.filter_map(|p| Some((p.settings, self.expected_at(p.settings)?)));
        expected.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(settings, _)| settings)
    }

    /// The measured setting that may well be better than the best, or as good and smaller.
    fn rival(&self) -> Option<Settings> {
        let best = self.best_measured(|_| true)?;
        let bar = self.expected_at(best)? - CLOSE;
        let measured = |settings: &Settings| self.curve.at(*settings).is_some();
        let others =
            self.expected.iter().filter(|(s, p)| *s != best && measured(s) && p.hope() > bar);
        others.max_by(|a, b| a.1.hope().total_cmp(&b.1.hope())).map(|(settings, _)| *settings)
    }

    /// The smallest setting that is expected to be as good as the best measured one.
    fn full(&self) -> Option<Settings> {
        let best = self.expected_at(self.best_measured(|_| true)?)?;
        let close = |(_, posterior): &&(Settings, Posterior)| posterior.mean >= best - CLOSE;
        self.expected.iter().find(close).map(|(settings, _)| *settings)
    }

    /// The smallest setting that is expected to get the conservative share of the gain.
    fn conservative(&self) -> Option<Settings> {
        let best = self.expected_at(self.best_measured(|_| true)?)?.exp();
        let floor = self.expected.first()?.1.mean.exp();
        let enough = floor + CONSERVATIVE * (best - floor);
        let reaches = |(_, posterior): &&(Settings, Posterior)| posterior.mean.exp() >= enough;
        self.expected.iter().find(reaches).map(|(settings, _)| *settings)
    }

    /// The smallest measured setting that is not below this one.
    fn measured_from(&self, settings: Option<Settings>) -> Option<Settings> {
        let settings = settings?;
        self.curve.points.iter().map(|point| point.settings).find(|s| *s >= settings)
    }
}

impl Strategy for Tuner {
    fn next(&mut self, trials: &[Trial]) -> Option<Next> {
        let progressed = Progressed::of(trials, &self.names());
        let owed = self.owed(&progressed);
        if self.is_spent(trials, owed.len()) {
            return owed.first().map(|cell| Next { block: 0, cell: *cell });
        }
        loop {
            let open = |cell: &&CellKey| !progressed.settled(self.block, **cell);
            if let Some(cell) = self.order.iter().find(open) {
                return Some(Next { block: self.block, cell: *cell });
            }
            if self.order.is_empty() {
                return None;
            }
            self.block += 1;
            self.order = self.plan(trials, self.block);
        }
    }

    fn expected(&self, trials: &[Trial]) -> usize {
        let progressed = Progressed::of(trials, &self.names());
        let open = |cell: &&CellKey| !progressed.settled(self.block, **cell);
        let here = self.order.iter().filter(open).count();
        let goals = self.goals().count();
        let whole = self.allowance() * goals;
        let prices = (self.workloads.len() - goals) * 3 * self.repeats.min as usize;
        let to_come = (whole + prices).saturating_sub(trials.len() + here);
        if self.order.is_empty() { 0 } else { (here + to_come).min(self.affordable(trials)) }
    }
}
