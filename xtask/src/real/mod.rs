//! Runs real programs from cold virtual disks, without and with `foreread auto`.
//!
//! `real [--programs A,B] [--disks A,B] [--pairs N] [--most-pairs N] [--windows best|16K,4M]
//! [--what-if auto,16K] [--minutes N] [--scale X] [--binary FILE]` needs root and a release build.
//! `--windows` measures these static windows, and the best one as often as there are pairs;
//! `--what-if` profiles each program once and simulates these settings. `--minutes` limits the time
//! and measures in order of importance: a pair and a profile of every program, then further pairs
//! if earlier ones are disturbed or indecisive, then the rest.
//!
//! All files are below `target/real`; disks and daemons stop with this process, however it exits.
//! Each run is stored in `target/real/runs`, with the CPU time of other work: a later call measures
//! only the runs that are missing for the same commit, and prints all. A pair that other work
//! disturbed is repeated. To add a program, add a line to `programs.txt` and its work to `work.py`.

mod options;
mod processor;
mod programs;
mod samples;
mod schedule;
mod table;
mod trial;
mod workshop;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use options::Options;
use programs::{Program, operations_factor};
use samples::{Arm, ProgramRun};
use schedule::{Deadline, Measurement, Pass};
use table::{ProgramCell, document};
use trial::Bench;
use vdisk::{DiskConfig, VirtualDisk};
use workshop::Workshop;

pub use processor::{MAX_OTHER_PROCESSORS, ProcessorMeter};
pub use workshop::{go_first, run as to_end};

/// Measures the missing runs and prints a table; returns whether all succeeded.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let options = Options::parse(words)?;
    let workshop = Workshop::open(root, options.binary.clone())?;
    let file = workshop.directory.join("runs");
    let commit = workshop.commit()?;
    let deadline = Deadline::new(&options);
    let meter = ProcessorMeter::start();
    if meter.is_none() {
        eprintln!("no control group for processor time: disturbed runs are not recognised");
    }
    let mut study = Study { file, commit, options, deadline, meter, mounted: None, failed: vec![] };
    let passes = schedule::passes(&study.options);
    study.announce(passes[0])?;
    for pass in passes {
        study.pass(&workshop, pass)?;
    }
    study.unmount()?;
    let cells = study.cells()?;
    println!("{}", document(&cells, &study.commit)?);
    for failure in &study.failed {
        eprintln!("failed: {failure}");
    }
    Ok(study.failed.is_empty())
}

/// The measurements of one call.
#[derive(Debug)]
struct Study {
    options: Options,
    /// File in which runs are stored.
    file: PathBuf,
    commit: String,
    deadline: Deadline,
    meter: Option<ProcessorMeter>,
    mounted: Option<MountedDisk>,
    /// Programs that could not be measured, with their disks; they are not tried again.
    failed: Vec<String>,
}

/// A disk with a data set.
#[derive(Debug)]
struct MountedDisk {
    words: String,
    data: &'static str,
    disk: VirtualDisk,
}

impl Study {
    /// Prints how long the first pass will take.
    fn announce(&self, pass: Pass) -> Result<()> {
        let (mut time, mut runs) = (Duration::ZERO, 0);
        let mut last = None;
        for (words, program) in self.places() {
            let cell = self.cell(&words, &program)?;
            let missing = schedule::missing_runs(pass, &self.options, &cell);
            if missing == 0 {
                continue;
            }
            let is_mounted =
                last.replace((words.clone(), program.data)) == Some((words.clone(), program.data));
            time += schedule::duration(missing, &cell, self.dilation(&words)?, is_mounted);
            runs += missing;
        }
        let minutes = time.as_secs_f64() / 60.0;
        eprintln!("{runs} runs are missing, which take about {minutes:.0} minutes");
        Ok(())
    }

    /// Returns all disks with all programs; programs with the same data set are adjacent.
    fn places(&self) -> Vec<(String, Program)> {
        let disks = self.options.disks.iter();
        let programs = |words: &String| {
            let words = words.clone();
            self.options.programs.iter().map(move |program| (words.clone(), *program))
        };
        disks.flat_map(programs).collect()
    }

