//! A run and what it shows, as every format needs them.

use study::{Analysis, Cell, Difference, PlannedWorkload, Run, Settings};
use units::Kib;

/// What was measured but once is recommended over the present setting only if it gets this much
/// more: less might be nothing but noise.
const PLAIN_WHEN_TRIED_ONCE: f64 = 1.1;

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

    /// The setting that the device has, where the recommended one is not measurably better. A
    /// smaller one that is surely as good is worth having, though: it saves memory.
    pub(crate) fn kept(&self) -> Option<Kib> {
        let verdict = &self.analysis.verdict;
        if verdict.full_kib.is_some() && verdict.full_kib == self.run.found {
            return self.run.found;
        }
        let gain = verdict.gain.as_ref().filter(|gain| gain.over_found)?;
        let found = gain.over_kib;
        let keep = match gain.difference {
            Difference::Better => false,
            Difference::NoMeasurableDifference => verdict.full_kib >= Some(found),
            // Of what was tried but once nobody knows how sure it is, so it should be plain to see.
            Difference::Inconclusive => {
                gain.ratio.is_bounded() || gain.ratio.median < PLAIN_WHEN_TRIED_ONCE
            }
            Difference::Worse => true,
        };
        keep.then_some(found)
    }

    /// The same for a combination of several tunables: what the others are compared with, and the
    /// best one if it is measurably better.
    pub(crate) fn marks_of(&self, settings: &Settings) -> Vec<&'static str> {
        let Some(best) = self.analysis.combination.as_ref().filter(|_| self.varied()) else {
            return if self.varied() { Vec::new() } else { self.marks(settings.read_ahead) };
        };
        let better = best.difference == Difference::Better;
        [(best.over == *settings, "compared with"), (better && best.settings == *settings, "best")]
            .into_iter()
            .filter_map(|(is, mark)| is.then_some(mark))
            .collect()
    }

    /// Whether the study varied more than read-ahead.
    pub(crate) fn varied(&self) -> bool {
        !self.run.plan.factors.is_empty()
    }

    /// What this setting is to the reader of a table: `now`, `conservative`, `full`.
    pub(crate) fn marks(&self, setting: Kib) -> Vec<&'static str> {
        let verdict = &self.analysis.verdict;
        [
            (self.run.found, "now"),
            (verdict.conservative_kib, "conservative"),
            (verdict.full_kib, "full"),
        ]
        .into_iter()
        .filter_map(|(marked, mark)| (marked == Some(setting)).then_some(mark))
        .collect()
    }
}
