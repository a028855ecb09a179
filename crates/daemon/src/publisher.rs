//! Publishes the status and metrics of a running daemon, and notifies the service manager.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sys::replace::{Durability, FileMode, replace};

use crate::service::watchdog;
use crate::{ServiceManager, Status};

/// Interval between updates of the status, unless the service manager requires a shorter one.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// Writes the text of the metrics.
type MetricsWriter = Box<dyn FnMut(&str)>;

pub struct StatusPublisher {
    path: PathBuf,
    metrics: Option<MetricsWriter>,
    manager: Option<ServiceManager>,
    interval: Duration,
    published: Instant,
}

impl StatusPublisher {
    /// Writes the status to the file `path`, first immediately, and passes the text of the metrics
    /// to `metrics`.
    pub fn new(path: PathBuf, metrics: Option<MetricsWriter>) -> Self {
        let address = std::env::var("NOTIFY_SOCKET").ok();
        let manager = address.and_then(|address| ServiceManager::at(&address).ok());
        let wanted = std::env::var("WATCHDOG_USEC").ok().and_then(|micros| watchdog(&micros));
        let interval = wanted.filter(|_| manager.is_some()).unwrap_or(PUBLISH_INTERVAL);
        let interval = interval.min(PUBLISH_INTERVAL);
        let publisher = Self { path, metrics, manager, interval, published: Instant::now() };
        publisher.write(&Status::starting());
        publisher
    }

    /// Notifies the service manager that the daemon is ready.
    pub fn ready(&self, status: &Status) {
        self.write(status);
        self.notify("READY=1");
    }

    /// Publishes the status and the metrics, and notifies the service manager that the daemon is
    /// alive, at most once per interval.
    pub fn publish(&mut self, status: &Status) {
        if self.published.elapsed() < self.interval {
            return;
        }
        self.published = Instant::now();
        let followed: usize = status.devices.values().map(|one| one.followed).sum();
        self.notify(&format!("WATCHDOG=1\nSTATUS={}, {followed} open files", status.state));
        self.write(status);
        if let Some(metrics) = &mut self.metrics {
            metrics(&status.metrics());
        }
    }

    fn write(&self, status: &Status) {
        let text = serde_json::to_string_pretty(status).unwrap_or_default();
        // The daemon works without a status file.
        let _ = replace_status(&self.path, &text);
    }

    /// Returns whether the status file is that of this process: another one may have started since.
    fn is_own(&self) -> bool {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let status = serde_json::from_str::<Status>(&text);
        status.is_ok_and(|status| status.pid == std::process::id())
    }

    fn notify(&self, state: &str) {
        if let Some(manager) = &self.manager {
            // The service manager detects missing messages.
            let _ = manager.notify(state);
        }
    }
}

/// Notifies the service manager and removes the status, even if the daemon stops on an error.
impl Drop for StatusPublisher {
    fn drop(&mut self) {
        self.notify("STOPPING=1");
        if self.is_own() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Replaces the status atomically, so that a reader sees a complete file. All users may read it, as
/// far as the umask allows.
fn replace_status(path: &Path, text: &str) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    replace(path, text.as_bytes(), FileMode::Masked(0o666), Durability::UntilReboot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_there_from_start_to_exit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/auto.json");
        let publisher = StatusPublisher::new(path.clone(), None);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("starting"), "{text}");
        drop(publisher);
        assert!(!path.exists());
    }

    #[test]
    fn the_status_of_another_process_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auto.json");
        let publisher = StatusPublisher::new(path.clone(), None);
        let other = Status { pid: std::process::id() + 1, ..Status::starting() };
        replace_status(&path, &serde_json::to_string(&other).unwrap()).unwrap();
        drop(publisher);
        assert!(path.exists());
    }
}
