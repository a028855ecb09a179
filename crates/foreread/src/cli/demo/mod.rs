//! `foreread demo`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use profile::{ModelChoice, ReplaySetting, TextOptions, analyse, imported, profile_text};

use super::{Context, run_words};
use crate::destination::Destination;
use crate::exit::Exit;
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread demo
  foreread demo -o demo.html                  write the report there
  foreread demo --disk sim:nvme,cache=4G      another disk
  sudo foreread demo --disk virtual:raid10-2008,fs=xfs --budget 4";

/// Time limit of the trials, in minutes. A simulation takes seconds.
const BUDGET_MIN: &str = "1";
/// Length of a trial; shorter than in `tune`, for slow machines.
const DURATION: &str = "1s";

/// Streams, which gain from read-ahead, and random reads, which it slows down.
const WORKLOADS: &str = "seq-8,rand-mmap";

/// `strace -f -ttt -T -y -s 0` of tac(1), which prints the lines of a file in reverse order, on a
/// cold virtual disk `hdd-2008`, without the calls for other files.
const RECORDING: &[u8] = include_bytes!("tac.strace");
const RECORDING_NAME: &str = "tac.strace";
const RECORDED_ON: &str = "hdd-2008";
/// Replay settings: `auto` from its start, and a window that a user might try.
const WHAT_IF: [&str; 2] = ["auto", "1M"];

/// Report file in the directory of the record, unless `-o` names a file.
const REPORT_NAME: &str = "demo.html";

/// Last lines of the output.
const NEXT: &str = "\
doctor                   where the current values come from, and what is wrong with them
tune /srv/data           the best read-ahead for a directory, mount point or device (minutes)
apply, persist           set it now; keep it after a reboot. rollback undoes both
profile -- COMMAND       where a program waits for storage, why, and what would help (root)
auto /srv/data           adapt the read-ahead of every open file, continuously (root)
watch                    what read-ahead does now
";

/// Show foreread on one page: explain, measure, decide, profile, adapt
///
/// Explains the read-ahead of this machine, finds the best read-ahead of a disk array in
/// simulation, shows where a recorded program waited for its disk and what would help, and prints
/// the commands for your own storage. It needs no privileges and changes no setting. The run is
/// recorded like any other, and its report is demo.html in the directory of the record. A virtual:
/// disk needs root and some minutes, but uses the real kernel.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DemoArgs {
    /// The disk: sim:MODEL[,key=value…] or virtual:MODEL[,key=value…]
    #[arg(long, value_name = "TARGET", default_value = "sim:raid10-2008,cache=1G")]
    disk: String,
    /// Time limit of the trials, in minutes
    #[arg(long, value_name = "MIN", default_value = BUDGET_MIN)]
    budget: String,
    /// Write the report of the run to this HTML file
    #[arg(short = 'o', long = "report", value_name = "FILE")]
    report: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "report")]
    force: bool,
}

impl DemoArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let named = self.report.as_deref();
        let named =
            named.map(|path| Destination::check("--report", path, self.force)).transpose()?;
        // Problems that `doctor` finds do not make the demonstration fail.
        step("1. Explain: the read-ahead of this machine", "foreread doctor")?;
        run_words(["doctor".into()], context)?;
        let words = ["tune", &self.disk, "--workload", WORKLOADS, "--budget", &self.budget];
        let words = [&words[..], &["--duration", DURATION, "--seed", "1", "--brief"]].concat();
        step("2. Measure and decide: a disk array", &format!("foreread {}", words.join(" ")))?;
        let exit = run_words(words.into_iter().map(OsString::from), context)?;
        if !matches!(exit, Exit::Fine | Exit::Inconclusive) {
            return Ok(exit);
        }
        show_profile(context)?;
        let report = match named {
            Some(named) => named,
            None => own_report(context)?,
        };
        let opened = super::report::Opened::read("last", context)?;
        report.write(super::report::page(&[opened]).as_bytes())?;
        step("4. Your storage", "foreread tune /srv/data")?;
        output::print(NEXT)?;
        if let Some(path) = report.path() {
            context.note(&format!("the report of step 2, for a browser: {}", path.display()));
        }
        Ok(exit)
    }
}

/// Diagnoses the recording, and replays it with `auto`.
fn show_profile(context: &Context) -> anyhow::Result<()> {
    let command = format!(
        "foreread profile --import {RECORDING_NAME} --device {RECORDED_ON} --what-if {}",
        WHAT_IF.join(",")
    );
    step(
        "3. Profile and adapt: tac(1) reads a log backward; recorded with strace on a virtual disk",
        &command,
    )?;
    // The directory of the record is writable; /tmp may be read-only.
    let record = context.store_path();
    let directory = record.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = tempfile::tempdir_in(directory.unwrap_or(Path::new(".")))
        .context("cannot create a temporary directory")?;
    let file = directory.path().join(RECORDING_NAME);
    std::fs::write(&file, RECORDING).with_context(|| format!("cannot write {}", file.display()))?;
    let mut recording = imported(&file, None)?;
    RECORDING_NAME.clone_into(&mut recording.target);
    let settings: Vec<ReplaySetting> =
        WHAT_IF.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let analysis = analyse(&recording, &ModelChoice::named(RECORDED_ON)?, &settings);
    output::print(&profile_text(&recording, &analysis, TextOptions::default()))
}

/// Returns the report file in the record's directory; an existing one is overwritten.
fn own_report(context: &Context) -> anyhow::Result<Destination> {
    Destination::check("--report", &context.store_path().with_file_name(REPORT_NAME), true)
}

fn step(title: &str, command: &str) -> anyhow::Result<()> {
    let bold = anstyle::Style::new().bold();
    output::print(&format!("\n{bold}{title}{bold:#}\n$ {command}\n\n"))
}
