//! A comparison as JSON, CSV and Markdown.

use std::io::{self, Write};

use serde_json::{Value, json};
use stats::Estimate;

use super::{Pairing, sentences, word};
use crate::clean;
use crate::json::{Versioned, With};
use crate::names::settings_label;
use crate::number::{ABSENT, ends_text, full, short_or_absent, with_spread};
use crate::run_report::RunReport;

fn side(report: &RunReport<'_>) -> Value {
    let summary = &report.run.summary;
    json!({
        "run": summary.id.0,
        "target": summary.target,
        "version": summary.version,
        "recommendation": report.analysis.recommendation,
    })
}

/// Returns the document of `compare --json`, or `None` if there are no comparisons;
/// docs/compare.schema.json specifies it.
pub fn compare_json(pairings: &[Pairing<'_>]) -> Option<Versioned<Value>> {
    let other = |pairing: &Pairing<'_>| {
        let more = json!({ "comparison": pairing.comparison });
        With { object: side(&pairing.second), more }
    };
    Some(Versioned::new(json!({
        "first": side(&pairings.first()?.first),
        "others": pairings.iter().map(other).collect::<Vec<_>>(),
    })))
}

const COLUMNS: &[&str] = &[
    "first_run",
    "second_run",
    "first_target",
    "second_target",
    "workload",
    "read_ahead_kib",
    "first_mib_s_median",
    "first_mib_s_low",
    "first_mib_s_high",
    "first_mib_s_spread",
    "second_mib_s_median",
    "second_mib_s_low",
    "second_mib_s_high",
    "second_mib_s_spread",
    "ratio_median",
    "ratio_low",
    "ratio_high",
    "ratio_spread",
    "difference",
    "amplification_ratio",
    "p99_ratio",
    "settings",
];

/// Writes the compared cells as CSV.
pub fn compare_csv(pairings: &[Pairing<'_>], out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    for pairing in pairings {
        let sides = [&pairing.first, &pairing.second].map(|side| &side.run.summary);
        for cell in &pairing.comparison.cells {
            let mut fields: Vec<String> = sides.map(|side| side.id.to_string()).to_vec();
            fields.extend(sides.map(|side| clean::csv(&side.target)));
            fields.push(clean::csv(&cell.workload));
            fields.push(cell.settings.read_ahead.get().to_string());
            for estimate in [&cell.first_mib_s, &cell.second_mib_s, &cell.ratio] {
                fields.extend([estimate.median, estimate.low(), estimate.high()].map(full));
                fields.push(estimate.spread_kind().to_owned());
            }
            fields.push(word(cell.difference).to_owned());
            fields.extend(
                [cell.amplification_ratio, cell.p99_ratio]
                    .map(|r| r.map_or_else(String::new, full)),
            );
            fields.push(clean::csv(&cell.settings.to_string()));
            writer.write_record(fields)?;
        }
    }
    writer.flush()
}

pub fn compare_markdown(pairings: &[Pairing<'_>]) -> String {
    let mut text = String::new();
    for pairing in pairings {
        let [first, second] = pairing.names.each_ref().map(|name| clean::markdown(name));
        text.push_str(&format!("### {second} compared with {first}\n\n"));
        for sentence in sentences(pairing, clean::markdown) {
            text.push_str(&format!("- {sentence}\n"));
        }
        if !pairing.comparison.cells.is_empty() {
            let unit = clean::markdown(&pairing.units());
            text.push_str(&format!(
                "\n| workload | read-ahead (KiB) | A ({unit}) | B ({unit}) | B ÷ A | 95 % CI or \
                 range (a–b) | B is |\n"
            ));
            text.push_str("|---|---:|---:|---:|---:|---:|---|\n");
        }
        for cell in &pairing.comparison.cells {
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} | {} |\n",
                clean::markdown(&cell.workload),
                markdown_settings(&cell.settings),
                figure(&cell.first_mib_s),
                figure(&cell.second_mib_s),
                short_or_absent(cell.ratio.median),
                ends_text(&cell.ratio).unwrap_or_else(|| ABSENT.to_owned()),
                word(cell.difference),
            ));
        }
        text.push_str(&format!("\nA: {first}. B: {second}.\n\n"));
    }
    text
}

/// Returns read-ahead in KiB, and the other settings.
fn markdown_settings(settings: &study::CellSettings) -> String {
    let others = clean::markdown(&settings_label(settings));
    format!("{} {others}", settings.read_ahead.get()).trim_end().to_owned()
}

fn figure(estimate: &Estimate) -> String {
    with_spread(estimate).replace('±', "± ")
}
