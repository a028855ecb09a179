//! A run and what it shows, as every format needs them.

use study::{Alternative, Analysis, Cell, Decision, PlannedWorkload, Run, Settings};
use units::Kib;

/// The mark of what the device has.
pub(crate) const NOW: &str = "now";
/// The mark of what is to be set or kept.
pub(crate) const RECOMMENDED: &str = "recommended";

/// A run and what was worked out from it.
#[derive(Clone, Copy, Debug)]
pub struct Findings<'a> {
    /// The record.
    pub run: &'a Run,
    /// What it shows.
    pub analysis: &'a Analysis,
}

/// A run and what it is to be called beside others.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The run.
    pub findings: Findings<'a>,
    /// Its name, if whoever asks has one for it.
    pub name: Option<&'a str>,
}

impl<'a> Findings<'a> {
    /// The settings that have a cell, ascending.
    pub(crate) fn settings(&self) -> Vec<Kib> {
        let mut settings: Vec<Kib> =
            self.analysis.cells.iter().map(|cell| cell.settings.read_ahead).collect();
        settings.sort_unstable();
        settings.dedup();
        settings
    }

    /// All settings that have a cell, ascending.
    pub(crate) fn all_settings(&self) -> Vec<Settings> {
        let mut settings: Vec<Settings> =
            self.analysis.cells.iter().map(|cell| cell.settings).collect();
        settings.sort_unstable();
        settings.dedup();
        settings
    }

    /// The workloads that have a cell, in the order of the plan.
    pub(crate) fn workloads(&self) -> Vec<&'a PlannedWorkload> {
        let measured =
            |name: &str| self.analysis.cells.iter().any(|cell| cell.workload.as_str() == name);
        let planned = self.run.plan.workloads.iter();
        planned.filter(|planned| measured(&planned.workload.name)).collect()
    }

    /// What was measured of this workload under this setting.
    pub(crate) fn cell(&self, setting: Kib, workload: &str) -> Option<&'a Cell> {
        let cells = &self.analysis.cells;
        cells.iter().find(|c| c.settings.read_ahead == setting && c.workload == workload)
    }

    /// What these settings are to the reader of a table; of several tunables, what the others are
    /// compared with and what is recommended.
    pub(crate) fn marks_of(&self, settings: &Settings) -> Vec<&'static str> {
        let Some(best) = self.analysis.combination.as_ref().filter(|_| self.varied()) else {
            return if self.varied() { Vec::new() } else { self.marks(settings.read_ahead) };
        };
        let set = self.analysis.recommendation.to_set() == Some(*settings);
        [(best.over == *settings, "compared with"), (set, RECOMMENDED)]
            .into_iter()
            .filter_map(|(is, mark)| is.then_some(mark))
            .collect()
    }

    /// Whether the study varied more than read-ahead.
    pub(crate) fn varied(&self) -> bool {
        !self.run.plan.factors.is_empty()
    }

    /// What this setting is to the reader of a table.
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
