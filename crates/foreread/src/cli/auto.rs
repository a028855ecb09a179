//! `foreread auto`.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actuate::{AccessRule, AccessRules};
use anyhow::{Context as _, anyhow};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use daemon::{
    Daemon, DecisionLog, DecisionRecord, LiveBackend, LiveConfig, NewFileWindow, PrimedFiles,
    RecordingBackend, Reporter, SessionHeader, SessionWriter, Status, StatusPublisher,
    UnprivilegedBackend, quoted, unit,
};
use host::{page_size, resolve};
use observe::ObserveError;
use sys::input::{self, InputKind};
use units::text::plain;
use units::{Bytes, Nanos};

use super::Context;
use super::auto_replay::AutoReplayArgs;
use super::metrics::{are_metrics, status_path};
use crate::destination::Destination;
use crate::exit::{Exit, bail_usage};
use crate::output;
use crate::signals::Signals;

/// Adapt read-ahead per open file, automatically
///
/// Observes the readers of a device or file system, as `foreread watch` does, and sets the window
/// of each open file, including files that are already open. It enlarges a window if readers wait
/// and the larger window makes them faster. It reduces a window if pages are evicted unused, or if
/// a mapping is read at random. It prefetches where the kernel does not: strided and backward
/// reads, small files that are read one after another, and files that are read at random and fit
/// into the cache. Each action is printed as one line: what was done, why, and how to undo it. On
/// exit, auto restores the previous window of every open file.
///
///   foreread auto /srv/data --dry-run     print what it would do
///   foreread auto /srv/data --only user:postgres --max 4M
///   foreread auto /srv/data --ab-test 10s measure the effect: on and off in random order
///   foreread auto status                  its current state and its last decisions
///   foreread auto /srv/data --record FILE for `foreread auto replay FILE`
///   foreread auto /srv/data --emit systemd > /etc/systemd/system/foreread-auto.service
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true)]
pub struct AutoArgs {
    #[command(subcommand)]
    question: Option<Question>,
    /// Directories, mount points or devices
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    #[command(flatten)]
    control: Control,
    /// Exit after this time [default: run until a signal]
    #[arg(long, alias = "for", value_name = "TIME")]
    duration: Option<Nanos>,
    /// Change only open files that match: pid:N, user:NAME, cgroup:/PATH, exe:/PATH or mount:/PATH
    #[arg(long, value_name = "RULE")]
    only: Vec<AccessRule>,
    /// Never change open files that match; same syntax as --only
    #[arg(long, value_name = "RULE")]
    except: Vec<AccessRule>,
    /// Also raise the device's window, which files get when they are opened, while streams gain by
    /// it. Mappings that are read at random are much slower if they get such a window
    #[arg(long, conflicts_with_all = ["only", "except"])]
    new_files: bool,
    /// Has no effect: this is the default
    #[arg(long, hide = true, conflicts_with = "new_files")]
    no_new_files: bool,
    /// Read the rest of this file, or of the files below this directory, as soon as they are read
    /// at random, if they fit into half of the cache
    #[arg(long, value_name = "PATH", conflicts_with = "no_prefetch")]
    prime: Vec<PathBuf>,
    /// Alternate between adapting and doing nothing, in slots of this length in random order, and
    /// report the effect; stop if adapting makes readers slower
    #[arg(long, alias = "try", value_name = "TIME")]
    ab_test: Option<Nanos>,
    /// Print a service unit for this command line and exit
    #[arg(long, value_enum, value_name = "KIND")]
    emit: Option<Emit>,
}

