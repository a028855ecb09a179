//! The command line: one file for each verb, and shared parts.

mod answer;
mod apply;
mod auto;
mod auto_replay;
mod blocks;
mod build_info;
mod calibrate;
mod check;
mod compare;
mod complete;
mod completions;
mod config;
mod dd;
mod demo;
mod doctor;
mod dry_run;
mod examination;
mod experiment;
mod export;
mod fleet;
mod guard;
mod help;
mod import;
mod info;
mod invocation;
mod keys;
mod metrics;
mod models;
mod number;
mod open_files;
mod persist;
mod pg;
mod policy_file;
mod presets;
mod profile;
mod report;
mod reproduce;
mod revert;
mod rollback;
mod run;
mod runs;
mod serve;
mod sim;
mod sim_batch;
mod study_options;
mod sweep;
mod trace;
mod tune;
mod vdisk;
mod vdisk_json;
mod verb_groups;
mod verify;
mod watch;
mod watch_scope;
mod watch_screen;
mod watch_words;
mod workload_args;
mod workloads;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use host::{Dirs, Root};
use sys::input::{self, InputKind};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::config::ConfigFile;
pub use self::invocation::{ColorWhen, Invocation, ResultFile, set_up_early, verb_of};
use crate::exit::Exit;

const AFTER_HELP: &str = "\
Examples:
  foreread doctor                              the current read-ahead, and where it comes from
  foreread tune /srv/data                      the best read-ahead for this directory
  foreread tune virtual:raid10-2008,fs=xfs     the same on a virtual disk array (needs root)
  foreread tune sim:raid10-2008,cache=8G       the same in simulation (without privileges)
  foreread sweep /dev/sdb --vary read_ahead=128K,1M,8M --workload seq-8
  foreread runs                                the runs recorded so far

Sizes need a unit: 128K, 1M or 256s (512-byte sectors). A study restores all settings when it ends,
even if it is killed; after a power loss, run `foreread rollback`.

Exit codes: 0 fine, 1 failed, 2 usage, 3 a setting has drifted or a rule is violated, 4 refused for
safety, 5 inconclusive, 6 not permitted or not supported here, 130 SIGINT, 143 SIGTERM (`serve` and
`watch` run until a signal stops them: 0).";

/// Explain, measure, set and adapt the read-ahead of Linux storage.
#[derive(Debug, Parser)]
#[command(name = "foreread", version, after_help = AFTER_HELP, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Options of every verb.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every verb")]
pub struct Global {
    /// Database of all runs (SQLite); default: runs.sqlite in the state directory, which is
    /// /var/lib/foreread for root and ~/.local/state/foreread for other users
    #[arg(long, global = true, value_name = "FILE", env = "FOREREAD_STORE")]
    pub store: Option<PathBuf>,
    /// When to use colours; auto: on a terminal, subject to NO_COLOR, CLICOLOR_FORCE and CLICOLOR
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, alias = "colour")]
    #[arg(hide_possible_values = true)]
    pub color: ColorWhen,
    /// Print ASCII only; default: if the locale (LC_ALL, LC_CTYPE, LANG) is not UTF-8
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Read the configuration from this file only (docs/book/configuration.md); default: the file
    /// that FOREREAD_CONFIG names, or /etc/foreread.toml and ~/.config/foreread/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print results and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more on stderr; give it twice to print everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(demo::DemoArgs),
    Doctor(doctor::DoctorArgs),
    Check(check::CheckArgs),
    Presets(presets::PresetsArgs),
    Sweep(sweep::SweepArgs),
    Tune(tune::TuneArgs),
    Runs(runs::RunsArgs),
    Report(report::ReportArgs),
    Compare(compare::CompareArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Serve(serve::ServeArgs),
    Fleet(fleet::FleetArgs),
    Models(models::ModelsArgs),
    Calibrate(calibrate::CalibrateArgs),
    Reproduce(reproduce::ReproduceArgs),
    #[command(hide = true)] // old name of `experiment blocks`
    Blocks(blocks::BlocksArgs),
    Experiment(experiment::ExperimentArgs),
    #[command(hide = true)] // old name of `experiment postgres`
    Pg(pg::PgArgs),
    Workloads(workloads::WorkloadsArgs),
    Sim(sim::SimArgs),
    #[command(name = "trace")]
    Trace(trace::TraceArgs),
    Vdisk(vdisk::VdiskArgs),
    Apply(apply::ApplyArgs),
    Persist(persist::PersistArgs),
    Verify(verify::VerifyArgs),
    Watch(watch::WatchArgs),
    Profile(profile::ProfileArgs),
    Auto(auto::AutoArgs),
    Run(run::RunArgs),
    Rollback(rollback::RollbackArgs),
    Info(info::InfoArgs),
    Completions(completions::CompletionsArgs),
    Help(help::HelpArgs),
    #[command(hide = true)]
    Complete(complete::CompleteArgs),
    #[command(hide = true)]
    Guard(guard::GuardArgs),
}

