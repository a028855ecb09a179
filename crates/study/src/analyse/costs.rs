//! Builds the recommendation of a run, with its costs.

use std::collections::BTreeSet;

use units::Kib;

use super::curve::{Curve, SettingPoint, classify};
use super::ladder::Ladder;
use super::recommendation::{
    Alternative, Caveat, CostChange, CostCondition, Decision, InconclusiveReason, Recommendation,
    RecommendationCost, Saving, TrialEvidence,
};
use super::types::{Cell, Gain, LatencyChange};
use crate::plan::{PlannedWorkload, Role};
use crate::settings::CellSettings;
use crate::store::{Run, RunCommand};

/// Returns the recommendation for read-ahead that follows from a run.
pub(super) fn recommendation(run: &Run, cells: &[Cell]) -> Recommendation {
    let purpose = run.plan.purpose;
    let found = run.found.map(CellSettings::read_ahead);
    let grid: Vec<CellSettings> = run.grid.iter().copied().map(CellSettings::read_ahead).collect();
    let roles = run.plan.roles();
    let Some(evidence) = TrialEvidence::of(&run.trials, &roles, run.seed, found, &grid, purpose)
    else {
        let nothing = Decision::Inconclusive(InconclusiveReason::NothingMeasured);
        return Recommendation::nothing(nothing, purpose);
    };
    Account { run, cells, evidence: &evidence }.recommendation()
}

/// The inputs of a recommendation: a run, its cells and its evidence.
struct Account<'a> {
    run: &'a Run,
    cells: &'a [Cell],
    evidence: &'a TrialEvidence,
}

impl Account<'_> {
    fn recommendation(&self) -> Recommendation {
        let evidence = self.evidence;
        let choice = evidence.decide(self.run.plan.streams());
        let mut all = Recommendation::nothing(choice.decision, evidence.purpose);
        let Some(ladder) = choice.ladder else { return all };
        all.economical = Some(self.alternative(ladder.economical, &ladder));
        all.best = Some(self.alternative(ladder.best, &ladder));
        let Some(chosen) = choice.chosen else { return all };
        let gain = gain(&evidence.goals, chosen, &ladder);
        all.conditions = self.conditions(chosen, &ladder);
        if !all.conditions.is_empty() {
            let without = evidence.without_conditions(&ladder);
            all.without_conditions = without.map(|point| self.alternative(point, &ladder));
        }
        all.saving = (chosen.settings < ladder.base.settings)
            .then(|| self.saving(chosen, &ladder))
            .filter(|_| gain.ratio.median < super::recommendation::MIN_GAIN_RATIO);
        all.gain = Some(gain);
        all.cost = Some(self.cost(chosen, &ladder));
        all.caveats = self.caveats(chosen, &ladder);
        all
    }

    fn alternative(&self, point: &SettingPoint, ladder: &Ladder<'_>) -> Alternative {
        Alternative {
            read_ahead_kib: point.settings.read_ahead,
            gain: gain(&self.evidence.goals, point, ladder),
            changes: self.changes(point, ladder),
        }
    }

    /// Returns the changes of all cost workloads measured under both this setting and the base.
    fn changes(&self, point: &SettingPoint, ladder: &Ladder<'_>) -> Vec<CostChange> {
        let (to, from) = (&point.settings, &ladder.base.settings);
        self.evidence.costs.iter().filter_map(|curve| self.change(curve, to, from)).collect()
    }

    fn change(&self, curve: &Curve, to: &CellSettings, from: &CellSettings) -> Option<CostChange> {
        let ratio = curve.ratio(curve.at(to)?, curve.at(from)?);
        let cell = |settings: &CellSettings| {
            self.cells.iter().find(|c| c.workload == curve.name && c.settings == *settings)
        };
        let latency = |settings| cell(settings).and_then(|cell| cell.random_latency_us);
        Some(CostChange {
            workload: curve.name.clone(),
            baseline_kib: from.read_ahead,
            throughput_ratio: ratio,
            amplification: cell(to).and_then(|c| c.amplification).map(|a| a.median),
            latency: latency(from)
                .zip(latency(to))
                .map(|(before_us, after_us)| LatencyChange { before_us, after_us }),
        })
    }

    fn cost(&self, point: &SettingPoint, ladder: &Ladder<'_>) -> RecommendationCost {
        let of_goal = |planned: &&PlannedWorkload| planned.role == Role::Goal;
        let at = |name: &str| {
            self.cells.iter().find(|c| c.workload == name && c.settings == point.settings)
        };
        let goals = self.run.plan.workloads.iter().filter(of_goal);
        let amplification = goals
            .filter_map(|goal| at(&goal.workload.name)?.amplification)
            .map(|amplification| amplification.median)
            .max_by(f64::total_cmp);
        let streams = self.run.plan.streams();
        RecommendationCost {
            memory_mib: super::recommendation::memory(point, streams).as_mib(),
            streams,
            amplification,
            changes: self.changes(point, ladder),
        }
    }

    fn conditions(&self, point: &SettingPoint, ladder: &Ladder<'_>) -> Vec<CostCondition> {
        let changes = self.changes(point, ladder).into_iter();
        let lost = |change: &CostChange| {
            change.throughput_ratio.median < super::recommendation::CONDITION_BELOW_RATIO
        };
        changes
            .filter(|change| self.evidence.weighs_costs() && lost(change))
            .map(|change| CostCondition {
                workload: change.workload,
                throughput_ratio: change.throughput_ratio,
            })
            .collect()
    }

    fn saving(&self, point: &SettingPoint, ladder: &Ladder<'_>) -> Saving {
        let memory = |point| super::recommendation::memory(point, self.run.plan.streams());
        let faster = |change: &CostChange| {
            change.throughput_ratio.median >= super::recommendation::MIN_SAVING_RATIO
        };
        Saving {
            memory_mib: memory(ladder.base).saturating_sub(memory(point)).as_mib(),
            changes: self.changes(point, ladder).into_iter().filter(faster).collect(),
        }
    }

    fn caveats(&self, point: &SettingPoint, ladder: &Ladder<'_>) -> Vec<Caveat> {
        let read_ahead_kib = point.settings.read_ahead;
        let ends = [self.evidence.grid.first(), self.evidence.grid.last()];
        let mut caveats = Vec::new();
        if ends.contains(&Some(&point.settings)) {
            caveats.push(Caveat::EdgeOfRange { read_ahead_kib });
        }
        if let Some(found) = self.run.found.filter(|_| !ladder.base_is_found) {
            caveats.push(Caveat::PresentNotMeasured { read_ahead_kib: found });
        }
        let both = [&point.settings, &ladder.base.settings];
        for curve in &self.evidence.costs {
            let workload = curve.name.clone();
            match both.iter().find(|s| curve.at(s).is_none()) {
                Some(_) => caveats.push(Caveat::CostNotMeasured { read_ahead_kib, workload }),
                None => caveats.extend(self.used_up(&workload, &both)),
            }
        }
        caveats.extend(self.alternative_with_unknown_cost(point, ladder));
        caveats
    }

    /// Returns a caveat for a smaller setting with enough gain and unknown costs, if the
    /// recommendation has conditions and no alternative without them.
    fn alternative_with_unknown_cost(
        &self,
        point: &SettingPoint,
        ladder: &Ladder<'_>,
    ) -> Option<Caveat> {
        let conditional = !self.conditions(point, ladder).is_empty();
        if !conditional || self.evidence.without_conditions(ladder).is_some() {
            return None;
        }
        let between = &ladder.base.settings..&point.settings;
        let gains = |other: &&SettingPoint| {
            between.contains(&&other.settings)
                && TrialEvidence::gain(other, ladder.base) >= super::recommendation::MIN_GAIN_RATIO
        };
        let candidates = self.evidence.goals.points.iter().filter(gains);
        candidates.rev().find_map(|other| {
            let unknown = self.evidence.costs.iter().find(|c| c.at(&other.settings).is_none())?;
            let (read_ahead_kib, workload) = (other.settings.read_ahead, unknown.name.clone());
            Some(Caveat::CostNotMeasured { read_ahead_kib, workload })
        })
    }

    fn used_up(&self, workload: &str, settings: &[&CellSettings]) -> Option<Caveat> {
        let ours = |cell: &&Cell| cell.workload == workload && settings.contains(&&cell.settings);
        let cell = self.cells.iter().filter(ours).find(|cell| cell.used_up > 0)?;
        let read_ahead_kib = cell.settings.read_ahead;
        Some(Caveat::FilesUsedUp { read_ahead_kib, workload: workload.to_owned() })
    }
}

