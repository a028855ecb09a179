//! Tests the claims of `foreread auto` on virtual disks. Prints one line per claim: what was
//! measured, and whether the claim was met. Needs root, FUSE, loop devices, some minutes and an
//! idle machine.
//!
//! ```text
//! cargo bench -p foreread --bench auto                  all sections
//! cargo bench -p foreread --bench auto -- open mapped   some sections
//! ```
#![allow(clippy::unwrap_used)] // a benchmark may panic
#![allow(clippy::print_stdout)] // its numbers are its result

mod cost;
mod limited;
mod mapped;
mod open;
mod postgres;
#[path = "../../tests/program/mod.rs"]
mod program;
mod readers;
mod stage;

use std::process::ExitCode;

/// A claim about `auto`, and whether the measurement met it.
pub struct Claim {
    text: String,
    met: bool,
}

impl Claim {
    fn new(text: String, met: bool) -> Self {
        Self { text, met }
    }
}

type Section = (&'static str, fn() -> Vec<Claim>);

const SECTIONS: [Section; 5] = [
    ("open", open::prove),
    ("mapped", mapped::prove),
    ("limited", limited::prove),
    ("cost", cost::prove),
    ("postgres", postgres::prove),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "read") {
        readers::main(&words[1..]);
        return ExitCode::SUCCESS;
    }
    let known = |word: &String| SECTIONS.iter().any(|(name, _)| name == word);
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        println!("there is no {unknown}: {:?}", SECTIONS.map(|(name, _)| name));
        return ExitCode::FAILURE;
    }
    if let Err(lack) = vdisk::availability(vdisk::Filesystem::Ext4) {
        println!("SKIP: {lack}");
        return ExitCode::SUCCESS;
    }
    let mut all = true;
    for (name, prove) in SECTIONS {
        if !words.is_empty() && !words.iter().any(|word| word == name) {
            continue;
        }
        println!("{name}:");
        for claim in prove() {
            println!("  {}: {}", if claim.met { "met" } else { "NOT MET" }, claim.text);
            all &= claim.met;
        }
    }
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
