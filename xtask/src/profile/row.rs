//! Compares the profile of a program with its twin.

use std::fmt;

use serde_json::Value;

use super::cases::FaultCase;

/// Maximum relative error of a predicted saving, compared with the twin's saving.
const MAX_ERROR: f64 = 0.25;
/// Maximum share of the threads' time that may be unaccounted for.
const MAX_UNACCOUNTED: f64 = 0.02;
/// Minimum saving, as a share of the run, that must be predicted.
const MIN_GAIN: f64 = 0.05;

/// A row of the table.
#[derive(Clone, Debug)]
pub struct FaultRow {
    name: String,
    expected: String,
    first: String,
    is_line_right: Option<bool>,
    run_s: f64,
    predicted_s: Option<f64>,
    /// Reason for a missing prediction.
    reason: String,
    gain_s: f64,
    /// Problems reported for the twin.
    twin: Vec<String>,
    unaccounted: f64,
    is_disturbed: bool,
}

fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(f64::NAN)
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

/// Returns the share of the threads' time that no part accounts for: by the sum of the parts, and
/// by the time of the run, which a single-threaded program fills.
fn unaccounted(profile: &Value) -> f64 {
    let parts = ["waited_s", "cpu_s", "runnable_s", "other_s"].map(|key| number(profile, key));
    let threads = number(profile, "threads_s");
    let of_threads = (parts.iter().sum::<f64>() - threads).abs() / threads;
    // Several threads have more time than the run.
    of_threads.max((1.0 - threads / number(profile, "wall_s")).max(0.0))
}

impl FaultRow {
    pub const HEAD: &str = "| program | diagnosis first | line | run s | predicted s | twin saves s\
                            | predicted / twin | reported for the twin | not accounted |\n\
                            |---|---|---|---:|---:|---:|---:|---|---:|";

    pub fn new(
        case: &FaultCase,
        disk: &str,
        line: Option<usize>,
        profile: &Value,
        twin: &Value,
        (plain, fixed): (&[f64], &[f64]),
    ) -> Self {
        let first = &profile["diagnoses"][0];
        let gain = &first["gain"];
        let problems = twin["diagnoses"].as_array().into_iter().flatten();
        let problems = problems.filter(|one| one["is_problem"] == true);
        let source = &first["location"]["source"];
        let is_line_right = line.map(|line| {
            let is_file = source[0].as_str().is_some_and(|it| it.ends_with(case.language.source()));
            is_file && source[1] == line
        });
        Self {
            name: format!("{} ({:?})", case.fault, case.language),
            expected: case.rule(disk).to_owned(),
            first: first["rule"].as_str().unwrap_or("nothing").to_owned(),
            is_line_right,
            run_s: median(plain),
            predicted_s: gain["saved_s"].as_f64(),
            reason: gain["not_predictable"].as_str().unwrap_or("nothing is reported").to_owned(),
            gain_s: median(plain) - median(fixed),
            twin: problems.filter_map(|one| Some(one["rule"].as_str()?.to_owned())).collect(),
            unaccounted: unaccounted(profile),
            is_disturbed: false,
        }
    }

    /// Returns the row marked as disturbed by other work on this machine.
    #[must_use]
    pub fn disturbed(self) -> Self {
        Self { is_disturbed: true, ..self }
    }

    fn ratio(&self) -> Option<f64> {
        Some(self.predicted_s? / self.gain_s)
    }

    /// Returns whether the row meets all requirements; a fault whose twin reads less or other data
    /// needs no prediction.
    pub fn is_good(&self) -> bool {
        let is_predicted = match self.ratio() {
            Some(ratio) => (ratio - 1.0).abs() <= MAX_ERROR,
            None => self.gain_s < MIN_GAIN * self.run_s || !is_avoidable(&self.reason),
        };
        self.first == self.expected
            && self.is_line_right != Some(false)
            && is_predicted
            && self.twin.is_empty()
            && self.unaccounted <= MAX_UNACCOUNTED
    }
}

/// Returns whether a prediction should have been possible, given the reason why there is none.
fn is_avoidable(reason: &str) -> bool {
    ["the replay", "it depends on mapped pages"].iter().any(|start| reason.starts_with(start))
}

impl fmt::Display for FaultRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = match self.first == self.expected {
            true => self.first.clone(),
            false => format!("**{}**, not {}", self.first, self.expected),
        };
        let line = match self.is_line_right {
            Some(true) => "right",
            Some(false) => "**wrong**",
            None => "–",
        };
        let predicted = match self.predicted_s {
            Some(seconds) => format!("{seconds:.2}"),
            None => format!("none: {}", self.reason),
        };
        let ratio = self.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let twin = if self.twin.is_empty() { "nothing".to_owned() } else { self.twin.join(", ") };
        let disturbed = if self.is_disturbed { ", disturbed" } else { "" };
        write!(
            f,
            "| {}{disturbed} | {first} | {line} | {:.2} | {predicted} | {:.2} | {ratio} | {twin} \
             | {:.1} % |",
            self.name,
            self.run_s,
            self.gain_s,
            100.0 * self.unaccounted
        )
    }
}
