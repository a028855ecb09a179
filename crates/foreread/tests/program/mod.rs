//! The program as a person starts it, with directories of its own.
#![allow(dead_code)] // each test takes of it what it needs

mod served;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

#[allow(unused_imports)] // as above
pub use served::{Answer, Served};

/// `foreread` with its state below this directory, and nothing of the user's own.
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

/// Exit code, stdout and stderr of a command.
#[track_caller]
pub fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// What a command printed that ended well, be it without a verdict.
#[track_caller]
pub fn printed(output: &Output) -> String {
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 5)), "{code:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The JSON of a command that ended well.
#[track_caller]
pub fn document(output: &Output) -> Value {
    serde_json::from_str(&printed(output)).unwrap()
}

/// A scratch directory and the program at work in it.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes a file in it.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    /// The program with these words, which have blanks between them.
    pub fn foreread(&self, words: &str) -> Command {
        let mut command = foreread_in(self.path());
        command.current_dir(self.path()).args(words.split_whitespace());
        command
    }

    /// Exit code, stdout and stderr of the program with these words.
    #[track_caller]
    pub fn run(&self, words: &str) -> (i32, String, String) {
        run(&mut self.foreread(words))
    }
}
