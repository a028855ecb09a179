//! Builds test binaries with cargo, and runs several concurrently.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;

/// Builds the programs that tests start. Building other packages would change the features of
/// dependencies, and so replace the program while tests use it.
pub const BUILD: [&str; 5] = ["build", "--locked", "--workspace", "--bins", "--examples"];

#[derive(Debug)]
pub struct TestBinary {
    /// What the binary tests: a library, the program, or a file below `tests`.
    pub target: String,
    package: PathBuf,
    path: PathBuf,
}

impl TestBinary {
    /// Returns the crate and the tested target.
    pub fn title(&self) -> String {
        let package = self.package.file_name().unwrap_or_default();
        format!("{}/{}", package.display(), self.target)
    }

    /// Runs the binary as cargo would; returns its output, and whether all tests passed.
    fn run(&self, manner: &Manner) -> (String, bool) {
        let output = Command::new("nice")
            .args(["-n", manner.niceness])
            .arg(&self.path)
            .arg("--show-output")
            .args(manner.arguments)
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package)
            .stdin(Stdio::null())
            .output();
        match output {
            Ok(output) => {
                let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.push_str(&String::from_utf8_lossy(&output.stderr));
                (text, output.status.success())
            }
            Err(error) => (format!("{}: {error}", self.path.display()), false),
        }
    }
}

/// Builds every test of the workspace.
pub fn build(mut cargo: Command) -> Result<Vec<TestBinary>> {
    let mut child = cargo
        .args(["test", "--locked", "--workspace", "--lib", "--bins", "--tests", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo test")?;
    let mut binaries = Vec::new();
    if let Some(printed) = child.stdout.take() {
        for message in Message::parse_stream(std::io::BufReader::new(printed)) {
            if let Message::CompilerArtifact(artifact) =
                message.context("reading cargo's messages")?
                && artifact.profile.test
                && let (Some(path), Some(package)) =
                    (artifact.executable, artifact.manifest_path.parent())
            {
                let target = artifact.target.name;
                binaries.push(TestBinary { target, package: package.into(), path: path.into() });
            }
        }
    }
    if !child.wait().context("waiting for cargo test")?.success() {
        bail!("the tests do not build, see above");
    }
    Ok(binaries)
}

/// How to run binaries.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The number that run at a time.
    pub workers: usize,
    /// What `nice -n` adds.
    pub niceness: &'static str,
    /// Additional arguments of each binary.
    pub arguments: &'static [&'static str],
}

/// Runs all binaries, and calls `done` for each as it exits, with its output and whether all its
/// tests passed.
pub fn run(
    binaries: &[TestBinary],
    manner: &Manner,
    mut done: impl FnMut(&TestBinary, &str, bool),
) {
    let queue = Mutex::new(binaries.iter());
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..manner.workers {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || {
                while let Some(binary) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let (text, passed) = binary.run(manner);
                    // The receiver lives until all binaries have exited.
                    let _ = sender.send((binary, text, passed));
                }
            });
        }
        drop(sender);
        for (binary, text, passed) in results {
            done(binary, &text, passed);
        }
    });
}
