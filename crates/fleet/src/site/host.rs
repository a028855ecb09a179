//! Page of one host: its policy, its storage, and their history.

use maud::{Markup, html};
use report::{clean, section_html};
use serde_json::Value;

use super::parts::{kib, table, text, time};

pub(super) fn body(host: &Value) -> Markup {
    let name = text(host, "name");
    let periods: Vec<&Value> = host["periods"].as_array().into_iter().flatten().collect();
    let (past, present): (Vec<&Value>, Vec<&Value>) =
        periods.into_iter().partition(|period| period["until_unix_s"].is_f64());
    let rows = |periods: &[&Value]| periods.iter().map(|one| row(one)).collect::<Vec<Markup>>();
    let columns =
        ["storage", "read-ahead", "origin", "since (UTC)", "until (UTC)", "findings", "key"];
    let runs = form_urlencoded::Serializer::new(String::new()).append_pair("host", &name).finish();
    html! {
        (section_html("host", &name, &html! {
            dl class="facts" {
                @for (term, value) in [
                    ("kernel", text(host, "kernel")), ("foreread", text(host, "version")),
                    ("first seen (UTC)", time(host, "first_seen_unix_s")),
                    ("last seen (UTC)", time(host, "last_seen_unix_s")),
                ] { dt { (term) } dd { (value) } }
                dt { "runs" } dd { a href={ "/runs?" (runs) } { "Runs of hosts with this name" } }
            }
            (policy(&host["policy"]))
        }))
        (section_html("now", "Now", &html! {
            @if present.is_empty() { p { "It has no storage." } }
            @else { (table("Settings now", &columns, &[1], &rows(&present))) }
        }))
        (section_html("past", "Before", &html! {
            @if past.is_empty() { p { "Nothing has changed since the first survey." } }
            @else { (table("Earlier settings", &columns, &[1], &rows(&past))) }
        }))
    }
}

fn policy(policy: &Value) -> Markup {
    let violations: Vec<&str> =
        policy["violations"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    html! {
        @if policy.is_null() {
            p { "It was not checked against a policy." }
        } @else if violations.is_empty() {
            p { "It satisfies its policy since " (time(policy, "since_unix_s")) " ("
                (policy["checks"].as_u64().unwrap_or(0)) " checks)." }
        } @else {
            p class="note" { "It violates its policy since " (time(policy, "since_unix_s")) ":" }
            ul class="said" { @for line in violations { li { (clean::plain(line)) } } }
        }
    }
}

fn row(period: &Value) -> Markup {
    let findings = period["findings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let findings = findings.map(clean::plain).collect::<Vec<_>>().join(", ");
    html! {
        tr {
            th scope="row" { (text(period, "name")) }
            td { @if let Some(value) = kib(period, "read_ahead_kib") { (value.to_string()) } }
            td class="word" { (text(period, "origin")) }
            td class="word" { (time(period, "since_unix_s")) }
            td class="word" {
                @if period["until_unix_s"].is_f64() { (time(period, "until_unix_s")) } @else { "–" }
            }
            td class="word" { (findings) }
            td class="word" { (text(period, "device_key")) }
        }
    }
}
