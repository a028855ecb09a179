//! Runs all tests that can run on this machine, step by step.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use crate::binaries::{Manner, TestBinary};
use crate::test_outcome::TestOutcome;
use crate::transcript::Transcript;
use crate::{binaries, command, guest, leftovers, python, tidy};

/// The test binaries whose tests need the machine exclusively, and mostly root.
const HOST_TIER: &str = "host";
/// What the names of such tests contain in other binaries.
const HOST_TEST: &str = "host_";

/// Runs all steps and prints a summary; returns whether nothing failed.
pub fn run(root: &Path) -> Result<bool> {
    let mut outcome = TestOutcome::default();
    check_rules(root, &mut outcome)?;
    check_with(cargo(root), "fmt", &["fmt", "--all", "--check"], &mut outcome)?;
    // Tests start the examples as processes that may be killed; `cargo test` may not build them.
    check_with(cargo(root), "build", &binaries::BUILD, &mut outcome)?;
    leftovers::remove(root)?;
    thread::scope(|scope| {
        // Started first, because it takes long even if nothing else runs.
        let guest = scope.spawn(|| guest::run(root, &[]));
        run_tests(root, &mut outcome)?;
        outcome.add(guest.join().map_err(|_| anyhow!("the guest tier panicked"))??);
        Ok(outcome.report())
    })
}

/// Builds and runs all tests of the workspace, clippy and the Python package.
///
/// The host tests need this machine's devices exclusively, so they run one at a time. As they
/// mostly wait for virtual disks, other steps use the remaining CPU time at lower priorities: those
/// that follow a deadline before those that only compile.
fn run_tests(root: &Path, outcome: &mut TestOutcome) -> Result<()> {
    let started = Instant::now();
    println!("== building the tests");
    let (host, ordinary): (Vec<_>, Vec<_>) = binaries::build(cargo(root))?
        .into_iter()
        .partition(|binary: &TestBinary| binary.target == HOST_TIER);
    outcome.took("building the tests", started);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    // More than one for each CPU would distort what some of them measure.
    let beside = Manner { workers, niceness: "15", arguments: &["--skip", HOST_TEST] };
    let alone = Manner { workers: 1, niceness: "0", arguments: &["--test-threads=1"] };
    let alone_here = Manner { arguments: &["--test-threads=1", HOST_TEST], ..alone };
    thread::scope(|scope| {
        let host = scope.spawn(|| {
            let mut outcome = run_binaries("host tier", &host, &alone);
            outcome.add(run_binaries("host tests of other binaries", &ordinary, &alone_here));
            outcome
        });
        // One after another: more load during the host tests would distort their times.
        let builds = scope.spawn(|| Ok::<_, anyhow::Error>([clippy(root)?, python::run(root)?]));
        outcome.add(run_binaries("unit and integration tests", &ordinary, &beside));
        run_examples(root, outcome)?;
        outcome.add(host.join().map_err(|_| anyhow!("the host tier panicked"))?);
        let builds = builds.join().map_err(|_| anyhow!("clippy's or Python's thread panicked"))?;
        builds?.into_iter().for_each(|of_build| outcome.add(of_build));
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

/// Runs the examples in the documentation, shows their output and counts the results.
fn run_examples(root: &Path, outcome: &mut TestOutcome) -> Result<()> {
    const TITLE: &str = "examples in the documentation";
    println!("== {TITLE}");
    let started = Instant::now();
    let tested = cargo(root)
        .args(["test", "--locked", "--workspace", "--no-fail-fast", "--doc"])
        .args(["--", "--show-output"])
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo test")?;
    let text = String::from_utf8_lossy(&tested.stdout);
    println!("{text}");
    let mut transcript = Transcript::default();
    text.lines().for_each(|line| transcript.line(line));
    add(TITLE, &transcript, tested.status.success(), outcome);
    outcome.took(TITLE, started);
    Ok(())
}

/// Runs these binaries, prints the output of each that has such tests as it exits, and counts the
/// results.
fn run_binaries(title: &str, binaries: &[TestBinary], manner: &Manner) -> TestOutcome {
    println!("== {title}");
    let (started, mut outcome) = (Instant::now(), TestOutcome::default());
    let (mut transcript, mut success) = (Transcript::default(), true);
    binaries::run(binaries, manner, |binary, text, passed| {
        if !text.contains("\nrunning 0 tests\n") {
            println!("     Running {}\n{text}", binary.title());
        }
        transcript.line(&format!("Running {}", binary.title()));
        text.lines().for_each(|line| transcript.line(line));
        success &= passed;
    });
    add(title, &transcript, success, &mut outcome);
    outcome.took(title, started);
    outcome
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
