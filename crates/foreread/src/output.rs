//! All output: results to stdout or to the file of `--output`, the rest to stderr. Colour and the
//! ASCII fallback are decided here for all verbs.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use report::{TermStyle, clean};

use crate::ascii::{self, AsciiWriter};
use crate::stdout_error::lost;

/// Whether text for people is written in ASCII.
static ASCII: AtomicBool = AtomicBool::new(false);
/// Results for the file of `--output`.
static RESULTS: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Sets colours and characters before anything is written. With `Auto`, colour depends on
/// `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` (in this order) and on the kind of the stream.
pub fn set_up(colour: ColorChoice, ascii: bool) {
    effective(colour).write_global();
    let utf8 = ascii::locale_is_utf8(|name| std::env::var(name).ok());
    ASCII.store(ascii || !utf8, Ordering::Relaxed);
}

/// `CLICOLOR_FORCE=0` forces nothing, but the library treats any value as set, so this computes the
/// result without it. If only one of stdout and stderr is a terminal, neither has colours.
fn effective(colour: ColorChoice) -> ColorChoice {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if colour != ColorChoice::Auto || variable("CLICOLOR_FORCE") != "0" {
        return colour;
    }
    let terminals = io::stdout().is_terminal() && io::stderr().is_terminal();
    let refused = variable("CLICOLOR") == "0" || matches!(variable("TERM").as_str(), "" | "dumb");
    if terminals && !refused { colour } else { ColorChoice::Never }
}

/// Converts text for people to displayable characters.
pub fn shown(text: &str) -> std::borrow::Cow<'_, str> {
    if is_ascii() { ascii::of(text) } else { text.into() }
}

/// Returns whether text for people is written in ASCII.
pub fn is_ascii() -> bool {
    ASCII.load(Ordering::Relaxed)
}

/// Collects results for a file instead of writing them to stdout.
pub fn keep_results() {
    *RESULTS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// Returns the results collected since [`keep_results`].
pub fn take_results() -> Vec<u8> {
    RESULTS.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
}

/// Writes results for people to stdout.
pub fn print(text: &str) -> anyhow::Result<()> {
    with_stdout(|out| out.write_all(shown(text).as_bytes()))
}

/// Writes a document (Markdown, TOML, HTML, a job file) to stdout, unchanged.
pub fn print_document(text: &str) -> anyhow::Result<()> {
    with_stdout(|out| out.write_all(text.as_bytes()))
}

/// Writes a JSON document to stdout.
pub fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    print_document(&text)
}

/// Writes a JSON document with the version of its schema to stdout.
pub fn print_versioned(document: &impl serde::Serialize) -> anyhow::Result<()> {
    print_json(&report::Versioned::new(document))
}

/// Writes a JSON document to stdout in one line.
pub fn print_json_line(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(document)?;
    text.push('\n');
    print_document(&text)
}

/// Calls `write` with stdout. Colours that stdout does not support are dropped.
pub fn with_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut kept = RESULTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = kept.as_mut() {
        return write(kept).context("cannot keep the results");
    }
    drop(kept);
    let mut out = anstream::stdout().lock();
    let written = write(&mut out).and_then(|()| out.flush());
    written.map_err(lost).context("cannot write the results")
}

/// Prints a note on stderr; a closed stderr is not an error.
pub fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", shown(text));
}

/// Returns stderr for the log, with conversion to displayable characters.
pub fn stderr() -> Box<dyn Write> {
    if is_ascii() { Box::new(AsciiWriter::new(io::stderr())) } else { Box::new(io::stderr()) }
}

/// Prints an error in one line, and below it each distinct cause.
pub fn error(error: &anyhow::Error, quiet: bool) {
    let mut said = error.to_string();
    error_line(&clean::plain(&said));
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

/// Prints the first line of an error.
pub fn error_line(text: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    note(&format!("{red}error:{red:#} {text}"));
}

pub fn look() -> TermStyle {
    let stdout = io::stdout();
    let filed = RESULTS.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let colour = match filed {
        true => ColorChoice::global() == ColorChoice::Always,
        false => AutoStream::choice(&stdout) != ColorChoice::Never,
    };
    let width = if stdout.is_terminal() && !filed {
        console::Term::stdout().size_checked().map_or(80, |(_, columns)| usize::from(columns))
    } else {
        120
    };
    TermStyle { width: width.max(40), colour }
}
