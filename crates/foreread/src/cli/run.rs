//! `foreread run`.

use std::io::{self, ErrorKind};
use std::process::Command;
use std::time::Duration;

use actuate::AccessRules;
use anyhow::Context as _;
use clap::Args;
use daemon::{Daemon, DaemonBackend, PrimedFiles, RecordingBackend};
use observe::ObserveError;
use units::text::plain;
use units::{Classified as _, ErrorKind as Kind};

use super::Context;
use super::auto::{Control, OutputError};
use crate::exit::{Exit, NotStarted, bail_usage};
use crate::signals::Signals;

/// Maximum interval between decisions if only waits can be observed.
const UNPRIVILEGED_INTERVAL: Duration = Duration::from_millis(10);

/// Run a command with adaptive read-ahead
///
/// Does what `foreread auto` does, for one command and its child processes, on any storage that
/// they read, until the command exits. The exit code is that of the command. Signals are passed on
/// to the command. SIGKILL cannot be passed on: the command then keeps running without foreread.
///
/// Without the privilege to observe the kernel (root, or CAP_BPF and CAP_PERFMON), foreread
/// observes the command through /proc. It then prefetches strided and backward reads, but no window
/// exceeds twice the device's window, and reads of mapped files are not detected.
///
///   foreread run -- pg_dump -f /backup/all.sql all
///   foreread run --dry-run -- tar cf - /srv/data
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct RunArgs {
    #[command(flatten)]
    control: Control,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl RunArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let interval = self.control.interval()?;
        let Some(program) = self.command.first() else {
            bail_usage!("name a command to run");
        };
        if let Some(problem) = sys::program::obstacle(program.as_ref()) {
            let why = match problem {
                ErrorKind::NotFound => "there is no such program",
                _ => "it is not executable",
            };
            let source = io::Error::new(problem, why);
            return Err(NotStarted { program: plain(program), source }.into());
        }
        let signals = Signals::listen().context("cannot listen for signals")?;
        let (control, session) = (&self.control, self.control.session(false, None));
        let recording = control.recording()?;
        if let Some(missing_support) = missing_support() {
            let (backend, error) = control.unprivileged(context, &missing_support)?;
            let backend = RecordingBackend::new(backend, &session, recording);
            let daemon = Daemon::new(session.loop_config(), backend, None);
            let interval = interval.min(UNPRIVILEGED_INTERVAL);
            run(context, daemon, error, &self.command, interval, &signals)
        } else {
            let publisher = control.publisher(context)?;
            let (backend, error) =
                control.live(context, AccessRules::default(), PrimedFiles::default())?;
            let backend = RecordingBackend::new(backend, &session, recording);
            let daemon = Daemon::new(session.loop_config(), backend, Some(publisher));
            run(context, daemon, error, &self.command, interval, &signals)
        }
    }
}

/// Returns why this user or kernel cannot observe open files. Other failures are errors later.
fn missing_support() -> Option<ObserveError> {
    let error = observe::Census::load().err()?;
    let is_lacking = matches!(error.kind(), Kind::NotPermitted | Kind::Unsupported);
    is_lacking.then_some(error)
}

/// Runs the command under control of the daemon.
fn run(
    context: &Context,
    mut daemon: Daemon<impl DaemonBackend>,
    error: OutputError,
    command: &[String],
    interval: Duration,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let (program, words) = (&command[0], &command[1..]);
    let mut child = match Command::new(program).args(words).spawn() {
        Ok(child) => child,
        Err(source) => {
            daemon.end()?;
            return Err(NotStarted { program: plain(program), source }.into());
        }
    };
    let signal = || signals.pending();
    let stop = || error.borrow().is_some();
    let result = daemon.run_command(&context.root, &mut child, interval, signal, stop);
    let ended = daemon.end();
    // Wait for the command even if control fails.
    let status = child.wait().with_context(|| format!("waiting for {program:?}"))?;
    result?;
    error.take().map_or(Ok(()), Err)?;
    ended?.into_iter().for_each(|summary| context.note(&summary));
    Ok(Exit::of_command(status))
}
