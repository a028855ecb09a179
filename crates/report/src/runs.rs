//! The list of runs.

use std::io::{self, Write};

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

/// Formats seconds since 1970 as `2008-04-07 12:34`, with Hinnant's civil-from-days algorithm
/// (howardhinnant.github.io/date_algorithms.html).
pub fn utc(unix_s: f64) -> String {
    if !unix_s.is_finite() || unix_s.abs() > 1e13 {
        return String::new();
    }
    let seconds = unix_s as i64;
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", rest / 3_600, rest % 3_600 / 60)
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
