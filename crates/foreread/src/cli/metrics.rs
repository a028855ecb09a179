//! Metrics of a host, as a file for node_exporter's textfile collector, or over HTTP.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use daemon::Status;
use doctor::check::{CompliancePolicy, check};
use host::Dirs;
use report::serve::{PageAddress, Response, Site};
use report::{HostMetrics, host_metrics};
use sys::input::InputKind;
use tunables::DriftState;

use super::examination::{Examination, Host, examine_all};
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

/// Destination and policy of the metrics, checked before the host is examined.
pub struct MetricsWriter {
    destination: Destination,
    policy: Option<CompliancePolicy>,
}

impl MetricsArgs {
    /// Reads the policy and checks the destination. Returns `None` without `--metrics`.
    pub fn prepare(&self, force: bool) -> anyhow::Result<Option<MetricsWriter>> {
        let Some(path) = &self.metrics else { return Ok(None) };
        let destination = Destination::check_or_own("--metrics", path, force, are_metrics)?;
        let policy = self.policy.as_deref().map(policy_file::read).transpose()?;
        Ok(Some(MetricsWriter { destination, policy: policy.map(|(policy, _)| policy) }))
    }
}

impl MetricsWriter {
    /// Writes the file atomically. A reader sees either the previous or the new file.
    pub fn write(
        mut self,
        host: &Host,
        examination: &Examination,
        kernel: &str,
    ) -> anyhow::Result<()> {
        let text = text(host, examination, kernel, self.policy.as_ref())?;
        self.destination.publish(&text)
    }
}

/// Formats the metrics of an examined host.
fn text(
    host: &Host,
    examination: &Examination,
    kernel: &str,
    policy: Option<&CompliancePolicy>,
) -> anyhow::Result<String> {
    let snapshot = examination.snapshots.first().context("no storage was examined")?;
    let (applied, refused) = tunables::remembered(&host.dirs)?;
    let verified = tunables::verify(&host.root, &applied)?;
    let drifted = verified.iter().filter(|one| one.state != DriftState::Holds).count();
    let report = policy.map(|policy| check(policy, snapshot, &examination.diagnoses));
    Ok(host_metrics(&HostMetrics {
        diagnoses: &examination.diagnoses,
        running: host.root.is_system(),
        check: report.as_ref(),
        applied: verified.len(),
        drifted,
        unreadable_journals: refused.len(),
        version: env!("CARGO_PKG_VERSION"),
        kernel,
    }))
}

/// Metrics of a host and of its `auto`, for Prometheus to scrape.
pub struct MetricsSite {
    host: Host,
    policy: Option<CompliancePolicy>,
    latest: Mutex<Option<(Instant, String)>>,
}

/// Maximum age of an examination. Scrapes within this time share it, from any number of servers.
const MAX_AGE: Duration = Duration::from_secs(5);

impl MetricsSite {
    /// Examines the host once, so that a failure is reported at the start.
    pub fn new(host: Host, policy: Option<&Path>) -> anyhow::Result<Self> {
        let policy = policy.map(policy_file::read).transpose()?.map(|(policy, _)| policy);
        let site = Self { host, policy, latest: Mutex::new(None) };
        site.metrics()?;
        Ok(site)
    }

    fn metrics(&self) -> anyhow::Result<String> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, text)) = latest.as_ref().filter(|(made, _)| made.elapsed() < MAX_AGE) {
            tracing::debug!("scraped {:?} after the examination", made.elapsed());
            return Ok(text.clone());
        }
        let (examination, kernel) = examine_all(&self.host, &[])?;
        let text = text(&self.host, &examination, &kernel, self.policy.as_ref())? + &self.of_auto();
        *latest = Some((Instant::now(), text.clone()));
        Ok(text)
    }

    /// Returns the metrics of a running `auto`; empty if none runs.
    fn of_auto(&self) -> String {
        let path = status_path(&self.host.dirs);
        let Ok(text) = sys::input::read_text(&path, InputKind::STATUS) else {
            return String::new();
        };
        let status: Option<Status> = serde_json::from_str(&text).ok();
        let is_running =
            |status: &Status| self.host.root.path(format!("/proc/{}", status.pid)).exists();
        status.filter(is_running).map(|status| status.metrics()).unwrap_or_default()
    }
}

impl Site for MetricsSite {
    fn page(&self, address: &PageAddress) -> Response {
        match address.parts()[..] {
            [] => Response::plain(200, "foreread: /metrics, /healthz"),
            ["healthz"] => Response::plain(200, "ok"),
            ["metrics"] => match self.metrics() {
                Ok(text) => Response::metrics(text),
                Err(error) => Response::unavailable(&format!("{error:#}")),
            },
            _ => Response::not_found(),
        }
    }
}

/// Returns the file in which a running `auto` publishes its status.
pub fn status_path(dirs: &Dirs) -> PathBuf {
    dirs.state.join("auto.json")
}

/// Returns whether foreread wrote the metrics in this file, so that the next run may replace them.
pub fn are_metrics(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let read = std::fs::File::open(path).map(|file| file.take(16).read_to_end(&mut start));
    read.is_ok() && start.starts_with(b"# HELP foreread_")
}
