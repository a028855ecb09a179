//! The one way out: results to stdout, the rest to stderr.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use report::{Look, clean};
use rustix::fs::FileType;
use rustix::io::Errno;

/// Whoever read our results has gone, as `head` does: nothing is wrong.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the results any more")]
pub struct StdoutClosed;

/// The terminal that showed our results has gone: it is as if SIGHUP had come.
#[derive(Debug, thiserror::Error)]
#[error("the terminal has gone")]
pub struct TerminalGone;

/// What it means that stdout could not be written.
pub fn lost(error: io::Error) -> anyhow::Error {
    // A terminal that has hung up is no terminal any more, but still a character device.
    let device =
        rustix::fs::fstat(io::stdout()).map(|status| FileType::from_raw_mode(status.st_mode));
    let terminal = device == Ok(FileType::CharacterDevice);
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PIPE) => StdoutClosed.into(),
        Some(Errno::IO | Errno::NXIO) if terminal => TerminalGone.into(),
        _ => error.into(),
    }
}

/// Writes results to stdout.
pub fn print(text: &str) -> anyhow::Result<()> {
    with_stdout(|out| out.write_all(text.as_bytes()))
}

/// Writes a document to stdout.
pub fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    print(&text)
}

/// Writes a document to stdout in one line.
pub fn print_json_line(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(document)?;
    text.push('\n');
    print(&text)
}

/// Lets `write` write to stdout, which forgets colours that stdout does not take.
pub fn with_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    let written = write(&mut out).and_then(|()| out.flush());
    written.map_err(lost).context("cannot write the results")
}

/// Says something on stderr that is no result; nobody listening is no error.
pub fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// One clear line, and below it what caused it, each cause once.
pub fn error(error: &anyhow::Error, quiet: bool) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let mut said = error.to_string();
    note(&format!("{red}error:{red:#} {}", clean::plain(&said)));
    if quiet {
        return;
    }
    for cause in error.chain().skip(1) {
        let text = cause.to_string();
        if !said.contains(&text) {
            note(&format!("  caused by: {}", clean::plain(&text)));
        }
        said = text;
    }
}

/// What stdout is like.
pub fn look() -> Look {
    let stdout = io::stdout();
    let colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let width = if stdout.is_terminal() {
        console::Term::stdout().size_checked().map_or(80, |(_, columns)| usize::from(columns))
    } else {
        120
    };
    Look { width: width.max(40), colour }
}
