//! The origin of the figures: machine, storage, tunables before and after, commands, seeds.

use maud::{Markup, html};
use serde_json::Value;
use study::{Plan, Run, RunCommand, Target};

use super::ReportInput;
use super::parts::Heading::Text;
use super::parts::table;
use super::sections::RunSection;
use crate::clean;
use crate::names::brief;
use crate::repro_command::again;
use crate::runs::utc;

pub(super) fn section(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let (run, heading) = (exhibit.run, place.id("provenance-title"));
    let begun = utc(run.summary.created_unix_s);
    html! {
        section class="long" id=(place.id("provenance")) aria-labelledby=(heading) {
            h2 id=(heading) { "How this was measured" }
            (in_words(exhibit))
            dl class="facts" {
                dt { "Run" } dd { (run.summary.id) ", begun " (begun) " UTC" }
                dt { "Target" } dd class="mono" { (brief(&run.summary.target)) }
                dt { "Seed" } dd class="mono" { (run.seed) }
                dt { "foreread" } dd { (clean::plain(&run.summary.version)) }
            }
            @if let Some(command) = again(run) {
                p { "To repeat the measurement:" }
                (super::parts::command(&command))
            }
            (tunables(&run.device_before, &run.device_after))
            details {
                summary { "The machine" }
                (facts(&run.machine))
            }
            // A server's work has no workload declaration.
            @if run.summary.command != RunCommand::Pg {
                details {
                    summary { "The workloads" }
                    @for planned in &run.plan.workloads {
                        h3 { (brief(&planned.workload.name)) }
                        pre { (lines(&planned.workload.to_toml())) }
                    }
                }
            }
        }
    }
}

/// Sanitises text of several lines.
fn lines(text: &str) -> String {
    text.lines().map(clean::plain).collect::<Vec<_>>().join("\n")
}

fn in_words(exhibit: &ReportInput<'_>) -> Markup {
    let plan = &exhibit.run.plan;
    if exhibit.run.summary.command == RunCommand::Pg {
        return of_server(exhibit.run);
    }
    match &plan.target {
        Target::Imported(_) => html! {
            p {
                "These figures were not measured by foreread: they were published as a table and \
                 imported. The state of the cache, the number of repeats and their order are \
                 known only if the authors state them. Intervals are those that the authors state."
            }
        },
        Target::Simulation(_) => html! {
            p {
                "Everything was simulated: readers, page cache, read-ahead algorithm, block layer \
                 and device, from a seed, " (plan.repeats.min) " to " (plan.repeats.max)
                " times for each cell. A trial lasts " (plan.trial) " of simulated time and \
                 starts with an empty cache. Intervals show the random variation in the model, \
                 not its difference from a real machine."
            }
        },
        Target::Path(_) | Target::Virtual(_) => measured(plan),
    }
}

/// Describes a PostgreSQL run.
fn of_server(run: &Run) -> Markup {
    // For a server that foreread created, the record has the arguments that create it again.
    let own = run.machine.pointer("/postgres/again").is_some();
    html! {
        p {
            @if own {
                "A PostgreSQL server was created on the storage and its table loaded. Before each \
                 test the server was stopped, its files were evicted from the page cache, that was \
                 verified, and the server was started with the settings of the test. Priming is \
                 complete when nearly all of the table and the index are in the page cache. "
            } @else {
                "A table of an existing server was read in read-only sessions. Its caches were \
                 not emptied: cached data needed no disk. "
            }
            "Every test ran under every setting in each of " (run.plan.repeats.min)
            @if run.plan.repeats.min == 1 { " round" } @else { " rounds" }
            @if own { ", in random order" }
            ". Time lines have the server's own count of transactions in each second and the \
             devices' counters. Figures are medians; intervals, where there are several rounds, \
             hold the true median in 95 of 100 cases (interpolated order statistics)."
        }
    }
}

fn measured(plan: &Plan) -> Markup {
    html! {
        p {
            "Each setting was measured with each workload several times ("
            (plan.repeats.min) " to " (plan.repeats.max) " repeats), in blocks of random order, \
                                so that slow changes of the machine affect all settings alike. A \
                                trial lasts "
            (plan.trial) " of the storage's own time. Before each trial, the files were evicted \
                          from the page cache, which was verified; after it, the bytes read from \
                          the device were compared with the bytes requested. Disturbed trials were \
                          repeated. If the kernel permits it, the windows of one trial of each \
                          cell were recorded. Figures are medians; intervals hold the true median \
                          in 95 of 100 cases (interpolated order statistics)."
        }
    }
}

/// Returns all values of the device's description before and after; changed ones are marked.
fn tunables(before: &Value, after: &Value) -> Markup {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    flatten("", before, &mut left);
    flatten("", after, &mut right);
    let known = !after.is_null();
    let row = |(path, before): &(String, String)| {
        let after = right.iter().find(|(other, _)| other == path);
        let after = after.map_or("", |(_, value)| value.as_str());
        html! {
            tr class=[(known && before != after).then_some("changed")] {
                th scope="row" class="mono" { (path) }
                td class="word mono" { (before) }
                td class="word mono" { @if known { (after) } @else { "–" } }
            }
        }
    };
    let headings = ["what", "before", "after"].map(Text);
    html! {
        @if !left.is_empty() {
            details {
                summary { "The storage and its tunables, before and after" }
                (table("Storage and tunables", &headings, &html! {
                    @for value in &left { (row(value)) }
                }))
            }
        }
    }
}

fn facts(value: &Value) -> Markup {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    html! {
        dl class="facts" {
            @for (path, value) in &rows { dt class="mono" { (path) } dd class="mono" { (value) } }
        }
    }
}

/// Collects the leaves of a document with their paths.
fn flatten(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let below = |name: &str| {
        if path.is_empty() { brief(name) } else { format!("{path}.{}", brief(name)) }
    };
    match value {
        Value::Null if path.is_empty() => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flatten(&below(name), value, rows));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(at, value)| flatten(&below(&at.to_string()), value, rows));
        }
        Value::String(text) => rows.push((path.to_owned(), brief(text))),
        other => rows.push((path.to_owned(), other.to_string())),
    }
}
