//! The whole page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets::{PageContent, STYLE, policy, script};
use super::data::{page_data, run_data, text};
use super::sections::{self, RunSection};
use super::{ReportInput, compared, effects, heat, provenance, top};
use crate::names::brief;
use crate::names::labels;
use crate::run_report::Named;

/// Returns one run as a page, or several runs compared with the first.
pub fn html(exhibits: &[ReportInput<'_>]) -> String {
    whole(exhibits, &Delivery { served: false, live: None, content: PageContent::Study })
}

/// Returns the same for a browser that requests it from a server. A page of a run in progress polls
/// `live`.
pub fn served_html(exhibits: &[ReportInput<'_>], live: Option<&str>) -> String {
    whole(exhibits, &Delivery { served: true, live, content: PageContent::Study })
}

/// Returns a page of tables for a browser that requests it from a server, with links to others.
pub fn tables_html(title: &str, links: &[(String, String)], body: &Markup) -> String {
    let delivery = Delivery { served: true, live: None, content: PageContent::Tables };
    document(title, links, body, "{}", &delivery)
}

/// How a page is delivered.
pub(super) struct Delivery<'a> {
    /// True if a server delivers it; false for a file.
    pub served: bool,
    /// Address to poll for progress; `None` if the run is complete.
    pub live: Option<&'a str>,
    pub content: PageContent,
}

fn whole(exhibits: &[ReportInput<'_>], delivery: &Delivery<'_>) -> String {
    let named: Vec<Named<'_>> = exhibits.iter().map(ReportInput::named).collect();
    let names = labels(&named);
    let runs = exhibits.iter().zip(&names);
    let data = page_data(runs.map(|(e, name)| run_data(e, name)));
    let body = match exhibits {
        [only] => of_run(only, 0),
        several => html! {
            (compared::sections(several, &names))
            @for (index, exhibit) in several.iter().enumerate() {
                details class="card" id={ "run-" (index) } {
                    summary { "Run " (exhibit.run.summary.id) ": " (names[index]) }
                    (of_run(exhibit, index))
                }
            }
        },
    };
    document(&title(exhibits), &contents(exhibits), &body, &text(&data), delivery)
}

fn title(exhibits: &[ReportInput<'_>]) -> String {
    match exhibits {
        [only] => format!("Read-ahead of {}", brief(&only.run.summary.target)),
        several => format!("Read-ahead: {} runs", several.len()),
    }
}

fn of_run(exhibit: &ReportInput<'_>, index: usize) -> Markup {
    let place = RunSection { index };
    html! {
        (top::verdict(exhibit, &place))
        @if !exhibit.analysis.cells.is_empty() {
            (sections::curves(exhibit, &place))
            (heat::table(exhibit, &place))
            (effects::effects(exhibit, &place))
            (effects::interactions(exhibit, &place))
            (sections::tradeoff(exhibit, &place))
            (sections::details(exhibit, &place))
            (sections::trials(exhibit, &place))
        }
        (provenance::section(exhibit, &place))
    }
}

fn contents(exhibits: &[ReportInput<'_>]) -> Vec<(String, String)> {
    let link = |to: &str, text: &str| (format!("#{to}"), text.to_owned());
    if let [only] = exhibits {
        let measured = !only.analysis.cells.is_empty();
        return [
            ("verdict-0", "Verdict", true),
            ("curves-0", "Curves", measured && sections::has_curves(only)),
            ("heat-0", "Table", measured),
            ("trials-0", "Trials", !only.run.trials.is_empty()),
            ("provenance-0", "Provenance", true),
        ]
        .iter()
        .filter(|(_, _, there)| *there)
        .map(|(to, text, _)| link(to, text))
        .collect();
    }
    let runs = exhibits.len();
    let mut links = vec![link("compare", "Verdict"), link("together", "One picture")];
    links.extend((0..runs).map(|run| link(&format!("run-{run}"), &format!("{}", run + 1))));
    links
}

pub(super) fn document(
    title: &str,
    contents: &[(String, String)],
    body: &Markup,
    data: &str,
    delivery: &Delivery<'_>,
) -> String {
    let script = script(delivery.content);
    let security_policy = policy(&script, delivery.served);
    let page = html! {
        (DOCTYPE)
        html lang="en" data-served=[delivery.served.then_some("yes")] data-live=[delivery.live] {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(security_policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(concat!("foreread ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#content" { "Skip to the content" }
                header class="top" {
                    div class="bar" {
                        span class="brand" { "foreread" }
                        @if delivery.served && delivery.content == PageContent::Study {
                            a href="/" { "All runs" }
                        }
                        @if !contents.is_empty() { nav class="contents" aria-label="Contents" {
                            @for (to, text) in contents { a href=(to) { (text) } }
                        } }
                        button class="push" type="button" id="theme" { "Theme: auto" }
                    }
                    h1 { (title) }
                    @if delivery.live.is_some() {
                        p class="banner" id="progress" role="status" { "being measured" }
                    }
                }
                main id="content" tabindex="-1" { (body) }
                footer {
                    p {
                        "Made by foreread " (env!("CARGO_PKG_VERSION")) "."
                        @if !delivery.served {
                            " This file is self-contained: it loads nothing and sends nothing."
                        }
                    }
                    div id="said" class="hidden-text" role="status" aria-live="polite" {}
                }
                script type="application/json" id="data" { (PreEscaped(data)) }
                script { (PreEscaped(script.as_str())) }
            }
        }
    };
    page.into_string()
}
