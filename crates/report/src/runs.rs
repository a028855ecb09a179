//! The list of runs.

use std::io::{self, Write};

use chrono::DateTime;
use serde::Serialize;
use study::RunSummary;

use crate::clean;
use crate::json::Versioned;
use crate::terminal_text::plain_grid;

/// The document of `runs list --json`.
#[derive(Debug, Serialize)]
pub struct RunList<'a> {
    runs: &'a [RunSummary],
}

/// Returns the list as JSON.
pub fn runs_json(runs: &[RunSummary]) -> Versioned<RunList<'_>> {
    Versioned::new(RunList { runs })
}

/// Returns the list for a terminal, latest first.
pub fn runs_table(runs: &[RunSummary]) -> String {
    let header = ["run", "begun (UTC)", "verb", "trials", "status", "target"];
    let rows = runs.iter().map(|run| cells(run, clean::plain).to_vec());
    plain_grid(header, rows, |column| [0, 3].contains(&column)).join("\n") + "\n"
}

/// Writes the list as CSV.
pub fn runs_csv(runs: &[RunSummary], out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["run", "begun_utc", "command", "trials", "status", "target"])?;
    for run in runs {
        writer.write_record(cells(run, clean::csv))?;
    }
    writer.flush()
}

pub fn runs_markdown(runs: &[RunSummary]) -> String {
    let mut text =
        "| run | started (UTC) | verb | trials | status | target |\n|---:|---|---|---:|---|---|\n"
            .to_owned();
    for run in runs {
        text.push_str(&format!("| {} |\n", cells(run, clean::markdown).join(" | ")));
    }
    text
}

fn cells(run: &RunSummary, clean: impl Fn(&str) -> String) -> [String; 6] {
    [
        run.id.to_string(),
        utc(run.created_unix_s),
        run.command.to_string(),
        run.trials.to_string(),
        run.status.to_string(),
        clean(&run.target),
    ]
}

/// Formats seconds since 1970 as `2008-04-07 12:34`; an impossible time is empty.
pub fn utc(unix_s: f64) -> String {
    let time = unix_s.is_finite().then(|| DateTime::from_timestamp_secs(unix_s as i64)).flatten();
    time.map_or_else(String::new, |time| time.format("%Y-%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_knows_leap_years() {
        assert_eq!(utc(0.0), "1970-01-01 00:00");
        assert_eq!(utc(951_827_696.0), "2000-02-29 12:34");
        assert_eq!(utc(1_795_181_583.0), "2026-11-20 13:33");
        assert_eq!(utc(f64::NAN), "");
    }
}
