//! A program on a terminal of its own, which the test can take away.
#![allow(dead_code)] // each test uses a part of it

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::program::foreread_in;

/// Longer than the program takes to exit, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program on a terminal of its own, which script(1) holds. Killing script(1) closes the
/// terminal.
pub struct Session {
    dir: tempfile::TempDir,
    script: Child,
}

impl Session {
    /// Starts the program with its state below `state`. `hangup` is what its shell does on SIGHUP:
    /// `:` does nothing; with an empty word, the program also ignores SIGHUP. `None`, after
    /// printing why, if script(1) cannot be started.
    pub fn of(test: &str, state: &Path, words: &str, hangup: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let program = foreread_in(state);
        let path = program.get_program().to_str().unwrap();
        let shell = format!(
            "trap '{hangup}' HUP; sh -c 'echo $$ > pid; exec {path} {words}'; echo $? > code.new; \
             mv code.new code"
        );
        fs::write(dir.path().join("session.sh"), shell).unwrap();
        let mut command = Command::new("script");
        command.args(["-qec", "sh session.sh", "/dev/null"]).current_dir(dir.path());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // The input of script(1) stays open, because the program would receive its end of file.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(script) => Some(Self { dir, script }),
            Err(error) => {
                println!("SKIP {test}: script(1) cannot be started: {error}");
                None
            }
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the process ID of the program, once it has replaced its shell.
    pub fn pid(&self) -> u32 {
        wait("the program to begin", || {
            let pid = fs::read_to_string(self.file("pid")).ok()?.trim().parse().ok()?;
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (comm.trim() == "foreread").then_some(pid)
        })
    }

    /// Takes the terminal away; returns the program's exit code.
    pub fn hang_up(&mut self) -> i32 {
        self.script.kill().unwrap();
        self.script.wait().unwrap();
        wait("the program to end", || {
            fs::read_to_string(self.file("code")).ok()?.trim().parse().ok()
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
        // A failed test must not leave the program behind. Without an exit code, it still runs.
        let pid = fs::read_to_string(self.file("pid")).unwrap_or_default();
        if !self.file("code").exists() && !pid.trim().is_empty() {
            let _ = Command::new("kill").args(["-KILL", pid.trim()]).status();
        }
    }
}

#[track_caller]
fn wait<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
