//! The guest tests: foreread on a separate machine, with arrays, volumes and controllers that the
//! host does not have, and with power cuts.
//!
//! QEMU emulates the machine, which needs privileges only to create its image once.
//! `scripts/guest-image` creates its Debian; docs/testing.md explains how to use it interactively.

mod agent;
mod checks;
mod disk;
mod image;
pub mod kernels;
mod machine;
mod payload;
mod readers;
pub mod service;
mod stage;
mod wire;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::test_outcome::TestOutcome;
use image::Made;
use stage::Stage;

const USAGE: &str = "usage: cargo run -p xtask -- guest image | shell | list | test [NAME…]";

/// Runs a command of `xtask guest`; returns whether it succeeded.
pub fn chore(root: &Path, words: &[&str]) -> Result<bool> {
    match words {
        ["image"] => {
            println!("{}", image::get(root)?.here()?.directory.display());
            Ok(true)
        }
        ["shell"] => {
            let image = image::get(root)?.here()?;
            Stage::set(root, &image)?.shell()
        }
        ["list"] => {
            checks::ALL
                .iter()
                .chain(checks::ON_REQUEST)
                .for_each(|check| println!("{}", check.name));
            Ok(true)
        }
        ["test", names @ ..] => Ok(run(root, names)?.report()),
        _ => bail!(USAGE),
    }
}

/// Runs the checks with these names, or all, in order on one machine.
pub fn run(root: &Path, names: &[&str]) -> Result<TestOutcome> {
    let all_started = Instant::now();
    let chosen = checks::choose(names)?;
    let mut outcome = TestOutcome::default();
    let image = match image::get(root)? {
        Made::Here(image) => image,
        Made::NotHere(reason) => {
            println!("SKIP guest tier: {reason}");
            outcome.skipped.push(format!("guest tier: {reason}"));
            return Ok(outcome);
        }
    };
    let mut stage = Stage::set(root, &image)?;
    for check in chosen {
        let started = Instant::now();
        let result = (check.run)(&mut stage);
        let seconds = started.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                println!("test {} ... ok ({seconds:.0} s)", check.name);
                outcome.passed += 1;
            }
            Err(error) => {
                println!("test {} ... FAILED ({seconds:.0} s)", check.name);
                outcome.failed.push(format!("{}: {error:#}\n{}", check.name, stage.evidence()));
            }
        }
    }
    outcome.took("guest tier", all_started);
    Ok(outcome)
}