/// Returns the gain of a setting over the base of the ladder.
pub(super) fn gain(curve: &Curve, point: &SettingPoint, ladder: &Ladder<'_>) -> Gain {
    let ratio = curve.ratio(point, ladder.base);
    Gain {
        baseline_kib: ladder.base.settings.read_ahead,
        baseline_is_current: ladder.base_is_found,
        difference: classify(&ratio),
        ratio,
    }
}

/// Returns notes on costs that were not measured.
pub(super) fn notes(run: &Run, cells: &[Cell]) -> Vec<String> {
    // A run with a database server does not use these workloads.
    if run.summary.command == RunCommand::Pg {
        return Vec::new();
    }
    let measured = |name: &str| cells.iter().any(|cell| cell.workload == name);
    let missing: Vec<&str> =
        ["rand-pread", "rand-mmap"].into_iter().filter(|name| !measured(name)).collect();
    let random = cells.iter().any(|cell| cell.random_latency_us.is_some());
    let mut notes = Vec::new();
    if !random {
        notes.push(format!(
            "random reads were not measured, so the effect of these settings on them is unknown \
             (workloads {})",
            missing.join(", ")
        ));
    } else if missing == ["rand-mmap"] {
        notes.push(
            "random reads of mapped files were not measured (workload rand-mmap): large windows \
             slow them most"
                .to_owned(),
        );
    }
    if run.plan.workloads.iter().all(|p| p.role == Role::Goal) && run.plan.workloads.len() == 1 {
        notes.push("only one workload was measured: others may need another setting".to_owned());
    }
    notes.extend(used_up(cells));
    notes
}

/// Names the cells whose random reads used up their files.
fn used_up(cells: &[Cell]) -> Option<String> {
    let named = |cell: &Cell| format!("{} at {}", cell.workload, cell.settings.read_ahead);
    let all: BTreeSet<String> = cells.iter().filter(|c| c.used_up > 0).map(named).collect();
    let (first, most) = (all.first()?, all.len());
    let others = if most > 1 { format!(" and {} other cells", most - 1) } else { String::new() };
    Some(format!(
        "random reads had half of their files in the cache by the end of the trial \
         ({first}{others}), so they look faster than they are: larger files (--size) show the cost"
    ))
}

pub(super) fn kib(point: &SettingPoint) -> Kib {
    point.settings.read_ahead
}
