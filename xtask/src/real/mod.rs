//! Real programs from cold virtual disks, without and with `foreread auto`.
//!
//! `real [--programs A,B] [--disks A,B] [--pairs N] [--scale X] [--static 4M] [--binary FILE]`
//! needs root and a release build. Everything it makes is below `target/real`; disks and daemons
//! end with it, however it ends. A new program is a line of `programs.rs` and a function of
//! `work.py`.

mod options;
mod programs;
mod table;
mod trial;
mod workshop;

use std::path::Path;

use anyhow::Result;

use options::Options;
use programs::{Program, operations_factor};
use table::{Cell, document};
use trial::{Arm, Bench};
use vdisk::VirtualDisk;
use workshop::Workshop;

/// Runs all pairs, prints a table; whether all went well.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let options = Options::parse(words)?;
    let workshop = Workshop::open(root, options.binary.clone())?;
    let mut cells = Vec::new();
    for disk_words in &options.disks {
        let mut mounted: Option<(&str, VirtualDisk)> = None;
        for program in &options.programs {
            let (data, disk) = match mounted.take() {
                Some(mounted) if mounted.0 == program.data => mounted,
                before => {
                    if let Some((_, disk)) = before {
                        disk.remove()?;
                    }
                    (program.data, workshop.disk(disk_words, program.data)?)
                }
            };
            let cell = measure(&workshop, &options, &disk, disk_words, program);
            mounted = Some((data, disk));
            let cell = cell?;
            eprintln!("{}", cell.row());
            cells.push(cell);
        }
        if let Some((_, disk)) = mounted {
            disk.remove()?;
        }
    }
    println!("{}", document(&cells)?);
    Ok(true)
}

/// All runs of one program on one disk.
fn measure(
    workshop: &Workshop,
    options: &Options,
    disk: &VirtualDisk,
    disk_words: &str,
    program: &Program,
) -> Result<Cell> {
    let operations = program.operations * operations_factor(disk_words);
    let operations = (operations as f64 * options.scale) as u64;
    let bench = Bench { workshop, disk, operations };
    // The first one also reads the program and its libraries.
    bench.run(program, Arm::Default, 0)?;
    let (mut pairs, mut fixed) = (Vec::new(), Vec::new());
    for pair in 1..=options.pairs {
        let run = |arm| bench.run(program, arm, pair);
        // Even and odd bits of a mixed number are as good as a coin here.
        let auto_first = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & 1 == 1;
        let samples = if auto_first {
            let with = run(Arm::Auto)?;
            (run(Arm::Default)?, with)
        } else {
            (run(Arm::Default)?, run(Arm::Auto)?)
        };
        pairs.push(samples);
        if let Some(kib) = options.static_kib {
            fixed.push(run(Arm::Static(kib))?);
        }
    }
    Ok(Cell { program: *program, disk: disk_words.to_owned(), pairs, fixed })
}
