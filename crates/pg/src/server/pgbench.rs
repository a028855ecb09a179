//! Generates load with `pgbench`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::client::Client;
use super::process::{PgCommand, RunLimit, failed, output};
use crate::error::PgError;

/// Interval of the checks whether `pgbench` has exited or should stop early.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A run of `pgbench`.
#[derive(Clone, Debug, PartialEq)]
pub struct PgbenchLoad {
    /// Transaction in pgbench's language; `None` for the built-in TPC-B-like one.
    pub script: Option<String>,
    pub variables: Vec<(String, String)>,
    pub clients: u32,
    /// Duration in seconds of wall time.
    pub seconds: u64,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Seconds of wall time since the start.
    pub seconds: f64,
    /// Transactions per second since the previous line.
    pub per_second: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pgbench {
    pub moments: Vec<Moment>,
    /// Wall time in seconds until `pgbench` exited.
    pub seconds: f64,
    /// Transactions per second overall; `None` if pgbench did not print it because it was stopped.
    pub per_second: Option<f64>,
}

impl Client {
    /// Creates pgbench's tables with `scale` × 100,000 rows.
    pub fn initialise_pgbench(&self, scale: u64, limit: &RunLimit) -> Result<(), PgError> {
        let invocation =
            PgCommand::new(self.pgbench()?).args(["-i", "-q", "-s", &scale.to_string()]);
        invocation.arg(&self.connection).run(limit).map(drop)
    }

    fn pgbench(&self) -> Result<PathBuf, PgError> {
        let missing = PgError::NotInstalled { program: "pgbench", package: "postgresql" };
        self.pgbench.clone().ok_or(missing)
    }
}

impl PgbenchLoad {
    /// Runs the load for its duration, or until `enough` returns true for the seconds since start.
    pub fn run(
        &self,
        client: &Client,
        limit: &RunLimit,
        enough: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Pgbench, PgError> {
        let mut child = self.invocation(client)?.start()?;
        let start = Instant::now();
        let mut is_interrupted = false;
        let status = limit.wait(&mut child, "pgbench", POLL_INTERVAL, &mut |child| {
            if !is_interrupted && enough(start.elapsed().as_secs_f64()) {
                is_interrupted = true;
                child.signal(Signal::INT);
            }
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let (said, complaint) = output(&mut child);
        if !status.success() && !is_interrupted {
            return Err(failed("pgbench".to_owned(), &status, &complaint));
        }
        let moments = complaint.lines().filter_map(moment).collect();
        Ok(Pgbench { moments, seconds, per_second: transactions_per_second(&said) })
    }

    fn invocation(&self, client: &Client) -> Result<PgCommand, PgError> {
        let mut invocation = PgCommand::new(client.pgbench()?).args(["-n", "-P", "1"]);
        let (clients, seconds) = (self.clients.to_string(), self.seconds.max(1).to_string());
        invocation = invocation.args(["-c", &clients, "-T", &seconds]);
        invocation = invocation.arg(format!("--random-seed={}", self.seed));
        for (name, value) in &self.variables {
            invocation = invocation.arg("-D").arg(format!("{name}={value}"));
        }
        if let Some(script) = &self.script {
            invocation = invocation.args(["-M", "prepared", "-f", "-"]).input(script.clone());
        }
        Ok(invocation.env("PGOPTIONS", &client.options).arg(&client.connection))
    }
}

/// Parses `progress: 5.0 s, 1234.5 tps, lat 0.8 ms stddev 0.1, 0 failed`.
fn moment(line: &str) -> Option<Moment> {
    let mut parts = line.strip_prefix("progress: ")?.split(", ");
    let number = |part: Option<&str>, unit: &str| {
        let number = part?.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
        Some(number).filter(|number| number.is_finite() && *number >= 0.0)
    };
    Some(Moment { seconds: number(parts.next(), "s")?, per_second: number(parts.next(), "tps")? })
}

/// Parses `tps = 1234.567 (without initial connection time)`, in the wording of any version.
pub fn transactions_per_second(said: &str) -> Option<f64> {
    let line = said.lines().rev().find(|line| line.starts_with("tps = "))?;
    let number =
        line.trim_start_matches("tps = ").split_whitespace().next()?.parse::<f64>().ok()?;
    Some(number).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_in_the_words_of_all_versions() {
        let of_15 = "progress: 5.0 s, 1234.5 tps, lat 0.801 ms stddev 0.124, 0 failed";
        assert_eq!(moment(of_15), Some(Moment { seconds: 5.0, per_second: 1234.5 }));
        let of_12 = "progress: 1.0 s, 10.0 tps, lat 0.8 ms stddev 0.1";
        assert_eq!(moment(of_12), Some(Moment { seconds: 1.0, per_second: 10.0 }));
        for garbage in ["", "progress: ", "progress: x s, y tps", "progress: 1.0 s, NaN tps, lat"] {
            assert_eq!(moment(garbage), None, "{garbage:?}");
        }
        let said = "latency average = 1 ms\ntps = 512.25 (without initial connection time)\n";
        assert_eq!(transactions_per_second(said), Some(512.25));
        assert_eq!(transactions_per_second("tps = fast"), None);
    }
}
