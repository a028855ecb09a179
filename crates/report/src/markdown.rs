//! Markdown: the verdict and the table, to paste into an issue or a wiki.

use crate::clean;
use crate::factors;
use crate::findings::Findings;
use crate::limits::limits_markdown;
use crate::number::{ABSENT, spread_legend};
use crate::table::{Figures, Table};
use crate::unit::{unit, units};
use crate::verdict::{Line, verdict};

/// The verdict in sentences, the table below.
pub fn markdown(findings: &Findings<'_>) -> String {
    let target = clean::markdown(&findings.run.summary.target);
    if factors::varied(findings) {
        let limits = limits_markdown(&findings.analysis.limits);
        return format!("### Tunables of {target}\n\n{}{limits}", factors::markdown(findings));
    }
    let mut text = format!("### Read-ahead of {target}\n\n");
    for line in verdict(findings, clean::markdown) {
        match line {
            Line::Sentence(sentence) => text.push_str(&format!("- {sentence}\n")),
            Line::Command(command) => text.push_str(&format!("\n```sh\n{command}\n```\n")),
        }
    }
    let table = Table::of(findings);
    if table.rows.is_empty() {
        return text;
    }
    text.push_str("\n| read-ahead (KiB) | sectors |");
    for name in &table.workloads {
        let unit = clean::markdown(&unit(findings.run, name));
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
    let spread = spread_legend(findings.analysis.cells.iter().map(|cell| &cell.throughput_mib_s));
    text.push_str(&format!(
        "\n{}; {}×: amplification (bytes read from the device ÷ bytes asked for). Run {}, seed {}, \
         foreread {}.\n",
        clean::markdown(&units(findings.run, table.workloads.iter().map(String::as_str))),
        if spread.is_empty() { spread } else { format!("{spread}; ") },
        findings.run.summary.id,
        findings.run.seed,
        clean::markdown(&findings.run.summary.version),
    ));
    text.push_str(&limits_markdown(&findings.analysis.limits));
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
