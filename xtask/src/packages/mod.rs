//! Tests the packages of `dist` as users do, and prints the tables of docs/results/packages.md:
//! `cargo run -p xtask -- packages [SECTION…]`. Needs root, mmdebstrap, a Debian mirror and dnf.

mod checks;
mod chroot;
mod conditions;
mod installs;
mod speed;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::dist::{Release, manifest_version};
use crate::guest::service;

const SECTIONS: [&str; 6] = ["sizes", "checks", "installs", "conditions", "systemd", "speed"];

/// Prints the named sections, or all; returns whether nothing failed.
pub fn chore(root: &Path, sections: &[&str]) -> Result<bool> {
    if let Some(unknown) = sections.iter().find(|section| !SECTIONS.contains(section)) {
        bail!("there is no section {unknown}; sections: {}", SECTIONS.join(", "));
    }
    let wanted = |section| sections.is_empty() || sections.contains(&section);
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let version = manifest_version(&manifest).context("Cargo.toml has no version")?;
    let release = Release::of(root, version)?;
    let mut good = true;
    let mut print = |title: &str, (text, met): (String, bool)| {
        println!("## {title}\n\n{text}");
        good &= met;
    };
    if wanted("sizes") {
        print("Sizes", (checks::sizes(&release)?, true));
    }
    if wanted("checks") {
        print("Checks", checks::table(&release)?);
    }
    if wanted("speed") {
        print("Static against glibc", speed::table(&release)?);
    }
    if !["installs", "conditions", "systemd"].into_iter().any(&wanted) {
        return Ok(good);
    }
    let packages = installs::Packages::prepare(&release)?;
    if wanted("installs") {
        print("Installed, used, upgraded, removed", installs::table(&release, &packages)?);
    }
    if wanted("conditions") {
        print("Where something is missing", conditions::table(&release, &packages)?);
    }
    if wanted("systemd") {
        let (first, next) = (packages.path("first.deb"), packages.path("next.deb"));
        print("Under systemd", service::table(root, first, next)?);
    }
    Ok(good)
}
