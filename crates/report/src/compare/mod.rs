//! Compares runs with the first run, in every format but HTML.

mod formats;
mod sentences;
mod terminal;

use study::{Difference, RunComparison};

use crate::names::labels;
use crate::run_report::{Named, RunReport};
use crate::unit::{unit, units};

pub use formats::{compare_csv, compare_json, compare_markdown};
pub(crate) use sentences::sentences;
pub use terminal::compare_terminal;

/// A comparison of a run with the first run.
#[derive(Clone, Debug)]
pub struct Pairing<'a> {
    pub first: RunReport<'a>,
    pub second: RunReport<'a>,
    pub comparison: RunComparison,
    pub(crate) names: [String; 2],
}

impl<'a> Pairing<'a> {
    /// Returns the unit of the figures of all workloads.
    pub(crate) fn units(&self) -> String {
        let mut names: Vec<&str> =
            self.comparison.cells.iter().map(|cell| cell.workload.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        units(self.first.run, names.into_iter())
    }

    /// Returns the unit of the figures of one workload.
    pub(crate) fn unit(&self, workload: &str) -> String {
        unit(self.first.run, workload)
    }

    /// Compares each further run with the first run.
    pub fn all(runs: &[Named<'a>]) -> Vec<Self> {
        let Some((first, others)) = runs.split_first() else { return Vec::new() };
        let names = labels(runs);
        let first = first.report;
        let pair = |(at, second): (usize, RunReport<'a>)| Self {
            first,
            second,
            comparison: study::compare((first.run, first.analysis), (second.run, second.analysis)),
            names: [names[0].clone(), names[at + 1].clone()],
        };
        others.iter().map(|other| other.report).enumerate().map(pair).collect()
    }
}

/// Returns the word for a difference in tables.
pub(crate) fn word(difference: Difference) -> &'static str {
    match difference {
        Difference::Faster => "better",
        Difference::Slower => "worse",
        Difference::NoMeasurableDifference => "no difference",
        Difference::Inconclusive => "inconclusive",
    }
}