    /// Performs the measurements of a pass that the deadline allows.
    fn pass(&mut self, workshop: &Workshop, pass: Pass) -> Result<()> {
        for (words, program) in self.places() {
            let mut measured = false;
            while let Some(step) = self.missing(pass, &words, &program)? {
                if let Err(error) = self.measure(workshop, &words, &program, step) {
                    eprintln!("{} on {words}: {error:#}", program.name);
                    self.failed.push(format!("{} on {words}", program.name));
                }
                measured = true;
                if pass == Pass::Needed {
                    break;
                }
            }
            if measured {
                eprintln!("{}", self.cell(&words, &program)?.row());
            }
        }
        Ok(())
    }

    fn missing(&self, pass: Pass, words: &str, program: &Program) -> Result<Option<Measurement>> {
        if self.failed.contains(&format!("{} on {words}", program.name)) {
            return Ok(None);
        }
        let cell = self.cell(words, program)?;
        let Some(step) = schedule::next_step(pass, &self.options, &cell) else { return Ok(None) };
        let is_mounted =
            self.mounted.as_ref().is_some_and(|it| it.words == words && it.data == program.data);
        let time = schedule::duration(step.runs(), &cell, self.dilation(words)?, is_mounted);
        Ok(self.deadline.allows(time).then_some(step))
    }

    fn dilation(&self, words: &str) -> Result<f64> {
        Ok(DiskConfig::parse(words)?.dilation_factor())
    }

    /// Returns the cells that have results.
    fn cells(&self) -> Result<Vec<ProgramCell>> {
        let cells = self.places().into_iter().map(|(words, program)| self.cell(&words, &program));
        let cells: Vec<ProgramCell> = cells.collect::<Result<_>>()?;
        Ok(cells.into_iter().filter(|cell| !cell.is_empty()).collect())
    }

    fn operations(&self, words: &str, program: &Program) -> u64 {
        let operations = program.operations * operations_factor(words);
        (operations as f64 * self.options.scale) as u64
    }

    fn cell(&self, words: &str, program: &Program) -> Result<ProgramCell> {
        let operations = self.operations(words, program);
        let runs = samples::read(&self.file)?;
        Ok(ProgramCell::from_runs(*program, words, operations, &self.commit, &runs))
    }

    fn unmount(&mut self) -> Result<()> {
        match self.mounted.take() {
            Some(mounted) => Ok(mounted.disk.remove()?),
            None => Ok(()),
        }
    }

    /// Mounts a disk with this data set, and removes any other.
    fn mount(&mut self, workshop: &Workshop, words: &str, data: &'static str) -> Result<()> {
        if self.mounted.as_ref().is_some_and(|it| it.words == words && it.data == data) {
            return Ok(());
        }
        self.unmount()?;
        let disk = workshop.disk(words, data)?;
        self.mounted = Some(MountedDisk { words: words.to_owned(), data, disk });
        Ok(())
    }

    /// Runs a pair, or runs a program once with a static window or under a profile.
    fn measure(
        &mut self,
        workshop: &Workshop,
        words: &str,
        program: &Program,
        step: Measurement,
    ) -> Result<()> {
        let operations = self.operations(words, program);
        let is_first = self.cell(words, program)?.is_empty();
        self.mount(workshop, words, program.data)?;
        let Some(MountedDisk { disk, .. }) = &self.mounted else { return Ok(()) };
        let bench = Bench { workshop, disk, meter: self.meter.as_ref(), operations };
        let stored = |arm, seed, sample, simulated| ProgramRun {
            program: program.name.to_owned(),
            disk: words.to_owned(),
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
        if is_first && self.options.disks[0] == words {
            bench.read_libraries(program)?;
        }
        let runs = match step {
            Measurement::Pair(pair) => {
                // A bit of a mixed number is random enough to choose the order.
                let auto_first = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & 1 == 1;
                let arms = [Arm::Default, Arm::Auto];
                let order = if auto_first { [1, 0] } else { [0, 1] };
                order.map(|number| run(arms[number], pair)).into_iter().collect::<Result<_>>()?
            }
            Measurement::Window { kib, seed } => vec![run(Arm::Static(kib), seed)?],
            Measurement::Profile => {
                let settings = self.options.what_if.as_deref().unwrap_or("auto");
                let (sample, simulated) = bench.profile(program, settings, 1)?;
                vec![stored(Arm::Profile, 1, sample, Some(simulated))]
            }
        };
        samples::append(&self.file, &runs)
    }
}
