//! Metrics of a host, in a file for node_exporter's textfile collector.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use doctor::check::{CompliancePolicy, check};
use report::{HostMetrics, host_metrics};
use tunables::DriftState;

use super::examination::{Examination, Host};
use super::policy_file;
use crate::destination::Destination;

#[derive(Clone, Debug, Args)]
pub struct MetricsArgs {
    /// Write Prometheus metrics to this file instead of a report, for the textfile collector of
    /// node_exporter; `-` is stdout. A file of an earlier run is replaced
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "json", "result_file"])]
    metrics: Option<PathBuf>,
    /// Include the violations of this policy in the metrics (`foreread check` explains policies)
    #[arg(long, value_name = "FILE", requires = "metrics")]
    policy: Option<PathBuf>,
}

/// What to write, and where: checked before the host is examined.
pub struct MetricsWriter {
    destination: Destination,
    policy: Option<CompliancePolicy>,
}

impl MetricsArgs {
    /// Reads the policy and checks the file's place. `None` without `--metrics`.
    pub fn prepare(&self, force: bool) -> anyhow::Result<Option<MetricsWriter>> {
        let Some(path) = &self.metrics else { return Ok(None) };
        let destination = Destination::check_or_own("--metrics", path, force, are_metrics)?;
        let policy = self.policy.as_deref().map(policy_file::read).transpose()?;
        Ok(Some(MetricsWriter { destination, policy: policy.map(|(_, policy)| policy) }))
    }
}

impl MetricsWriter {
    /// Writes the file atomically. A reader sees the previous file or the new one.
    pub fn write(
        mut self,
        host: &Host,
        examination: &Examination,
        kernel: &str,
    ) -> anyhow::Result<()> {
        let snapshot = examination.snapshots.first().context("no storage was examined")?;
        let (applied, refused) = tunables::remembered(&host.dirs)?;
        let verified = tunables::verify(&host.root, &applied)?;
        let drifted = verified.iter().filter(|one| one.state != DriftState::Holds).count();
        let report = self.policy.as_ref();
        let report = report.map(|policy| check(policy, snapshot, &examination.diagnoses));
        let text = host_metrics(&HostMetrics {
            diagnoses: &examination.diagnoses,
            running: host.root.is_system(),
            check: report.as_ref(),
            applied: verified.len(),
            drifted,
            unreadable_journals: refused.len(),
            version: env!("CARGO_PKG_VERSION"),
            kernel,
        });
        self.destination.publish(&text)
    }
}

/// Whether a file holds metrics that foreread wrote: the next run replaces them.
pub fn are_metrics(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let read = std::fs::File::open(path).map(|file| file.take(16).read_to_end(&mut start));
    read.is_ok() && start.starts_with(b"# HELP foreread_")
}
