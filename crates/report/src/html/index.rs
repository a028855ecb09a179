//! The list of runs that the server shows.

use maud::{Markup, html};
use study::RunSummary;

use super::assets::PageContent;
use super::page::{Delivery, document};
use crate::names::brief;
use crate::runs::utc;

/// Returns a page with a link to each run.
pub fn index_html(runs: &[RunSummary]) -> String {
    let delivery = Delivery { served: true, live: None, content: PageContent::Study };
    document("Recorded runs", &[], &list(runs), "{\"runs\":[]}", &delivery)
}

fn list(runs: &[RunSummary]) -> Markup {
    html! {
        section aria-labelledby="runs-title" {
            h2 id="runs-title" { "Runs, latest first" }
            @if runs.is_empty() {
                p { "No runs recorded: foreread tune TARGET records one." }
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label="Runs" {
                    table {
                        thead { tr {
                            th scope="col" { "run" }
                            th scope="col" class="word" { "target" }
                            th scope="col" class="word" { "verb" }
                            th scope="col" class="word" { "begun (UTC)" }
                            th scope="col" { "trials" }
                            th scope="col" class="word" { "status" }
                            th scope="col" class="word" { "data" }
                        } }
                        tbody { @for run in runs { (row(run)) } }
                    }
                }
                p class="soft" {
                    "To compare runs, name them in the address: /compare/1,2 compares the second "
                    "with the first."
                }
            }
        }
    }
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
