//! Text for a study's tables on a terminal: legend, colours, trade-offs, line breaks.

use anstyle::{Ansi256Color, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};

use crate::clean;
use crate::number::spread_legend;
use crate::plot::scatter;
use crate::run_report::RunReport;
use crate::table::SHADES;
use crate::tradeoff::tradeoffs;
use crate::unit::units;
use crate::verdict_parts::VerdictLine;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermStyle {
    /// Maximum width of a line.
    pub width: usize,
    /// True to use colours, which also mark the recommended rows.
    pub colour: bool,
}

/// Explains the numbers in a cell.
pub(crate) fn legend(report: &RunReport<'_>) -> String {
    let spread = spread_legend(report.analysis.cells.iter().map(|cell| &cell.throughput_mib_s));
    let spread = if spread.is_empty() { spread } else { format!("{spread}; ") };
    let measured = report.workloads();
    let names = measured.iter().map(|planned| planned.workload.name.as_str());
    let units = clean::plain(&units(report.run, names));
    format!(
        "{units}; {spread}×: amplification (bytes read from the device ÷ bytes requested). Shades: \
         from the worst of each column (none) to the best (█)."
    )
}

/// Formats a table without borders as lines without trailing blanks; columns of figures are
/// right-aligned.
pub fn plain_grid(
    header: impl IntoIterator<Item = impl ToString>,
    rows: impl IntoIterator<Item = Vec<String>>,
    is_figure: impl Fn(usize) -> bool,
) -> Vec<String> {
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING);
    grid.set_content_arrangement(ContentArrangement::Disabled);
    grid.set_header(header);
    grid.add_rows(rows);
    for (_, column) in grid.column_iter_mut().enumerate().filter(|(index, _)| is_figure(*index)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    grid.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Formats a verdict with its commands indented.
pub(crate) fn verdict_text(lines: Vec<VerdictLine>, width: usize) -> String {
    let line = |line| match line {
        VerdictLine::Sentence(sentence) => wrap(&sentence, width),
        VerdictLine::Command(command) => format!("    {command}\n"),
    };
    lines.into_iter().map(line).collect()
}

/// Colours the shades in a line; `style` applies to the rest.
pub(crate) fn shaded(line: &str, style: Style) -> String {
    const GREENS: [u8; 5] = [0, 22, 28, 34, 40];
    let mut text = String::with_capacity(line.len());
    for letter in line.chars() {
        match SHADES.iter().position(|shade| *shade == letter).filter(|place| *place > 0) {
            Some(place) => {
                let green = Style::new().fg_color(Some(Ansi256Color(GREENS[place]).into()));
                text.push_str(&format!("{green}{letter}{green:#}{style}"));
            }
            None => text.push(letter),
        }
    }
    text
}

/// Maximum number of trade-offs.
const MAX_TRADEOFFS: usize = 2;

/// Plots the gain of one workload against the loss of another.
pub(crate) fn trades(report: &RunReport<'_>, look: TermStyle) -> String {
    let mut text = String::new();
    for trade in tradeoffs(report).iter().take(MAX_TRADEOFFS) {
        let at = |place: &usize| (trade.points[*place].1, trade.points[*place].2);
        let front: Vec<(f64, f64)> = trade.front.iter().map(at).collect();
        let all: Vec<(f64, f64)> = trade.points.iter().map(|(_, x, y)| (*x, *y)).collect();
        let Some(drawn) = scatter(&front, &all) else { continue };
        let [goal, other] = [trade.goal, trade.other].map(clean::plain);
        let name = |settings: &study::CellSettings| match report.varied() {
            true => clean::plain(&settings.to_string()),
            false => settings.read_ahead.to_string(),
        };
        let title = format!(
            "{other} (upward) against {goal} (to the right), relative to {}",
            name(&trade.over)
        );
        text.push_str(&format!("\n{}{drawn}", wrap(&title, look.width)));
        let names: Vec<String> =
            trade.front.iter().map(|place| name(&trade.points[*place].0)).collect();
        let front =
            format!("On the line, no other setting is better for both: {}.", names.join(", "));
        text.push_str(&wrap(&front, look.width));
    }
    text
}

/// Wraps a sentence into lines of at most `width` columns.
pub(crate) fn wrap(sentence: &str, width: usize) -> String {
    wrapped(sentence, width.clamp(40, 100)).join("\n") + "\n"
}

/// Wraps a text at spaces, but not between a number and its unit; returns the lines.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut words = text.split(' ').peekable();
    while let Some(first) = words.next() {
        let mut word = first.to_owned();
        let counts = word.ends_with(|c: char| c.is_ascii_digit());
        if let Some(unit) = words.next_if(|next| counts && is_unit(next)) {
            word = format!("{word} {unit}");
        }
        let last = lines.last_mut().map_or(0, |line| line.chars().count());
        let fits = last == 0 || last + 1 + word.chars().count() <= width;
        match lines.last_mut().filter(|_| fits) {
            Some(line) => {
                if last > 0 {
                    line.push(' ');
                }
                line.push_str(&word);
            }
            None => lines.push(word),
        }
    }
    lines
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.', ';', ':', ')']);
    matches!(word, "%" | "KiB" | "MiB" | "GiB" | "ms" | "µs" | "s" | "sectors")
}
