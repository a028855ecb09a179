//! Measures whether `tune` finds the best setting of the full grid, and how much faster.
//!
//! Each model's full grid is swept and then tuned, in separate stores, with one reader and with
//! eight. The setting that `tune` chose is judged by the grid's figures: the geometric mean, over
//! the workloads, of throughput relative to the best throughput of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

const MODELS: [&str; 4] = ["raid10-2008", "hdd-2008", "cloud-hdd", "nvme"];
const WORKLOADS: &str = "seq-8,seq-1";
const REPEATS: &str = "3";
/// Minimum score of `tune` relative to the grid's best, and maximum share of the grid's time.
const MIN_RATIO_TO_GRID: f64 = 0.97;
const MAX_SHARE_OF_GRID_TIME: f64 = 0.25;

/// Prints a line for each of `models` (all four if none is named); returns whether all are good.
/// Words that start with `-` are options for both `sweep` and `tune`, such as `--duration=1s`.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let (options, named): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('-'));
    let models = if named.is_empty() { MODELS.to_vec() } else { named };
    println!("model          grid s  tune s  share  chosen KiB  grid's best KiB  reached");
    let mut good = true;
    for model in models {
        let line = compare(root, model, &options)?;
        let share = line.tune_seconds / line.grid_seconds;
        good &= line.reached >= MIN_RATIO_TO_GRID && share <= MAX_SHARE_OF_GRID_TIME;
        println!(
            "{model:13} {:7.0} {:7.0} {:5.1}%  {:>10}  {:>15}  {:6.1}%",
            line.grid_seconds,
            line.tune_seconds,
            share * 100.0,
            line.chosen,
            line.best,
            line.reached * 100.0
        );
    }
    Ok(good)
}

struct Line {
    grid_seconds: f64,
    tune_seconds: f64,
    chosen: u64,
    best: u64,
    reached: f64,
}

fn compare(root: &Path, model: &str, options: &[&str]) -> Result<Line> {
    let grid = study(root, "sweep", model, &[&["--repeats", REPEATS], options].concat())?;
    let tune = study(root, "tune", model, &[&["--budget", "600"], options].concat())?;
    let scores = scores(&grid)?;
    let (best, top) = scores
        .iter()
        .max_by(|a, b| a.1.total_cmp(b.1))
        .map(|(kib, score)| (*kib, *score))
        .context("the grid has no cells")?;
    // If no setting differs, tune keeps the current one.
    let chosen =
        tune["recommendation"]["best"]["read_ahead_kib"].as_u64().or(tune["current_kib"].as_u64());
    let chosen = chosen.with_context(|| format!("tune chose nothing for {model}"))?;
    let score = scores.get(&chosen).with_context(|| format!("{chosen} KiB is not in the grid"))?;
    let seconds = |run: &Value| run["measured_seconds"].as_f64().unwrap_or(f64::NAN);
    Ok(Line {
        grid_seconds: seconds(&grid),
        tune_seconds: seconds(&tune),
        chosen,
        best,
        reached: score / top,
    })
}

/// Returns the geometric mean of relative throughputs for each setting.
fn scores(run: &Value) -> Result<BTreeMap<u64, f64>> {
    let cells = run["cells"].as_array().context("the run has no cells")?;
    let cell = |cell: &Value| {
        Some((
            cell["workload"].as_str()?.to_owned(),
            cell["settings"]["read_ahead_kib"].as_u64()?,
            cell["throughput_mib_s"]["median"].as_f64()?,
        ))
    };
    let cells: Vec<(String, u64, f64)> = cells.iter().filter_map(cell).collect();
    let mut best: BTreeMap<&str, f64> = BTreeMap::new();
    for (workload, _, throughput) in &cells {
        let top = best.entry(workload).or_default();
        *top = top.max(*throughput);
    }
    let mut logs: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (workload, kib, throughput) in &cells {
        logs.entry(*kib).or_default().push((throughput / best[workload.as_str()]).ln());
    }
    logs.retain(|_, logs| logs.len() == best.len());
    let mean = |logs: Vec<f64>| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    Ok(logs.into_iter().map(|(kib, logs)| (kib, mean(logs))).collect())
}

/// Runs a study until it exits, and parses its output.
fn study(root: &Path, verb: &str, model: &str, options: &[&str]) -> Result<Value> {
    let program: PathBuf = root.join("target/release/foreread");
    let store = root.join(format!("target/tune-vs-grid-{verb}.sqlite"));
    let output = Command::new(&program)
        .args([verb, &format!("virtual:{model},fs=xfs"), "--workload", WORKLOADS, "--json"])
        .arg("--fresh")
        .arg("--store")
        .arg(&store)
        .args(options)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}: run make build first", program.display()))?;
    // Exit code 5 means inconclusive; the figures are still printed.
    if !matches!(output.status.code(), Some(0 | 5)) {
        bail!("foreread {verb} virtual:{model} ended with {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("reading what foreread printed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_scored_by_all_workloads_relative_to_their_best() {
        let cell = |workload, kib, median: f64| {
            serde_json::json!({
                "workload": workload,
                "settings": {"read_ahead_kib": kib},
                "throughput_mib_s": {"median": median},
            })
        };
        let cells = [
            cell("a", 4, 50.0),
            cell("a", 128, 100.0),
            cell("b", 4, 8.0),
            cell("b", 128, 4.0),
            cell("a", 512, 100.0),
        ];
        let scores = scores(&serde_json::json!({ "cells": cells })).unwrap();
        assert!((scores[&4] - 0.5f64.sqrt()).abs() < 1e-12);
        assert!((scores[&128] - 0.5f64.sqrt()).abs() < 1e-12);
        assert!(!scores.contains_key(&512), "measured under one workload only");
    }
}
