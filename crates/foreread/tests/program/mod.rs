//! Runs the program as a user does, with directories of its own.
#![allow(dead_code)] // each test uses a part of it

mod served;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

#[allow(unused_imports)] // as above
pub use served::{Answer, Served};

/// Returns `foreread` with its state below this directory, without the user's settings.
pub fn foreread_in(dir: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("foreread"));
    command
        .env("FOREREAD_STATE_DIR", dir.join("state"))
        .env("FOREREAD_RUNTIME_DIR", dir.join("runtime"))
        .env("LC_ALL", "C.UTF-8")
        .env("FOREREAD_CONFIG", "")
        .env_remove("FOREREAD_STORE")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("FOREREAD_LOG");
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command; returns its exit code, stdout and stderr.
#[track_caller]
pub fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Returns the stdout of a command that succeeded, possibly without a verdict (exit code 5).
#[track_caller]
pub fn printed(output: &Output) -> String {
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 5)), "{code:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the JSON of a command that succeeded.
#[track_caller]
pub fn document(output: &Output) -> Value {
    serde_json::from_str(&printed(output)).unwrap()
}

/// A scratch directory, and the program that runs in it.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Creates a file in the directory.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    /// Returns the program with these arguments, separated by blanks.
    pub fn foreread(&self, words: &str) -> Command {
        let mut command = foreread_in(self.path());
        command.current_dir(self.path()).args(words.split_whitespace());
        command
    }

    /// Runs the program with these arguments; returns exit code, stdout and stderr.
    #[track_caller]
    pub fn run(&self, words: &str) -> (i32, String, String) {
        run(&mut self.foreread(words))
    }
}
