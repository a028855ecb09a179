//! Chores of the workspace.
//!
//! `cargo run -p xtask -- tidy` checks the rules of the house, `… -- test` runs everything that
//! can be tested on this machine and says what could not, `… -- guest` boots and tests an emulated
//! machine, `… -- tune-vs-grid` compares what `tune` finds with what the full grid finds, and what
//! both take, `… -- coverage` prints how often intervals hold the truth in simulated studies,
//! `… -- advice` what is recommended for every preset.

#![allow(clippy::print_stdout)] // it has no results to keep apart from its talk

mod advice;
mod coverage;
mod guest;
mod suite;
mod tidy;
mod transcript;
mod tune_vs_grid;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo run -p xtask -- tidy | test | guest … | \
                     tune-vs-grid [MODEL…] [--OPTION…] | coverage | advice";

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

/// Does the chore that the command line asks for; whether all is well.
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = repository()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => {
            let complaints = tidy::complaints(&root)?;
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            Ok(complaints.is_empty())
        }
        ["test"] => suite::run(&root),
        ["guest", ref words @ ..] => guest::chore(&root, words),
        ["advice"] => advice::run(&root),
        ["coverage"] => coverage::run(&root),
        ["tune-vs-grid", ref words @ ..] => tune_vs_grid::run(&root, words),
        _ => bail!(USAGE),
    }
}

/// The top of the repository, wherever cargo was started.
fn repository() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).context("xtask is not in a repository")
}
