//! The result of an experiment, in a form that every output format can present.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The experiment's name on the command line.
    pub experiment: String,
    pub question: String,
    pub target: String,
    /// The kernel's release, or the name of the simulated kernel.
    pub kernel: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Factor by which a virtual disk ran slower than its model; 1 for other targets. All times are
    /// already in the model's time.
    pub dilation: f64,
    /// Whether the figures suffice for a verdict.
    pub decided: bool,
    pub verdict: Vec<String>,
    pub tables: Vec<ResultTable>,
    pub plots: Vec<ResultPlot>,
    /// Notes on the figures.
    pub notes: Vec<String>,
    /// The recorded run that contains the figures; `None` if there is none.
    pub run: Option<i64>,
}

impl Findings {
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

    /// Sets the simulated kernel, because this machine's kernel does not affect the figures.
    pub fn set_simulated_by(&mut self, machine: &sim::SimMachine) {
        self.kernel = format!("{} (simulated)", machine.policy);
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultTable {
    pub title: String,
    pub columns: Vec<ResultColumn>,
    /// The rows; each has one value per column.
    pub rows: Vec<Vec<ResultValue>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultColumn {
    /// The machine-readable name, with the unit as suffix.
    pub key: String,
    pub title: String,
}

impl ResultTable {
    /// Creates a table without rows; each column has a key and a title.
    pub fn new(title: impl Into<String>, columns: &[(&str, &str)]) -> Self {
        let column = |(key, title): &(&str, &str)| ResultColumn {
            key: (*key).to_owned(),
            title: (*title).to_owned(),
        };
        let columns = columns.iter().map(column).collect();
        Self { title: title.into(), columns, rows: Vec::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResultValue {
    None,
    /// A whole number, shown with all digits.
    Count(u64),
    /// A measurement, shown with three significant digits.
    Number(f64),
    Text(String),
}

impl From<f64> for ResultValue {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::None }
    }
}

impl From<u64> for ResultValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<&str> for ResultValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ResultValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<ResultValue>> From<Option<T>> for ResultValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultPlot {
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// Whether the horizontal axis is logarithmic.
    pub logarithmic: bool,
    pub curves: Vec<ResultCurve>,
}

impl ResultPlot {
    /// Creates a plot without curves, with a linear axis.
    pub fn new(title: impl Into<String>, x: &str, y: &str) -> Self {
        Self {
            title: title.into(),
            x: x.to_owned(),
            y: y.to_owned(),
            logarithmic: false,
            curves: Vec::new(),
        }
    }

    /// Creates a plot without curves, with a logarithmic horizontal axis.
    pub fn logarithmic(title: impl Into<String>, x: &str, y: &str) -> Self {
        Self { logarithmic: true, ..Self::new(title, x, y) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultCurve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}
