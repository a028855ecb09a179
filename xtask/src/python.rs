//! The Python package: built as a wheel, installed into an environment below `target`, and tested.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// What the tests need, and what they can do without.
const NEEDED: &[&str] = &["maturin>=1.9,<2", "pytest>=8", "pyarrow"];
const OPTIONAL: &[&str] = &["ray>=2.40"];

/// What came of the tests of the package.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PythonOutcome {
    pub passed: usize,
    pub failed: Vec<String>,
    pub skipped: Vec<String>,
}

/// Builds the package and runs its tests; skipped as a whole where pip cannot install its tools.
pub fn run(root: &Path) -> Result<PythonOutcome> {
    let target = root.join("target/python");
    let venv = target.join("venv");
    let python = venv.join("bin/python");
    let skipped = |reason: &str| PythonOutcome {
        skipped: vec![format!("python package: {reason}")],
        ..PythonOutcome::default()
    };
    if !python.exists() && !succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv)) {
        return Ok(skipped("python3 with the module venv is not installed"));
    }
    let install = |packages: &[&str]| {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        succeeds(Command::new(&python).args(pip).args(packages))
    };
    if !install(NEEDED) {
        return Ok(skipped("pip cannot install maturin, pytest and pyarrow"));
    }
    if !install(OPTIONAL) {
        println!("pip cannot install ray: its tests are skipped");
    }
    let failed = |what: &str| PythonOutcome {
        failed: vec![format!("python package: {what}, see above")],
        ..PythonOutcome::default()
    };
    let Some(wheel) = wheel(root, &target, &venv)? else {
        return Ok(failed("it does not build"));
    };
    if !install(&["--force-reinstall", "--no-deps", &wheel.to_string_lossy()]) {
        return Ok(failed("its wheel cannot be installed"));
    }
    let tests = Command::new(&python)
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
    Ok(outcome)
}

/// Builds the wheel; `None` if that fails.
fn wheel(root: &Path, target: &Path, venv: &Path) -> Result<Option<PathBuf>> {
    let wheels = target.join("wheels");
    // One of an earlier version would be installed instead.
    let _ = fs::remove_dir_all(&wheels);
    let mut build = Command::new(venv.join("bin/maturin"));
    build.args(["build", "--quiet", "--locked", "--out"]).arg(&wheels);
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

/// Counts what `pytest -v -rs` reports.
fn read_transcript(text: &str) -> PythonOutcome {
    let mut outcome = PythonOutcome::default();
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
