//! `foreread run`.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::process::{Child, Command};
use std::time::Duration;

use actuate::Limits;
use anyhow::Context as _;
use clap::Args;
use host::Root;
use report::clean::plain;
use rustix::process::{Pid, Signal, kill_process};

use super::Context;
use super::auto::Control;
use super::flight::Flight;
use super::unprivileged::Unprivileged;
use crate::exit::{Exit, NotStarted, Usage};
use crate::signals::Signals;

/// How often to look where only what readers wait for can be seen.
const LOOKS: Duration = Duration::from_millis(10);

/// Run a command with the windows that it needs
///
/// The same as `foreread auto`, for one command and all that it starts, on whatever storage they
/// read from, and for as long as it runs. Its exit code is that of the command. A signal is passed
/// on to the command.
///
/// Without the right to look into the kernel (root's, or CAP_BPF and CAP_PERFMON) the command is
/// followed by /proc: steps and backward reads are read ahead as ever, but no window goes above
/// twice the device's own, and mapped reads are not seen.
///
///   foreread run -- pg_dump -f /backup/all.sql all
///   foreread run --advise -- tar cf - /srv/data
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Run {
    #[command(flatten)]
    control: Control,
    /// The command and its words
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let (orders, interval) = self.control.orders(Limits::default(), None)?;
        let Some((program, words)) = self.command.split_first() else {
            return Err(Usage("say what to run".to_owned()).into());
        };
        if let Some(problem) = trace::obstacle(program.as_ref()) {
            let why = match problem {
                ErrorKind::NotFound => "there is no such program",
                _ => "it is not executable",
            };
            let source = io::Error::new(problem, why);
            return Err(NotStarted { program: plain(program), source }.into());
        }
        let signals = Signals::listen().context("cannot listen for signals")?;
        let (mut control, interval) = match may_look() {
            true => (Controlled::Fully(Box::new(Flight::begin(context, orders)?)), interval),
            false => {
                let control = Unprivileged::begin(context, orders)?;
                (Controlled::Unprivileged(Box::new(control)), interval.min(LOOKS))
            }
        };
        let child = Command::new(program).args(words).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(source) => {
                control.end()?;
                return Err(NotStarted { program: plain(program), source }.into());
            }
        };
        let result = follow(context, &mut control, &mut child, interval, &signals);
        let ended = control.end();
        // Whatever became of the control, the command is not left alone.
        let status = child.wait().with_context(|| format!("waiting for {program:?}"))?;
        result?;
        ended?;
        Ok(Exit::of_command(status))
    }
}

/// How the command is controlled.
enum Controlled<'a> {
    Fully(Box<Flight<'a>>),
    Unprivileged(Box<Unprivileged<'a>>),
}

impl Controlled<'_> {
    fn step(&mut self, pids: &BTreeSet<u32>) -> anyhow::Result<()> {
        match self {
            Self::Fully(flight) => flight.step(Some(pids)),
            Self::Unprivileged(control) => control.step(pids),
        }
    }

    fn nap(&self, interval: Duration) -> Duration {
        match self {
            Self::Fully(flight) => flight.nap(interval),
            Self::Unprivileged(_) => interval,
        }
    }

    fn end(self) -> anyhow::Result<()> {
        match self {
            Self::Fully(flight) => flight.end().map(drop),
            Self::Unprivileged(control) => {
                control.end();
                Ok(())
            }
        }
    }
}

/// Whether the kernel may be looked into. Other reasons that it cannot be are errors later.
fn may_look() -> bool {
    let refused = |error| matches!(error, observe::ObserveError::NotPermitted { .. });
    !observe::Census::begin().is_err_and(refused)
}

fn follow(
    context: &Context,
    control: &mut Controlled<'_>,
    child: &mut Child,
    interval: Duration,
    signals: &Signals,
) -> anyhow::Result<()> {
    let mut passed_on = false;
    while child.try_wait().context("waiting for the command")?.is_none() {
        if signals.cancelled() && !passed_on {
            passed_on = true;
            let signal = match signals.which() {
                Some(1) => Signal::HUP,
                Some(2) => Signal::INT,
                _ => Signal::TERM,
            };
            // One that has ended meanwhile needs none.
            let _ = kill_process(Pid::from_child(child), signal);
        }
        control.step(&family(&context.root, child.id()))?;
        std::thread::sleep(control.nap(interval));
    }
    Ok(())
}

/// A process and all that descend from it. What was orphaned on the way is lost.
fn family(root: &Root, first: u32) -> BTreeSet<u32> {
    let mut family = BTreeSet::from([first]);
    let mut new = vec![first];
    while let Some(pid) = new.pop() {
        for thread in root.names(format!("/proc/{pid}/task")) {
            let children = root.read(format!("/proc/{pid}/task/{thread}/children"));
            for child in children.unwrap_or_default().split_whitespace() {
                if let Ok(child) = child.parse()
                    && family.insert(child)
                {
                    new.push(child);
                }
            }
        }
    }
    family
}
