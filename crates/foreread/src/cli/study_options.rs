//! Options of `sweep` and `tune`, and the study that they define.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use host::page_size;
use report::RunReport;
use strum::VariantArray;
use study::{
    Design, Environment, Factor, Grid, Plan, Repeats, RunId, Store, StudyError, StudyOutcome,
    StudyPurpose, Target,
};
use tunables::{GuardCommand, Vary};
use units::{Bytes, Kib, Nanos};
use vdisk::ServerCommand;
use workload::TraceReplay;

use super::workload_args::{self, WorkloadContext, WorkloadOptions};
use super::{Context, Format, number};
use crate::exit::{Exit, bail_usage};
use crate::json_lines::TrialLinePrinter;
use crate::output;
use crate::progress::StudyProgress;
use crate::signals::Signals;

/// Options of a study.
#[derive(Debug, Args)]
pub struct StudyOptions {
    /// What to measure: a directory or mount point (files are created in it and removed), a file or
    /// block device (only read), virtual:MODEL[,key=value…] or sim:MODEL[,key=value…] (`foreread
    /// models` lists the models, `foreread sim keys` the keys of a simulation)
    pub target: String,
    /// Values to measure instead of the grid from one page to 64 MiB, as in
    /// read_ahead=4K,128K,1M; repeat it for each tunable to vary (tune varies read-ahead only)
    #[arg(long, value_name = "TUNABLE=VALUE[,VALUE…]")]
    pub vary: Vec<Vary>,
    /// Workloads: names (`foreread workloads` lists them), TOML files, trace:FILE to replay a trace
    /// (`foreread trace --help`), fio:FILE for a job file of fio, dd:bs=SIZE for streaming reads at
    /// the beginning, middle and end, bonnie++, or cmd:'…' for any command (must be the last of an
    /// argument). If streams are among them, random reads only show what a setting costs; alone,
    /// they are the goal
    #[arg(long, value_name = "NAME[,NAME…]", default_value = "seq-1,seq-8,rand-pread,rand-mmap")]
    pub workload: Vec<String>,
    /// How the storage is used. database: random reads, by pread and of mapped files, weigh as much
    /// as streams; mmap: random reads of mapped files do; streaming: losses of random reads are
    /// only reported; mixed: if random reads lose much, the recommendation gets a condition
    #[arg(long, alias = "for", value_name = "PURPOSE", default_value_t)]
    #[arg(value_parser = words::<StudyPurpose>())]
    pub purpose: StudyPurpose,
    #[command(flatten)]
    pub outside: WorkloadOptions,
    /// Exact number of trials for each cell; fewer than 5 give a range instead of an interval.
    /// Default: 3, and 5 to 9 for the settings that matter, depending on noise
    #[arg(long, value_name = "N", value_parser = number::repeats)]
    pub repeats: Option<u32>,
    /// Seed of all randomness; default: a random one, which is recorded
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    pub seed: Option<u64>,
    /// Length of a trial; for a virtual disk, in the model's time; default: 2s, less for a virtual
    /// disk that runs more than five times slower than its model
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Size of each file that is created; default: chosen for the target
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Limit the page cache of a trial to this size, with a control group (in a simulation: the
    /// size of its cache)
    #[arg(long, value_name = "SIZE")]
    pub memory_limit: Option<Bytes>,
    /// For simulated targets: compare each setting with the limits (the lower bound, a read-ahead
    /// that knows the future, the best sequence of settings); always on for traces
    #[arg(long)]
    pub limits: bool,
    /// Start from the beginning, even if an interrupted run of the same command could be resumed
    #[arg(long)]
    pub fresh: bool,
    /// Drop the caches of the whole machine before each trial, which slows down all its users;
    /// without it, only the files read are evicted, and the eviction is verified
    #[arg(long)]
    pub drop_caches: bool,
    /// Change nothing; print what would be written and undone, what would run, and for how long
    #[arg(short = 'n', long, conflicts_with_all = ["json", "csv", "markdown", "json_lines"])]
    pub dry_run: bool,
    /// Print a line of JSON after each trial, then the document of --json as the last line
    #[arg(long, conflicts_with_all = ["json", "csv", "markdown"])]
    pub json_lines: bool,
    /// Print the table and the recommendation only, without plots
    #[arg(long, conflicts_with_all = ["json", "csv", "markdown", "json_lines"])]
    pub brief: bool,
    #[command(flatten)]
    pub format: Format,
    /// How the levels of several tunables are combined.
    #[arg(skip)]
    pub design: Design,
}

/// Parses the name of a variant.
pub fn words<T>() -> impl TypedValueParser<Value = T>
where
    T: Clone + Display + Send + Sync + VariantArray,
{
    let variant = |word: String| T::VARIANTS.iter().find(|it| it.to_string() == word).cloned();
    PossibleValuesParser::new(T::VARIANTS.iter().map(T::to_string))
        .map(move |word| variant(word).expect("a possible value"))
}

impl StudyOptions {
    /// Builds the plan from these options.
    pub fn plan(&self, context: &Context) -> anyhow::Result<Plan> {
        let target = Target::parse(&self.target)?;
        let mut plan = Plan::new(target);
        self.add_variation(&mut plan, context)?;
        plan.design = self.design;
        let chosen = workload_args::planned(&self.workload, &self.choice(&plan, context))?;
        plan.workloads = chosen.workloads;
        plan = plan.for_purpose(self.purpose);
        if let Some(repeats) = self.repeats {
            plan.repeats = Repeats::exactly(repeats);
        }
        if self.limits && !matches!(plan.target, Target::Simulation(_)) {
            bail_usage!("--limits needs a simulated target, as in sim:hdd-2008");
        }
        if plan.workloads.iter().any(|planned| planned.workload.replay.is_some()) {
            plan.trial = replay_time(&plan.target, plan.trial);
        }
        if self.duration == Some(Nanos::ZERO) {
            bail_usage!("--duration 0s leaves nothing to measure");
        }
        let own = chosen.runtime.filter(|_| self.duration.is_none());
        if let Some(runtime) = own {
            context.note(&format!("trials last {runtime}, as set by the job file: --duration"));
        }
        plan.trial = self.duration.or(own).unwrap_or(plan.trial);
        plan.seed = self.seed;
        plan.drop_caches = self.drop_caches;
        plan.file_size = self.size;
        plan.memory_limit = self.memory_limit;
        // Check the plan before anything is recorded.
        plan.check()?;
        Ok(plan)
    }

