//! Profiles in programs that display them: Go's pprof, and the loader of the Firefox Profiler.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and prints skips

mod program;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use program::{Scratch, run};
use serde_json::Value;

/// Number of reads in the recording; each of them waits 4 ms.
const READS: u64 = 200;
/// Time that the Firefox Profiler may take to load the file on a busy machine.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Writes `strace -k` output of a backward reader, and profiles it to `name` in one format.
fn profile(scratch: &Scratch, option: &str, name: &str) -> PathBuf {
    let mut text = String::new();
    for read in 1..=READS {
        let (seconds, micros) = (read * 5 / 1000, read * 5 % 1000 * 1000);
        let offset = (READS - read) * 3809;
        writeln!(
            text,
            "100 {}.{micros:06} pread64(3</srv/data>, \"\"..., 3809, {offset}) = 3809 <0.004000>
 > /usr/lib/libc.so.6(pread64+0x10) [0x110]
 > /srv/program(main+0x30) [0x1230]",
            1_700_000_000 + seconds
        )
        .unwrap();
    }
    scratch.file("reads.strace", text);
    let file = scratch.path().join(name);
    let words = format!("profile --import reads.strace --device none {option} {name}");
    let (code, _, said) = scratch.run(&words);
    assert_eq!(code, 0, "{said}");
    file
}

#[test]
fn pprof_shows_waits_by_function_with_their_diagnosis() {
    if Command::new("go").arg("version").output().is_err() {
        println!("SKIP: go is not installed");
        return;
    }
    let scratch = Scratch::new();
    let file = profile(&scratch, "--pprof", "profile.pb.gz");
    let pprof = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(["tool", "pprof"]).args(arguments).arg(&file);
        let (code, out, said) = run(&mut command);
        assert_eq!(code, 0, "{said}");
        out
    };
    let top = pprof(&["-top", "-sample_index=waits"]);
    let line = top.lines().find(|line| line.ends_with(" main")).expect("the function that reads");
    assert!(line.contains(&format!(" {READS} ")), "{top}");
    let tags = pprof(&["-tags"]);
    for expected in ["diagnosis", "backward", "/srv/data"] {
        assert!(tags.contains(expected), "{expected}: {tags}");
    }
}

#[test]
fn the_firefox_profiler_loads_waits_with_their_stacks() {
    let Some(loader) = FirefoxLoader::new() else { return };
    let file = profile(&loader.scratch, "--firefox", "profile.json");
    let markers = loader.load(&file);
    let types = markers["byType"].as_array().unwrap();
    assert_eq!(types.len(), 1, "{markers}");
    assert_eq!(types[0]["markerName"], "miss");
    assert_eq!(types[0]["count"], READS);
    let average = types[0]["durationStats"]["avg"].as_f64().unwrap();
    assert!((3.9..4.1).contains(&average), "{average} ms a wait");
    let first = types[0]["topMarkers"][0]["handle"].as_str().unwrap().to_owned();
    let stack = loader.ask(&["marker", "stack", &first]).unwrap().to_string();
    assert!(stack.contains("pread64") && stack.contains("main"), "{stack}");
}

/// The loader of the Firefox Profiler from its published command line, with its own session.
struct FirefoxLoader {
    scratch: Scratch,
    node: PathBuf,
    script: PathBuf,
}

impl FirefoxLoader {
    /// Returns `None`, after printing the reason, if it is not installed.
    fn new() -> Option<Self> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let (node, package) = ("venv/bin/node", "npm/node_modules/@firefox-devtools/profiler-cli");
        let (node, script) = (target.join(node), target.join(package).join("dist/profiler-cli.js"));
        if !node.is_file() || !script.is_file() {
            println!("SKIP: no profiler-cli in target/npm; scripts/deps installs it");
            return None;
        }
        Some(Self { scratch: Scratch::new(), node, script })
    }

    /// Loads a profile; returns the markers of its first thread.
    fn load(&self, file: &Path) -> Value {
        let _ = self.command(&["load"]).arg(file).output().unwrap();
        let started = Instant::now();
        loop {
            match self.ask(&["thread", "markers", "--thread", "t-0"]) {
                Ok(markers) => return markers,
                Err(problem) => {
                    assert!(started.elapsed() < LOAD_TIMEOUT, "{problem}");
                    thread::sleep(Duration::from_millis(200));
                }
            }
        }
    }

    fn ask(&self, arguments: &[&str]) -> Result<Value, String> {
        let (code, out, said) = run(self.command(arguments).arg("--json"));
        if code != 0 {
            return Err(said);
        }
        serde_json::from_str(&out).map_err(|error| format!("{error}: {out}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).args(arguments).env("HOME", self.scratch.path());
        command
    }
}

impl Drop for FirefoxLoader {
    fn drop(&mut self) {
        let _ = self.command(&["stop", "--all"]).output();
    }
}
