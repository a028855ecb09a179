//! `foreread watch`.

use std::io::{self, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use daemon::{
    LiveSource, ReplayEnd, ReplayOptions, WatchDisplay, WatchLoop, WatchView, read_records,
};
use sys::input::{self, InputError, InputKind};
use units::Nanos;

use super::Context;
use super::watch_scope::Scope;
use super::watch_screen::Screen;
use super::watch_words::Words;
use crate::destination::Destination;
use crate::exit::{Exit, bail_usage, usage};
use crate::output;
use crate::signals::Signals;

/// Show read-ahead as it happens: devices and streams
///
/// Prints a line for each open file that is read from a disk: its access pattern, its window, how
/// often and how long its readers wait, and how much was read ahead but not used. Without root,
/// only devices are shown. Reads that find their pages in the cache are not slowed down.
///
///   foreread watch                        everything, in the terminal
///   foreread watch 1 5                    five reports, one per second, as plain text
///   foreread watch /srv/data --once       a summary of five seconds
///   foreread watch pid:4711 --json        one process, as a line of JSON each second
///   foreread watch --record FILE          record, to show it later with --replay FILE
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct WatchArgs {
    /// What to watch: a directory, file or device; pid:N; or cgroup:/PATH. Default: everything.
    /// Then, as for iostat, the interval in seconds and the number of reports; a plain number is
    /// never a path: write ./1
    #[arg(value_name = "TARGET] [INTERVAL [COUNT]")]
    words: Vec<String>,
    /// Print one summary as plain text and exit
    #[arg(long)]
    once: bool,
    /// Print a line of JSON after each interval; with --once, one line
    #[arg(long)]
    json: bool,
    /// Time between reports; with --once, how long to observe. Default: 1s; with --once 5s
    #[arg(long, value_name = "TIME")]
    interval: Option<Nanos>,
    /// Record everything that is observed in this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Overwrite the file of --record if it exists
    #[arg(long, requires = "record")]
    force: bool,
    /// Show a file that --record wrote instead of the live system; `-` is standard input
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// Shortest and longest interval.
const INTERVALS: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_secs(3600));

impl WatchArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let words = Words::read(&self.words)?;
        let count = self.count(&words);
        let interval = self.interval(&words)?;
        let scope = Scope::parse(&context.root, words.target.as_deref())?;
        if let Some(file) = &self.replay {
            return self.show_again(&scope, file, count);
        }
        let recording = self.recording()?;
        let source = begin(context)?;
        let note = source.note().map(str::to_owned);
        let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
        let watch = WatchLoop::new(source, recording)?;
        let mut display = self.display(&scope, &signals, count)?;
        display.note = note;
        watch.run(interval, count, &mut display)?;
        drop(display);
        Ok(ended(&signals))
    }

    fn recording(&self) -> anyhow::Result<Option<Box<dyn Write>>> {
        let Some(path) = &self.record else { return Ok(None) };
        let destination = Destination::check("--record", path, self.force)?;
        if destination.path().is_none() {
            bail_usage!("--record -: name a file; stdout has the figures");
        }
        Ok(Some(destination.create()?))
    }

    /// Returns the number of reports; `None` means until a signal. The positional numbers take
    /// precedence over options, which a configuration file may have set.
    fn count(&self, words: &Words) -> Option<u64> {
        words.count.or(self.once.then_some(1))
    }

    fn interval(&self, words: &Words) -> anyhow::Result<Duration> {
        let default = Nanos::from_secs(if self.once { 5 } else { 1 });
        let interval = words.interval.or(self.interval).unwrap_or(default);
        if interval < INTERVALS.0 || interval > INTERVALS.1 {
            let (least, most) = INTERVALS;
            let seconds = interval.get() / 1_000_000_000;
            let process = match words.interval {
                Some(_) if interval > most => {
                    format!("; a process is named by pid:{seconds}")
                }
                _ => String::new(),
            };
            bail_usage!("--interval {interval}: must be between {least} and {most}{process}");
        }
        Ok(Duration::from_nanos(interval.get()))
    }

    /// Opens the display. With a count, which is for logs and scripts, it prints plain text.
    fn display<'a>(
        &'a self,
        scope: &'a Scope,
        signals: &'a Signals,
        count: Option<u64>,
    ) -> anyhow::Result<Display<'a>> {
        let wanted = count.is_none() && !self.json && std::io::stdout().is_terminal();
        let screen = wanted.then(Screen::open).transpose()?;
        Ok(Display { options: self, scope, signals, screen, note: None })
    }

    /// Shows a recording: its last view with `--once`, otherwise all views; on the screen at the
    /// recorded pace.
    fn show_again(&self, scope: &Scope, path: &Path, count: Option<u64>) -> anyhow::Result<Exit> {
        let file = input::open(path, InputKind::RECORDING)?;
        let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
        let mut display = self.display(scope, &signals, count)?;
        let records = read_records(BufReader::new(file));
        let records = records.map(|record| record.map_err(|error| broken(path, error)));
        let is_paced = display.screen.is_some();
        let options = ReplayOptions { count, is_paced, is_last_only: self.once };
        match daemon::replay(records, options, &mut display)? {
            ReplayEnd::Complete => Ok(Exit::Fine),
            ReplayEnd::Stopped => Ok(ended(&signals)),
            ReplayEnd::NoInterval => {
                Err(usage!("{} contains no complete interval", path.display()))
            }
        }
    }
}

/// Shows views on the screen, or prints them.
struct Display<'a> {
    options: &'a WatchArgs,
    scope: &'a Scope,
    signals: &'a Signals,
    screen: Option<Screen>,
    /// Note below the view on the screen.
    note: Option<String>,
}

impl WatchDisplay for Display<'_> {
    type Error = anyhow::Error;

    fn show(&mut self, view: WatchView, is_stopping: bool) -> anyhow::Result<()> {
        let view = self.scope.filter(view);
        match &mut self.screen {
            Some(_) if is_stopping => Ok(()),
            Some(screen) => screen.draw(&view, self.note.as_deref()),
            None if self.options.json => output::print_json_line(&report::Versioned::new(&view)),
            None => {
                let end = if self.options.once { "" } else { "\n" };
                output::print(&(report::watch_text(&view) + end))
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.signals.cancelled()
    }

    fn wait(&mut self, time: Duration) -> anyhow::Result<bool> {
        match &mut self.screen {
            Some(screen) => screen.asks_to_end(time),
            None => {
                std::thread::sleep(time);
                Ok(false)
            }
        }
    }
}

/// Returns the exit code after a requested stop: success, unless the terminal has hung up.
fn ended(signals: &Signals) -> Exit {
    match signals.which().filter(|_| signals.hung_up()) {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Fine,
    }
}

/// Explains why a recording cannot be read.
fn broken(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge => InputError::too_large(path, InputKind::RECORDING).into(),
        _ => anyhow::Error::new(error).context(format!("{} is not a recording", path.display())),
    }
}

pub fn begin(context: &Context) -> anyhow::Result<LiveSource> {
    // The probes are tested in foreread's own directory, which is preferably on a disk.
    let own = &context.dirs.state;
    let dir = if std::fs::create_dir_all(own).is_ok() { own.clone() } else { "/var/tmp".into() };
    let source = LiveSource::new(&context.root, &dir)?;
    if let Some(note) = source.note() {
        context.note(&format!("note: {note}"));
    }
    if !source.sees_readers() {
        context.note("note: only device counters are shown");
    }
    Ok(source)
}
