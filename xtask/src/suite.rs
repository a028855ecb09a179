//! Runs all tests that can run on this machine, step by step.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::fs::statvfs;

use crate::transcript::Transcript;
use crate::{binaries, guest, python, tidy};

/// Integration tests that need the machine exclusively, and mostly root.
const HOST_TIER: &str = "host";

/// A step that leaves less free space than this has probably run out of it: programs remove files
/// that they could not write completely.
const SCARCE_ROOM_MIB: u64 = 2048;

/// The result of all steps.
#[derive(Debug, Default)]
struct Outcome {
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
    times: Vec<(String, Duration)>,
    scarce: Vec<String>,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
        self.times.extend(other.times);
        self.scarce.extend(other.scarce);
    }

    /// Records the end of a step. Failures due to a full disk rarely say so.
    fn took(&mut self, what: &str, started: Instant) {
        self.times.push((what.to_owned(), started.elapsed()));
        let places = [Path::new(".").to_owned(), std::env::temp_dir()];
        let mut rooms: Vec<_> =
            places.iter().filter_map(|at| Some((at, statvfs(at).ok()?))).collect();
        rooms.dedup_by_key(|(_, room)| room.f_fsid);
        for (place, room) in rooms {
            let free_mib = (room.f_bavail * room.f_frsize) >> 20;
            if free_mib < SCARCE_ROOM_MIB {
                self.scarce.push(format!("{free_mib} MiB in {} after {what}", place.display()));
            }
        }
    }
}

/// Runs all steps and prints a summary; returns whether nothing failed.
pub fn run(root: &Path) -> Result<bool> {
    let mut outcome = Outcome::default();
    check_rules(root, &mut outcome)?;
    check_with(cargo(root), "fmt", &["fmt", "--all", "--check"], &mut outcome)?;
    // Tests start the examples as processes that may be killed; `cargo test` may not build them.
    check_with(cargo(root), "build", &binaries::BUILD, &mut outcome)?;
    run_ordinary_tests(root, &mut outcome)?;
    run_tests(root, "examples in the documentation", &["--doc"], &mut outcome)?;
    host_tier_and_others(root, &mut outcome)?;
    report(&outcome);
    Ok(outcome.failed.is_empty())
}

/// Runs the host tests, which need this machine's devices exclusively and mostly wait for virtual
/// disks, while other steps use the remaining CPU time: the guest tests, clippy and the Python
/// package.
fn host_tier_and_others(root: &Path, outcome: &mut Outcome) -> Result<()> {
    thread::scope(|scope| {
        let guest = scope.spawn(|| guest_tier(root));
        // One after another: more load during the host tests would distort their times.
        let builds = scope.spawn(|| Ok::<_, anyhow::Error>([clippy(root)?, python_package(root)?]));
        let host = ["--test", HOST_TIER, "--", "--test-threads=1"];
        run_tests(root, "host tier, one at a time; guest tier; clippy; Python", &host, outcome)?;
        let builds = builds.join().map_err(|_| anyhow!("clippy's or Python's thread panicked"))?;
        builds?.into_iter().for_each(|of_build| outcome.add(of_build));
        outcome.add(guest.join().map_err(|_| anyhow!("the guest tier panicked"))??);
        Ok(())
    })
}

fn guest_tier(root: &Path) -> Result<Outcome> {
    let (mut outcome, started) = (Outcome::default(), Instant::now());
    let tier = guest::run(root, &[])?;
    outcome.passed += tier.passed.len();
    outcome.failed.extend(tier.failed);
    outcome.skipped.extend(tier.skipped);
    outcome.took("guest tier, beside the host tier", started);
    Ok(outcome)
}

