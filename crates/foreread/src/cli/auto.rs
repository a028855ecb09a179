//! `foreread auto`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::auto::{Status, quoted, unit};
use actuate::{Limits, Rule};
use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use host::resolve;
use report::clean::plain;
use sys::input::{self, InputError, InputKind};
use units::{Bytes, Nanos};

use super::Context;
use super::bulletin::status_path;
use super::flight::{Flight, Orders};
use crate::destination::Destination;
use crate::exit::{Exit, Usage};
use crate::output;
use crate::signals::Signals;

/// Keep each open file on a storage at the window that its readers need
///
/// Watches who reads and how, as `foreread watch` does, and sets the window of each open file by
/// itself: more where readers wait and more wins, less where what was read ahead is evicted unused
/// or a mapping is read at random. What the kernel does not foresee (steps, backward reads, the
/// next of many small files, the rest of a file that random reads will cover) it has read ahead.
/// Files that are open already are reached, too. Each act is one line: what, and why. When it ends,
/// every open file has the window back that it had.
///
///   foreread auto /srv/data --advise      says what it would do, and does nothing
///   foreread auto /srv/data --only user:postgres --max 4M
///   foreread auto /srv/data --try 10s     alternates with doing nothing, and says what it wins
///   foreread auto status                  what the daemon does now, and did last
///   foreread auto /srv/data --emit systemd > /etc/systemd/system/foreread-auto.service
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true)]
pub struct Auto {
    #[command(subcommand)]
    question: Option<Question>,
    /// Directories, mount points or devices
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    #[command(flatten)]
    control: Control,
    /// End after this time; default: when told to by a signal
    #[arg(long = "for", value_name = "TIME")]
    span: Option<Nanos>,
    /// Only open files of these: pid:N, user:NAME, cgroup:/PATH, exe:/PATH or mount:/PATH
    #[arg(long, value_name = "RULE")]
    only: Vec<Rule>,
    /// Never open files of these
    #[arg(long, value_name = "RULE")]
    except: Vec<Rule>,
    /// Leave the bdi's window alone, which files get when they are opened. With --only or --except
    /// it is left alone anyhow, as it is everybody's
    #[arg(long)]
    no_new_files: bool,
    /// Alternate between doing and doing nothing, in slots of this length in random order, and say
    /// what it wins; it ends by itself where it does harm
    #[arg(long = "try", value_name = "TIME")]
    slots: Option<Nanos>,
    /// Print a unit for this command line, and do nothing else
    #[arg(long, value_enum, value_name = "KIND")]
    emit: Option<Emit>,
}

/// How to control, for `auto` and `run`.
#[derive(Clone, Debug, Args)]
pub(super) struct Control {
    /// Say what would be done, and do nothing
    #[arg(short = 'n', long, visible_alias = "dry-run")]
    advise: bool,
    /// The largest window for any open file
    #[arg(long, value_name = "SIZE", default_value = "8M")]
    max: Bytes,
    /// Set windows only, and read nothing ahead by itself
    #[arg(long)]
    no_prefetch: bool,
    /// How often to decide
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: Nanos,
    /// Leave the windows as they are at the end
    #[arg(long)]
    leave: bool,
    /// Print each decision as a line of JSON
    #[arg(long)]
    json: bool,
    /// Keep metrics for Prometheus in this file, as its node exporter collects them
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Overwrite the file of --metrics even if something else has written it
    #[arg(long, requires = "metrics")]
    force: bool,
}

/// What to ask a running daemon.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Question {
    /// What it does now, what it has learnt, and its last decisions
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What can be printed instead of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// A service unit
    Systemd,
}

/// Whether a file holds metrics that foreread wrote: a service that starts again replaces them.
fn are_metrics(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let read = std::fs::File::open(path).map(|file| file.take(16).read_to_end(&mut start));
    read.is_ok() && start.starts_with(b"# HELP foreread_")
}

impl Control {
    /// The orders that these options are, with these limits.
    pub fn orders(
        &self,
        limits: Limits,
        slots: Option<Nanos>,
    ) -> anyhow::Result<(Orders, Duration)> {
        let interval = Duration::from_nanos(self.interval.get());
        if interval < Duration::from_millis(20) || interval > Duration::from_secs(60) {
            let problem = format!("--interval {}: from 20 ms to 60 s makes sense", self.interval);
            return Err(Usage(problem).into());
        }
        if !(Bytes::from_kib(64)..=Bytes::from_gib(1)).contains(&self.max) {
            let problem = format!("--max {}: from 64K to 1G makes sense", self.max);
            return Err(Usage(problem).into());
        }
        let metrics = self
            .metrics
            .as_deref()
            .map(|path| Destination::check_or_own("--metrics", path, self.force, are_metrics));
        let metrics = metrics.transpose()?;
        if metrics.as_ref().is_some_and(|destination| destination.path().is_none()) {
            return Err(Usage("--metrics -: name a file".to_owned()).into());
        }
        let orders = Orders {
            advise: self.advise,
            max: self.max,
            prefetch: !self.no_prefetch,
            // That is for others, too, than those who are under control.
            new_files: false,
            leave: self.leave,
            json: self.json,
            limits,
            slots,
            metrics,
        };
        Ok((orders, interval))
    }
}

