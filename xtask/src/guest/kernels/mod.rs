//! Tests foreread on common kernels: boots each of them, runs the verbs with different rights, and
//! writes docs/kernels.md.

mod cells;
mod document;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::cells::RIGHTS;
use super::disk::{Bus, Disk};
use super::image::{self, Image};
use super::machine::{GuestMachine, Hardware, tail};
use super::payload;
use crate::command::target_directory;
use crate::verbs::{self, Systems, TriedVerb};

/// A kernel series, and the Debian release that contains it.
#[derive(Debug)]
pub struct KernelSeries {
    pub series: &'static str,
    pub release: &'static str,
}

pub const KERNELS: &[KernelSeries] = &[
    KernelSeries { series: "5.10", release: "Debian 11" },
    KernelSeries { series: "6.1", release: "Debian 12" },
    KernelSeries { series: "6.12", release: "Debian 13" },
];

/// Path of [`DATA`] in the guest.
pub const DATA_PATH: &str = "/dev/disk/by-id/virtio-data";
const DATA: Disk = Disk { serial: "data", bus: Bus::Virtio, mib: 384 };

/// `xtask kernels [SERIES…] [RIGHTS…] [VERB…]`: tests these kernels, rights and verbs, or all of
/// them; returns whether no cell failed. The document contains the last result of every cell.
pub fn chore(root: &Path, words: &[&str]) -> Result<bool> {
    let is_series = |word: &&&str| KERNELS.iter().any(|one| one.series == **word);
    let is_right = |word: &&&str| RIGHTS.iter().any(|one| one.key == **word);
    let (series, others): (Vec<&str>, Vec<&str>) = words.iter().partition(is_series);
    let (rights, names): (Vec<&str>, Vec<&str>) = others.iter().partition(is_right);
    let is_verb = |word: &&str| verbs::tried_in(Systems::Guests).any(|verb| verb.name == *word);
    if let Some(unknown) = names.iter().find(|word| !is_verb(word)) {
        let known: Vec<&str> = RIGHTS.iter().map(|one| one.key).collect();
        bail!("{unknown} is no kernel, verb or right; rights: {}", known.join(", "));
    }
    for kernel in KERNELS.iter().filter(|one| series.is_empty() || series.contains(&one.series)) {
        let image = image::of_kernel(root, kernel.series)?.here()?;
        let started = Instant::now();
        try_kernel(root, &image, kernel, &rights, &names)?;
        println!("kernel {}: {:.0} s", kernel.series, started.elapsed().as_secs_f64());
    }
    write_document(root)
}

fn write_document(root: &Path) -> Result<bool> {
    let (text, failures) = document::format(&all_results(root)?);
    fs::write(root.join("docs/kernels.md"), text).context("writing docs/kernels.md")?;
    println!("docs/kernels.md is written; {failures} cells FAIL");
    Ok(failures == 0)
}

/// Returns the last results of each tested kernel.
fn all_results(root: &Path) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for kernel in KERNELS {
        if let Ok(text) = fs::read_to_string(results_file(root, kernel)?) {
            all.push(serde_json::from_str(&text).context("results of an earlier run")?);
        }
    }
    Ok(all)
}

fn results_file(root: &Path, kernel: &KernelSeries) -> Result<PathBuf> {
    Ok(target_directory(root)?.join(format!("guest/results-{}.json", kernel.series)))
}

/// Returns a machine with fresh disks; one has these files, or foreread if there are none.
pub fn hardware(
    root: &Path,
    image: &Image,
    name: &str,
    files: &[(&str, PathBuf)],
) -> Result<Hardware> {
    let mut hardware = Hardware::new(root, image, name)?;
    if files.is_empty() {
        payload::pack(root, &mut hardware)?;
    } else {
        payload::pack_files(files, &mut hardware)?;
    }
    hardware.add(DATA)?;
    Ok(hardware)
}

/// Boots a kernel with foreread installed.
pub fn boot(root: &Path, image: &Image, series: &str) -> Result<GuestMachine> {
    let hardware = hardware(root, image, &format!("kernel-{series}"), &[])?;
    let boot = || -> Result<GuestMachine> {
        let mut machine = hardware.boot()?;
        cells::set_up(&mut machine)?;
        Ok(machine)
    };
    boot().with_context(|| format!("the end of the console:\n{}", tail(&hardware.console())))
}

fn try_kernel(
    root: &Path,
    image: &Image,
    kernel: &KernelSeries,
    rights: &[&str],
    names: &[&str],
) -> Result<()> {
    let mut machine = boot(root, image, kernel.series)?;
    let running = machine.sh("uname -r")?.trim().to_owned();
    let build = cells::build(&mut machine)?;
    println!("kernel {}: {running} has booted", kernel.series);
    let path = results_file(root, kernel)?;
    let earlier = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
    let mut results = earlier.unwrap_or_else(|| json!({ "cells": {} }));
    results["series"] = kernel.series.into();
    results["release"] = kernel.release.into();
    results["kernel"] = running.into();
    for rights in RIGHTS.iter().filter(|one| rights.is_empty() || rights.contains(&one.key)) {
        machine.sh(rights.prepare)?;
        if rights.key == "root" {
            results["signals"] = cells::signals(&mut machine)?;
            results["mechanisms"] = cells::mechanisms(&mut machine)?;
        }
        let is_chosen = |verb: &&TriedVerb| names.is_empty() || names.contains(&verb.name);
        for verb in verbs::tried_in(Systems::Guests).filter(is_chosen) {
            let result = cells::run(&mut machine, rights, verb)?;
            println!("{} {} / {}: {result}", kernel.series, verb.name, rights.name);
            results["cells"][rights.key][verb.name] =
                json!({ "result": result.word(), "line": result.line(), "build": build });
            // Writes after each verb, so that an interrupted run keeps its results.
            fs::write(&path, format!("{results:#}\n"))
                .with_context(|| format!("writing {}", path.display()))?;
        }
    }
    machine.shut_down()
}
