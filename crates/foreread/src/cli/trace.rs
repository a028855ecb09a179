//! `foreread trace`.

use std::ffi::OsString;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use report::clean;
use serde::Serialize;
use trace::{FORMATS, ImportOptions, Trace, TraceSummary};
use trace::{ReadOptions, RecordMethod, RecordSubject, Recording};
use trace::{TraceDamage, TraceStream, TraceVerification, TraceWriter};
use units::Bytes;

use super::Context;
use super::study_options::words;
use crate::destination::Destination;
use crate::exit::{Exit, bail_usage};
use crate::output;
use crate::signals::Signals;

const AFTER_HELP: &str = "\
Examples:
  foreread trace record -o mine.trace -- pg_dump mydb    what does it read?
  foreread trace record -o mine.trace --pid 4711         until it ends or control-C
  foreread trace import blkparse.txt -o mine.trace       the format is detected
  foreread trace show mine.trace
  foreread trace verify mine.trace                       is any block damaged?
  foreread sweep sim:hdd-2008 --workload trace:mine.trace

--workload trace:FILE[,pace=recorded][,compact] replays a trace, as fast as the storage permits or
at the recorded times. compact leaves out parts of files that the trace does not read, so that a
trace of a large disk fits into small files. All formats of `foreread trace formats` can be
replayed.";

/// Record, import and inspect traces of the reads of programs
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TraceArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Convert a trace from any supported format to foreread's own
    Import(Import),
    /// Rewrite a trace in foreread's present form, up to where it is damaged
    ///
    /// The exit code is 1 if the trace was damaged.
    Convert(Convert),
    /// Check a trace and name each damaged block
    ///
    /// The exit code is 1 if the trace is damaged.
    Verify(Verify),
    /// Describe a trace: requests, sizes, streams, share of sequential reads, hot files
    Show(Show),
    /// Record what a command or a running process reads
    ///
    /// The exit code is that of the command.
    Record(Record),
    /// List the trace formats that can be read
    Formats(Formats),
}

/// How a trace is read.
#[derive(Debug, Args)]
struct Form {
    /// The format of the trace; default: detected (`foreread trace formats` lists them)
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// Sort requests by time; without it, a trace whose times run backward is refused
    #[arg(long)]
    sort: bool,
    /// Size of a page, if the trace has page numbers; default: 4K, or for the ids in libCacheSim's
    /// traces the size that makes the most requests sequential
    #[arg(long, value_name = "SIZE")]
    page: Option<Bytes>,
}

impl Form {
    fn options(&self) -> anyhow::Result<ReadOptions> {
        if let Some(page) = self.page.filter(|page| page.is_zero() || *page > Bytes::from_gib(1)) {
            bail_usage!("--page {page}: 1 byte to 1 GiB");
        }
        let import = ImportOptions { sort: self.sort, page: self.page };
        Ok(ReadOptions { format: self.format.clone(), import, salvage: false })
    }
}

#[derive(Debug, Args)]
struct Import {
    /// The trace; may be compressed with zstd or gzip; `-` is standard input
    file: PathBuf,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Args)]
struct Convert {
    /// The trace; may be compressed with zstd or gzip; `-` is standard input
    old: PathBuf,
    /// Where to write it; `-` for stdout
    new: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Args)]
struct Verify {
    /// The trace, in foreread's or any other supported format; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    form: Form,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Show {
    /// The trace, in foreread's or any other supported format; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    form: Form,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Record {
    /// Where to write the trace
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Record this process until it exits, or until control-C
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// Record with this method only: the kernel's tracepoints, strace(1), or fio's own log if the
    /// command is fio; default: the best one that this machine permits
    #[arg(long, value_name = "MEANS", value_parser = words::<RecordMethod>())]
    by: Option<RecordMethod>,
    /// The command to run and record, after --
    #[arg(last = true, required_unless_present = "pid", value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Formats {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl TraceArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.action {
            Action::Import(import) => import.run(context),
            Action::Convert(convert) => convert.run(context),
            Action::Verify(verify) => verify.run(),
            Action::Show(show) => show.run(context),
            Action::Record(record) => record.run(context),
            Action::Formats(formats) => formats.run(),
        }
    }
}

