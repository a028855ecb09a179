//! `foreread profile`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use host::{DevNo, Dirs};
use profile::{
    DeviceModel, FixProof, ModelChoice, PlannedProof, ProfileAnalysis, ProfileRecording,
    ProofChange, ProofStage, RecordTarget, Recorder, ReplaySetting, TextOptions, analyse,
    cold_files, firefox, folded, imported, pprof, profile_json, profile_text, prove,
};
use report::clean::plain;
use units::Nanos;
use vdisk::VirtualDisk;

use super::Context;
use super::apply::guard;
use super::watch_scope::cgroups;
use crate::destination::Destination;
use crate::exit::{Exit, bail_usage, usage};
use crate::output;
use crate::signals::Signals;

/// Smallest number of pairs whose median has a 95 % interval.
const PROOF_PAIRS: u32 = 5;

/// Find where programs wait for storage, why, and what a fix saves
///
/// Records every wait for storage with the program's stack, and what led to it: calls, faults,
/// windows, advice, device requests. Prints the places that cost most, each with the file, the line
/// of code, the cause, a fix and the predicted gain. Recording changes no setting.
///
/// Needs root, or CAP_BPF and CAP_PERFMON. For line numbers, compile with -g and
/// -fno-omit-frame-pointer. If foreread is killed with SIGKILL, COMMAND keeps running.
///
///   foreread profile -- ./import data.csv     a command and its children, until it exits
///   foreread profile -o page.html -- ./import data.csv
///   foreread profile --what-if auto,1M -- ./import data.csv
///   foreread profile --pid 4711 --for 30s     a process
///   foreread profile --system --for 10s       all processes
///   foreread profile --import strace.txt --device hdd-2008
///   foreread profile --explain backward       what a diagnosis means
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct ProfileArgs {
    /// Profile this process and the children that it starts
    #[arg(long, value_name = "PID", group = "whom")]
    pid: Option<u32>,
    /// Profile the processes of this cgroup and those below, as in /proc/PID/cgroup
    #[arg(long, value_name = "PATH", group = "whom")]
    cgroup: Option<String>,
    /// Profile all processes
    #[arg(long, group = "whom")]
    system: bool,
    /// Diagnose what another program recorded: `strace -f -ttt -T -y -k`, `perf script`,
    /// darshan-dxt-parser, or any trace that has the time of each call; `-` is standard input
    #[arg(long, value_name = "FILE", group = "whom")]
    import: Option<PathBuf>,
    /// Format of FILE; default: detected (`foreread trace formats` lists them)
    #[arg(long, value_name = "NAME", requires = "import")]
    format: Option<String>,
    /// Stop after this time; a command gets SIGTERM. Default: until it exits, or Control-C
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<Nanos>,
    /// Predict gains with this device model (`foreread models`) or none; default: the model of a
    /// virtual disk; other devices are measured for half a second with direct reads of the file
    #[arg(long, value_name = "MODEL|none")]
    device: Option<String>,
    /// Predict the run under each of these settings: auto, or a read-ahead such as 1M for all files
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    what_if: Vec<ReplaySetting>,
    /// Print the innermost functions of each place
    #[arg(long)]
    stacks: bool,
    /// Print JSON; the standard output of COMMAND then goes to stderr
    #[arg(long)]
    json: bool,
    /// Write a page: flame graph, files over time, waits and requests
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write waits as folded stacks, in microseconds, for flame graph programs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Write waits, their time and the predicted savings for `go tool pprof`, speedscope and others
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Write waits as markers and weighted samples, and device requests, for the Firefox Profiler
    #[arg(long, value_name = "FILE")]
    firefox: Option<PathBuf>,
    /// Run COMMAND again, cold, with and without each fix that can be applied from outside (advice
    /// dropped, another window, files prefetched, `foreread run`), and print the predicted and the
    /// measured gain; its output is discarded
    #[arg(long)]
    prove: bool,
    /// Run COMMAND again, cold, with and without this file in memory, which shows the most that
    /// fixes of its waits can save
    #[arg(long, value_name = "FILE")]
    ceiling: Option<PathBuf>,
    /// Number of pairs of runs for --prove and --ceiling
    #[arg(long, value_name = "NUMBER", default_value_t = PROOF_PAIRS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pairs: u32,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    /// Print what a diagnosis means, by name or number
    #[arg(long, value_name = "RULE", group = "whom", conflicts_with = "json")]
    explain: Option<String>,
    /// List all diagnoses
    #[arg(long, group = "whom", conflicts_with = "json")]
    list_rules: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", group = "whom")]
    command: Vec<String>,
}

