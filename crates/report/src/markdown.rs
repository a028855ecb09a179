//! Markdown: the verdict and the table, to paste into an issue or a wiki.

use crate::clean;
use crate::factors;
use crate::limits::limits_markdown;
use crate::number::{ABSENT, spread_legend};
use crate::run_report::RunReport;
use crate::table::{Figures, Table};
use crate::unit::{unit, units};
use crate::verdict::verdict;
use crate::verdict_parts::verdict_markdown;

pub fn markdown(report: &RunReport<'_>) -> String {
    let target = clean::markdown(&report.run.summary.target);
    if report.varied() {
        let limits = limits_markdown(&report.analysis.limits);
        return format!("### Tunables of {target}\n\n{}{limits}", factors::markdown(report));
    }
    let mut text = format!("### Read-ahead of {target}\n\n");
    text.push_str(&verdict_markdown(verdict(report, clean::markdown)));
    let table = Table::new(report);
    if table.rows.is_empty() {
        return text;
    }
    text.push_str("\n| read-ahead (KiB) | sectors |");
    for name in &table.workloads {
        let unit = clean::markdown(&unit(report.run, name));
        text.push_str(&format!(" {} ({unit}) |", clean::markdown(name)));
    }
    text.push_str(" |\n|---:|---:|");
    text.push_str(&"---:|".repeat(table.workloads.len()));
    text.push_str("---|\n");
    for row in &table.rows {
        let sectors = row.setting.to_sectors().get();
        text.push_str(&format!("| {} | {sectors} |", row.setting.get()));
        for figures in &row.figures {
            let cell = figures.as_ref().map_or_else(|| ABSENT.to_owned(), cell);
            text.push_str(&format!(" {cell} |"));
        }
        text.push_str(&format!(" {} |\n", row.marks.join(", ")));
    }
    let spread = spread_legend(report.analysis.cells.iter().map(|cell| &cell.throughput_mib_s));
    text.push_str(&format!(
        "\n{}; {}×: amplification (bytes read from the device ÷ bytes requested). Run {}, seed {}, \
         foreread {}.\n",
        clean::markdown(&units(report.run, table.workloads.iter().map(String::as_str))),
        if spread.is_empty() { spread } else { format!("{spread}; ") },
        report.run.summary.id,
        report.run.seed,
        clean::markdown(&report.run.summary.version),
    ));
    text.push_str(&limits_markdown(&report.analysis.limits));
    text
}

fn cell(figures: &Figures) -> String {
    let mut text = figures.throughput.clone();
    if let Some(spread) = &figures.spread {
        text.push_str(&format!(" {}", spread.replace('±', "± ")));
    }
    if let Some(amplification) = &figures.amplification {
        text.push_str(&format!(" ×{amplification}"));
    }
    text
}