impl Auto {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if let Some(Question::Status { json }) = self.question {
            return status(context, json);
        }
        if self.targets.is_empty() {
            let problem = "say on what: a directory, mount point or device".to_owned();
            return Err(Usage(problem).into());
        }
        if self.emit == Some(Emit::Systemd) {
            return self.emit();
        }
        if let Some(slots) = self.slots.filter(|slots| *slots < Nanos::from_secs(2)) {
            return Err(Usage(format!("--try {slots}: at least 2s")).into());
        }
        let limits = Limits { allow: self.only.clone(), deny: self.except.clone() };
        let new_files = !self.no_new_files && limits == Limits::default();
        let (orders, interval) = self.control.orders(limits, self.slots)?;
        let orders = Orders { new_files, ..orders };
        let storages: Vec<_> = self
            .targets
            .iter()
            .map(|target| resolve(&context.root, target))
            .collect::<Result<_, _>>()?;
        let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
        let mut flight = Flight::begin(context, orders)?;
        let result = storages.into_iter().try_for_each(|storage| flight.take(storage));
        let result = result.and_then(|()| self.fly(&mut flight, interval, &signals));
        let effect = flight.effect();
        flight.end()?;
        result?;
        if let Some(effect) = effect {
            context.note(&format!(
                "readers got {:.2} times as much as without (95 %: {:.2} to {:.2}; {} pairs of \
                 slots)",
                effect.ratio, effect.low, effect.high, effect.pairs
            ));
        }
        Ok(signals.which().map_or(Exit::Fine, Exit::Signal))
    }

    /// Prints the unit for the words of this command line.
    fn emit(&self) -> anyhow::Result<Exit> {
        let program = std::env::current_exe().context("finding this program's own file")?;
        let mut kept = Vec::new();
        let mut words = std::env::args_os().skip_while(|word| word != "auto").skip(1);
        while let Some(word) = words.next() {
            let Ok(word) = word.into_string() else {
                let problem = "a unit takes no name that is not UTF-8";
                return Err(Usage(problem.to_owned()).into());
            };
            if word == "--emit" {
                words.next();
            } else if !word.starts_with("--emit=") {
                kept.push(quoted(&self.absolute(word)));
            }
        }
        if kept.iter().any(|word| word.contains(['\n', '\r'])) {
            return Err(Usage("a unit takes no name with a line break".to_owned()).into());
        }
        output::print_document(&unit(&program.display().to_string(), &kept.join(" ")))?;
        Ok(Exit::Fine)
    }

    /// A word of the command line as it is understood from the root directory, where services run.
    fn absolute(&self, word: String) -> String {
        let metrics = self.control.metrics.as_deref();
        let (option, name) = match word.split_once('=') {
            Some(("--metrics", name)) => ("--metrics=", name),
            _ => ("", word.as_str()),
        };
        let path = Path::new(name);
        let target = self.targets.iter().any(|target| target == path) && path.exists();
        let named = target || metrics == Some(path);
        match std::path::absolute(path).ok().filter(|_| named) {
            Some(path) => format!("{option}{}", path.display()),
            None => word,
        }
    }

    fn fly(
        &self,
        flight: &mut Flight<'_>,
        interval: Duration,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let end = self.span.map(|span| Instant::now() + Duration::from_nanos(span.get()));
        flight.ready();
        while !signals.cancelled() && end.is_none_or(|end| Instant::now() < end) {
            flight.step(None)?;
            std::thread::sleep(flight.nap(interval));
        }
        Ok(())
    }
}

fn status(context: &Context, json: bool) -> anyhow::Result<Exit> {
    let path = status_path(context);
    let absent = |error: &InputError| {
        error.io().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let text = match input::read_text(&path, InputKind::STATUS) {
        Ok(text) => text,
        Err(error) if absent(&error) => {
            let path = path.display();
            return Err(anyhow!("no foreread auto is at work (there is no {path})"));
        }
        Err(error) => return Err(error.into()),
    };
    let status: Status = serde_json::from_str(&text)
        .with_context(|| format!("{} is no status of foreread auto", path.display()))?;
    let lives = context.root.path(format!("/proc/{}", status.pid)).exists();
    if json {
        output::print_document(&text)?;
    } else {
        output::print(&told(&status, lives))?;
    }
    Ok(if lives { Exit::Fine } else { Exit::Failed })
}

fn told(status: &Status, lives: bool) -> String {
    let state = if lives {
        plain(&status.state)
    } else {
        "killed: `foreread rollback` looks after it".into()
    };
    let mut text = format!("process {}: {state}\n", status.pid);
    for (bdi, device) in &status.devices {
        text.push_str(&format!(
            "{}: answers in {:.2} ms, reads {:.1} MiB/s, {:.1} at once; {} open files\n",
            plain(bdi),
            device.latency_ms,
            device.rate_mib_s,
            device.parallelism,
            device.followed
        ));
    }
    text.push_str(&format!(
        "{} windows set, {} refused, {} mended, {} read ahead, {} runs answered, {} events lost\n",
        status.windows_set,
        status.refused,
        status.mended,
        Bytes::new(status.prefetched_bytes),
        status.answered_runs,
        status.lost_events
    ));
    if let Some(effect) = status.effect {
        text.push_str(&format!(
            "effect: {:.2} times as much as without (95 %: {:.2} to {:.2}; {} pairs of slots)\n",
            effect.ratio, effect.low, effect.high, effect.pairs
        ));
    }
    for line in &status.decisions {
        text.push_str(&format!("  {}\n", plain(line)));
    }
    text
}
