//! The list of runs that the server shows.

use maud::{Markup, html};
use study::RunSummary;

use super::assets::PageContent;
use super::page::{Delivery, document};
use super::parts::Heading::{Figure, Text};
use super::parts::{about, section, table};
use crate::names::brief;
use crate::runs::utc;

/// Returns a page with a link to each run.
pub fn index_html(runs: &[RunSummary]) -> String {
    let delivery = Delivery { served: true, live: None, content: PageContent::Study };
    document("Recorded runs", &[], &list(runs), "{\"runs\":[]}", &delivery)
}

fn list(runs: &[RunSummary]) -> Markup {
    let headings = [
        Figure("run"),
        Text("target"),
        Text("verb"),
        Text("begun (UTC)"),
        Figure("trials"),
        Text("status"),
        Text("data"),
    ];
    let rows = html! { @for run in runs { (row(run)) } };
    section(
        "runs",
        "Runs, latest first",
        &html! {
            @if runs.is_empty() {
                p { "No runs recorded: foreread tune TARGET records one." }
            } @else {
                (table("Runs", &headings, &rows))
                (about("To compare runs, name them in the address: /compare/1,2 compares the \
                    second with the first."))
            }
        },
    )
}

fn row(run: &RunSummary) -> Markup {
    let page = format!("/run/{}", run.id);
    html! {
        tr {
            td { (run.id) }
            th scope="row" { a href=(page) { (brief(&run.target)) } }
            td class="word" { (run.command) }
            td class="word" { (utc(run.created_unix_s)) }
            td { (run.trials) }
            td class="word" { (run.status) }
            td class="word" {
                a href={ (page) ".json" } aria-label={ "JSON of run " (run.id) } { "JSON" }
                " "
                a href={ (page) ".csv" } aria-label={ "CSV of run " (run.id) } { "CSV" }
            }
        }
    }
}