/// Options of `auto` and `run`.
#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("output_file").args(["metrics", "record"]).multiple(true)))]
pub(super) struct Control {
    /// Change nothing; print what would be done while the readers are watched
    #[arg(short = 'n', long, alias = "advise")]
    dry_run: bool,
    /// Largest window that any open file gets
    #[arg(long, value_name = "SIZE", default_value = "8M")]
    max: Bytes,
    /// Set windows only; do not prefetch
    #[arg(long)]
    no_prefetch: bool,
    /// Do not prefetch for open files under POSIX_FADV_RANDOM, even if their reads are predictable
    #[arg(long)]
    respect_advice: bool,
    /// Time between decisions
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: Nanos,
    /// Do not restore windows on exit
    #[arg(long, alias = "leave")]
    no_restore: bool,
    /// Print each decision as a line of JSON
    #[arg(long)]
    json: bool,
    /// Write Prometheus metrics to this file, for the textfile collector of node_exporter
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Record all observations and decisions in this file, for `foreread auto replay`; recording
    /// stops at 1 GiB
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Overwrite the file of --record, and that of --metrics even if another program wrote it
    #[arg(long, requires = "output_file")]
    force: bool,
}

/// Requests to a running daemon.
#[derive(Clone, Debug, Subcommand)]
enum Question {
    /// Show the daemon's present state, what it has measured, and its last decisions
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Replay a file of --record, and show why each decision was made
    Replay(AutoReplayArgs),
}

/// Output of `--emit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// A service unit
    Systemd,
}

impl Control {
    /// Returns the interval between decisions.
    ///
    /// # Errors
    ///
    /// Returns a usage error if the interval or `--max` is out of range.
    pub fn interval(&self) -> anyhow::Result<Duration> {
        let interval = Duration::from_nanos(self.interval.get());
        if interval < Duration::from_millis(20) || interval > Duration::from_secs(60) {
            bail_usage!("--interval {}: must be between 20 ms and 60 s", self.interval);
        }
        if !(Bytes::from_kib(64)..=Bytes::from_gib(1)).contains(&self.max) {
            bail_usage!("--max {}: must be between 64K and 1G", self.max);
        }
        Ok(interval)
    }

    /// Starts to publish the status, also to the file of `--metrics` if given.
    ///
    /// # Errors
    ///
    /// If the metrics file must not be written.
    pub fn publisher(&self, context: &Context) -> anyhow::Result<StatusPublisher> {
        let check = |path| Destination::check_or_own("--metrics", path, self.force, are_metrics);
        let metrics = self.metrics.as_deref().map(check).transpose()?;
        if metrics.as_ref().is_some_and(|destination| destination.path().is_none()) {
            bail_usage!("--metrics -: name a file");
        }
        let metrics = metrics.map(|mut destination| -> Box<dyn FnMut(&str)> {
            Box::new(move |text| drop(destination.publish(text)))
        });
        Ok(StatusPublisher::new(status_path(&context.dirs), metrics))
    }

    pub fn session(&self, new_files: bool, ab_test: Option<(Nanos, u64)>) -> SessionHeader {
        let header = SessionHeader::new(self.dry_run, new_files, self.no_restore, page_size());
        SessionHeader { ab_test, ..header }
    }

    /// Opens the recording, if `--record` is given.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, or exists and must not be overwritten.
    pub fn recording(&self) -> anyhow::Result<Option<SessionWriter>> {
        let Some(path) = &self.record else { return Ok(None) };
        let destination = Destination::check("--record", path, self.force)?;
        if destination.path().is_none() {
            bail_usage!("--record -: name a file; stdout has the decisions");
        }
        Ok(Some(SessionWriter::new(destination.create()?)))
    }

    /// Creates the log of decisions, and the cell that receives an error of standard output.
    fn log(&self, context: &Context) -> (DecisionLog, OutputError) {
        let error = OutputError::default();
        let printer = DecisionPrinter {
            json: self.json,
            quiet: context.global.quiet && !self.dry_run,
            quiet_notes: context.global.quiet,
            error: Rc::clone(&error),
        };
        let log = DecisionLog::new(Status::starting(), Box::new(printer), self.no_restore);
        (log, error)
    }

    /// Creates the back end for the running kernel.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be observed.
    pub fn live(
        &self,
        context: &Context,
        limits: AccessRules,
        primed: PrimedFiles,
    ) -> anyhow::Result<(LiveBackend, OutputError)> {
        let source = super::watch::begin(context)?;
        if !source.sees_readers() {
            // A note has printed the reason; the error also sets the exit code.
            observe::Census::load()?;
            observe::Probes::load()?;
        }
        let config = LiveConfig {
            root: context.root.clone(),
            dirs: context.dirs.clone(),
            guard: super::apply::guard()?,
            limits,
            max_window: self.max,
            prefetch: !self.no_prefetch,
            respect_advice: self.respect_advice,
            primed,
            dry_run: self.dry_run,
        };
        let (log, error) = self.log(context);
        Ok((LiveBackend::new(config, source, log)?, error))
    }

