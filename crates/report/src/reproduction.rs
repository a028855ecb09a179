//! Published tables next to simulated ones, as text, Markdown and JSON.

use anstyle::{AnsiColor, Style};
use reproduce::{Cell, CheckedClaim, Column, ModelParameter, NOT_SIMULATED, Reproduction};
use serde_json::{Value, json};

use crate::json::{Versioned, With};
use crate::number::{ABSENT, short_or_absent, whole};
use crate::plot::plot_beside;
use crate::terminal_text::{TermStyle, plain_grid, wrap};

/// Returns the document of `reproduce --json`.
pub fn reproductions_json(tables: &[Reproduction]) -> Versioned<Value> {
    let entry =
        |table| json!(With { object: table, more: json!({ "holds": Reproduction::holds(table) }) });
    Versioned::new(json!({
        // True if all required checks of all tables hold.
        "holds": tables.iter().all(Reproduction::holds),
        "tables": tables.iter().map(entry).collect::<Vec<_>>(),
        "not_simulated": NOT_SIMULATED,
    }))
}

/// Returns a reproduction for a terminal: table, plots, parameters, unexplained cells, checks.
pub fn reproduction(table: &Reproduction, look: TermStyle) -> String {
    let mut text = head(table);
    text.push_str(&grid(table));
    text.push_str(&plots(table));
    text.push('\n');
    for sentence in sentences(table) {
        text.push_str(&wrap(&sentence, look.width));
    }
    for line in &table.lines {
        text.push_str(&format!("  {} {}\n", verdict(line, look), bound(line)));
    }
    text
}

pub fn reproduction_markdown(table: &Reproduction) -> String {
    let mut text = format!("### {}: {}\n\n{}\n\n", table.name, table.title, table.source);
    let rows = rows(table);
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    text.push_str(&row(&header(table)));
    let columns = header(table).len();
    text.push_str(&format!("|{}\n", "---:|".repeat(columns)));
    rows.iter().for_each(|cells| text.push_str(&row(cells)));
    text.push('\n');
    for sentence in sentences(table) {
        text.push_str(&format!("{sentence}\n\n"));
    }
    for line in &table.lines {
        let word = match (line.holds, line.required) {
            (true, _) => "holds",
            (false, true) => "**does not hold**",
            (false, false) => "does not hold (not required)",
        };
        text.push_str(&format!("- {word}: {}\n", bound(line)));
    }
    text
}

/// Returns a summary of the checks of all tables in one line.
pub fn reproductions_summary(tables: &[Reproduction]) -> String {
    let (required, beside): (Vec<&CheckedClaim>, Vec<&CheckedClaim>) =
        tables.iter().flat_map(|table| &table.lines).partition(|line| line.required);
    let holding = |lines: &[&CheckedClaim]| lines.iter().filter(|line| line.holds).count();
    let marks = match beside.len() {
        0 => String::new(),
        count => format!(" and {} of {count} others", holding(&beside)),
    };
    let cells = |table: &Reproduction| -> Vec<f64> {
        columns(table)
            .flat_map(|column| &column.cells)
            .map(|cell| cell.error_percent.abs())
            .collect()
    };
    let errors: Vec<f64> = tables.iter().flat_map(cells).collect();
    let within = |limit: f64| errors.iter().filter(|error| **error <= limit).count();
    format!(
        "{} of {} required checks hold{marks}; of {} cells {} are within 10 % and {} within 20 %\n",
        holding(&required),
        required.len(),
        errors.len(),
        within(10.0),
        within(20.0)
    )
}

fn head(table: &Reproduction) -> String {
    format!("{}: {}\n{}\n\n", table.name, table.title, table.source)
}

fn columns(table: &Reproduction) -> impl Iterator<Item = &Column> {
    table.columns.iter().chain(&table.beside)
}

fn header(table: &Reproduction) -> Vec<String> {
    let mut header = vec![table.setting.to_owned()];
    for column in columns(table) {
        header.push(format!("{} ({}), published", column.name, column.unit));
        header.extend(["simulated".to_owned(), "error".to_owned()]);
    }
    header
}

/// Returns a row for each setting of any column, ascending.
fn rows(table: &Reproduction) -> Vec<Vec<String>> {
    let mut settings: Vec<f64> =
        columns(table).flat_map(|column| &column.cells).map(|cell| cell.setting).collect();
    settings.sort_by(f64::total_cmp);
    settings.dedup();
    let row = |setting: &f64| {
        let at =
            |column: &'_ Column| column.cells.iter().find(|cell| cell.setting == *setting).cloned();
        let label = columns(table).find_map(|column| at(column)?.label);
        let mut cells = vec![label.map_or_else(|| setting.to_string(), str::to_owned)];
        for column in columns(table) {
            cells.extend(figures(at(column).as_ref()));
        }
        cells
    };
    settings.iter().map(row).collect()
}

