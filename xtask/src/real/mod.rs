//! Real programs from cold virtual disks, without and with `foreread auto`.
//!
//! `real [--programs A,B] [--disks A,B] [--pairs N] [--most-pairs N] [--windows 16K,4M] [--scale X]
//! [--what-if auto,16K] [--binary FILE]` needs root and a release build. `--windows` measures these
//! static windows; `--what-if` profiles each program once and simulates these settings. Everything
//! it makes is below `target/real`; disks and daemons end with it, however it ends. Each run is
//! stored in `target/real/runs`: a later call measures only what is missing for the same commit,
//! and prints all. A new program is a line of `programs.txt` and its work in `work.py`.

mod options;
mod programs;
mod samples;
mod table;
mod trial;
mod workshop;

use std::path::{Path, PathBuf};

use anyhow::Result;

use options::Options;
use programs::{Program, operations_factor};
use samples::{Arm, ProgramRun};
use table::{ProgramCell, document};
use trial::Bench;
use vdisk::VirtualDisk;
use workshop::Workshop;

/// Measures what is missing, prints a table; whether all went well.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let options = Options::parse(words)?;
    let workshop = Workshop::open(root, options.binary.clone())?;
    let study =
        Study { file: workshop.directory.join("runs"), commit: workshop.commit()?, options };
    let mut good = true;
    let mut cells = Vec::new();
    for disk_words in &study.options.disks {
        let mut mounted: Option<(&str, VirtualDisk)> = None;
        for program in &study.options.programs {
            while let Some(step) = study.missing(disk_words, program)? {
                let (data, disk) = match mounted.take() {
                    Some(mounted) if mounted.0 == program.data => mounted,
                    before => {
                        if let Some((_, disk)) = before {
                            disk.remove()?;
                        }
                        (program.data, workshop.disk(disk_words, program.data)?)
                    }
                };
                let measured = study.measure(&workshop, &disk, disk_words, program, step);
                mounted = Some((data, disk));
                if let Err(error) = measured {
                    eprintln!("{} on {disk_words}: {error:#}", program.name);
                    good = false;
                    break;
                }
            }
            let cell = study.cell(disk_words, program)?;
            eprintln!("{}", cell.row());
            if cell.pairs() > 0 || cell.simulated().is_some() {
                cells.push(cell);
            }
        }
        if let Some((_, disk)) = mounted {
            disk.remove()?;
        }
    }
    println!("{}", document(&cells, &study.commit)?);
    Ok(good)
}

/// What one call measures.
#[derive(Debug)]
struct Study {
    options: Options,
    /// Where runs are stored.
    file: PathBuf,
    commit: String,
}

/// What is measured next for a program on a disk.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pair(u64),
    Window(u64),
    Profile,
}

impl Study {
    fn operations(&self, disk_words: &str, program: &Program) -> u64 {
        let operations = program.operations * operations_factor(disk_words);
        (operations as f64 * self.options.scale) as u64
    }

    fn cell(&self, disk_words: &str, program: &Program) -> Result<ProgramCell> {
        let operations = self.operations(disk_words, program);
        let runs = samples::read(&self.file)?;
        Ok(ProgramCell::from_runs(*program, disk_words, operations, &self.commit, &runs))
    }

    fn missing(&self, disk_words: &str, program: &Program) -> Result<Option<Step>> {
        let cell = self.cell(disk_words, program)?;
        let pairs = cell.pairs();
        let wanted = if cell.is_undecided() { self.options.most_pairs } else { 0 };
        let asked = self.options.pairs;
        if pairs < asked.max(if asked == 0 { 0 } else { wanted }) {
            return Ok(Some(Step::Pair(pairs + 1)));
        }
        let window = self.options.windows_kib.iter().find(|kib| !cell.has_window(**kib));
        let profile = self.options.what_if.is_some() && cell.simulated().is_none();
        Ok(window.map(|kib| Step::Window(*kib)).or(profile.then_some(Step::Profile)))
    }

    /// Runs a pair, or a program once with a static window.
    fn measure(
        &self,
        workshop: &Workshop,
        disk: &VirtualDisk,
        disk_words: &str,
        program: &Program,
        step: Step,
    ) -> Result<()> {
        let operations = self.operations(disk_words, program);
        let bench = Bench { workshop, disk, operations };
        let stored = |arm, seed, sample, simulated| ProgramRun {
            program: program.name.to_owned(),
            disk: disk_words.to_owned(),
            commit: self.commit.clone(),
            seed,
            operations,
            arm,
            sample,
            simulated,
        };
        let run = |arm, seed| -> Result<ProgramRun> {
            Ok(stored(arm, seed, bench.run(program, arm, seed)?, None))
        };
        let runs = match step {
            Step::Pair(pair) => {
                if pair == 1 && self.options.disks[0] == disk_words {
                    // This one also reads the program and its libraries.
                    bench.run(program, Arm::Default, 0)?;
                }
                // Even and odd bits of a mixed number are as good as a coin here.
                let auto_first = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & 1 == 1;
                let arms = [Arm::Default, Arm::Auto];
                let order = if auto_first { [1, 0] } else { [0, 1] };
                order.map(|number| run(arms[number], pair)).into_iter().collect::<Result<_>>()?
            }
            Step::Window(kib) => vec![run(Arm::Static(kib), 1)?],
            Step::Profile => {
                let settings = self.options.what_if.as_deref().unwrap_or("auto");
                let (sample, simulated) = bench.profile(program, settings, 1)?;
                vec![stored(Arm::Profile, 1, sample, Some(simulated))]
            }
        };
        samples::append(&self.file, &runs)
    }
}
