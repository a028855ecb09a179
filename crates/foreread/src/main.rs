//! The `foreread` command: parses the command line, runs the verb and reports errors.

mod ascii;
mod cli;
mod destination;
mod exit;
mod json_lines;
mod output;
mod progress;
mod signals;
mod stdout_error;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::Invocation;
use crate::exit::Exit;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    // Set early, so that usage errors also have colours.
    cli::set_up_early(&words);
    let mut quiet = false;
    let result = Invocation::read(words.clone()).and_then(|invocation| {
        quiet = invocation.is_quiet();
        invocation.run()
    });
    match result {
        Ok(exit) => exit.into(),
        Err(error) => failed(&error, &words, quiet).into(),
    }
}

fn failed(error: &anyhow::Error, words: &[OsString], quiet: bool) -> Exit {
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        return usage::explain(error, &cli::verb_of(words));
    }
    let exit = Exit::from_error(error);
    if exit != Exit::Fine {
        output::error(error, quiet);
    }
    exit
}
