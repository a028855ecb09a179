//! `foreread run`.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::Duration;

use actuate::Limits;
use anyhow::Context as _;
use clap::Args;
use host::Root;
use rustix::process::{Pid, Signal, kill_process};

use super::Context;
use super::auto::Control;
use super::flight::Flight;
use crate::exit::{Exit, Usage};
use crate::signals::Signals;

/// Run a command with the windows that it needs
///
/// The same as `foreread auto`, for one command and all that it starts, on whatever storage they
/// read from, and for as long as it runs. Its exit code is that of the command. A signal is passed
/// on to the command.
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
        let signals = Signals::listen().context("cannot listen for signals")?;
        let mut flight = Flight::begin(context, orders)?;
        let mut child = Command::new(program)
            .args(words)
            .spawn()
            .with_context(|| format!("cannot run {program:?}"))?;
        let result = follow(context, &mut flight, &mut child, interval, &signals);
        let ended = flight.end();
        // Whatever became of the control, the command is not left alone.
        let status = child.wait().with_context(|| format!("waiting for {program:?}"))?;
        result?;
        ended?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Command(u8::try_from(code).unwrap_or(1)),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Failed,
        })
    }
}

fn follow(
    context: &Context,
    flight: &mut Flight<'_>,
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
        flight.step(Some(&family(&context.root, child.id())))?;
        std::thread::sleep(interval);
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
