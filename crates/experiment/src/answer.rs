//! What an experiment found, in a form that every format can show.

use serde::{Deserialize, Serialize};

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Its name on the command line.
    pub experiment: String,
    /// What was asked.
    pub question: String,
    /// Of what.
    pub target: String,
    /// The kernel that ran it: its release, or the simulated one by its name.
    pub kernel: String,
    /// Seed of all that was random.
    pub seed: u64,
    /// How many times slower than its model a virtual disk ran; all times have it taken out.
    pub dilation: f64,
    /// Whether the figures suffice for an answer.
    pub decided: bool,
    /// The answer, a sentence each.
    pub verdict: Vec<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// The figures as curves.
    pub plots: Vec<Plot>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
    /// The run in the record that the figures come from, if they come from one.
    pub run: Option<i64>,
}

impl Answer {
    /// An answer in which nothing stands yet.
    pub fn new(experiment: &str, question: &str, target: String) -> Self {
        Self {
            experiment: experiment.to_owned(),
            question: question.to_owned(),
            target,
            kernel: host::Machine::read(&host::Root::system())
                .map(|machine| machine.kernel.to_string())
                .unwrap_or_default(),
            seed: 0,
            dilation: 1.0,
            decided: true,
            verdict: Vec::new(),
            tables: Vec::new(),
            plots: Vec::new(),
            notes: Vec::new(),
            run: None,
        }
    }

    /// Says which kernel is simulated, where this machine's has no part in it.
    pub(crate) fn simulated_by(&mut self, machine: &sim::Machine) {
        self.kernel = format!("{} (simulated)", machine.policy);
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, a value for each column.
    pub rows: Vec<Row>,
}

/// A row of a table.
pub type Row = Vec<Value>;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name for programs, with the unit at its end.
    pub key: String,
    /// Its name for people.
    pub title: String,
}

impl Column {
    /// A column with these names.
    pub fn new(key: &str, title: &str) -> Self {
        Self { key: key.to_owned(), title: title.to_owned() }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Nothing was measured.
    None,
    /// A whole number, shown with all its digits.
    Count(u64),
    /// A measurement, shown with three digits that mean something.
    Number(f64),
    /// A word.
    Text(String),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::None }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

/// Curves over one horizontal axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit.
    pub y: String,
    /// Whether the horizontal axis doubles in equal steps.
    pub logarithmic: bool,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it is of.
    pub name: String,
    /// Its points, ascending.
    pub points: Vec<(f64, f64)>,
}
