//! A comparison for a terminal.

use anstyle::{AnsiColor, Style};
use study::{CellPair, Difference};

use super::{Pairing, sentences, word};
use crate::clean;
use crate::names::settings_label;
use crate::number::{ABSENT, ends_text, short_or_absent, with_spread};
use crate::terminal_text::{TermStyle, plain_grid, wrap};

/// Width of a bar; half of it on each side of 1.
const BAR_COLUMNS: usize = 16;
/// Ratio that fills half a bar.
const BAR_RATIO: f64 = 4.0;

/// Returns all comparisons: a table of cells for each workload, then the verdict.
pub fn compare_terminal(pairings: &[Pairing<'_>], look: TermStyle) -> String {
    let mut text = String::new();
    for pairing in pairings {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&one(pairing, look));
    }
    text
}

fn one(pairing: &Pairing<'_>, look: TermStyle) -> String {
    let [first, second] = &pairing.names;
    let mut text = format!(
        "Run {} compared with run {}\n  A: {first}\n  B: {second}\n",
        pairing.second.run.summary.id, pairing.first.run.summary.id
    );
    let cells = &pairing.comparison.cells;
    let mut workloads: Vec<&str> = cells.iter().map(|cell| cell.workload.as_str()).collect();
    workloads.dedup();
    for workload in workloads {
        let chosen: Vec<&CellPair> = cells.iter().filter(|c| c.workload == workload).collect();
        let unit = clean::plain(&pairing.unit(workload));
        text.push_str(&format!("\n{} ({unit})\n", clean::plain(workload)));
        text.push_str(&table(&chosen, look));
    }
    text.push('\n');
    for sentence in sentences(pairing, clean::plain) {
        text.push_str(&wrap(&sentence, look.width));
    }
    text
}

fn table(cells: &[&CellPair], look: TermStyle) -> String {
    let header = ["read-ahead", "sectors", "A", "B", "B ÷ A", "95 % CI or a–b", "", "B is"];
    let rows = cells.iter().map(|cell| {
        let kib = cell.settings.read_ahead;
        let others = settings_label(&cell.settings);
        let window = format!("{others} {kib}").trim_start().to_owned();
        vec![
            window,
            kib.to_sectors().get().to_string(),
            with_spread(&cell.first_mib_s),
            with_spread(&cell.second_mib_s),
            short_or_absent(cell.ratio.median),
            ends_text(&cell.ratio).unwrap_or_else(|| ABSENT.to_owned()),
            bar(cell.ratio.median),
            word(cell.difference).to_owned(),
        ]
    });
    let lines = plain_grid(header, rows, |column| column < 6);
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let cell = index.checked_sub(1).and_then(|row| cells.get(row));
        let style = cell.map_or(Style::new(), |cell| style(cell.difference));
        if look.colour && style != Style::new() {
            text.push_str(&format!("{style}{line}{style:#}\n"));
        } else {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

fn style(difference: Difference) -> Style {
    match difference {
        Difference::Faster => Style::new().fg_color(Some(AnsiColor::Green.into())),
        Difference::Slower => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
        Difference::NoMeasurableDifference | Difference::Inconclusive => Style::new(),
    }
}

/// Returns a bar that extends left or right of 1, on a logarithmic axis.
fn bar(ratio: f64) -> String {
    let half = BAR_COLUMNS / 2;
    if !ratio.is_finite() || ratio <= 0.0 {
        return String::new();
    }
    let reach = (ratio.ln() / BAR_RATIO.ln()).clamp(-1.0, 1.0) * half as f64;
    let cells = reach.abs().round() as usize;
    if reach < 0.0 {
        format!("{}{}│{}", " ".repeat(half - cells), "█".repeat(cells), " ".repeat(half))
    } else {
        format!("{}│{}{}", " ".repeat(half), "█".repeat(cells), " ".repeat(half - cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_one_width_and_end_somewhere() {
        for ratio in [1e-9, 0.25, 0.5, 1.0, 1.3, 4.0, 1e9] {
            assert_eq!(bar(ratio).chars().count(), BAR_COLUMNS + 1, "{ratio}");
        }
        assert_eq!(bar(2.0), format!("{}│{}{}", " ".repeat(8), "█".repeat(4), " ".repeat(4)));
        assert_eq!(bar(f64::NAN), "");
    }
}
