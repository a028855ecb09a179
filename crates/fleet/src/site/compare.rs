//! Compares runs of several hosts.

use std::collections::BTreeMap;

use maud::{Markup, html};
use report::section_html;
use serde_json::Value;
use study::CellSettings;

use super::parts::{host_link, table, text, time};

/// A cell, ordered by workload and then by settings.
type CellKey = (String, Option<CellSettings>);

pub(super) fn body(runs: &[Value]) -> Markup {
    let mut cells: BTreeMap<CellKey, Vec<Option<&Value>>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for cell in run["cells"].as_array().into_iter().flatten() {
            let settings = serde_json::from_value(cell["settings"].clone()).ok();
            let of_runs = cells.entry((text(cell, "workload"), settings));
            of_runs.or_insert_with(|| vec![None; runs.len()])[index] = Some(cell);
        }
    }
    let names: Vec<String> = (1..=runs.len()).map(|number| format!("run {number}")).collect();
    let mut columns = vec!["workload", "settings"];
    columns.extend(names.iter().map(String::as_str));
    let numbers: Vec<usize> = (2..columns.len()).collect();
    let rows: Vec<Markup> = cells.iter().map(|(key, of_runs)| row(key, of_runs)).collect();
    let facts = ["run", "host", "target", "verb", "begun (UTC)", "kernel", "foreread"];
    let described: Vec<Markup> = runs
        .iter()
        .zip(&names)
        .map(|(run, name)| {
            html! {
                tr {
                    th scope="row" { (name) }
                    td class="word" { (host_link(run, "host")) }
                    td class="word" { (text(run, "target")) }
                    td class="word" { (text(run, "command")) }
                    td class="word" { (time(run, "created_unix_s")) }
                    td class="word" { (text(run, "kernel")) }
                    td class="word" { (text(run, "version")) }
                }
            }
        })
        .collect();
    let title = format!("{} runs", runs.len());
    html! {
        (section_html("runs", &title, &table("Runs", &facts, &[], &described)))
        (section_html("cells", "Throughput in MiB/s", &html! {
            p class="soft" {
                "Median of the undisturbed trials, and their range; from the second run on, the \
                 median divided by that of run 1. A ratio whose ranges overlap may be noise."
            }
            @if cells.is_empty() { p { "These runs have no undisturbed trial." } }
            @else { (table("Throughput", &columns, &numbers, &rows)) }
        }))
    }
}

fn row((workload, settings): &CellKey, of_runs: &[Option<&Value>]) -> Markup {
    let median = |cell: &Value| cell["median"].as_f64().filter(|median| *median > 0.0);
    let first = of_runs[0].and_then(median);
    html! {
        tr {
            th scope="row" { (workload) }
            td class="word" { @match settings {
                Some(settings) => (report::clean::plain(&settings.to_string())),
                None => "unknown to this version",
            } }
            @for (index, cell) in of_runs.iter().enumerate() {
                td { @match cell {
                    Some(cell) => (figures(cell, first.filter(|_| index > 0))),
                    None => "–",
                } }
            }
        }
    }
}

fn figures(cell: &Value, first: Option<f64>) -> Markup {
    let value = |key: &str| cell[key].as_f64().unwrap_or_default();
    html! {
        (format!("{:.1}", value("median")))
        div class="sub" {
            (format!("{:.1}–{:.1}", value("lowest"), value("highest"))) ", "
            (cell["trials"].as_u64().unwrap_or(0)) " trials"
        }
        @if let Some(first) = first {
            div class="sub" { (format!("{:.2} × run 1", value("median") / first)) }
        }
    }
}
