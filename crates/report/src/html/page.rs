//! The page as a whole.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets::{STYLE, policy, script};
use super::data::{PageData, RunData, text};
use super::names::brief;
use super::sections::{self, Place};
use super::{Exhibit, heat, provenance, top};

/// One run as a page.
pub fn html(exhibits: &[Exhibit<'_>]) -> String {
    let data = PageData { runs: exhibits.iter().map(RunData::of).collect() };
    let title = title(exhibits);
    let body = html! {
        @for (index, exhibit) in exhibits.iter().enumerate() {
            (of_run(exhibit, index))
        }
    };
    document(&title, &body, &text(&data))
}

fn title(exhibits: &[Exhibit<'_>]) -> String {
    match exhibits {
        [only] => format!("Read-ahead of {}", brief(&only.run.summary.target)),
        several => format!("Read-ahead: {} runs", several.len()),
    }
}

/// All sections of one run.
fn of_run(exhibit: &Exhibit<'_>, index: usize) -> Markup {
    let place = Place { index };
    html! {
        (top::verdict(exhibit, &place))
        @if !exhibit.analysis.cells.is_empty() {
            (sections::curves(exhibit, &place))
            (heat::table(exhibit, &place))
            (sections::tradeoff(exhibit, &place))
            (sections::details(exhibit, &place))
            (sections::trials(exhibit, &place))
        }
        (provenance::section(exhibit, &place))
    }
}

fn document(title: &str, body: &Markup, data: &str) -> String {
    let script = script();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(&script));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(concat!("foreread ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#content" { "Skip to the verdict" }
                header class="top" {
                    div class="bar" {
                        span class="brand" { "foreread" }
                        nav class="contents" aria-label="Contents" {
                            a href="#verdict-0" { "Verdict" }
                            a href="#curves-0" { "Curves" }
                            a href="#heat-0" { "Table" }
                            a href="#trials-0" { "Trials" }
                            a href="#provenance-0" { "Provenance" }
                        }
                        button class="push" type="button" id="theme" { "Theme: auto" }
                    }
                    h1 { (title) }
                }
                main id="content" tabindex="-1" { (body) }
                footer {
                    p {
                        "Made by foreread " (env!("CARGO_PKG_VERSION")) ". This file is complete \
                         in itself: it loads nothing and sends nothing."
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