    fn choice<'a>(&'a self, plan: &Plan, context: &'a Context) -> WorkloadContext<'a> {
        let simulated = matches!(plan.target, Target::Simulation(_));
        WorkloadContext { context, options: &self.outside, simulated, size: self.size }
    }

    /// Adds the variation: read-ahead varies by its grid, every other tunable as a factor.
    fn add_variation(&self, plan: &mut Plan, context: &Context) -> anyhow::Result<()> {
        let mut read_ahead = false;
        for vary in &self.vary {
            let name = vary.tunable.name();
            let known = plan.factors.iter().any(|factor| factor.tunable == name);
            if known || (read_ahead && name == "read_ahead") {
                bail_usage!("{name} is varied twice: give all its values at once");
            }
            if name == "read_ahead" {
                plan.read_ahead = Grid::Values(self.values(vary, context)?);
                read_ahead = true;
                continue;
            }
            let mut vary = vary.clone();
            let notes = vary.validate(page_size())?;
            notes.iter().for_each(|note| context.note(&format!("note: {note}")));
            let show = |value| vary.tunable.show(value);
            let levels = vary.values.iter().map(show).collect();
            plan.factors.push(Factor { tunable: name.to_owned(), levels });
        }
        if !plan.factors.is_empty() && !read_ahead {
            plan.read_ahead = Grid::Found;
        }
        Ok(())
    }

    fn values(&self, vary: &Vary, context: &Context) -> anyhow::Result<Vec<Kib>> {
        let mut values = Vec::new();
        for value in &vary.values {
            let checked = vary.tunable.validate(value, page_size())?;
            checked.notes.iter().for_each(|note| context.note(&format!("note: {note}")));
            let bytes = checked.value.bytes().context("read-ahead is an amount of data")?;
            values.push(bytes.to_kib_floor());
        }
        Ok(values)
    }

    /// Runs the study, as `sweep` or `tune`, and prints the result.
    pub fn conduct(
        &self,
        context: &Context,
        study: impl FnOnce(
            &Plan,
            &mut Store,
            &Environment,
            &mut StudyProgress,
        ) -> Result<StudyOutcome, StudyError>,
    ) -> anyhow::Result<Exit> {
        let plan = self.plan(context)?;
        let mut store = Store::open(&context.store_path())?;
        let simulated = plan.target.is_simulated();
        let ran = run(context, simulated, self.json_lines, |environment, shown| {
            study(&plan, &mut store, environment, shown)
        });
        let (mut outcome, signals) = match ran? {
            Ran::Done(outcome, signals) => (outcome, signals),
            Ran::Stopped(signal) => return Ok(Exit::Signal(signal)),
        };
        if outcome.complete && (self.limits || replays_in_simulation(&plan)) {
            let run = store.load(outcome.run)?;
            context.note("computing limits …");
            outcome.analysis.limits = study::limits(&plan, &run.workloads, run.seed)?;
        }
        self.print_result(context, &store, &outcome)?;
        Ok(match signals.which() {
            Some(signal) if !outcome.complete => Exit::Signal(signal),
            _ if outcome.analysis.recommendation.is_inconclusive() => Exit::Inconclusive,
            _ => Exit::Fine,
        })
    }

