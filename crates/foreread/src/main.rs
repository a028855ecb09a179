//! The `foreread` command: reads the command line, starts the verb, says how it ended.

mod ascii;
mod cli;
mod destination;
mod exit;
mod json_lines;
mod output;
mod progress;
mod signals;
mod usage;

use std::process::ExitCode;

use crate::cli::Invocation;
use crate::exit::Exit;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    // Messages about the command line itself have their colour, too.
    cli::set_up_early(&words);
    let mut quiet = false;
    let result = Invocation::read(words).and_then(|invocation| {
        quiet = invocation.is_quiet();
        invocation.run()
    });
    match result {
        Ok(exit) => exit.into(),
        Err(error) => failed(&error, quiet).into(),
    }
}

fn failed(error: &anyhow::Error, quiet: bool) -> Exit {
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        return usage::explain(error);
    }
    let exit = Exit::of(error);
    if exit != Exit::Fine {
        output::error(error, quiet);
    }
    exit
}
