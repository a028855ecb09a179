//! `foreread demo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{Context, run_words};
use crate::destination::Destination;
use crate::exit::Exit;
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread demo
  foreread demo -o demo.html                  also write the report
  foreread demo --disk sim:nvme,cache=4G      another disk
  sudo foreread demo --disk virtual:raid10-2008,fs=xfs --budget 4";

/// Minutes of trials. A simulation is done in seconds.
const BUDGET_MIN: &str = "2";

/// Show on one page what foreread does: explain, measure, decide
///
/// Explains the read-ahead of this machine, finds the best read-ahead of a disk array in
/// simulation, and prints the commands for your own storage. It changes no setting. The run is
/// recorded like any other. A virtual: disk needs root and some minutes, but uses the real kernel.
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
        let page = self.report.as_deref();
        let page = page.map(|path| Destination::check("--report", path, self.force)).transpose()?;
        // What doctor finds is no failure of the demonstration.
        step("1. Explain: the read-ahead of this machine", "foreread doctor")?;
        run_words(["doctor".into()], context)?;
        let words = ["tune", &self.disk, "--budget", &self.budget, "--seed", "1"];
        step("2. Measure and decide: a disk array", &format!("foreread {}", words.join(" ")))?;
        let exit = run_words(words.map(OsString::from), context)?;
        if !matches!(exit, Exit::Fine | Exit::Inconclusive) {
            return Ok(exit);
        }
        if let Some(page) = page {
            let opened = super::report::Opened::read("last", context)?;
            page.write(super::report::page(&[opened]).as_bytes())?;
        }
        step("3. Your storage", "foreread tune /srv/data")?;
        output::print(
            "tune measures a directory, mount point or device and recommends a setting;\n\
             apply sets it, persist keeps it, rollback undoes it; watch shows what happens now.\n",
        )?;
        Ok(exit)
    }
}

fn step(title: &str, command: &str) -> anyhow::Result<()> {
    let bold = anstyle::Style::new().bold();
    output::print(&format!("\n{bold}{title}{bold:#}\n$ {command}\n\n"))
}
