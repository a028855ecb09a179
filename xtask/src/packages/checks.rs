//! Sizes, times, and the results of other tools for the packages.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::installs::artefact;
use crate::command::captured;
use crate::dist::{Architecture, Release, names};

/// Number of calls; the median is compared with the requirement.
const CALL_COUNT: usize = 21;

/// Maximum times of a call, in ms.
const VERSION_MAX_MS: f64 = 10.0;
const DOCTOR_MAX_MS: f64 = 50.0;

/// Maximum exposure that systemd-analyze may report, from 0 to 10.
const EXPOSURE_MAX: f64 = 3.0;

pub fn sizes(release: &Release) -> Result<String> {
    let mut text = "| file | MiB |\n|---|---:|\n".to_owned();
    let mib = |path: &Path| -> Result<String> {
        let bytes = fs::metadata(path).with_context(|| path.display().to_string())?.len();
        Ok(format!("{:.2}", bytes as f64 / f64::from(1 << 20)))
    };
    for of in Architecture::ALL {
        let binary = release.stage(of).join("usr/bin/foreread");
        if binary.exists() {
            let _ = writeln!(text, "| binary, {} | {} |", of.arch(), mib(&binary)?);
        }
    }
    for name in names(&release.directory)? {
        let _ = writeln!(text, "| {name} | {} |", mib(&release.directory.join(&name))?);
    }
    Ok(text)
}

/// Returns the table of requirements, and whether all are met.
pub fn table(release: &Release) -> Result<(String, bool)> {
    let of = Architecture::named(std::env::consts::ARCH)?;
    let binary = release.stage(of).join("usr/bin/foreread");
    let version = median_ms(&binary, &["--version"])?;
    let doctor = median_ms(&binary, &["doctor"])?;
    let rows = [
        limited(
            &format!("`foreread --version`, median of {CALL_COUNT}"),
            version,
            VERSION_MAX_MS,
            " ms",
        ),
        limited(
            &format!("`foreread doctor`, median of {CALL_COUNT}"),
            doctor,
            DOCTOR_MAX_MS,
            " ms",
        ),
        exposure(release, of)?,
        verified(release, of)?,
        lintian(release, of)?,
    ];
    let mut text = "| check | result | required | met |\n|---|---|---|---|\n".to_owned();
    for (check, result, required, met) in &rows {
        let met = if *met { "yes" } else { "**no**" };
        let _ = writeln!(text, "| {check} | {result} | {required} | {met} |");
    }
    Ok((text, rows.iter().all(|row| row.3)))
}

/// Check, result, requirement, and whether it is met.
type Row = (String, String, String, bool);

fn limited(check: &str, value: f64, most: f64, unit: &str) -> Row {
    (check.to_owned(), format!("{value:.1}{unit}"), format!("{most:.0}{unit}"), value < most)
}

fn median_ms(binary: &Path, words: &[&str]) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..CALL_COUNT {
        let mut command = Command::new(binary);
        command.args(words).env("FOREREAD_CONFIG", "").stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        command.status().with_context(|| binary.display().to_string())?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[CALL_COUNT / 2])
}

fn exposure(release: &Release, of: Architecture) -> Result<Row> {
    let mut command = Command::new("systemd-analyze");
    let unit = release.stage(of).join("usr/lib/systemd/system/foreread-auto.service");
    command.args(["security", "--no-pager", "--offline=true"]).arg(unit);
    let output = captured(&mut command)?;
    let line = output.stdout.lines().rfind(|line| line.contains("Overall exposure level"));
    let level = line.and_then(|line| line.split_whitespace().find_map(|word| word.parse().ok()));
    let level: f64 = level.with_context(|| format!("systemd-analyze: {}", output.stderr))?;
    Ok(limited("`systemd-analyze security`, exposure", level, EXPOSURE_MAX, ""))
}

fn verified(release: &Release, of: Architecture) -> Result<Row> {
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no", "--recursive-errors=no"]);
    command.arg(format!("--root={}", release.stage(of).display())).arg("foreread-auto.service");
    let output = captured(&mut command)?;
    Ok(found("`systemd-analyze verify`", &output.stderr, output.code == 0))
}

fn lintian(release: &Release, of: Architecture) -> Result<Row> {
    let mut command = Command::new("lintian");
    command.args(["--fail-on", "error,warning"]).arg(artefact(release, of, "deb")?);
    let output = captured(&mut command)?;
    Ok(found("`lintian`", &output.stdout, output.code == 0))
}

fn found(check: &str, printed: &str, success: bool) -> Row {
    let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    let result = if lines.is_empty() { "nothing".to_owned() } else { lines.join("<br>") };
    let required = "no error, no warning".to_owned();
    (check.to_owned(), result, required, success && lines.is_empty())
}
