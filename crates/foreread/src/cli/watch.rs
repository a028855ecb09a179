//! `foreread watch`.

use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::auto::{Record, Source, Tracker, View, read_records, write_record};
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use sys::input::{self, InputError, InputKind};
use units::Nanos;

use super::Context;
use super::watch_scope::Scope;
use super::watch_words::Words;
use crate::destination::Destination;
use crate::exit::{Exit, Usage};
use crate::output;
use crate::signals::Signals;

/// Show what read-ahead does right now: devices, and every stream that reads from them
///
/// Each open file that reads from a disk is a line: how it is read, the window it has, how often
/// and how long its readers wait, and what was read ahead for nothing. It takes root to see them;
/// without, the devices are shown. A read that finds its pages in the cache costs nothing more.
///
///   foreread watch                        everything, in the terminal
///   foreread watch 1 5                    five times, every second, as plain text
///   foreread watch /srv/data --once       a summary of five seconds
///   foreread watch pid:4711 --json        a line of JSON each second, of one process
///   foreread watch --record FILE          … to look at it again with --replay FILE
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Watch {
    /// What to watch: a directory, file or device; pid:N; or cgroup:/PATH. Default: everything.
    /// Then, as for iostat, the interval in seconds and how many times to show it; a plain number
    /// is never a path: write ./1
    #[arg(value_name = "TARGET] [INTERVAL [COUNT]")]
    words: Vec<String>,
    /// Print one summary as plain text and end
    #[arg(long)]
    once: bool,
    /// Print a line of JSON after each interval; with --once, one line
    #[arg(long)]
    json: bool,
    /// How often to show; with --once, how long to look. Default: 1s; with --once 5s
    #[arg(long, value_name = "TIME")]
    interval: Option<Nanos>,
    /// Keep all that is seen in this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Overwrite the file of --record if it exists
    #[arg(long, requires = "record")]
    force: bool,
    /// Show what a file has kept instead of what happens now; `-` is standard input
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// The shortest and the longest interval that makes sense.
const INTERVALS: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_secs(3600));

impl Watch {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let words = Words::read(&self.words)?;
        let count = self.count(&words);
        let interval = self.interval(&words)?;
        let scope = Scope::of(&context.root, words.target.as_deref())?;
        if let Some(file) = &self.replay {
            return self.show_again(&scope, file, count);
        }
        let mut keep = self.keep()?;
        let mut source = begin(context)?;
        let mut tracker = Tracker::new();
        let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
        let first = source.beginning();
        store(&mut keep, &first)?;
        tracker.take(first);
        look(&mut source, &mut tracker, &mut keep)?; // what the first interval is measured from
        let mut screen = self.screen(count)?;
        let mut left = count;
        loop {
            let asked_to_end = wait(interval, &signals, screen.as_mut())?;
            let view = look(&mut source, &mut tracker, &mut keep)?;
            let view = view.map(|view| scope.filter(view));
            if let (false, Some(view)) = (asked_to_end && screen.is_some(), &view) {
                self.show(view, screen.as_mut(), source.note())?;
            }
            left = left.map(|left| left.saturating_sub(1));
            if asked_to_end || left == Some(0) {
                drop(screen);
                return Ok(ended(&signals));
            }
        }
    }

    /// The file that keeps what is seen.
    fn keep(&self) -> anyhow::Result<Keep> {
        let Some(path) = &self.record else { return Ok(None) };
        let destination = Destination::check("--record", path, self.force)?;
        if destination.path().is_none() {
            return Err(Usage("--record -: name a file; stdout has the figures".into()).into());
        }
        Ok(Some(BufWriter::new(destination.create()?)))
    }

    /// How many times it is shown; for ever if nothing is said. Numbers come before options, which
    /// a configuration file may have set.
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
            let problem =
                format!("--interval {interval}: from {least} to {most} makes sense{process}");
            return Err(Usage(problem).into());
        }
        Ok(Duration::from_nanos(interval.get()))
    }

    /// A count is for logs and scripts: then each view is printed as plain text.
    fn screen(&self, count: Option<u64>) -> anyhow::Result<Option<super::watch_screen::Screen>> {
        let wanted = count.is_none() && !self.json && std::io::stdout().is_terminal();
        wanted.then(super::watch_screen::Screen::open).transpose()
    }

    fn show(
        &self,
        view: &View,
        screen: Option<&mut super::watch_screen::Screen>,
        note: Option<&str>,
    ) -> anyhow::Result<()> {
        match screen {
            Some(screen) => screen.draw(view, note),
            None if self.json => output::print_json_line(&Document::of(view)),
            None => output::print(&(report::watch_text(view) + if self.once { "" } else { "\n" })),
        }
    }

    /// Shows what a file has kept: its last view with `--once`, else all, at the pace at which they
    /// were taken if a terminal shows them.
    fn show_again(&self, scope: &Scope, path: &Path, count: Option<u64>) -> anyhow::Result<Exit> {
        let file = input::open(path, InputKind::RECORDING)?;
        let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
        let mut tracker = Tracker::new();
        let (mut screen, mut last) = (self.screen(count)?, None);
        let mut left = count.filter(|_| !self.once);
        for record in read_records(BufReader::new(file)) {
            let record = record.map_err(|error| broken(path, error))?;
            let Some(view) = tracker.take(record) else { continue };
            let view = scope.filter(view);
            if view.interval_s > 0.0 {
                let pace = Duration::from_secs_f64(view.interval_s.min(60.0));
                if screen.is_some() && wait(pace, &signals, screen.as_mut())? {
                    return Ok(ended(&signals));
                }
                if !self.once {
                    self.show(&view, screen.as_mut(), None)?;
                }
                last = Some(view);
                left = left.map(|left| left.saturating_sub(1));
                if left == Some(0) {
                    break;
                }
            }
        }
        match last {
            None => Err(Usage(format!("{} holds no whole interval", path.display())).into()),
            Some(view) if self.once => self.show(&view, None, None).map(|()| Exit::Fine),
            Some(_) => Ok(Exit::Fine),
        }
    }
}

