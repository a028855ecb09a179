//! The results of runs, in a file with one line of JSON per run, so that a table may combine
//! several invocations.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::processor::MAX_OTHER_PROCESSORS;

/// The conditions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    Default,
    Auto,
    /// A static window, in KiB.
    #[serde(rename = "static_kib")]
    Static(u64),
    /// Without `auto`, under `foreread profile`, which simulates other settings.
    Profile,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramSample {
    /// Wall time in model time: divided by the disk's dilation.
    pub seconds: f64,
    pub device_bytes: u64,
    pub device_reads: u64,
    /// Time with requests at the device, in model time.
    pub busy_seconds: f64,
    /// Number of CPUs that other work kept busy during the run, on average; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processors: Option<f64>,
}

impl ProgramSample {
    /// Returns whether other work on this machine may have slowed the run.
    pub fn is_disturbed(&self) -> bool {
        self.other_processors.is_some_and(|other| other > MAX_OTHER_PROCESSORS)
    }
}

/// The simulator's results for a profiled program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Time without a setting ÷ time with it, by setting: `auto` or a window.
    pub ratios: BTreeMap<String, f64>,
    /// Reason why there are no ratios.
    pub not_predictable: Option<String>,
}

impl Simulated {
    /// Computes the ratios for work that took `seconds` of the profiled run; the rest, such as the
    /// start of Python, does not belong to the program.
    pub fn of(document: &serde_json::Value, seconds: f64) -> Self {
        let table = &document["what_if"];
        let not_predictable = table["not_predictable"].as_str().map(str::to_owned);
        let settings = table["settings"].as_array().into_iter().flatten();
        let settings = settings.filter(|row| row["is_certain"].as_bool().unwrap_or(true));
        let ratios = settings.filter_map(|row| {
            let saved = document["wall_s"].as_f64()? - row["wall_s"].as_f64()?;
            Some((row["setting"].as_str()?.to_owned(), seconds / (seconds - saved)))
        });
        Self { ratios: ratios.collect(), not_predictable }
    }
}

/// One run: program, disk, conditions and result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramRun {
    pub program: String,
    pub disk: String,
    /// Commit of the `foreread` that served the disk and ran as `auto`.
    pub commit: String,
    /// Seed that determines what the program reads; the same in both runs of a pair.
    pub seed: u64,
    pub operations: u64,
    pub arm: Arm,
    pub sample: ProgramSample,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
}

/// Returns all runs in the file; none if it does not exist.
pub fn read(file: &Path) -> Result<Vec<ProgramRun>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let runs = text.lines().enumerate().map(|(number, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}:{}: not a run", file.display(), number + 1))
    });
    runs.collect()
}

/// Appends runs to the file.
pub fn append(file: &Path, runs: &[ProgramRun]) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    for run in runs {
        writeln!(file, "{}", serde_json::to_string(run)?).context("storing a run")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_the_work_alone() {
        let document = serde_json::json!({
            "wall_s": 5.0,
            "what_if": { "settings": [
                { "setting": "auto", "wall_s": 3.0, "is_certain": true },
                { "setting": "16 KiB", "wall_s": 3.0, "is_certain": false },
            ] },
        });
        let simulated = Simulated::of(&document, 4.0);
        assert!((simulated.ratios["auto"] - 2.0).abs() < 1e-9);
        assert_eq!(simulated.ratios.len(), 1, "what is uncertain is left out");
        let document = serde_json::json!({ "what_if": { "not_predictable": "why" } });
        assert_eq!(Simulated::of(&document, 4.0).not_predictable.as_deref(), Some("why"));
    }

    #[test]
    fn runs_survive_the_file() {
        let sample = ProgramSample {
            seconds: 1.5,
            device_bytes: 4096,
            device_reads: 1,
            busy_seconds: 0.5,
            other_processors: Some(0.25),
        };
        assert!(sample.is_disturbed());
        let run = |arm| ProgramRun {
            program: "tar".to_owned(),
            disk: "hdd-2008,dilation=4".to_owned(),
            commit: "c".to_owned(),
            seed: 3,
            operations: 7,
            arm,
            sample,
            simulated: (arm == Arm::Profile).then(|| Simulated {
                ratios: BTreeMap::from([("auto".to_owned(), 1.5)]),
                not_predictable: None,
            }),
        };
        let runs = [run(Arm::Default), run(Arm::Auto), run(Arm::Static(512)), run(Arm::Profile)];
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("samples");
        assert!(read(&file).unwrap().is_empty());
        append(&file, &runs[..1]).unwrap();
        append(&file, &runs[1..]).unwrap();
        assert_eq!(read(&file).unwrap(), runs);
        append(&file, &[]).unwrap();
        let old = fs::read_to_string(&file).unwrap().replace(",\"other_processors\":0.25", "");
        fs::write(&file, old).unwrap();
        assert!(read(&file).unwrap().iter().all(|run| run.sample.other_processors.is_none()));
        fs::write(&file, "{}\n").unwrap();
        assert!(read(&file).is_err());
    }
}
