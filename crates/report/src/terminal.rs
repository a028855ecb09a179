//! A study for a terminal: table, plots and verdict.

use anstyle::{AnsiColor, Style};
use study::Role;
use units::Kib;

use crate::clean;
use crate::engines::engines_text;
use crate::factors;
use crate::limits::limits_text;
use crate::number::ABSENT;
use crate::plot::{Point, plot};
use crate::run_report::{NOW, RECOMMENDED, RunReport};
use crate::table::{Figures, Row, SHADES, Table};
use crate::terminal_text::{TermStyle, legend, plain_grid, shaded, trades, verdict_text, wrap};
use crate::unit::unit;
use crate::verdict::verdict;
use units::text::counted;

/// Number of columns before the first workload: the setting in KiB and in sectors.
const SETTING_COLUMNS: usize = 2;
/// Number of blanks on both sides of a column.
const CELL_PADDING: usize = 2;

pub fn terminal(report: &RunReport<'_>, look: TermStyle) -> String {
    study_text(report, look, || {
        let limits = limits_text(&report.analysis.limits);
        [engines_text(report), plots(report), trades(report, look), limits].concat()
    })
}

/// Returns the table and the recommendation, without plots.
pub fn terminal_brief(report: &RunReport<'_>, look: TermStyle) -> String {
    study_text(report, look, String::new)
}

/// Returns the table, the text of `details`, and the recommendation.
fn study_text(report: &RunReport<'_>, look: TermStyle, details: impl Fn() -> String) -> String {
    if report.varied() {
        return factors::terminal(report, look);
    }
    let mut text = head(report);
    let table = Table::new(report);
    if table.rows.is_empty() {
        text.push_str("No trials yet.\n");
        return text;
    }
    for columns in chunks(&table, look.width) {
        text.push('\n');
        text.push_str(&grid(&table, columns, look));
    }
    text.push('\n');
    text.push_str(&wrap(&legend(report), look.width));
    text.push_str(&details());
    text.push('\n');
    text.push_str(&verdict_text(verdict(report, clean::plain), look.width));
    text
}

fn head(report: &RunReport<'_>) -> String {
    let run = report.run;
    format!(
        "Run {}: read-ahead of {}, {} in {}, seed {}\n",
        run.summary.id,
        clean::plain(&run.summary.target),
        counted(run.trials.len(), "trial"),
        report.measuring_time(),
        run.seed
    )
}

/// Returns the workloads of each table, so that no table is wider than the terminal.
fn chunks(table: &Table, width: usize) -> Vec<std::ops::Range<usize>> {
    let widths: Vec<usize> = (0..table.workloads.len())
        .map(|column| {
            let cells = column_text(table, column);
            let widest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(clean::plain(&table.workloads[column]).chars().count()) + CELL_PADDING
        })
        .collect();
    let widest_mark = table.rows.iter().map(|row| marks(row).chars().count()).max().unwrap_or(0);
    let fixed = "read-ahead".len() + "sectors".len() + widest_mark + 3 * CELL_PADDING;
    let mut chunks = Vec::new();
    let (mut start, mut used) = (0, fixed);
    for (column, width_of) in widths.iter().enumerate() {
        if used + width_of > width && column > start {
            chunks.push(start..column);
            (start, used) = (column, fixed);
        }
        used += width_of;
    }
    chunks.push(start..widths.len());
    chunks
}

fn grid(table: &Table, columns: std::ops::Range<usize>, look: TermStyle) -> String {
    let names = table.workloads[columns.clone()].iter().map(|name| clean::plain(name));
    let header = ["read-ahead".to_owned(), "sectors".to_owned()].into_iter();
    let header = header.chain(names).chain([String::new()]);
    let texts: Vec<Vec<String>> =
        columns.clone().map(|column| column_text(table, column)).collect();
    let rows = table.rows.iter().enumerate().map(|(index, row)| {
        let cells = texts.iter().map(|column| column[index].clone());
        let fixed = [row.setting.to_string(), row.setting.to_sectors().get().to_string()];
        fixed.into_iter().chain(cells).chain([marks(row)]).collect()
    });
    let figures = columns.len() + SETTING_COLUMNS;
    finished(&plain_grid(header, rows, |column| column < figures), table, look)
}

fn marks(row: &Row) -> String {
    if row.marks.is_empty() { String::new() } else { format!("◀ {}", row.marks.join(", ")) }
}

/// Adds a line below the header and colours the marked rows. The table library draws lines either
/// everywhere or nowhere, and would count the characters of colour codes.
fn finished(lines: &[String], table: &Table, look: TermStyle) -> String {
    let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut finished = String::new();
    for (index, line) in lines.iter().enumerate() {
        let row = index.checked_sub(1).and_then(|row| table.rows.get(row));
        let style = row.map_or(Style::new(), |row| style_of(&row.marks));
        if look.colour {
            finished.push_str(&format!("{style}{}{style:#}\n", shaded(line, style)));
        } else {
            finished.push_str(&format!("{line}\n"));
        }
        if index == 0 {
            finished.push_str(&format!("{}\n", "─".repeat(widest)));
        }
    }
    finished
}

fn style_of(marks: &[&str]) -> Style {
    if marks.contains(&RECOMMENDED) {
        Style::new().bold().fg_color(Some(AnsiColor::Green.into()))
    } else if marks.contains(&NOW) {
        Style::new().bold()
    } else {
        Style::new()
    }
}

/// Returns the cells of one workload, with their parts aligned.
fn column_text(table: &Table, column: usize) -> Vec<String> {
    let figures: Vec<Option<&Figures>> =
        table.rows.iter().map(|row| row.figures[column].as_ref()).collect();
    let widest = |part: fn(&Figures) -> &str| {
        figures.iter().flatten().map(|f| part(f).chars().count()).max().unwrap_or(0)
    };
    let throughput = widest(|f| &f.throughput);
    let spread = widest(|f| f.spread.as_deref().unwrap_or(""));
    let amplification = widest(|f| f.amplification.as_deref().unwrap_or(""));
    let cell = |figures: &Figures| {
        let mut text = format!("{} {:>throughput$}", SHADES[figures.shade], figures.throughput);
        text.push_str(&part(" ", figures.spread.as_deref(), spread));
        text.push_str(&part("  ×", figures.amplification.as_deref(), amplification));
        text
    };
    figures.into_iter().map(|figures| figures.map_or_else(|| ABSENT.to_owned(), cell)).collect()
}

/// Returns a part of a cell, or as many spaces.
fn part(sign: &str, text: Option<&str>, width: usize) -> String {
    match text {
        _ if width == 0 => String::new(),
        Some(text) => format!("{sign}{text:<width$}"),
        None => " ".repeat(sign.chars().count() + width),
    }
}

fn plots(report: &RunReport<'_>) -> String {
    let mut text = String::new();
    for planned in report.workloads().iter().filter(|planned| planned.role == Role::Goal) {
        let name = &planned.workload.name;
        let cells = report.settings().into_iter().filter_map(|s| report.cell(s, name));
        let points: Vec<Point> = cells.map(point).collect();
        if let Some(drawn) = plot(&points) {
            let unit = clean::plain(&unit(report.run, name));
            text.push_str(&format!("\n{} ({unit} against read-ahead)\n", clean::plain(name)));
            text.push_str(&drawn);
        }
    }
    text
}

fn point(cell: &study::Cell) -> Point {
    let setting: Kib = cell.settings.read_ahead;
    Point { setting, value: cell.throughput_mib_s.median }
}
