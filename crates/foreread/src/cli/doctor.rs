//! `foreread doctor`.

use std::path::PathBuf;

use clap::Args;
use doctor::plan::plan;
use report::DoctorReport;

use super::examination::{Tree, examine_all};
use super::metrics::MetricsArgs;
use super::{Context, ResultFile};
use crate::exit::Exit;
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread doctor                              all devices, their problems, and one plan
  foreread doctor /srv/data                    one device in full: stack, evidence, related settings
  foreread doctor --json | jq '.plan[].steps[].command'
  foreread doctor --root captures/web17        another host, from a captured tree
  foreread doctor --metrics /var/lib/node_exporter/textfile_collector/foreread.prom

A captured tree needs class/bdi, block, class/block, dev/block, devices and fs/btrfs of /sys, and
self/mountinfo, meminfo and sys/kernel/osrelease of /proc. /run/udev, /usr/lib/udev and /etc show
the owners of read-ahead. docs/book/doctor.md shows how to capture a tree.";

/// Explain this host's read-ahead: values, origins, problems, plan
///
/// Inspects all storage, or that of PATH. Changes nothing and needs no privileges; root also sees
/// open files with an outdated window and processes that map large files. The plan has one value
/// for each device; `foreread apply -n` and `foreread persist -n` accept its steps.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorArgs {
    /// Directories, files, block devices or MAJ:MIN; default: all storage
    #[arg(value_name = "PATH|DEVICE")]
    paths: Vec<PathBuf>,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    tree: Tree,
    #[command(flatten)]
    file: ResultFile,
}

impl DoctorArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let metrics = self.metrics.prepare(self.file.force)?;
        let host = self.tree.host(context)?;
        let (examination, kernel) = examine_all(&host, &self.paths)?;
        if let Some(metrics) = metrics {
            metrics.write(&host, &examination, &kernel)?;
            return Ok(Exit::Fine);
        }
        let plan = match examination.snapshots.first() {
            Some(snapshot) => plan(snapshot, &examination.diagnoses),
            None => Vec::new(),
        };
        let view = DoctorReport {
            diagnoses: &examination.diagnoses,
            plan: &plan,
            tree: host.tree.as_deref(),
            missing: &examination.missing,
            kernel: &kernel,
            detail: !self.paths.is_empty() || context.global.verbose > 0,
        };
        if self.json {
            output::print_json(&report::doctor_json(&view))?;
        } else {
            output::print(&report::doctor(&view, output::look()))?;
        }
        Ok(Exit::Fine)
    }
}