impl Import {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let destination = other_file("--output", &self.file, &self.output, self.force)?;
        let (trace, source) = trace::read(&self.file, &self.form.options()?)?;
        destination.write(&trace.encode())?;
        context.note(&format!("{} ({}): {}", self.file.display(), source.format, brief(&trace)));
        Ok(Exit::Fine)
    }
}

/// Returns the destination `output`, which must not be the input file.
fn other_file(
    option: &'static str,
    input: &Path,
    output: &Path,
    force: bool,
) -> anyhow::Result<Destination> {
    let same = |path: &Path| path.canonicalize().ok();
    if same(output).is_some_and(|output| Some(output) == same(input)) {
        let path = output.display();
        let why = "is the input file; choose another path";
        bail_usage!("{option} {path}: {why}");
    }
    Destination::check(option, output, force)
}

/// Prints where a trace is damaged, and returns the exit code.
fn warn_of(damage: Option<&TraceDamage>, path: &Path, context: &Context) -> Exit {
    let Some(damage) = damage else { return Exit::Fine };
    let path = clean::plain(&path.display().to_string());
    context.note(&format!("warning: {path} is damaged: {damage}; the rest is left out"));
    Exit::Failed
}

impl Convert {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let destination = other_file("NEW", &self.old, &self.new, self.force)?;
        if let Some(stream) = trace::open_stream(&self.old)? {
            return self.copy(&stream, &destination, context);
        }
        let options = ReadOptions { salvage: true, ..self.form.options()? };
        let (trace, source) = trace::read(&self.old, &options)?;
        destination.write(&trace.encode())?;
        context.note(&format!("{} ({}): {}", self.old.display(), source.format, brief(&trace)));
        Ok(warn_of(source.damage.as_ref(), &self.old, context))
    }

    /// Copies a trace of any length block by block.
    fn copy(
        &self,
        stream: &TraceStream,
        destination: &Destination,
        context: &Context,
    ) -> anyhow::Result<Exit> {
        let failed = || format!("cannot write {}", self.new.display());
        let out = BufWriter::new(destination.create()?);
        let copy = TraceWriter::new(out, stream.is_timed())
            .and_then(|writer| stream.copy_to(writer, |_| ()))
            .with_context(failed)?;
        let requests = copy.records;
        context.note(&format!("{}: {requests} requests", self.old.display()));
        Ok(warn_of(copy.damage.as_ref(), &self.old, context))
    }
}

impl Verify {
    fn run(self) -> anyhow::Result<Exit> {
        let found = trace::verify_file(&self.file, &self.form.options()?)?;
        if self.json {
            output::print_json(&report::trace_verification_json(&found))?;
        } else {
            let path = self.file.display().to_string();
            output::print(&verification_text(&clean::plain(&path), &found))?;
        }
        Ok(if found.damages.is_empty() { Exit::Fine } else { Exit::Failed })
    }
}

/// Describes the result of a verification, with a line for each damaged block.
fn verification_text(path: &str, found: &TraceVerification) -> String {
    let TraceVerification { blocks, records, damages } = found;
    let lines = damages.iter().map(|damage| format!("{path}: {damage}\n"));
    let mut text: String = lines.collect();
    let state = match damages.len() {
        0 => "no damage".to_owned(),
        1 => "1 damaged place".to_owned(),
        many => format!("{many} damaged places"),
    };
    text.push_str(&format!("{path}: {blocks} blocks, {records} requests, {state}\n"));
    text
}

/// Summarises a trace: numbers of requests, files and processes, and its duration.
fn brief(trace: &Trace) -> String {
    let requests = trace.records().len();
    let (files, processes) = (trace.files().len(), trace.process_count());
    let some = |many: usize, one: &str, more: &str| match many {
        1 => format!("1 {one}"),
        _ => format!("{many} {more}"),
    };
    let requests = some(requests, "request", "requests");
    let files = some(files, "file", "files");
    let processes = some(processes, "process", "processes");
    format!("{requests} to {files} by {processes} in {}", trace.span())
}

