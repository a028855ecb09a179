//! The findings of an experiment, as text, Markdown and JSON.

use serde_json::{Map, Value as Json, json};
use study::{Findings, ResultPlot, ResultTable, ResultValue};

use crate::clean;
use crate::json::SCHEMA_VERSION;
use crate::number::{ABSENT, short_or_absent};
use crate::plot::plot_curve;
use crate::terminal_text::{TermStyle, plain_grid, wrap};

/// Maximum number of curves in a terminal; JSON has all of them.
const CURVES_MOST: usize = 8;

/// Returns all findings for a terminal.
pub fn answer(answer: &Findings, look: TermStyle) -> String {
    let mut text = wrap(&head(answer, clean::plain), look.width);
    for table in &answer.tables {
        text.push_str(&format!("\n{}\n{}", clean::plain(&table.title), grid(table)));
    }
    for plot in &answer.plots {
        text.push_str(&curves(plot));
    }
    text.push('\n');
    for sentence in &answer.verdict {
        text.push_str(&wrap(&clean::plain(sentence), look.width));
    }
    for note in &answer.notes {
        text.push_str(&wrap(&format!("Note: {}", clean::plain(note)), look.width));
    }
    if let Some(run) = answer.run {
        text.push_str(&format!(
            "All trials are in the record: foreread report {run} -o report.html\n"
        ));
    }
    text
}

fn head(answer: &Findings, clean: impl Fn(&str) -> String) -> String {
    let pace = if answer.dilation > 1.0 {
        format!(
            "; it ran {} times slower than its model, and times are corrected for that",
            answer.dilation
        )
    } else if answer.dilation < 1.0 {
        format!(
            "; it ran {} times faster than its model, and times are corrected for that",
            1.0 / answer.dilation
        )
    } else {
        String::new()
    };
    format!(
        "{} {}, {}{}, seed {}{pace}",
        clean(&answer.question),
        clean(&answer.target),
        // A simulated kernel has another name.
        if answer.kernel.starts_with(|first: char| first.is_ascii_digit()) { "Linux " } else { "" },
        clean(&answer.kernel),
        answer.seed
    )
}

fn grid(table: &ResultTable) -> String {
    let header = table.columns.iter().map(|column| clean::plain(&column.title));
    let rows = table.rows.iter().map(|row| row.iter().map(shown).collect());
    let is_text = |column: usize, row: &Vec<ResultValue>| {
        matches!(row.get(column), Some(ResultValue::Text(_)))
    };
    let figures = |column| !table.rows.iter().any(|row| is_text(column, row));
    plain_grid(header, rows, figures).join("\n") + "\n"
}

fn shown(value: &ResultValue) -> String {
    match value {
        ResultValue::None => ABSENT.to_owned(),
        ResultValue::Count(count) => count.to_string(),
        ResultValue::Number(number) => short_or_absent(*number),
        ResultValue::Text(text) => clean::plain(text),
    }
}

fn curves(plot: &ResultPlot) -> String {
    let mut text = String::new();
    for curve in plot.curves.iter().take(CURVES_MOST) {
        let Some(drawn) = plot_curve(&curve.points, plot.logarithmic) else { continue };
        let name = clean::plain(&curve.name);
        let name = if name.is_empty() { name } else { format!(": {name}") };
        text.push_str(&format!("\n{}{name} (over {})\n", clean::plain(&plot.title), plot.x));
        text.push_str(&drawn);
    }
    text
}

/// Returns the findings as Markdown, without plots.
pub fn answer_markdown(answer: &Findings) -> String {
    let mut text = format!("{}\n", head(answer, clean::markdown));
    for table in &answer.tables {
        text.push_str(&format!("\n**{}**\n\n", clean::markdown(&table.title)));
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let titles = table.columns.iter().map(|column| clean::markdown(&column.title)).collect();
        text.push_str(&line(titles));
        text.push_str(&line(table.columns.iter().map(|_| "---:".to_owned()).collect()));
        for row in &table.rows {
            text.push_str(&line(row.iter().map(|cell| clean::markdown(&shown(cell))).collect()));
        }
    }
    text.push('\n');
    let notes = answer.notes.iter().map(|note| format!("Note: {note}"));
    for sentence in answer.verdict.iter().cloned().chain(notes) {
        text.push_str(&format!("{}\n\n", clean::markdown(&sentence)));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Returns the findings as JSON: rows of tables are objects with column names as keys.
pub fn answer_json(answer: &Findings) -> Json {
    let row = |table: &ResultTable, row: &[ResultValue]| -> Json {
        let pairs = table.columns.iter().zip(row);
        let pairs = pairs.map(|(column, value)| (column.key.clone(), json!(value)));
        Json::Object(pairs.collect::<Map<_, _>>())
    };
    let table = |table: &ResultTable| {
        let rows: Vec<Json> = table.rows.iter().map(|cells| row(table, cells)).collect();
        json!({ "title": table.title, "rows": rows })
    };
    json!({
        "schema_version": SCHEMA_VERSION,
        "experiment": answer.experiment,
        "question": answer.question,
        "target": answer.target,
        "kernel": answer.kernel,
        "seed": answer.seed,
        "dilation": answer.dilation,
        "decided": answer.decided,
        "verdict": answer.verdict,
        "tables": answer.tables.iter().map(table).collect::<Vec<_>>(),
        "plots": answer.plots,
        "notes": answer.notes,
        "run": answer.run,
    })
}

#[cfg(test)]
mod tests {
    use study::ResultCurve;

    use super::*;

    fn sample() -> Findings {
        let mut answer = Findings::new("blocks", "What?", "/dev/\u{1b}[31msdb".to_owned());
        let columns = [("size_kib", "KiB"), ("note", "a|note")];
        let mut table = ResultTable::new("Random reads", &columns);
        table.rows = vec![vec![8u64.into(), "x|y".into()], vec![1.2345.into(), ResultValue::None]];
        answer.tables.push(table);
        let mut plot = ResultPlot::logarithmic("time", "KiB", "ms");
        let points = vec![(8.0, 1.0), (64.0, 9.0)];
        plot.curves.push(ResultCurve { name: "one".to_owned(), points });
        answer.plots.push(plot);
        answer.verdict.push("It is so.".to_owned());
        answer
    }

    #[test]
    fn people_get_table_plot_and_sentence_and_no_escape_sequences() {
        let text = answer(&sample(), TermStyle { width: 80, colour: false });
        for part in ["KiB", "1.23", "time: one (over KiB)", "It is so.", ABSENT] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let markdown = answer_markdown(&sample());
        assert!(markdown.contains("| --- | ---: |") || markdown.contains("| ---: | ---: |"));
        assert!(markdown.contains("x\\|y"), "{markdown}");
    }

    #[test]
    fn programs_get_rows_by_name() {
        let json = answer_json(&sample());
        assert_eq!(json["tables"][0]["rows"][0]["size_kib"], 8);
        assert_eq!(json["tables"][0]["rows"][1]["note"], Json::Null);
        assert_eq!(json["plots"][0]["curves"][0]["points"][1][1], 9.0);
    }
}
