//! What a running daemon publishes: its status, its metrics, and that it is alive.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sys::replace::{Durability, FileMode, replace};

use crate::service::watchdog;
use crate::{ServiceManager, Status};

/// How often the status is published, unless the service manager expects it more often.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// Takes the text of the metrics.
type MetricsWriter = Box<dyn FnMut(&str)>;

pub struct StatusPublisher {
    path: PathBuf,
    metrics: Option<MetricsWriter>,
    manager: Option<ServiceManager>,
    interval: Duration,
    published: Instant,
}

impl StatusPublisher {
    /// Keeps the status in the file `path`, and hands the text of the metrics to `metrics`. The
    /// status is there at once.
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

    /// Tells the service manager that the daemon is at work.
    pub fn ready(&self, status: &Status) {
        self.write(status);
        self.notify("READY=1");
    }

    /// Publishes status and metrics, and tells the service manager that the daemon is alive, once
    /// in an interval.
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
        // The daemon works without it.
        let _ = replace_status(&self.path, &text);
    }

    /// Whether the status in the file is that of this process: another may have started since.
    fn is_own(&self) -> bool {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let status = serde_json::from_str::<Status>(&text);
        status.is_ok_and(|status| status.pid == std::process::id())
    }

    fn notify(&self, state: &str) {
        if let Some(manager) = &self.manager {
            // The manager notices a lack of messages.
            let _ = manager.notify(state);
        }
    }
}

/// Reports the end and removes the status, also where an error ends the daemon.
impl Drop for StatusPublisher {
    fn drop(&mut self) {
        self.notify("STOPPING=1");
        if self.is_own() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Replaces the status, so that a reader sees it whole. All users may read it, as far as the umask
/// allows.
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
