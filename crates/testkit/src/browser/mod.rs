//! Drives headless Chromium, to test pages as users see them.
//!
//! Uses the DevTools protocol over a pair of pipes (`--remote-debugging-pipe`): commands and events
//! are JSON documents with a zero byte after each. No port is opened.

mod page;
mod pipe;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use thiserror::Error;

pub use page::{BrowserPage, PageLog, Theme};
use pipe::DevToolsPipe;

/// Why a command to the browser failed.
#[derive(Debug, Error)]
pub enum BrowserError {
    /// No Chromium was found.
    #[error("no Chromium on this machine (apt-get install chromium)")]
    Missing,
    #[error("chromium: {0}")]
    Io(#[from] std::io::Error),
    /// Chromium has exited or does not respond.
    #[error("chromium says nothing for {waited:?} while waiting for {what}")]
    Silent { what: String, waited: Duration },
    /// Chromium rejects a command, or a script throws an exception.
    #[error("{what}: {said}")]
    Refused { what: String, said: String },
}

/// Possible names of the program.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Options of Chromium: no background services, and the protocol over a pipe.
const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];

/// A running browser, terminated when this is dropped.
pub struct Browser {
    child: Child,
    pipe: DevToolsPipe,
    _profile: tempfile::TempDir,
}

pub fn program() -> Option<PathBuf> {
    NAMES.iter().find_map(|name| which::which(name).ok())
}

impl Browser {
    /// Starts a browser with a temporary profile.
    pub fn start() -> Result<Self, BrowserError> {
        let program = program().ok_or(BrowserError::Missing)?;
        let profile = tempfile::tempdir()?;
        // Chromium reads commands from descriptor 3 and writes to 4. The shell sets these up, which
        // would otherwise have to happen between fork and exec.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .arg(program)
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (to, from) = ends.ok_or_else(|| std::io::Error::other("it has no pipes"))?;
        Ok(Self { child, pipe: DevToolsPipe::new(to, from), _profile: profile })
    }

    /// Opens an empty page of this size.
    pub fn page(&mut self, width: u32, height: u32) -> Result<BrowserPage<'_>, BrowserError> {
        let target =
            self.pipe.call(None, "Target.createTarget", &json!({ "url": "about:blank" }))?;
        let id = target["targetId"].as_str().unwrap_or_default().to_owned();
        let attach = json!({ "targetId": id, "flatten": true });
        let attached = self.pipe.call(None, "Target.attachToTarget", &attach)?;
        let session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        BrowserPage::new(&mut self.pipe, session, width, height)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.pipe.send(None, "Browser.close", &json!({}));
        for _ in 0..50 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
