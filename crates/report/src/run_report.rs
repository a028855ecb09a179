//! A run with its analysis: the input of every format.

use std::collections::BTreeMap;

use serde::Serialize;
use study::{
    Alternative, Analysis, Cell, CellSettings, Decision, PlannedWorkload, Run, Trial, TrialStatus,
};
use units::Kib;

use crate::number::short;

/// Mark of the device's current setting.
pub(crate) const NOW: &str = "now";
/// Mark of the setting to set or keep.
pub(crate) const RECOMMENDED: &str = "recommended";

#[derive(Clone, Copy, Debug)]
pub struct RunReport<'a> {
    pub run: &'a Run,
    pub analysis: &'a Analysis,
}

/// A run, and its name among several runs.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    pub report: RunReport<'a>,
    /// Name of the run; `None` to derive it from the target.
    pub name: Option<&'a str>,
}

/// The median of a block's undisturbed trials, relative to their cells.
#[derive(Debug, Serialize)]
pub(crate) struct BlockMedian {
    #[serde(skip)]
    pub block: u32,
    /// Median start of the trials, since the start of the run.
    pub at_s: f64,
    pub relative: f64,
}

impl<'a> RunReport<'a> {
    /// Returns the measured read-ahead values, ascending.
    pub(crate) fn settings(&self) -> Vec<Kib> {
        let mut settings: Vec<Kib> =
            self.analysis.cells.iter().map(|cell| cell.settings.read_ahead).collect();
        settings.sort_unstable();
        settings.dedup();
        settings
    }

    /// Returns all measured combinations of settings, ascending.
    pub(crate) fn all_settings(&self) -> Vec<CellSettings> {
        let mut settings: Vec<CellSettings> =
            self.analysis.cells.iter().map(|cell| cell.settings.clone()).collect();
        settings.sort_unstable();
        settings.dedup();
        settings
    }

    /// Returns the measured workloads, in the order of the plan.
    pub(crate) fn workloads(&self) -> Vec<&'a PlannedWorkload> {
        let measured =
            |name: &str| self.analysis.cells.iter().any(|cell| cell.workload.as_str() == name);
        let planned = self.run.plan.workloads.iter();
        planned.filter(|planned| measured(&planned.workload.name)).collect()
    }

    pub(crate) fn cell(&self, setting: Kib, workload: &str) -> Option<&'a Cell> {
        let cells = &self.analysis.cells;
        cells.iter().find(|c| c.settings.read_ahead == setting && c.workload == workload)
    }

    /// Returns a function for the throughput of a trial relative to the median of its cell, which
    /// shows drift.
    pub(crate) fn relative_throughput(&self) -> impl Fn(&Trial) -> Option<f64> + use<'a> {
        let cells = self.analysis.cells.iter();
        let medians: BTreeMap<(&CellSettings, &str), f64> = cells
            .map(|cell| ((&cell.settings, cell.workload.as_str()), cell.throughput_mib_s.median))
            .collect();
        move |trial| {
            let median = *medians.get(&(&trial.settings, trial.workload.as_str()))?;
            (median > 0.0).then(|| trial.figures.throughput_mib_s / median)
        }
    }

    pub(crate) fn drift(&self) -> Vec<BlockMedian> {
        let relative_throughput = self.relative_throughput();
        let mut blocks: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for trial in self.run.trials.iter().filter(|trial| trial.status == TrialStatus::Clean) {
            if let Some(relative) = relative_throughput(trial) {
                let (times, values) = blocks.entry(trial.block).or_default();
                times.push(trial.started_unix_s - self.run.summary.created_unix_s);
                values.push(relative);
            }
        }
        let median = |(block, (times, values)): (u32, (Vec<f64>, Vec<f64>))| {
            let (at_s, relative) = (stats::median(&times)?, stats::median(&values)?);
            Some(BlockMedian { block, at_s, relative })
        };
        blocks.into_iter().filter_map(median).collect()
    }

    /// Returns the marks of these settings in a table. If several tunables vary, these are the
    /// baseline and the recommendation.
    pub(crate) fn marks_of(&self, settings: &CellSettings) -> Vec<&'static str> {
        let Some(best) = self.analysis.combination.as_ref().filter(|_| self.varied()) else {
            return if self.varied() { Vec::new() } else { self.marks(settings.read_ahead) };
        };
        let set = self.analysis.recommendation.to_set().as_ref() == Some(settings);
        [(best.over == *settings, "compared with"), (set, RECOMMENDED)]
            .into_iter()
            .filter_map(|(is, mark)| is.then_some(mark))
            .collect()
    }

    /// Returns the time of all trials, as in "12 s of measuring". A simulation counts the time that
    /// it simulates, which differs from the time that it takes.
    pub(crate) fn measuring_time(&self) -> String {
        let seconds = short(self.analysis.measured_seconds).unwrap_or_default();
        let what = if self.run.plan.target.is_simulated() { "simulated time" } else { "measuring" };
        format!("{seconds} s of {what}")
    }

    /// Returns whether the study varied more than read-ahead.
    pub(crate) fn varied(&self) -> bool {
        !self.run.plan.factors.is_empty()
    }

    pub(crate) fn marks(&self, setting: Kib) -> Vec<&'static str> {
        let advice = &self.analysis.recommendation;
        let kib = |named: &Option<Alternative>| named.as_ref().map(|named| named.read_ahead_kib);
        let differs = matches!(advice.decision, Decision::Set(_) | Decision::Keep(_));
        [
            (self.run.found, NOW),
            (advice.value(), RECOMMENDED),
            (kib(&advice.without_conditions), "unconditional"),
            (kib(&advice.best).filter(|_| differs), "best"),
        ]
        .into_iter()
        .filter_map(|(marked, mark)| (marked == Some(setting)).then_some(mark))
        .collect()
    }
}
