//! Runs all tests that can run on this machine, step by step.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use crate::test_outcome::TestOutcome;
use crate::transcript::Transcript;
use crate::{binaries, command, guest, leftovers, python, tidy};

/// Integration tests that need the machine exclusively, and mostly root.
const HOST_TIER: &str = "host";

/// Runs all steps and prints a summary; returns whether nothing failed.
pub fn run(root: &Path) -> Result<bool> {
    let mut outcome = TestOutcome::default();
    check_rules(root, &mut outcome)?;
    check_with(cargo(root), "fmt", &["fmt", "--all", "--check"], &mut outcome)?;
    // Tests start the examples as processes that may be killed; `cargo test` may not build them.
    check_with(cargo(root), "build", &binaries::BUILD, &mut outcome)?;
    leftovers::remove(root)?;
    run_ordinary_tests(root, &mut outcome)?;
    run_tests(root, "examples in the documentation", &["--doc"], &mut outcome)?;
    host_tier_and_others(root, &mut outcome)?;
    Ok(outcome.report())
}

/// Runs the host tests, which need this machine's devices exclusively and mostly wait for virtual
/// disks, while other steps use the remaining CPU time: the guest tests, clippy and the Python
/// package.
fn host_tier_and_others(root: &Path, outcome: &mut TestOutcome) -> Result<()> {
    thread::scope(|scope| {
        let guest = scope.spawn(|| guest::run(root, &[]));
        // One after another: more load during the host tests would distort their times.
        let builds = scope.spawn(|| Ok::<_, anyhow::Error>([clippy(root)?, python::run(root)?]));
        let host = ["--test", HOST_TIER, "--", "--test-threads=1"];
        run_tests(root, "host tier, one at a time; guest tier; clippy; Python", &host, outcome)?;
        let builds = builds.join().map_err(|_| anyhow!("clippy's or Python's thread panicked"))?;
        builds?.into_iter().for_each(|of_build| outcome.add(of_build));
        outcome.add(guest.join().map_err(|_| anyhow!("the guest tier panicked"))??);
        Ok(())
    })
}

/// Runs all lints at the lowest priority, in a separate target directory, because cargo locks a
/// directory for each build.
fn clippy(root: &Path) -> Result<TestOutcome> {
    let mut outcome = TestOutcome::default();
    let cargo = cargo(root);
    let mut lowest = Command::new("nice");
    lowest.args(["-n", "19"]).arg(cargo.get_program()).current_dir(root);
    lowest.envs(cargo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let arguments = ["clippy", "--target-dir", "target/lint", "--quiet", "--locked", "--workspace"];
    let arguments = [&arguments[..], &["--all-targets", "--", "-D", "warnings"]].concat();
    check_with(lowest, "clippy", &arguments, &mut outcome)?;
    Ok(outcome)
}

fn check_rules(root: &Path, outcome: &mut TestOutcome) -> Result<()> {
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
    outcome: &mut TestOutcome,
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
fn run_tests(
    root: &Path,
    title: &str,
    arguments: &[&str],
    outcome: &mut TestOutcome,
) -> Result<()> {
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
fn run_ordinary_tests(root: &Path, outcome: &mut TestOutcome) -> Result<()> {
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

fn add(title: &str, transcript: &Transcript, success: bool, outcome: &mut TestOutcome) {
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

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(command::cargo());
    command.current_dir(root).env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0");
    command
}
