//! Chores of the workspace.
//!
//! | command | what it does |
//! |---|---|
//! | `cargo run -p xtask -- tidy` | checks the repository's own rules |
//! | `… -- test` | runs all tests that can run on this machine, and lists the others |
//! | `… -- python` | builds and tests the Python package |
//! | `… -- guest` | boots and tests an emulated machine |
//! | `… -- dist VERSION` | builds all release artefacts |
//! | `… -- packages` | installs, uses and removes the packages of `dist`, and prints tables |
//! | `… -- kernels` | boots several kernels, runs the verbs, writes docs/kernels.md |
//! | `… -- tune-vs-grid` | compares setting and cost of `tune` with those of the full grid |
//! | `… -- coverage` | prints how often confidence intervals contain the true value |
//! | `… -- advice` | prints the recommendation for every preset |
//! | `… -- real` | runs real programs with and without `foreread auto` |
//! | `… -- profile` | profiles programs with known faults and their fixed twins |
//! | `… -- study all DIR` | simulates traces × devices × policies × windows × caches |
//! | `… -- scale [NAME…]` | measures simulations of many traces, their engines and libCacheSim |
//! | `… -- results NAME` | measures a table of docs/results/ and writes it |

#![allow(clippy::print_stdout)] // stdout mixes results and messages

mod binaries;
mod command;
mod dist;
mod guest;
mod leftovers;
mod outcome;
mod packages;
mod profile;
mod python;
mod real;
mod results;
mod study_test;
mod suite;
mod test_outcome;
mod tidy;
mod transcript;
mod tune_vs_grid;
mod verbs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo run -p xtask -- tidy | test | python | guest … | dist … | \
                     packages [SECTION…] | kernels [SERIES…] [RIGHTS…] [VERB…] | \
                     tune-vs-grid [MODEL…] [--OPTION…] | coverage | advice | \
                     study [VERB DIR] | scale [NAME…] | real [--OPTION…] | \
                     profile [--OPTION…] | results NAME…";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the command; returns whether it succeeded.
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = repository()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => all_is_well(&tidy::complaints(&root)?),
        ["test"] => suite::run(&root),
        ["study", ref words @ ..] => python::experiment(&root, "study.py", words),
        ["scale", ref words @ ..] => python::experiment(&root, "scale.py", words),
        ["python"] => Ok(python::run(&root)?.report()),
        ["guest", ref words @ ..] => guest::chore(&root, words),
        ["kernels", ref words @ ..] => guest::kernels::chore(&root, words),
        ["advice"] => study_test::run(&root, &["--test", "advice", "table"]),
        ["dist", ref words @ ..] => dist::chore(&root, words),
        ["packages", ref sections @ ..] => packages::chore(&root, sections),
        ["coverage"] => study_test::run(&root, &["--lib", "coverage::tables"]),
        ["real", ref words @ ..] => real::run(&root, words),
        ["profile", ref words @ ..] => profile::run(&root, words),
        ["results", ref names @ ..] => results::run(&root, names),
        ["tune-vs-grid", ref words @ ..] => tune_vs_grid::run(&root, words),
        _ => bail!(USAGE),
    }
}

/// Prints complaints; returns whether there are none.
fn all_is_well(complaints: &[String]) -> Result<bool> {
    complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
    Ok(complaints.is_empty())
}

/// Returns the top of the repository, independent of the working directory.
fn repository() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).context("xtask is not in a repository")
}
