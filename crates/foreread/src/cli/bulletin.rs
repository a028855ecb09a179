//! What a running `auto` lets others know: its status, its metrics, and the service manager that it
//! lives.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::auto::{ServiceManager, Status, watchdog};

use super::Context;
use crate::destination::Destination;

/// How often the status is written, unless the service manager wants to hear more often.
const EVERY: Duration = Duration::from_secs(1);

/// Tells others how it goes.
#[derive(Debug)]
pub(super) struct Bulletin {
    /// Where the status is kept.
    path: PathBuf,
    manager: Option<ServiceManager>,
    every: Duration,
    told: Instant,
}

impl Bulletin {
    /// Begins to keep the status in `path`.
    pub fn begin(path: PathBuf) -> Self {
        let address = std::env::var("NOTIFY_SOCKET").ok();
        let manager = address.and_then(|address| ServiceManager::at(&address).ok());
        let wanted = std::env::var("WATCHDOG_USEC").ok().and_then(|micros| watchdog(&micros));
        let every = wanted.filter(|_| manager.is_some()).map_or(EVERY, |every| every.min(EVERY));
        Self { path, manager, every, told: Instant::now() }
    }

    /// Writes the status at once: who asks now is told that it is there.
    pub fn announce(&self, status: &Status) {
        if let Some(dir) = self.path.parent() {
            let _ = std::fs::create_dir_all(dir);
        }
        self.write(status);
    }

    /// Tells the service manager that it may rely on this.
    pub fn ready(&self, status: &Status) {
        self.announce(status);
        self.notify("READY=1");
    }

    /// Writes status and metrics once a second, and tells the service manager that it lives.
    pub fn tell(&mut self, status: &Status, metrics: Option<&mut Destination>) {
        if self.told.elapsed() < self.every {
            return;
        }
        self.told = Instant::now();
        let followed: usize = status.devices.values().map(|one| one.followed).sum();
        self.notify(&format!("WATCHDOG=1\nSTATUS={}, {followed} open files", status.state));
        self.write(status);
        if let Some(destination) = metrics {
            let _ = destination.publish(&status.metrics());
        }
    }

    fn write(&self, status: &Status) {
        let text = serde_json::to_string_pretty(status).unwrap_or_default();
        // Nobody suffers if it cannot be written.
        let own = Destination::check("the status", &self.path, true);
        let _ = own.and_then(|mut own| own.publish(&text));
    }

    /// Whether the status that is there is this process's: another may have begun since.
    fn is_own(&self) -> bool {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let status = serde_json::from_str::<Status>(&text);
        status.is_ok_and(|status| status.pid == std::process::id())
    }

    fn notify(&self, state: &str) {
        if let Some(manager) = &self.manager {
            // It notices by itself if it hears nothing.
            let _ = manager.tell(state);
        }
    }
}

/// Tells that it ends, and removes the status, also where an error ends it.
impl Drop for Bulletin {
    fn drop(&mut self) {
        self.notify("STOPPING=1");
        if self.is_own() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Where the daemon of this user keeps its status.
pub(super) fn status_path(context: &Context) -> PathBuf {
    context.dirs.state.join("auto.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_from_its_first_moment_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/auto.json");
        let bulletin = Bulletin::begin(path.clone());
        bulletin.announce(&Status::new(std::process::id(), 0, "starting"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("starting"), "{text}");
        drop(bulletin);
        assert!(!path.exists());
    }

    #[test]
    fn the_status_of_another_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auto.json");
        let bulletin = Bulletin::begin(path.clone());
        bulletin.announce(&Status::new(std::process::id() + 1, 0, "acting"));
        drop(bulletin);
        assert!(path.exists());
    }
}
