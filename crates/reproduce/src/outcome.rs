//! A reproduction: published and simulated figures side by side, with the checked claims.

use serde::Serialize;

use crate::score::{
    ScoredSetting, error_percent, interior_minimum, mean_error_percent, rank_correlation,
    recommend, worst_error_percent,
};

/// A published table with the simulator's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    pub name: &'static str,
    pub title: &'static str,
    pub source: String,
    /// The tables of the transcription that it covers.
    pub published_tables: Vec<&'static str>,
    /// Device, as in `sim:`.
    pub model: String,
    /// Read-ahead algorithm, as in `--vary policy=`.
    pub policy: String,
    /// Meaning and unit of the rows.
    pub setting: &'static str,
    /// Columns for which a setting is recommended.
    pub columns: Vec<Column>,
    /// Other columns, without a recommendation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Column>,
    /// Fitted parameters.
    pub fitted: Vec<ModelParameter>,
    /// Parameters chosen among a few possibilities.
    pub chosen: Vec<ModelParameter>,
    /// The table whose fit is used unchanged; `None` if this table has its own.
    pub fitted_with: Option<&'static str>,
    /// Number of parameters that the reference fitted for this table.
    pub fitted_at_most: usize,
    /// The setting that the simulation recommends.
    pub recommended: Option<f64>,
    /// The checked claims.
    pub lines: Vec<CheckedClaim>,
    pub remarks: Vec<&'static str>,
    /// Number of seeds; each figure is the mean over them.
    pub seeds: u32,
}

#[derive(Clone, Debug, Serialize)]
pub struct Column {
    pub name: &'static str,
    pub unit: &'static str,
    pub cells: Vec<Cell>,
    /// Mean of |ln(simulated ÷ published)|, in percent.
    pub mean_error_percent: f64,
    /// The same without unexplained cells.
    pub mean_error_explained_percent: f64,
    pub rank_correlation: Option<f64>,
    /// Loss of the recommended setting compared with the best published one, in percent.
    pub regret_percent: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Setting, in the unit of the rows.
    pub setting: f64,
    /// Name of a row without a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'static str>,
    pub published: f64,
    /// Mean of the simulated figures over the seeds.
    pub simulated: f64,
    /// Minimum and maximum over the seeds.
    pub simulated_range: [f64; 2],
    pub error_percent: f64,
    /// Reason for a large error; `None` if the error is small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<&'static str>,
}

/// A parameter of the model or the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelParameter {
    pub name: String,
    /// Value with unit.
    pub value: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct CheckedClaim {
    pub claim: String,
    pub value: f64,
    /// Lower limit, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Upper limit, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    pub holds: bool,
    /// True if the reproduction fails without this claim; otherwise it is only shown.
    pub required: bool,
}

/// Maximum regret of a recommendation, in percent.
const REGRET_MAX_PERCENT: f64 = 5.0;

impl Cell {
    /// Creates a cell whose figure was simulated once for each seed.
    pub fn new(setting: f64, published: f64, simulated: &[f64]) -> Self {
        let mean = simulated.iter().sum::<f64>() / simulated.len().max(1) as f64;
        let low = simulated.iter().copied().fold(f64::INFINITY, f64::min);
        let high = simulated.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self {
            setting,
            label: None,
            published,
            simulated: mean,
            simulated_range: [low, high],
            error_percent: error_percent(published, mean),
            unexplained: None,
        }
    }

    /// Returns the cell with a name for its row.
    pub fn labelled(self, label: &'static str) -> Self {
        Self { label: Some(label), ..self }
    }

    /// Returns the cell with the reason for its error.
    pub fn unexplained(self, why: &'static str) -> Self {
        Self { unexplained: Some(why), ..self }
    }

    fn pair(&self) -> (f64, f64) {
        (self.published, self.simulated)
    }
}