impl Record {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let subject = match self.pid {
            Some(pid) => RecordSubject::Process(pid),
            None => RecordSubject::Command(self.command),
        };
        // Check first, because the command may run for an hour.
        let destination = Destination::check("--output", &self.output, self.force)?;
        if destination.path().is_none() && matches!(subject, RecordSubject::Command(_)) {
            bail_usage!("--output -: the command writes to stdout itself; name a file");
        }
        let signals = Signals::listen().context("listening to signals")?;
        let stop = || signals.which().is_some();
        let recording = trace::record(&subject, self.by, &stop)?;
        destination.write(&recording.trace.encode())?;
        note_recording(&recording, context);
        // After a signal, the exit code is that of the signal, not that of the command.
        Ok(match (recording.command, signals.which()) {
            (None, _) => Exit::Fine,
            (Some(_), Some(signal)) => Exit::Signal(signal),
            (Some(status), None) => Exit::of_command(status),
        })
    }
}

/// Prints the method of a recording, and its notes.
fn note_recording(recording: &Recording, context: &Context) {
    for tried in &recording.tried {
        let reason = clean::plain(&tried.reason);
        context.note(&format!("cannot record by {}: {reason}", tried.means));
    }
    let (means, brief) = (recording.means, brief(&recording.trace));
    context.note(&format!("recorded by {means}: {brief}"));
    recording.notes.iter().for_each(|note| context.note(&format!("note: {}", clean::plain(note))));
}

impl Formats {
    fn run(self) -> anyhow::Result<Exit> {
        if self.json {
            #[derive(Serialize)]
            struct Line {
                name: &'static str,
                summary: &'static str,
            }
            let line = |form: &trace::TraceFormat| Line { name: form.name, summary: form.summary };
            let formats: Vec<Line> = FORMATS.iter().map(line).collect();
            output::print_versioned(&serde_json::json!({
                "formats": formats,
            }))?;
        } else {
            let lines = FORMATS.iter().map(|form| format!("{:<14} {}\n", form.name, form.summary));
            output::print(&lines.collect::<String>())?;
        }
        Ok(Exit::Fine)
    }
}

impl Show {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let options = ReadOptions { salvage: true, ..self.form.options()? };
        let (trace, source) = trace::read(&self.file, &options)?;
        let summary = trace.summary();
        if self.json {
            output::print_json(&report::trace_json(source.format, &summary))?;
        } else {
            output::print(&text(source.format, &summary))?;
        }
        Ok(warn_of(source.damage.as_ref(), &self.file, context))
    }
}

/// Formats an amount of data that is rarely a round number.
fn amount(bytes: Bytes) -> String {
    match bytes.get() {
        0..1_048_576 => bytes.to_string(),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes.as_mib()),
        _ => format!("{:.2} GiB", bytes.as_mib() / 1024.0),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a summary for the terminal.
fn text(format: &str, summary: &TraceSummary) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| text.push_str(&format!("{what:<22} {value}\n"));
    line("form", format.to_owned());
    line("reads", format!("{} of {}", summary.reads, amount(summary.read_bytes)));
    if summary.faults > 0 {
        line("  of mapped pages", summary.faults.to_string());
    }
    line("writes", format!("{} of {}", summary.writes, amount(summary.write_bytes)));
    if summary.advice > 0 {
        line("advice", format!("{} calls", summary.advice));
    }
    line("time", if summary.timed { summary.span.to_string() } else { "not recorded".to_owned() });
    let threads = if summary.threads == 1 { "thread" } else { "threads" };
    line("processes", format!("{} ({} {threads})", summary.processes, summary.threads));
    line("files", format!("{} ({} times opened)", summary.files, summary.open_files));
    line("distinct data read", amount(summary.footprint));
    line("sequential reads", percent(summary.sequential_share));
    line("  within each stream", percent(summary.stream_share));
    line("next page follows", percent(summary.next_page_share));
    let (streams, at_once) = (summary.streams, summary.streams_at_once);
    line("streams", format!("{streams} of 128 KiB or more, at most {at_once} at once"));
    line("size of reads", format!("median {}, largest {}", summary.size_p50, summary.size_max));
    let sizes = summary.sizes.iter().map(|size| format!("{} × {}", size.requests, size.size));
    line("  most frequent", sizes.collect::<Vec<_>>().join(", "));
    text.push_str("hot files:\n");
    for file in &summary.hot_files {
        let name = clean::plain(&file.name);
        let (bytes, requests) = (amount(file.bytes), file.requests);
        let line = format!("  {bytes:>10} in {requests:>8} requests  {name}\n");
        text.push_str(&line);
    }
    text
}
