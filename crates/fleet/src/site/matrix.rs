//! Page with a matrix of hosts × storage with their settings.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use report::section_html;
use serde_json::Value;
use units::text::counted;

use super::HOSTS_PER_PAGE;
use super::filters::PageFilters;
use super::parts::{FilterFields, form, host_link, kib, pager, table, text, time};

/// Maximum number of storage columns; the host's own page lists all of its storage.
const MAX_COLUMNS: usize = 10;

pub(super) fn body(hosts: &[Value], filters: &PageFilters) -> Markup {
    let total = hosts.first().and_then(|host| host["total"].as_u64()).unwrap_or(0);
    let columns = columns(hosts);
    let mut names = vec!["host", "violations"];
    names.extend(columns.iter().map(String::as_str));
    names.extend(["others", "seen (UTC)"]);
    let rows: Vec<Markup> = hosts.iter().map(|host| row(host, &columns)).collect();
    let fields = FilterFields { storage: true, origin: true, days: true };
    let shown_before = u64::from(filters.skip(HOSTS_PER_PAGE));
    let title = format!("Read-ahead of {}", counted(total as usize, "host"));
    section_html(
        "hosts",
        &title,
        &html! {
            p class="soft" {
                "Hosts with most violations of their policy first. Each cell has the read-ahead of \
                 a disk, volume or mount, and its origin; if it changed in the last "
                (filters.days)
                " days, also since when, and what it was before. Marked: most hosts have another \
                 value there."
            }
            (form("/", filters, fields))
            @if hosts.is_empty() { p { "No host matches." } }
            @else { (table("Hosts", &names, &[1], &rows)) }
            (pager("/", filters, shown_before + (hosts.len() as u64) < total))
        },
    )
}

fn storage(host: &Value) -> impl Iterator<Item = &Value> {
    host["storage"].as_array().into_iter().flatten()
}

/// Returns the storage names that occur on most of these hosts, in alphabetical order.
fn columns(hosts: &[Value]) -> Vec<String> {
    let mut hosts_with: BTreeMap<String, usize> = BTreeMap::new();
    for one in hosts.iter().flat_map(storage) {
        *hosts_with.entry(text(one, "name")).or_default() += 1;
    }
    let mut names: Vec<(String, usize)> = hosts_with.into_iter().collect();
    names.sort_by_key(|(_, count)| Reverse(*count));
    names.truncate(MAX_COLUMNS);
    let mut names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

fn row(host: &Value, columns: &[String]) -> Markup {
    let violations = host["violations"].as_u64();
    let others = storage(host).filter(|one| !columns.contains(&text(one, "name"))).count();
    html! {
        tr {
            th scope="row" { (host_link(host, "name")) }
            td class=[violations.is_some_and(|count| count > 0).then_some("worse")] {
                @match violations { Some(count) => (count), None => "–" }
            }
            @for name in columns {
                @match storage(host).find(|one| text(one, "name") == *name) {
                    Some(one) => (setting(one)),
                    None => td class="word" { "–" },
                }
            }
            td class="word" { @if others > 0 { (others) " more" } @else { "–" } }
            td class="word" { (time(host, "last_seen_unix_s")) }
        }
    }
}

/// Returns a cell: the value, its origin, and how it differs from usual or earlier values.
pub(super) fn setting(one: &Value) -> Markup {
    let (value, usual) = (kib(one, "read_ahead_kib"), kib(one, "usual_kib"));
    let unusual = usual.filter(|usual| value != Some(*usual));
    let before = kib(one, "before_kib");
    html! {
        td class=(if unusual.is_some() { "word changed" } else { "word" }) {
            @if let Some(value) = value { (value.to_string()) }
            div class="sub" { (text(one, "origin")) }
            @if let Some(usual) = unusual { div class="sub" { "usually " (usual.to_string()) } }
            @if let Some(before) = before {
                div class="sub" { "since " (time(one, "since_unix_s")) }
                div class="sub" { "before: " (before.to_string()) " " (text(one, "before_origin")) }
            }
            @for finding in one["findings"].as_array().into_iter().flatten() {
                div class="sub worse" { (report::clean::plain(finding.as_str().unwrap_or(""))) }
            }
        }
    }
}