impl Column {
    pub fn new(name: &'static str, unit: &'static str, cells: Vec<Cell>) -> Self {
        let all: Vec<_> = cells.iter().map(Cell::pair).collect();
        let explained: Vec<_> =
            cells.iter().filter(|cell| cell.unexplained.is_none()).map(Cell::pair).collect();
        Self {
            name,
            unit,
            mean_error_percent: mean_error_percent(&all),
            mean_error_explained_percent: mean_error_percent(&explained),
            rank_correlation: rank_correlation(&all),
            regret_percent: None,
            cells,
        }
    }

    /// Returns the largest error of any explained cell, in percent.
    pub fn worst_error_percent(&self) -> f64 {
        let explained = self.cells.iter().filter(|cell| cell.unexplained.is_none());
        worst_error_percent(&explained.map(Cell::pair).collect::<Vec<_>>())
    }

    /// Returns the setting at which the simulated curve dips; `None` without a dip.
    pub fn interior_minimum(&self) -> Option<f64> {
        let mut points: Vec<_> =
            self.cells.iter().map(|cell| (cell.setting, cell.simulated)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        interior_minimum(&points)
    }
}

impl CheckedClaim {
    /// Claims that `value` is at most `limit`.
    pub fn at_most(claim: impl Into<String>, value: f64, limit: f64) -> Self {
        let holds = value <= limit;
        Self {
            claim: claim.into(),
            value,
            at_least: None,
            at_most: Some(limit),
            holds,
            required: true,
        }
    }

    /// Claims that `value` is at least `limit`.
    pub fn at_least(claim: impl Into<String>, value: f64, limit: f64) -> Self {
        let holds = value >= limit;
        Self {
            claim: claim.into(),
            value,
            at_least: Some(limit),
            at_most: None,
            holds,
            required: true,
        }
    }

    /// Claims that `value` is between two limits, inclusive.
    pub fn within(claim: impl Into<String>, value: f64, low: f64, high: f64) -> Self {
        let holds = (low..=high).contains(&value);
        let (at_least, at_most) = (Some(low), Some(high));
        Self { claim: claim.into(), value, at_least, at_most, holds, required: true }
    }

    /// Returns the claim as not required: it is shown, but does not affect the result.
    pub fn beside(self) -> Self {
        Self { required: false, ..self }
    }
}

impl Reproduction {
    /// Computes the recommendation of the simulation; higher figures are better. All columns share
    /// one setting, because a device has only one. Adds the claims about regret and about the
    /// number of fitted parameters.
    pub(crate) fn judged(mut self) -> Self {
        let candidates = self.candidates();
        if let Some((setting, regret)) = recommend(&candidates) {
            self.recommended = Some(setting);
            for (column, regret) in self.columns.iter_mut().zip(&regret) {
                column.regret_percent = Some(*regret);
            }
            let worst = regret.iter().copied().fold(0.0, f64::max);
            let claim = "regret of the recommended setting (%)";
            self.lines.push(CheckedClaim::at_most(claim, worst, REGRET_MAX_PERCENT));
        }
        let (count, most) = (self.fitted.len() as f64, self.fitted_at_most as f64);
        self.lines.push(CheckedClaim::at_most("fitted parameters", count, most));
        self
    }

    /// Returns the settings at which every column has a published figure.
    fn candidates(&self) -> Vec<ScoredSetting> {
        let Some(first) = self.columns.first() else { return Vec::new() };
        let at = |setting: f64| {
            let figures = self.columns.iter().map(|column| {
                column.cells.iter().find(|cell| cell.setting == setting).map(Cell::pair)
            });
            let figures = figures.collect::<Option<Vec<_>>>()?;
            Some(ScoredSetting { setting, figures })
        };
        first.cells.iter().filter_map(|cell| at(cell.setting)).collect()
    }

    /// Returns whether all required claims hold.
    pub fn holds(&self) -> bool {
        self.lines.iter().all(|line| line.holds || !line.required)
    }
}
