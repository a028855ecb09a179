//! The evidence for a decision.

use std::collections::{BTreeMap, BTreeSet};

use super::super::curve::{Curve, SettingPoint, overall};
use super::super::ladder::Ladder;
use crate::plan::{Role, StudyPurpose};
use crate::settings::CellSettings;
use crate::trial::Trial;

/// The measurements of a study that matter for a decision.
pub(crate) struct TrialEvidence {
    /// The curve of all goals together, or of the only goal.
    pub(crate) goals: Curve,
    /// The curve of each cost workload; without points if the workload was not measured.
    pub(crate) costs: Vec<Curve>,
    /// The blocks in which each setting was tried, by the name of the curve. Includes disturbed
    /// trials, which a curve with undisturbed trials does not contain.
    tried: BTreeMap<(String, CellSettings), BTreeSet<u32>>,
    pub(crate) found: Option<CellSettings>,
    /// The settings that can be tried, ascending.
    pub(crate) grid: Vec<CellSettings>,
    /// The purpose, which determines whether costs count.
    pub(crate) purpose: StudyPurpose,
}

impl TrialEvidence {
    /// Sorts the trials by workload; `None` if no goal was measured.
    pub(crate) fn of(
        trials: &[Trial],
        workloads: &[(String, Role)],
        seed: u64,
        found: Option<CellSettings>,
        grid: &[CellSettings],
        purpose: StudyPurpose,
    ) -> Option<Self> {
        let names = |wanted: Role| {
            workloads.iter().filter(move |(_, role)| *role == wanted).map(|(name, _)| name)
        };
        let curves = |role: Role| -> Vec<Curve> {
            names(role).map(|name| Curve::from_trials(trials, name, seed)).collect()
        };
        let first_goal = names(Role::Goal).next()?;
        let measured = curves(Role::Goal).into_iter().filter(|curve| !curve.points.is_empty());
        let goals = match <[Curve; 1]>::try_from(measured.collect::<Vec<_>>()) {
            Ok([only]) => only,
            Err(goals) => overall(&goals, seed),
        };
        if goals.points.is_empty() {
            return None;
        }
        let mut tried: BTreeMap<(String, CellSettings), BTreeSet<u32>> = BTreeMap::new();
        for trial in trials {
            let of_goals = trial.workload == *first_goal;
            let name = if of_goals { &goals.name } else { &trial.workload };
            tried.entry((name.clone(), trial.settings.clone())).or_default().insert(trial.block);
        }
        let (costs, grid) = (curves(Role::Cost), grid.to_vec());
        Some(Self { goals, costs, tried, found, grid, purpose })
    }

    /// Returns the evidence for one goal; costs are ignored.
    pub(crate) fn of_goal(goal: &Curve, found: Option<CellSettings>) -> Self {
        let grid = goal.points.iter().map(|point| point.settings.clone()).collect();
        let (costs, tried) = (Vec::new(), BTreeMap::new());
        Self { goals: goal.clone(), costs, tried, found, grid, purpose: StudyPurpose::Streaming }
    }

    /// Returns the number of blocks in which a setting of this curve was tried.
    pub(crate) fn tries(&self, curve: &Curve, settings: &CellSettings) -> usize {
        self.tried.get(&(curve.name.clone(), settings.clone())).map_or(0, BTreeSet::len)
    }

    /// Returns the number of blocks in which all of these settings were tried.
    pub(crate) fn tries_together(&self, curve: &Curve, settings: &[&CellSettings]) -> usize {
        let blocks = |s: &CellSettings| self.tried.get(&(curve.name.clone(), s.clone())).cloned();
        let each = settings.iter().map(|s| blocks(s).unwrap_or_default());
        each.reduce(|a, b| a.intersection(&b).copied().collect()).map_or(0, |all| all.len())
    }

    /// Returns the ladder of the settings with enough repeats.
    pub(crate) fn ladder(&self) -> Option<Ladder<'_>> {
        Ladder::from_curve(&self.goals, self.found.as_ref())
    }

    /// Returns the throughput of a cost workload relative to that under another setting.
    pub(crate) fn cost_ratio(curve: &Curve, at: &CellSettings, over: &CellSettings) -> Option<f64> {
        Some(curve.at(at)?.median / curve.at(over)?.median)
    }

    /// Returns whether costs count for the decision.
    pub(crate) fn weighs_costs(&self) -> bool {
        self.purpose != StudyPurpose::Streaming
    }

    /// Returns whether there are cost workloads, and all of them were measured under both settings
    /// and keep at least this share of their throughput.
    pub(crate) fn all_keep(&self, share: f64, at: &CellSettings, over: &CellSettings) -> bool {
        let keeps = |curve| Self::cost_ratio(curve, at, over).is_some_and(|ratio| ratio >= share);
        !self.costs.is_empty() && self.costs.iter().all(keeps)
    }

    /// Returns the ratio of the medians of two settings of the goals.
    pub(crate) fn gain(above: &SettingPoint, below: &SettingPoint) -> f64 {
        above.median / below.median
    }
}