/// Runs all lints at the lowest priority, in a separate target directory, because cargo locks a
/// directory for each build.
fn clippy(root: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let cargo = cargo(root);
    let mut lowest = Command::new("nice");
    lowest.args(["-n", "19"]).arg(cargo.get_program()).current_dir(root);
    lowest.envs(cargo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let arguments = ["clippy", "--target-dir", "target/lint", "--quiet", "--locked", "--workspace"];
    let arguments = [&arguments[..], &["--all-targets", "--", "-D", "warnings"]].concat();
    check_with(lowest, "clippy", &arguments, &mut outcome)?;
    Ok(outcome)
}

/// Builds and tests the Python package; returns whether nothing failed.
pub fn test_python_package(root: &Path) -> Result<bool> {
    let outcome = python_package(root)?;
    report(&outcome);
    Ok(outcome.failed.is_empty())
}

fn python_package(root: &Path) -> Result<Outcome> {
    let (mut outcome, started) = (Outcome::default(), Instant::now());
    let tests = python::run(root)?;
    outcome.passed += tests.passed;
    outcome.failed.extend(tests.failed);
    outcome.skipped.extend(tests.skipped);
    outcome.took("Python package", started);
    Ok(outcome)
}

fn check_rules(root: &Path, outcome: &mut Outcome) -> Result<()> {
    println!("== tidy");
    let complaints = tidy::complaints(root)?;
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    if complaints.is_empty() {
        outcome.passed += 1;
    } else {
        outcome.failed.push(format!("tidy: {} complaints, listed above", complaints.len()));
    }
    Ok(())
}

/// Runs a step that passes or fails as a whole; skips it if cargo lacks the subcommand.
fn check_with(
    mut cargo: Command,
    name: &str,
    arguments: &[&str],
    outcome: &mut Outcome,
) -> Result<()> {
    println!("== {name}");
    let help = self::cargo(Path::new(".")).args([arguments[0], "-h"]).output();
    if !help.context("starting cargo")?.status.success() {
        outcome.skipped.push(format!("{name}: not installed"));
        return Ok(());
    }
    let started = Instant::now();
    let status = cargo.args(arguments).status().context("starting cargo")?;
    outcome.took(name, started);
    if status.success() {
        outcome.passed += 1;
    } else {
        outcome.failed.push(format!("{name}: complaints, listed above"));
    }
    Ok(())
}

/// Runs `cargo test` with these arguments, shows its output and counts the results.
fn run_tests(root: &Path, title: &str, arguments: &[&str], outcome: &mut Outcome) -> Result<()> {
    println!("== {title}");
    let started = Instant::now();
    let (ours, libtest) = match arguments.iter().position(|argument| *argument == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (arguments, &[][..]),
    };
    // cargo names each binary on stderr and libtest its tests on stdout: a shared pipe keeps the
    // order.
    let (reader, writer) = std::io::pipe().context("making a pipe")?;
    let mut child = cargo(root)
        .args(["test", "--locked", "--workspace", "--no-fail-fast"])
        .args(ours)
        .args(["--", "--show-output"])
        .args(libtest)
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("sharing the pipe")?)
        .stderr(writer)
        .spawn()
        .context("starting cargo test")?;
    let mut transcript = Transcript::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("reading what cargo test prints")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        transcript.line(&line);
    }
    let status = child.wait().context("waiting for cargo test")?;
    add(title, &transcript, status.success(), outcome);
    outcome.took(title, started);
    Ok(())
}

/// Runs all tests except the host tests, several binaries at a time: cargo runs binaries one after
/// another, and the last test of each leaves other CPUs idle.
fn run_ordinary_tests(root: &Path, outcome: &mut Outcome) -> Result<()> {
    const TITLE: &str = "unit and integration tests";
    println!("== {TITLE}");
    let started = Instant::now();
    let mut binaries = binaries::build(cargo(root))?;
    binaries.retain(|binary| binary.target != HOST_TIER);
    outcome.took("building the tests", started);
    let started = Instant::now();
    let (mut transcript, mut success) = (Transcript::default(), true);
    binaries::run(binaries, |binary, text, passed| {
        println!("     Running {}\n{text}", binary.title());
        transcript.line(&format!("Running {}", binary.title()));
        text.lines().for_each(|line| transcript.line(line));
        success &= passed;
    });
    add(TITLE, &transcript, success, outcome);
    outcome.took(TITLE, started);
    Ok(())
}

fn add(title: &str, transcript: &Transcript, success: bool, outcome: &mut Outcome) {
    outcome.passed += transcript.passed();
    for (test, output) in transcript.failures() {
        let output: String = output.iter().map(|line| format!("\n    {line}")).collect();
        outcome.failed.push(test.to_owned() + &output);
    }
    outcome.skipped.extend(transcript.skips().map(|(name, reason)| format!("{name}: {reason}")));
    if transcript.ignored() > 0 {
        outcome.skipped.push(format!("{title}: {} marked #[ignore]", transcript.ignored()));
    }
    if !success && transcript.failures().next().is_none() {
        outcome.failed.push(format!("{title}: did not build or died, see above"));
    }
}

fn report(outcome: &Outcome) {
    println!("\ntimes:");
    for (what, time) in &outcome.times {
        println!("  {:>5.0} s  {what}", time.as_secs_f64());
    }
    let scarce = ("little free space, which can fail tests", &outcome.scarce);
    for (title, lines) in [scarce, ("skipped", &outcome.skipped), ("failed", &outcome.failed)] {
        if !lines.is_empty() {
            println!("{title}:");
            lines.iter().for_each(|line| println!("  {line}"));
        }
    }
    let (passed, failed, skipped) = (outcome.passed, outcome.failed.len(), outcome.skipped.len());
    println!("{passed} passed, {failed} failed, {skipped} skipped");
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0");
    command
}