    /// Creates the back end that observes processes through `/proc`.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn unprivileged(
        &self,
        context: &Context,
        obstacle: &ObserveError,
    ) -> anyhow::Result<(UnprivilegedBackend, OutputError)> {
        context.note(&format!(
            "note: {obstacle}; observing the command through /proc: no window exceeds twice the \
             device's own, and reads of mapped files are not detected"
        ));
        let (log, error) = self.log(context);
        let prefetch = !self.no_prefetch;
        Ok((UnprivilegedBackend::new(&context.root, self.max, prefetch, log)?, error))
    }
}

/// An error of standard output, which stops the daemon.
pub(super) type OutputError = Rc<RefCell<Option<anyhow::Error>>>;

/// Prints decisions.
struct DecisionPrinter {
    json: bool,
    quiet: bool,
    quiet_notes: bool,
    error: OutputError,
}

impl DecisionPrinter {
    fn print(&self, print: impl FnOnce() -> anyhow::Result<()>) {
        if !self.quiet
            && self.error.borrow().is_none()
            && let Err(error) = print()
        {
            self.error.replace(Some(error));
        }
    }
}

impl Reporter for DecisionPrinter {
    fn decision(&mut self, record: &DecisionRecord) {
        self.print(|| match self.json {
            true => output::print_json_line(record),
            false => output::print(&format!("{record}\n")),
        });
    }

    /// Not printed as JSON, because it does not concern an open file.
    fn new_file_window(&mut self, change: &NewFileWindow) {
        if !self.json {
            self.print(|| output::print(&format!("{change}\n")));
        }
    }

    fn note(&mut self, text: &str) {
        if !self.quiet_notes {
            output::note(text);
        }
    }
}

impl AutoArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.question {
            Some(Question::Status { json }) => return status(context, json),
            Some(Question::Replay(replay)) => return replay.run(),
            None => {}
        }
        if self.targets.is_empty() {
            bail_usage!("name a target: a directory, mount point or device");
        }
        if self.emit == Some(Emit::Systemd) {
            return self.emit();
        }
        if let Some(slot) = self.ab_test.filter(|slot| *slot < Nanos::from_secs(2)) {
            bail_usage!("--ab-test {slot}: must be at least 2s");
        }
        let interval = self.control.interval()?;
        let limits = AccessRules { allow: self.only.clone(), deny: self.except.clone() };
        let storages: Vec<_> = self
            .targets
            .iter()
            .map(|target| resolve(&context.root, target))
            .collect::<Result<_, _>>()?;
        let primed = PrimedFiles::find(&context.root, &self.prime)?;
        let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
        // Check the output files first: loading the probes takes a moment.
        let publisher = self.control.publisher(context)?;
        let recording = self.control.recording()?;
        let (mut backend, error) = self.control.live(context, limits, primed)?;
        let added = storages.into_iter().try_for_each(|storage| backend.add(storage));
        let session = self.control.session(self.new_files, self.ab_test.map(|slot| (slot, seed())));
        let backend = RecordingBackend::new(backend, &session, recording);
        let mut daemon = Daemon::new(session.loop_config(), backend, Some(publisher));
        let end = self.duration.map(|time| Instant::now() + Duration::from_nanos(time.get()));
        let stop = || {
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            is_over || signals.cancelled() || error.borrow().is_some()
        };
        let result = added.and_then(|()| {
            daemon.ready();
            daemon.run(interval, stop)
        });
        let effect = daemon.effect();
        let summary = daemon.end()?;
        result?;
        error.take().map_or(Ok(()), Err)?;
        summary.into_iter().for_each(|summary| context.note(&summary));
        effect.into_iter().for_each(|effect| context.note(&format!("effect: {effect}")));
        Ok(signals.which().map_or(Exit::Fine, Exit::Signal))
    }

    /// Prints the service unit for this command line.
    fn emit(&self) -> anyhow::Result<Exit> {
        let program = std::env::current_exe().context("finding this program's own file")?;
        let mut kept = Vec::new();
        let mut words = std::env::args_os().skip_while(|word| word != "auto").skip(1);
        while let Some(word) = words.next() {
            let Ok(word) = word.into_string() else {
                bail_usage!("a unit cannot contain a name that is not UTF-8");
            };
            if word == "--emit" {
                words.next();
            } else if !word.starts_with("--emit=") {
                kept.push(quoted(&self.absolute(word)));
            }
        }
        if kept.iter().any(|word| word.contains(['\n', '\r'])) {
            bail_usage!("a unit cannot contain a name with a line break");
        }
        output::print_document(&unit(&program.display().to_string(), &kept.join(" ")))?;
        Ok(Exit::Fine)
    }

    /// Makes a path on the command line absolute, because services run in the root directory.
    fn absolute(&self, word: String) -> String {
        let metrics = self.control.metrics.as_deref();
        let (option, name) = match word.split_once('=') {
            Some(("--metrics", name)) => ("--metrics=", name),
            Some(("--prime", name)) => ("--prime=", name),
            _ => ("", word.as_str()),
        };
        let path = Path::new(name);
        let target = self.targets.iter().any(|target| target == path) && path.exists();
        let primed = self.prime.iter().any(|primed| primed == path);
        let named = target || primed || metrics == Some(path);
        match std::path::absolute(path).ok().filter(|_| named) {
            Some(path) => format!("{option}{}", path.display()),
            None => word,
        }
    }
}