fn figures(cell: Option<&Cell>) -> [String; 3] {
    let Some(cell) = cell else { return [ABSENT.to_owned(), ABSENT.to_owned(), String::new()] };
    let mark = if cell.unexplained.is_some() { " *" } else { "" };
    let error = format!("{:+} %{mark}", whole(cell.error_percent));
    [short_or_absent(cell.published), short_or_absent(cell.simulated), error]
}

fn grid(table: &Reproduction) -> String {
    let head = header(table).into_iter().map(|name| name.replace(", published", "\npublished"));
    let labelled = columns(table).any(|column| column.cells.iter().any(|c| c.label.is_some()));
    plain_grid(head, rows(table), |index| index > 0 || !labelled).join("\n") + "\n"
}

/// Plots each column that is a curve.
fn plots(table: &Reproduction) -> String {
    let mut text = String::new();
    for column in &table.columns {
        let mut cells: Vec<&Cell> = column.cells.iter().collect();
        cells.sort_by(|a, b| a.setting.total_cmp(&b.setting));
        let curve = cells.len() > 2 && cells.iter().all(|cell| cell.label.is_none());
        let pairs = |of: fn(&Cell) -> f64| -> Vec<(f64, f64)> {
            cells.iter().map(|cell| (cell.setting, of(cell))).collect()
        };
        let (line, points) = (pairs(|cell| cell.simulated), pairs(|cell| cell.published));
        if let Some(plot) = plot_beside(&line, &points).filter(|_| curve) {
            let title =
                format!("{} ({}): line simulated, dots published", column.name, column.unit);
            text.push_str(&format!("\n{title}\n{plot}"));
        }
    }
    text
}

fn list(parameters: &[ModelParameter]) -> String {
    let each = parameters.iter().map(|each| format!("{} = {}", each.name, each.value));
    each.collect::<Vec<_>>().join(", ")
}

fn sentences(table: &Reproduction) -> Vec<String> {
    let mut said = vec![format!(
        "Simulated: sim:{} under {}, mean of {} seeds.",
        table.model, table.policy, table.seeds
    )];
    said.push(match (table.fitted.len(), table.fitted_with) {
        (0, Some(with)) => format!("Fitted: nothing; the model is that of {with}."),
        (0, None) => "Fitted: nothing.".to_owned(),
        (count, _) => {
            format!(
                "Fitted: {count} (the reference: {}): {}.",
                table.fitted_at_most,
                list(&table.fitted)
            )
        }
    });
    if !table.chosen.is_empty() {
        said.push(format!("Chosen among a few or assumed: {}.", list(&table.chosen)));
    }
    for column in columns(table).filter(|column| column.cells.len() > 1) {
        let rank = column.rank_correlation.map(|rank| format!(", rank correlation {rank:.2}"));
        said.push(format!(
            "{}: mean error {:.1} %{}.",
            column.name,
            column.mean_error_percent,
            rank.unwrap_or_default()
        ));
    }
    if let Some(setting) = table.recommended {
        let regret = table.columns.iter().filter_map(|column| {
            Some(format!("{:.1} % ({})", column.regret_percent?, column.name))
        });
        let regret: Vec<_> = regret.collect();
        said.push(format!("The simulation recommends {setting}: regret {}.", regret.join(", ")));
    }
    said.extend(
        reasons(table)
            .into_iter()
            .map(|(reason, cells)| format!("* error above 20 % ({}): {reason}.", cells.join(", "))),
    );
    said.extend(table.remarks.iter().map(|remark| format!("Note: {remark}.")));
    said
}

/// Returns the reasons for deviating cells, each once, with its cells.
fn reasons(table: &Reproduction) -> Vec<(&'static str, Vec<String>)> {
    let mut reasons: Vec<(&'static str, Vec<String>)> = Vec::new();
    for column in columns(table) {
        for cell in &column.cells {
            let Some(reason) = cell.unexplained else { continue };
            let name = cell.label.map_or_else(|| cell.setting.to_string(), str::to_owned);
            let name = format!("{} at {name}", column.name);
            match reasons.iter_mut().find(|known| known.0 == reason) {
                Some(known) => known.1.push(name),
                None => reasons.push((reason, vec![name])),
            }
        }
    }
    reasons
}

fn verdict(line: &CheckedClaim, look: TermStyle) -> String {
    let (word, colour) = match (line.holds, line.required) {
        (true, _) => ("holds", AnsiColor::Green),
        (false, true) => ("DOES NOT HOLD", AnsiColor::Red),
        (false, false) => ("does not hold (not required)", AnsiColor::Yellow),
    };
    if !look.colour {
        return word.to_owned();
    }
    let style = Style::new().fg_color(Some(colour.into()));
    format!("{style}{word}{style:#}")
}

fn bound(line: &CheckedClaim) -> String {
    let value = short_or_absent(line.value);
    let limit = match (line.at_least, line.at_most) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("at least {low}"),
        (None, Some(high)) => format!("at most {high}"),
        (None, None) => "anything".to_owned(),
    };
    format!("{}: {value}, {limit}", line.claim)
}
