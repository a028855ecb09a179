//! The Python package: built as a wheel, installed into an environment below `target`, and tested;
//! and the measurements that use it (`python/experiments`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::test_outcome::TestOutcome;

/// Packages that the tests need, and optional ones.
const NEEDED: &[&str] = &["maturin>=1.9,<2", "pytest>=8", "pyarrow", "numpy"];
const OPTIONAL: &[&str] = &["ray>=2.40", "moto[server]>=5"];
/// Additional packages that measurements compare with.
const PEERS: &[&str] = &["libcachesim"];

/// A Python virtual environment below `target`.
struct Environment {
    target: PathBuf,
    venv: PathBuf,
}

impl Environment {
    /// Creates the environment if it does not exist; `None` if Python cannot create it.
    fn make(root: &Path) -> Option<Self> {
        let target = root.join("target/python");
        let venv = target.join("venv");
        let is_made = venv.join("bin/python").exists()
            || succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        is_made.then_some(Self { target, venv })
    }

    fn python(&self) -> Command {
        Command::new(self.venv.join("bin/python"))
    }

    fn install(&self, packages: &[&str]) -> bool {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        succeeds(self.python().args(pip).args(packages))
    }

    /// Builds the package with these maturin options and installs it; returns what failed.
    fn install_package(&self, root: &Path, options: &[&str]) -> Result<Option<&'static str>> {
        let Some(wheel) = wheel(root, &self.target, &self.venv, options)? else {
            return Ok(Some("it does not build"));
        };
        let install = ["--force-reinstall", "--no-deps", &wheel.to_string_lossy()];
        Ok((!self.install(&install)).then_some("its wheel cannot be installed"))
    }
}

/// Builds the package and runs its tests; skips all of them if pip cannot install the tools.
pub fn run(root: &Path) -> Result<TestOutcome> {
    let started = Instant::now();
    let skipped = |reason: &str| TestOutcome {
        skipped: vec![format!("python package: {reason}")],
        ..TestOutcome::default()
    };
    let Some(environment) = Environment::make(root) else {
        return Ok(skipped("python3 with the module venv is not installed"));
    };
    if !environment.install(NEEDED) {
        return Ok(skipped("pip cannot install what its tests need"));
    }
    if !environment.install(OPTIONAL) {
        println!("pip cannot install ray and moto: their tests are skipped");
    }
    if let Some(problem) = environment.install_package(root, &[])? {
        return Ok(TestOutcome {
            failed: vec![format!("python package: {problem}, see above")],
            ..TestOutcome::default()
        });
    }
    let tests = Command::new("nice")
        .args(["-n", "19"])
        .arg(environment.python().get_program())
        .args(["-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rs", "--tb=short"])
        .current_dir(root.join("python"))
        .env("FOREREAD", root.join("target/debug/foreread"))
        .output()
        .context("starting pytest")?;
    let text = String::from_utf8_lossy(&tests.stdout);
    println!("{text}{}", String::from_utf8_lossy(&tests.stderr));
    let mut outcome = read_transcript(&text);
    if !tests.status.success() && outcome.failed.is_empty() {
        outcome.failed.push("python package: pytest failed, see above".to_owned());
    }
    outcome.took("Python package", started);
    Ok(outcome)
}

/// Runs a measurement of `python/experiments` with the release build of the package.
pub fn experiment(root: &Path, script: &str, words: &[&str]) -> Result<bool> {
    let environment = Environment::make(root).context("python3 cannot make an environment")?;
    if !environment.install(&[NEEDED, OPTIONAL, PEERS].concat()) {
        bail!("pip cannot install what {script} needs");
    }
    if let Some(problem) = environment.install_package(root, &["--release"])? {
        bail!("the Python package: {problem}");
    }
    let binary = root.join("target/release/foreread");
    let mut command = environment.python();
    command.arg("-B").arg(root.join("python/experiments").join(script)).args(words);
    command.current_dir(root);
    if std::env::var_os("FOREREAD").is_none() {
        command.env("FOREREAD", binary);
    }
    Ok(command.status().with_context(|| format!("starting {script}"))?.success())
}

/// Builds the wheel; `None` if that fails.
fn wheel(root: &Path, target: &Path, venv: &Path, options: &[&str]) -> Result<Option<PathBuf>> {
    let wheels = target.join("wheels");
    // A wheel of an earlier version would be installed instead.
    let _ = fs::remove_dir_all(&wheels);
    // At the lowest priority: `make test` builds it while tests measure times.
    let mut build = Command::new("nice");
    build.args(["-n", "19"]).arg(venv.join("bin/maturin"));
    build.args(["build", "--quiet", "--locked", "--out"]).arg(&wheels).args(options);
    build.current_dir(root.join("python")).env("CARGO_TARGET_DIR", target.join("target"));
    build.env("VIRTUAL_ENV", venv);
    if !succeeds(&mut build) {
        return Ok(None);
    }
    let mut built = fs::read_dir(&wheels).context("listing the wheels")?;
    Ok(built.next().transpose()?.map(|entry| entry.path()))
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

/// Counts the results in the output of `pytest -v -rs`.
fn read_transcript(text: &str) -> TestOutcome {
    let mut outcome = TestOutcome::default();
    for line in text.lines() {
        if let Some(skip) = line.strip_prefix("SKIPPED ") {
            outcome.skipped.push(format!("python package: {skip}"));
        } else if let Some((name, _)) = line.split_once(" PASSED") {
            outcome.passed += usize::from(name.contains("::"));
        } else if let Some((name, _)) =
            line.split_once(" FAILED").or_else(|| line.split_once(" ERROR"))
            && name.contains("::")
        {
            outcome.failed.push(format!("python package: {name}"));
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_counted() {
        let text = "tests/test_a.py::test_one PASSED  [ 50%]\n\
                    tests/test_a.py::test_two[x y] FAILED  [100%]\n\
                    tests/test_a.py::test_three SKIPPED (ray is not installed)\n\
                    SKIPPED [1] tests/test_ray.py:10: ray is not installed\n\
                    ===== 1 failed, 1 passed, 1 skipped in 0.1s =====\n";
        let outcome = read_transcript(text);
        assert_eq!(outcome.passed, 1);
        assert_eq!(outcome.failed, ["python package: tests/test_a.py::test_two[x y]"]);
        assert_eq!(outcome.skipped.len(), 1);
    }
}