/// Returns a seed that differs from run to run.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() ^ u64::from(std::process::id())
}

/// Prints the status of this user's daemon.
fn status(context: &Context, json: bool) -> anyhow::Result<Exit> {
    let path = status_path(&context.dirs);
    let text = match input::read_text(&path, InputKind::STATUS) {
        Ok(text) => text,
        Err(error) if error.io_kind() == Some(ErrorKind::NotFound) => {
            let path = path.display();
            return Err(anyhow!("foreread auto is not running ({path} does not exist)"));
        }
        Err(error) => return Err(error.into()),
    };
    let status: Status = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a status of foreread auto", path.display()))?;
    let is_running = context.root.path(format!("/proc/{}", status.pid)).exists();
    if json {
        output::print_document(&text)?;
    } else {
        output::print(&status_text(&status, is_running))?;
    }
    Ok(if is_running { Exit::Fine } else { Exit::Failed })
}

fn status_text(status: &Status, is_running: bool) -> String {
    let state = match is_running {
        true => plain(&status.state),
        false => "was killed; run `foreread rollback` to restore settings".into(),
    };
    let mut text = format!("process {}: {state}\n", status.pid);
    for (bdi, device) in &status.devices {
        text.push_str(&format!(
            "{}: latency {:.2} ms, {:.1} MiB/s, {:.1} requests in flight; {} open files\n",
            plain(bdi),
            device.latency_ms,
            device.rate_mib_s,
            device.parallelism,
            device.followed
        ));
        if let Some((predicted, measured)) =
            device.predicted_gain_ratio.zip(device.measured_gain_ratio)
        {
            text.push_str(&format!(
                "{}: gain of actions: predicted ×{predicted:.2}, measured ×{measured:.2}\n",
                plain(bdi)
            ));
        }
    }
    text.push_str(&format!(
        "{} windows set, {} actions failed, {} collateral windows restored, {} prefetched, {} \
         prefetches on misses, {} events lost\n",
        status.windows_set,
        status.failed_actions,
        status.collateral_windows_restored,
        Bytes::new(status.prefetched_bytes),
        status.miss_prefetches,
        status.lost_events
    ));
    if let Some(effect) = status.effect {
        text.push_str(&format!("effect: {effect}\n"));
    }
    for line in &status.decisions {
        text.push_str(&format!("  {}\n", plain(line)));
    }
    text
}
