//! `foreread calibrate`.

use std::path::PathBuf;

use clap::Args;
use report::CalibrationReport;
use study::{
    CalibrationResult, CurvePoint, Environment, Grid, Plan, Repeats, Store, StudyError, Target,
    TargetSpec,
};
use tunables::TunableError;
use units::{Bytes, Kib, Nanos};

use super::study_options::{Ran, run};
use super::{Context, number};
use crate::destination::Destination;
use crate::exit::{Exit, bail_usage, usage};
use crate::output;
use crate::progress::StudyProgress;

const AFTER_HELP: &str = "\
Examples:
  foreread calibrate /dev/sdb -o sdb.toml            probe a disk (reads only), write its model
  foreread calibrate /srv/data -o data.toml          the same with an unnamed file in the directory
  foreread calibrate virtual:hdd-2008 -o found.toml  test the probes on a known disk
  foreread sweep sim:sdb.toml --vary policy=linux-6.18,zfs
  foreread tune virtual:sdb.toml,fs=xfs

The probes are random reads near one place, at fixed distances and everywhere, several at a time;
streams at the start, middle and end; and reads across the ends of possible chunks. All of them
bypass the page cache. calibrate then compares the read-ahead curve that the model predicts with
measured points, and prints the error. This part is recorded as a sweep and restores the setting.";

/// Windows at which the prediction is checked, in KiB.
const POINTS_KIB: [u64; 5] = [32, 128, 512, 2048, 8192];

/// Measure a device and write a model of it for sim: and virtual:
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct CalibrateArgs {
    /// What to probe: a file or block device (read only), a directory (an unnamed file is created
    /// in it), virtual:MODEL[,key=value…] or sim:MODEL[,key=value…]
    target: String,
    /// Where to write the model; ends in .toml
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Size of the file that is created in a directory
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    size: Bytes,
    /// Seed of the offsets of random reads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::whole::<u64>)]
    seed: u64,
    /// Only probe the device; do not check the model against points of the read-ahead curve
    #[arg(long)]
    no_check: bool,
    /// How many times each point of the curve is measured
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = number::repeats)]
    repeats: u32,
    /// How long each measurement of the curve lasts; for a virtual disk, in the model's time;
    /// default: as in a sweep
    #[arg(long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
}

impl CalibrateArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = Target::parse(&self.target)?;
        let (name, destination) = self.check()?;
        let ran = run(context, target.is_simulated(), false, |environment, shown| {
            self.work(&target, (&name, &destination), context, environment, shown)
        });
        let (found, curve, run) = match ran? {
            Ran::Done(found, _) => found,
            Ran::Stopped(signal) => return Ok(Exit::Signal(signal)),
        };
        let report = CalibrationReport {
            target: &self.target,
            file: &self.output.display().to_string(),
            found: &found,
            curve: &curve,
            run,
        };
        if self.json {
            output::print_json(&report::calibration_json(&report))?;
        } else {
            output::print(&report::calibration(&report))?;
        }
        Ok(Exit::Fine)
    }

    /// Checks the options before any measurement; returns the model's name and its destination.
    fn check(&self) -> anyhow::Result<(String, Destination)> {
        let path = self.output.display();
        let wrong = |why: &str| Err(usage!("--output {path}: {why}"));
        let name = match self.output.file_name().and_then(|name| name.to_str()) {
            Some(name) if name.ends_with(".toml") && name.len() > 5 => &name[..name.len() - 5],
            _ => return wrong("the name of a model file must end in .toml"),
        };
        if self.output.to_string_lossy().contains([',', '=']) {
            return wrong("with a comma or an equals sign in it, sim: could not load it");
        }
        let destination = Destination::check("--output", &self.output, self.force)?;
        if self.size < Bytes::from_mib(256) || self.size > Bytes::from_gib(1024) {
            bail_usage!("--size {}: must be between 256 MiB and 1 TiB", self.size);
        }
        Ok((name.to_owned(), destination))
    }

    fn work(
        &self,
        target: &Target,
        (name, destination): (&str, &Destination),
        context: &Context,
        environment: &Environment,
        shown: &mut StudyProgress,
    ) -> anyhow::Result<(CalibrationResult, Vec<CurvePoint>, Option<i64>)> {
        // Probing the device takes minutes, so check the plan first.
        self.plan(target, self.size).check()?;
        let found = study::calibrate(target, name, self.size, self.seed, environment, shown)?;
        destination.write(found.calibration.spec.to_toml().as_bytes())?;
        if self.no_check {
            return Ok((found, Vec::new(), None));
        }
        let mut store = Store::open(&context.store_path())?;
        let mut plan = self.plan(target, found.calibration.spec.capacity());
        let mut outcome = study::sweep(&plan, None, true, &mut store, environment, shown);
        if let Err(StudyError::Tunable(TunableError::NotPermitted { .. })) = outcome {
            context.note(
                "note: no permission to set read-ahead, so only its current value is checked",
            );
            plan.read_ahead = Grid::Found;
            outcome = study::sweep(&plan, None, true, &mut store, environment, shown);
        }
        let outcome = outcome?;
        let run = store.load(outcome.run)?;
        let spec = TargetSpec::parse(&self.spec(target))?;
        let curve = study::predict_curve(&spec, &run, &outcome.analysis.cells)?;
        Ok((found, curve, Some(outcome.run.0)))
    }

    /// Returns the sweep whose points are compared with the prediction.
    fn plan(&self, target: &Target, capacity: Bytes) -> Plan {
        let mut plan = Plan::new(target.clone());
        plan.workloads.truncate(2);
        plan.read_ahead = Grid::Values(POINTS_KIB.map(Kib::new).to_vec());
        plan.repeats = Repeats::exactly(self.repeats);
        plan.seed = Some(self.seed);
        plan.trial = self.duration.unwrap_or(plan.trial);
        if matches!(target, Target::Path(path) if path.is_dir()) {
            // Eight files and one more fit into the probed size.
            let mib = Bytes::from_mib(1).get();
            plan.file_size = Some(Bytes::new(capacity.get() / 16 / mib * mib));
        }
        plan
    }

    /// Returns the text after `sim:` that simulates the model with the target's file system.
    fn spec(&self, target: &Target) -> String {
        let path = self.output.display();
        // A name without a slash could be a preset.
        let path = if self.output.is_absolute() { path.to_string() } else { format!("./{path}") };
        let layout = match target {
            Target::Virtual(spec) => spec.value_of("fs"),
            Target::Simulation(spec) => spec.value_of("fs"),
            Target::Path(_) | Target::Imported(_) => None,
        };
        match layout.filter(|layout| ["ext3", "plain"].contains(layout)) {
            Some(layout) => format!("{path},fs={layout}"),
            None => path,
        }
    }
}