/// Context that every verb receives.
pub struct Context {
    pub global: Global,
    pub dirs: Dirs,
    pub root: Root,
    /// Configuration files that were looked for.
    pub configuration: Vec<ConfigFile>,
}

impl Context {
    /// Returns the file with the record of all runs.
    pub fn store_path(&self) -> PathBuf {
        self.global.store.clone().unwrap_or_else(|| self.dirs.state.join("runs.sqlite"))
    }

    /// Prints a note, unless `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.global.quiet {
            crate::output::note(text);
        }
    }
}

impl Cli {
    /// Runs the verb.
    pub fn run(self, configuration: Vec<ConfigFile>) -> anyhow::Result<Exit> {
        start_log(self.global.verbose);
        declare_tunables()?;
        let (dirs, root) = (Dirs::of_user(), Root::system());
        let context = Context { global: self.global, dirs, root, configuration };
        self.verb.run(&context)
    }
}

impl Verb {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self {
            Self::Demo(verb) => verb.run(context),
            Self::Doctor(verb) => verb.run(context),
            Self::Check(verb) => verb.run(context),
            Self::Presets(verb) => verb.run(context),
            Self::Sweep(verb) => verb.run(context),
            Self::Tune(verb) => verb.run(context),
            Self::Runs(verb) => verb.run(context),
            Self::Report(verb) => verb.run(context),
            Self::Compare(verb) => verb.run(context),
            Self::Import(verb) => verb.run(context),
            Self::Export(verb) => verb.run(context),
            Self::Serve(verb) => verb.run(context),
            Self::Fleet(verb) => verb.run(context),
            Self::Models(verb) => verb.run(),
            Self::Calibrate(verb) => verb.run(context),
            Self::Trace(verb) => verb.run(context),
            Self::Reproduce(verb) => verb.run(),
            Self::Blocks(verb) => verb.run(context),
            Self::Experiment(verb) => verb.run(context),
            Self::Pg(verb) => verb.run(context),
            Self::Workloads(verb) => verb.run(),
            Self::Sim(verb) => verb.run(),
            Self::Vdisk(verb) => verb.run(context),
            Self::Apply(verb) => verb.run(context),
            Self::Persist(verb) => verb.run(context),
            Self::Verify(verb) => verb.run(context),
            Self::Watch(verb) => verb.run(context),
            Self::Profile(verb) => verb.run(context),
            Self::Auto(verb) => verb.run(context),
            Self::Run(verb) => verb.run(context),
            Self::Rollback(verb) => verb.run(context),
            Self::Info(verb) => verb.run(context),
            Self::Completions(verb) => verb.run(),
            Self::Help(verb) => verb.run(),
            Self::Complete(verb) => verb.run(context),
            Self::Guard(verb) => verb.run(context),
        }
    }
}

/// Runs another verb with these words from within a verb.
fn run_words(words: impl IntoIterator<Item = OsString>, context: &Context) -> anyhow::Result<Exit> {
    let words = std::iter::once("foreread".into()).chain(words);
    Cli::try_parse_from(words)?.verb.run(context)
}

/// Registers the tunables that the user declares in TOML, in the file that FOREREAD_TUNABLES names
/// or else in /etc/foreread/tunables.toml.
fn declare_tunables() -> anyhow::Result<()> {
    use anyhow::Context as _;
    let named = std::env::var_os("FOREREAD_TUNABLES").map(PathBuf::from);
    let path = named.clone().unwrap_or_else(|| PathBuf::from("/etc/foreread/tunables.toml"));
    match input::read_text(&path, InputKind::CONFIGURATION) {
        Ok(text) => {
            tunables::declare(&text).with_context(|| format!("in {}", path.display()))?;
            Ok(())
        }
        Err(error) if named.is_none() && error.io_kind() == Some(ErrorKind::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends the log to stderr, filtered by `-v` or, for single crates, by `FOREREAD_LOG`, as in
/// `FOREREAD_LOG=foreread_vdisk=debug,info`.
fn start_log(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let filter = std::env::var("FOREREAD_LOG")
        .ok()
        .and_then(|words| words.parse::<Targets>().ok())
        .unwrap_or_else(|| Targets::new().with_default(level));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(crate::output::stderr)
        .with_target(false)
        .without_time()
        .with_ansi(
            anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never,
        );
    // Fails only in tests, which start a second subscriber in one process: the first one stays.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
}

/// Output format other than that of the terminal.
#[derive(Clone, Debug, Default, Args)]
pub struct Format {
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    pub json: bool,
    /// Print CSV, one row for each cell
    #[arg(long, conflicts_with = "markdown")]
    pub csv: bool,
    /// Print Markdown, to paste into an issue or a wiki
    #[arg(long)]
    pub markdown: bool,
    #[command(flatten)]
    pub file: ResultFile,
}
