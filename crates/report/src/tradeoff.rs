//! The gain of one workload and the change of another.

use std::collections::HashMap;

use study::{CellSettings, Role};

use crate::run_report::RunReport;

/// Two workloads under the same settings.
pub(crate) struct Tradeoff<'a> {
    /// The workload that should gain.
    pub goal: &'a str,
    pub other: &'a str,
    /// The common baseline.
    pub over: CellSettings,
    /// Throughput of `goal` and `other` relative to the baseline, by ascending setting.
    pub points: Vec<(CellSettings, f64, f64)>,
    /// Indices of the points on the Pareto front.
    pub front: Vec<usize>,
}

/// Minimum number of settings; fewer offer no choice.
const SETTINGS_LEAST: usize = 3;

/// Returns every goal with every other workload, workloads with random reads first.
pub(crate) fn tradeoffs<'a>(report: &RunReport<'a>) -> Vec<Tradeoff<'a>> {
    let workloads = report.workloads();
    let mut all = Vec::new();
    for (at, goal) in workloads.iter().enumerate().filter(|(_, w)| w.role == Role::Goal) {
        for (other_at, other) in workloads.iter().enumerate() {
            let goal_again = other.role == Role::Goal && other_at <= at;
            if !goal_again {
                let trade = between(report, &goal.workload.name, &other.workload.name);
                all.extend(trade.map(|trade| (other_at, trade)));
            }
        }
    }
    // Workloads late in the plan usually have random reads, whose cost is of more interest.
    all.sort_by_key(|(other_at, _)| std::cmp::Reverse(*other_at));
    all.into_iter().map(|(_, trade)| trade).collect()
}

fn between<'a>(report: &RunReport<'a>, goal: &'a str, other: &'a str) -> Option<Tradeoff<'a>> {
    let medians = |name: &str| -> HashMap<CellSettings, f64> {
        let cells = report.analysis.cells.iter().filter(|cell| cell.workload == name);
        let medians = cells.map(|cell| (cell.settings.clone(), cell.throughput_mib_s.median));
        medians.filter(|(_, median)| *median > 0.0).collect()
    };
    let (of_goal, of_other) = (medians(goal), medians(other));
    let both: Vec<(CellSettings, f64, f64)> = report
        .all_settings()
        .into_iter()
        .filter_map(|at| {
            let (x, y) = (*of_goal.get(&at)?, *of_other.get(&at)?);
            Some((at, x, y))
        })
        .collect();
    if both.len() < SETTINGS_LEAST {
        return None;
    }
    let base = report.analysis.combination.as_ref().map(|best| best.over.clone());
    let base = base.or(report.run.found.map(CellSettings::read_ahead));
    let found = both.iter().find(|(at, _, _)| Some(at) == base.as_ref());
    let (over, base_goal, base_other) = found.or(both.first())?.clone();
    let points: Vec<(CellSettings, f64, f64)> =
        both.into_iter().map(|(at, x, y)| (at, x / base_goal, y / base_other)).collect();
    let places: Vec<(f64, f64)> = points.iter().map(|(_, gain, keep)| (*gain, *keep)).collect();
    Some(Tradeoff { goal, other, over, front: stats::pareto(&places), points })
}