/// Source of a recording.
enum ProfileSource<'a> {
    Live(RecordTarget),
    File(&'a Path),
}

impl ProfileArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if self.list_rules {
            output::print(&profile::list())?;
            return Ok(Exit::Fine);
        }
        if let Some(word) = &self.explain {
            return explain(word);
        }
        if (self.prove || self.ceiling.is_some()) && self.command.is_empty() {
            bail_usage!("--prove and --ceiling run a command again: name it after --");
        }
        let source = match &self.import {
            Some(file) => ProfileSource::File(file),
            None => ProfileSource::Live(self.target(context)?),
        };
        let choice = self.device(&context.dirs)?;
        let page_file = self.destination("--output", self.output.as_ref())?;
        let folded_file = self.destination("--folded", self.folded.as_ref())?;
        let pprof_file = self.destination("--pprof", self.pprof.as_ref())?;
        let firefox_file = self.destination("--firefox", self.firefox.as_ref())?;
        let listen = || Signals::listen().context("cannot listen for signals");
        let (recording, status, signals) = match source {
            ProfileSource::Live(target) => {
                let signals = listen()?;
                let (recording, status) = self.record(target, &signals)?;
                (recording, status, signals)
            }
            ProfileSource::File(file) => {
                // Until the file is read, signals end the program: a pipe may stay without data.
                let recording = imported(file, self.format.clone())?;
                (recording, None, listen()?)
            }
        };
        let analysis = analyse(&recording, &choice, &self.what_if);
        if let Some(file) = page_file {
            file.write(report::profile_html(&recording, &analysis).as_bytes())?;
        }
        if let Some(file) = folded_file {
            file.write(folded(&recording).as_bytes())?;
        }
        if let Some(file) = pprof_file {
            file.write(&pprof(&recording, &analysis))?;
        }
        if let Some(file) = firefox_file {
            file.write(&firefox(&recording, &analysis))?;
        }
        let proofs = self.proofs(context, &recording, &analysis, &signals);
        let proofs = match (proofs, signals.which()) {
            // The error is a consequence of the signal, which sets the exit code.
            (Err(error), Some(signal)) if is_interruption(&error) => {
                return Ok(Exit::Signal(signal));
            }
            (proofs, _) => proofs?,
        };
        self.show(&recording, &analysis, &proofs)?;
        Ok(exit(status))
    }

    fn record(
        &self,
        target: RecordTarget,
        signals: &Signals,
    ) -> anyhow::Result<(ProfileRecording, Option<ExitStatus>)> {
        let most = self.duration.map(|time| Duration::from_nanos(time.get()));
        let mut recorder = Recorder::new(target)?;
        if self.json {
            recorder = recorder.with_output_to_stderr();
        }
        Ok(recorder.record(most, || signals.pending())?)
    }

    fn target(&self, context: &Context) -> anyhow::Result<RecordTarget> {
        if let Some(pid) = self.pid {
            return match context.root.exists(format!("/proc/{pid}")) {
                true => Ok(RecordTarget::Process(pid)),
                false => Err(usage!("there is no process {pid}")),
            };
        }
        if let Some(path) = &self.cgroup {
            let ids = cgroups(&context.root, path)?.into_iter().collect();
            return Ok(RecordTarget::Cgroups(ids));
        }
        if self.system {
            return Ok(RecordTarget::System);
        }
        if self.command.is_empty() {
            bail_usage!("name a command after --, or use --pid, --cgroup, --system or --import");
        }
        Ok(RecordTarget::Command(self.command.clone()))
    }

    fn device(&self, dirs: &Dirs) -> anyhow::Result<ModelChoice> {
        match self.device.as_deref() {
            // An imported recording may be from a device of another machine.
            None if self.import.is_some() => Ok(ModelChoice::None),
            None => Ok(ModelChoice::Measured(virtual_disks(dirs))),
            Some("none") => Ok(ModelChoice::None),
            Some(name) => Ok(ModelChoice::named(name)?),
        }
    }

    fn destination(
        &self,
        option: &'static str,
        path: Option<&PathBuf>,
    ) -> anyhow::Result<Option<Destination>> {
        path.map(|path| Destination::check(option, path, self.force)).transpose()
    }

    /// Runs the command again for --prove and --ceiling.
    fn proofs(
        &self,
        context: &Context,
        recording: &ProfileRecording,
        analysis: &ProfileAnalysis,
        signals: &Signals,
    ) -> anyhow::Result<Vec<FixProof>> {
        let mut planned = Vec::new();
        if self.prove {
            planned = PlannedProof::of_diagnoses(recording, analysis);
            if planned.is_empty() {
                output::note(
                    "nothing to prove: no diagnosis has a fix that can be applied from outside",
                );
            }
        }
        if let Some(file) = &self.ceiling {
            let title = format!("with {} in memory", plain(&file.display().to_string()));
            let change = ProofChange::Cached(file.clone());
            planned.push(PlannedProof { change, title, predicted: None });
        }
        let mut files = cold_files(recording);
        files.extend(self.ceiling.clone());
        let guard = guard()?;
        let stage = ProofStage {
            dirs: context.dirs.clone(),
            root: context.root.clone(),
            foreread: guard.program.clone(),
            guard,
        };
        let proofs = planned.into_iter().map(|PlannedProof { change, title, predicted }| {
            let stop = || signals.pending();
            let runs = prove(&self.command, &change, &files, self.pairs, &stage, stop)?;
            Ok(FixProof {
                title,
                predicted,
                profiled: recording.kept_of.unwrap_or(recording.wall),
                runs,
            })
        });
        proofs.collect()
    }

    fn show(
        &self,
        recording: &ProfileRecording,
        analysis: &ProfileAnalysis,
        proofs: &[FixProof],
    ) -> anyhow::Result<()> {
        if self.json {
            return output::print_json(&profile_json(recording, analysis, proofs));
        }
        let mut text = profile_text(recording, analysis, TextOptions { stacks: self.stacks });
        proofs.iter().for_each(|proof| text.push_str(&proof.text()));
        output::print(&text)
    }
}

/// Returns the models of the existing virtual disks.
fn virtual_disks(dirs: &Dirs) -> BTreeMap<DevNo, DeviceModel> {
    let disks = vdisk::list(dirs).unwrap_or_default();
    let models = disks.into_iter().filter_map(|disk| {
        let disk = VirtualDisk::open(dirs, &disk.name).ok()?;
        Some((disk.devno(), DeviceModel { spec: disk.model().ok()?, dilation: disk.dilation() }))
    });
    models.collect()
}

fn explain(word: &str) -> anyhow::Result<Exit> {
    let Some(rule) = profile::rule_named(word) else {
        let names: Vec<&str> = profile::RULES.iter().map(|rule| rule.name).collect();
        let hint = units::text::hint(word, &names);
        bail_usage!("there is no diagnosis {word:?}: {hint}");
    };
    output::print(&profile::explain(rule))?;
    Ok(Exit::Fine)
}

/// Returns whether a proof stopped because of a signal.
fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(profile::ProfileError::Interrupted))
}

/// Returns the exit code of the command; success if foreread did not start the profiled process.
fn exit(status: Option<ExitStatus>) -> Exit {
    status.filter(|status| !status.success()).map_or(Exit::Fine, Exit::of_command)
}