    fn print_result(
        &self,
        context: &Context,
        store: &Store,
        outcome: &StudyOutcome,
    ) -> anyhow::Result<()> {
        let run = store.load(outcome.run)?;
        let report = RunReport { run: &run, analysis: &outcome.analysis };
        match self.json_lines {
            true => output::print_json_line(&report::json(&report))?,
            false if self.brief => {
                output::print(&report::terminal_brief(&report, output::look()))?;
            }
            false => print(&report, &self.format)?,
        }
        if !outcome.complete {
            context.note("interrupted: settings were restored; the same command resumes the run");
        }
        context.note(&recorded(outcome.run, store.path()));
        Ok(())
    }
}

/// Returns the default length of a replay: its whole length in simulation, at most 30 s on storage.
fn replay_time(target: &Target, usual: Nanos) -> Nanos {
    const MAX_SIMULATED_TIME: Nanos = Nanos::from_secs(7 * 24 * 3600);
    const MAX_REPLAY_TIME: Nanos = Nanos::from_secs(30);
    match target {
        Target::Simulation(_) => MAX_SIMULATED_TIME,
        Target::Path(_) => MAX_REPLAY_TIME,
        _ => usual,
    }
}

/// Returns whether a trace is replayed in simulation. One trial then suffices, and the result shows
/// the cost of each setting in requests, waiting and waste.
fn replays_in_simulation(plan: &Plan) -> bool {
    // The limits need all requests in memory, which is impossible for a streamed trace.
    let fits = |replay: &TraceReplay| !replay.is_streamed();
    let mut replays = plan.workloads.iter().filter_map(|it| it.workload.replay.as_ref()).peekable();
    replays.peek().is_some() && replays.all(fits) && matches!(plan.target, Target::Simulation(_))
}

fn recorded(run: RunId, store: &Path) -> String {
    format!("run {run} is recorded in {}: foreread runs show {run}", store.display())
}

/// How measurements ended.
pub enum Ran<T> {
    Done(T, Signals),
    /// By this signal.
    Stopped(i32),
}

/// Runs measurements, with a line of JSON for each trial if `json_lines`.
pub fn run<T, E: Into<anyhow::Error>>(
    context: &Context,
    simulated: bool,
    json_lines: bool,
    measure: impl FnOnce(&Environment, &mut StudyProgress) -> Result<T, E>,
) -> anyhow::Result<Ran<T>> {
    let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
    if simulated {
        signals.end_computing().context("cannot listen for signals")?;
    }
    let environment = environment(context, &signals)?;
    let lines = json_lines.then(|| TrialLinePrinter::new(signals.flag()));
    let mut shown = StudyProgress::new(context.global.quiet, lines);
    let result = measure(&environment, &mut shown);
    shown.finish();
    if let Some(failure) = shown.failure() {
        return Err(failure);
    }
    match (result, signals.which()) {
        // After a signal, errors are a consequence of the signal, which is reported instead.
        (Err(_), Some(signal)) => Ok(Ran::Stopped(signal)),
        (result, _) => Ok(Ran::Done(result.map_err(Into::into)?, signals)),
    }
}

/// Prints a run in the chosen format.
pub fn print(report: &RunReport<'_>, format: &Format) -> anyhow::Result<()> {
    if format.json {
        output::print_json(&report::json(report))
    } else if format.csv {
        output::with_stdout(|out| report::write_csv(report, out))
    } else if format.markdown {
        output::print_document(&report::markdown(report))
    } else {
        output::print(&report::terminal(report, output::look()))
    }
}

/// Creates the environment of a study from this process.
fn environment(context: &Context, signals: &Signals) -> anyhow::Result<Environment> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(Environment {
        dirs: context.dirs.clone(),
        root: context.root.clone(),
        guard: GuardCommand { program: program.clone(), args: vec!["guard".into()] },
        server: ServerCommand { program, args: vec!["vdisk".into(), "serve".into()] },
        cancel: signals.flag().into(),
    })
}

#[cfg(test)]
mod tests {
    use host::{Dirs, Root};
    use study::Role;

    use super::*;
    use crate::cli::Global;

    fn planned(words: &[&str]) -> anyhow::Result<Vec<study::PlannedWorkload>> {
        let global = Global { quiet: true, ..Global::default() };
        let (dirs, root) = (Dirs::of_user(), Root::system());
        let context = Context { global, dirs, root, configuration: Vec::new() };
        let options = WorkloadOptions::default();
        let choice =
            WorkloadContext { context: &context, options: &options, simulated: false, size: None };
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(workload_args::planned(&words, &choice)?.workloads)
    }

    fn roles(words: &[&str]) -> Vec<Role> {
        planned(words).unwrap().iter().map(|planned| planned.role).collect()
    }

    #[test]
    fn random_reads_are_a_price_beside_streams_and_a_goal_alone() {
        assert_eq!(roles(&["seq-8", "rand-mmap"]), [Role::Goal, Role::Cost]);
        assert_eq!(roles(&["rand-mmap", "rand-pread"]), [Role::Goal, Role::Goal]);
        assert_eq!(roles(&["mixed"]), [Role::Goal]);
    }

    #[test]
    fn the_same_workload_twice_is_a_mistake() {
        assert!(planned(&["seq-1", "seq-1"]).is_err());
        assert!(planned(&["seq-1,seq-1"]).is_err());
    }
}
