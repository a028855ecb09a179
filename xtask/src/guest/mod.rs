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

use anyhow::{Context, Result, bail};

use image::{Image, Made};
use stage::Stage;

const USAGE: &str = "usage: cargo run -p xtask -- guest image | shell | list | test [NAME…]";

#[derive(Debug, Default)]
pub struct Tier {
    /// Names of the passed checks.
    pub passed: Vec<String>,
    /// Names of the failed checks, with the reason.
    pub failed: Vec<String>,
    /// Reasons why the tests, or some of them, could not run here.
    pub skipped: Vec<String>,
}

/// Runs a command of `xtask guest`; returns whether it succeeded.
pub fn chore(root: &Path, words: &[&str]) -> Result<bool> {
    match words {
        ["image"] => {
            println!("{}", have(root)?.directory.display());
            Ok(true)
        }
        ["shell"] => {
            let image = have(root)?;
            Stage::set(root, &image)?.shell()
        }
        ["list"] => {
            checks::ALL
                .iter()
                .chain(checks::ON_REQUEST)
                .for_each(|check| println!("{}", check.name));
            Ok(true)
        }
        ["test", names @ ..] => {
            let tier = run(root, names)?;
            let (passed, failed) = (tier.passed.len(), tier.failed.len());
            tier.skipped.iter().for_each(|line| println!("SKIP {line}"));
            tier.failed.iter().for_each(|line| println!("FAILED {line}"));
            println!("{passed} passed, {failed} failed, {} skipped", tier.skipped.len());
            Ok(failed == 0)
        }
        _ => bail!(USAGE),
    }
}

/// Runs the checks with these names, or all, in order on one machine.
pub fn run(root: &Path, names: &[&str]) -> Result<Tier> {
    let chosen = checks::choose(names)?;
    let mut tier = Tier::default();
    let image = match image::get(root)? {
        Made::Here(image) => image,
        Made::NotHere(reason) => {
            println!("SKIP guest tier: {reason}");
            tier.skipped.push(format!("guest tier: {reason}"));
            return Ok(tier);
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
                tier.passed.push(check.name.to_owned());
            }
            Err(error) => {
                println!("test {} ... FAILED ({seconds:.0} s)\n{error:#}", check.name);
                println!("{}", stage.evidence());
                tier.failed.push(format!("{}: {error:#}", check.name));
            }
        }
    }
    Ok(tier)
}

fn have(root: &Path) -> Result<Image> {
    match image::get(root)? {
        Made::Here(image) => Ok(image),
        Made::NotHere(reason) => bail!("no guest here: {reason}"),
    }
}

/// Returns cargo's target directory.
fn target_directory(root: &Path) -> Result<std::path::PathBuf> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("reading cargo metadata")?;
    Ok(metadata.target_directory.into_std_path_buf())
}
