//! A small study that is its own guard and its own server of virtual disks:
//! `small_study sweep|tune TARGET BASE KIB,KIB,… WORKLOAD,… [TRIAL [REPEATS [FILE_SIZE]]]`. `BASE`
//! contains its state and runtime directories.
//!
//! Tests kill it at random moments. It prints a line for each step, and the analysis as JSON.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::{env, process};

use foreread_study::{
    Budget, Cancel, Environment, Grid, Plan, PlannedWorkload, Progress, ProgressEvent, Repeats,
    Store, Target, sweep, tune,
};
use host::{Dirs, Root};
use tunables::GuardCommand;
use units::Kib;
use vdisk::ServerCommand;
use workload::Workload;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["guard", journal] => tunables::guard_main(&Root::system(), Path::new(journal))
            .map(|_| ())
            .map_err(Into::into),
        ["serve", rest @ ..] => {
            vdisk::serve_main(rest.iter().map(OsString::from)).map_err(Into::into)
        }
        [verb @ ("sweep" | "tune"), target, base, grid, workloads, rest @ ..] => {
            study(verb, target, base, grid, workloads, rest)
        }
        _ => Err("write small_study sweep|tune TARGET BASE KIB,… WORKLOAD,… [TRIAL …]".into()),
    };
    if let Err(error) = result {
        eprintln!("small_study: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            eprintln!("  because {error}");
            cause = error.source();
        }
        process::exit(1);
    }
}

struct Lines;

impl Progress for Lines {
    fn step(&mut self, step: &ProgressEvent) {
        if !matches!(step, ProgressEvent::LaidOut { .. }) {
            let _ = writeln!(io::stdout(), "{step:?}");
        }
    }
}

fn study(
    verb: &str,
    target: &str,
    base: &str,
    grid: &str,
    workloads: &str,
    rest: &[&str],
) -> Result<(), Box<dyn Error>> {
    let mut plan = Plan::new(Target::parse(target)?);
    if grid != "full" {
        let values: Result<Vec<u64>, _> = grid.split(',').map(str::parse).collect();
        plan.read_ahead = Grid::Values(values?.into_iter().map(Kib::new).collect());
    }
    let named: Result<Vec<Workload>, _> = workloads.split(',').map(Workload::named).collect();
    plan.workloads = named?.into_iter().map(PlannedWorkload::goal).collect();
    if let Some(trial) = rest.first() {
        plan.trial = trial.parse()?;
    }
    if let Some(repeats) = rest.get(1) {
        plan.repeats = Repeats::exactly(repeats.parse()?);
    }
    plan.file_size = rest.get(2).map(|size| size.parse()).transpose()?;
    let program = env::current_exe()?;
    let dirs = Dirs::under(base);
    let mut store = Store::open(&dirs.state.join("runs.sqlite"))?;
    let environment = Environment {
        dirs,
        root: Root::system(),
        guard: GuardCommand { program: program.clone(), args: vec!["guard".into()] },
        server: ServerCommand { program, args: vec!["serve".into()] },
        cancel: Cancel::new(),
    };
    let outcome = match verb {
        "sweep" => sweep(&plan, None, false, &mut store, &environment, &mut Lines)?,
        _ => tune(&plan, Budget::minutes(60.0)?, false, &mut store, &environment, &mut Lines)?,
    };
    writeln!(io::stdout(), "run {} complete {}", outcome.run, outcome.complete)?;
    writeln!(io::stdout(), "{}", serde_json::to_string(&outcome.analysis)?)?;
    Ok(())
}