/// Being told to end is how watching ends; that nobody can look any more is not.
fn ended(signals: &Signals) -> Exit {
    match signals.which().filter(|_| signals.hung_up()) {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Fine,
    }
}

/// What it means that a record cannot be read.
fn broken(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge => InputError::too_large(path, InputKind::RECORDING).into(),
        _ => anyhow::Error::new(error).context(format!("{} is no recording", path.display())),
    }
}

/// A view as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    #[serde(flatten)]
    view: &'a View,
}

impl<'a> Document<'a> {
    fn of(view: &'a View) -> Self {
        Self { schema_version: report::SCHEMA_VERSION, view }
    }
}

pub fn begin(context: &Context) -> anyhow::Result<Source> {
    // A directory of our own, on a disk if one can be had.
    let own = &context.dirs.state;
    let dir = if std::fs::create_dir_all(own).is_ok() { own.clone() } else { "/var/tmp".into() };
    let source = Source::begin(&context.root, &dir)?;
    if let Some(note) = source.note() {
        context.note(&format!("note: {note}"));
    }
    if !source.sees_readers() {
        context.note("note: only the devices are shown, by their counters");
    }
    Ok(source)
}

/// What is seen, on its way to a file.
type Keep = Option<BufWriter<Box<dyn Write>>>;

fn store(keep: &mut Keep, record: &Record) -> anyhow::Result<()> {
    match keep {
        Some(file) => write_record(file, record).context("cannot keep what is seen"),
        None => Ok(()),
    }
}

/// One look at everything.
fn look(
    source: &mut Source,
    tracker: &mut Tracker,
    keep: &mut Keep,
) -> anyhow::Result<Option<View>> {
    let (mut view, mut kept) = (None, Ok(()));
    source.look(|record| {
        if kept.is_ok() {
            kept = store(keep, &record);
        }
        view = tracker.take(record).or(view.take());
    })?;
    kept?;
    if let Some(file) = keep {
        file.flush().context("cannot keep what is seen")?;
    }
    Ok(view)
}

/// Waits; true if a signal or a key says that it is enough.
fn wait(
    interval: Duration,
    signals: &Signals,
    mut screen: Option<&mut super::watch_screen::Screen>,
) -> anyhow::Result<bool> {
    let until = Instant::now() + interval;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if signals.cancelled() {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
        let nap = left.min(Duration::from_millis(100));
        match screen.as_mut() {
            Some(screen) => {
                if screen.asks_to_end(nap)? {
                    return Ok(true);
                }
            }
            None => std::thread::sleep(nap),
        }
    }
}
