//! The `foreread` command: reads the command line, starts the verb, says how it ended.

mod cli;
mod exit;
mod output;
mod progress;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use crate::exit::Exit;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return said_by_clap(&error).into(),
    };
    let quiet = cli.global.quiet;
    match cli.run() {
        Ok(exit) => exit.into(),
        Err(error) => {
            let exit = Exit::of(&error);
            if exit != Exit::Fine {
                output::error(&error, quiet);
            }
            exit.into()
        }
    }
}

/// Help and version go to stdout and are fine; the rest is a usage error.
fn said_by_clap(error: &clap::Error) -> Exit {
    if error.print().is_err() {
        return Exit::Fine; // nobody reads on
    }
    if error.use_stderr() { Exit::Usage } else { Exit::Fine }
}
