//! Runs programs with known faults, and their fixed twins, under `foreread profile`.
//!
//! `profile [--disks A,B] [--faults A,B] [--pairs N]` needs root and a C compiler. It creates a
//! virtual disk of each model, profiles each program and its twin from a cold cache, runs both
//! without a profile, and prints a table: whether the expected diagnosis is first and at its line,
//! the predicted saving, the twin's saving, the problems reported for the twin, whether the times
//! add up, and which rows were disturbed by other work. The programs are in
//! `crates/profile/tests/programs`, the cases in `faults.txt`. The profiles are kept as JSON in
//! `target/profile`.

mod cases;
mod group;
mod row;
mod stage;

use std::path::Path;

use anyhow::{Context, Result, bail};

use cases::FaultCase;
use row::FaultRow;
use stage::FaultStage;

const DISKS: &str = "hdd-2008,ssd-sata";

/// Measures and prints the table; returns whether all rows meet the requirements.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let mut disks = DISKS.to_owned();
    let (mut only, mut pairs) = (None, 3);
    for pair in words.chunks(2) {
        match *pair {
            ["--disks", value] => value.clone_into(&mut disks),
            ["--faults", value] => only = Some(value.to_owned()),
            ["--pairs", value] => pairs = value.parse().context("--pairs takes a number")?,
            _ => bail!(
                "usage: cargo run -p xtask -- profile [--disks A,B] [--faults A,B] [--pairs N]"
            ),
        }
    }
    let cases: Vec<FaultCase> = FaultCase::all()?
        .into_iter()
        .filter(|case| only.as_ref().is_none_or(|only| only.split(',').any(|it| it == case.fault)))
        .collect();
    let mut good = true;
    for disk in disks.split(',') {
        let stage = FaultStage::open(root, disk)?;
        println!("### virtual:{disk}\n\n{}", FaultRow::HEAD);
        for case in &cases {
            let row = stage.measure(case, pairs)?;
            good &= row.is_good();
            println!("{row}");
            eprintln!("{disk}: {row}");
        }
        println!();
    }
    Ok(good)
}
