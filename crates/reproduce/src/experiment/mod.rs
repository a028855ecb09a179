//! The published measurements: one file each, and one line here.

mod adaptive_2006;
mod array_2008;
mod blocks_2002;
mod ext3_2008;
mod md_2012;
mod mirror_2010;
mod sas_2008;
mod three_ware_2008;
mod xfs_2008;

use model::Spec;
use serde::Serialize;

use crate::outcome::{Cell, ModelParameter, Reproduction};
use crate::published::PublishedTable;
use crate::{Published, ReproduceError};

/// Every measurement, in order of publication.
pub static EXPERIMENTS: &[PublishedExperiment] = &[
    blocks_2002::ONE_PROCESS,
    blocks_2002::FOUR_PROCESSES,
    adaptive_2006::EXPERIMENT,
    xfs_2008::EXPERIMENT,
    ext3_2008::FRONT,
    ext3_2008::FULL,
    three_ware_2008::EXPERIMENT,
    sas_2008::EXPERIMENT,
    mirror_2010::EXPERIMENT,
    md_2012::EXPERIMENT,
];

/// A published table that is not simulated, and the reason.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NotSimulated {
    pub table: &'static str,
    pub reason: &'static str,
}

/// Tables of the same sources that are not simulated.
pub static NOT_SIMULATED: &[NotSimulated] = &[
    NotSimulated {
        table: "carey-postgres-3ware",
        reason: "a sequential scan of PostgreSQL at 300 of 390 MB/s is limited by the processor, \
                 which the source does not describe",
    },
    NotSimulated { table: "carey-misc", reason: "single statements, no measurements" },
    NotSimulated { table: "voras-misc", reason: "single statements, no measurements" },
    NotSimulated { table: "mdadm-settings", reason: "settings; their effects are in md-2012" },
];

#[derive(Clone, Copy, Debug)]
pub struct PublishedExperiment {
    /// Name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// The tables of the transcription with the figures.
    pub tables: &'static [&'static str],
    pub(crate) simulate: fn(&PublishedExperiment, Effort) -> Result<Reproduction, ReproduceError>,
}

/// The number of simulations for each figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Number of seeds; each figure is the mean over them.
    pub seeds: u32,
}

impl Default for Effort {
    /// Three seeds, because closed loops synchronise with the rotation of the disks differently
    /// each time.
    fn default() -> Self {
        Self { seeds: 3 }
    }
}

impl Effort {
    fn repeat(
        self,
        mut figure: impl FnMut(u64) -> Result<f64, ReproduceError>,
    ) -> Result<Vec<f64>, ReproduceError> {
        (1..=u64::from(self.seeds.max(1))).map(&mut figure).collect()
    }
}

/// Returns the measurement with this name.
///
/// # Errors
///
/// If there is none.
pub fn named(name: &str) -> Result<&'static PublishedExperiment, ReproduceError> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name).ok_or_else(|| {
        let known: Vec<_> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        ReproduceError::NoTable { name: name.to_owned(), known: known.join(", ") }
    })
}

impl PublishedExperiment {
    /// Simulates all cells.
    ///
    /// # Errors
    ///
    /// If the simulation fails.
    pub fn run(&self, effort: Effort) -> Result<Reproduction, ReproduceError> {
        (self.simulate)(self, effort).map(Reproduction::judged)
    }

    fn begin(&self, effort: Effort) -> Result<Reproduction, ReproduceError> {
        let first = self.tables.first().copied().unwrap_or_default();
        Ok(Reproduction {
            name: self.name,
            title: self.title,
            source: Published::table(first)?.1.to_owned(),
            published_tables: self.tables.to_vec(),
            model: String::new(),
            policy: String::new(),
            setting: "",
            columns: Vec::new(),
            beside: Vec::new(),
            fitted: Vec::new(),
            chosen: Vec::new(),
            fitted_with: None,
            fitted_at_most: 0,
            recommended: None,
            lines: Vec::new(),
            remarks: Vec::new(),
            seeds: effort.seeds.max(1),
        })
    }

    fn table(&self) -> Result<&'static PublishedTable, ReproduceError> {
        Ok(Published::table(self.tables.first().copied().unwrap_or_default())?.0)
    }
}

/// Returns a preset, optionally with changed keys.
fn preset(words: &str) -> Result<Spec, ReproduceError> {
    Ok(Spec::parse(words).map_err(sim::SimError::from)?)
}

/// Returns a parameter of the model by its key.
fn parameter(model: &Spec, key: &str) -> Result<ModelParameter, ReproduceError> {
    let value = model.get(key).map_err(sim::SimError::from)?;
    Ok(ModelParameter { name: key.to_owned(), value })
}

fn parameters(model: &Spec, keys: &[&str]) -> Result<Vec<ModelParameter>, ReproduceError> {
    keys.iter().map(|key| parameter(model, key)).collect()
}

/// Returns a parameter that is not in the model.
fn other(name: &str, value: impl Into<String>) -> ModelParameter {
    ModelParameter { name: name.to_owned(), value: value.into() }
}

/// Cells with a larger error, in percent, are marked as unexplained.
const EXPLAINED_PERCENT: f64 = 20.0;

/// Marks a cell with a large error as unexplained, with the reason if it is known.
fn marked(cell: Cell, reason: Option<&'static str>) -> Cell {
    if cell.error_percent.abs() <= EXPLAINED_PERCENT {
        return cell;
    }
    cell.unexplained(reason.unwrap_or("no reason is known"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_published_table_is_simulated_or_said_not_to_be() {
        let shown = EXPERIMENTS.iter().flat_map(|experiment| experiment.tables.iter().copied());
        let said = NOT_SIMULATED.iter().map(|table| table.table);
        let known: BTreeSet<_> = shown.chain(said).collect();
        let all: BTreeSet<_> =
            Published::all().unwrap().tables.iter().map(|table| table.id.as_str()).collect();
        assert_eq!(known, all);
    }

    #[test]
    fn names_are_unique_and_can_be_asked_for() {
        let names: BTreeSet<_> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        assert_eq!(names.len(), EXPERIMENTS.len());
        for name in names {
            assert_eq!(named(name).unwrap().name, name);
        }
        assert!(named("xfs-2009").unwrap_err().to_string().contains("xfs-2008"));
    }
}
