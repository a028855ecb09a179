//! Parts that several pages share.

use doctor::OriginKind;
use maud::{Markup, html};
use report::{Heading, clean, section_html, table_html};
use serde_json::Value;
use units::Kib;

use super::filters::PageFilters;
use crate::listing::{FleetListing, ListingKind};

/// Returns the links that every page has.
pub(super) fn links() -> Vec<(String, String)> {
    [("/", "Hosts"), ("/changes", "Changes"), ("/outliers", "Outliers"), ("/runs", "Runs")]
        .map(|(to, text)| (to.to_owned(), text.to_owned()))
        .to_vec()
}

/// Returns a text of the database, cleaned because it came from another host.
pub(super) fn text(row: &Value, key: &str) -> String {
    clean::plain(row[key].as_str().unwrap_or_default())
}

pub(super) fn kib(row: &Value, key: &str) -> Option<Kib> {
    row[key].as_u64().map(Kib::new)
}

pub(super) fn time(row: &Value, key: &str) -> String {
    report::utc(row[key].as_f64().unwrap_or_default())
}

/// Returns a link to a host, with its name as the text.
pub(super) fn host_link(row: &Value, name: &str) -> Markup {
    html! { a href={ "/host/" (text(row, "host_id")) } { (text(row, name)) } }
}

/// Returns a table that scrolls within itself; `numbers` are the indices of numeric columns.
pub(super) fn table(name: &str, columns: &[&str], numbers: &[usize], rows: &[Markup]) -> Markup {
    let heading = |(index, column)| match numbers.contains(&index) {
        true => Heading::Figure(column),
        false => Heading::Text(column),
    };
    let headings: Vec<_> = columns.iter().copied().enumerate().map(heading).collect();
    table_html(name, &headings, &html! { @for row in rows { (row) } })
}

/// The filters that a page has besides the host's name.
#[derive(Clone, Copy)]
pub(super) struct FilterFields {
    pub storage: bool,
    pub origin: bool,
    pub days: bool,
}

/// Returns the form that changes the filters of a page.
pub(super) fn form(path: &str, filters: &PageFilters, fields: FilterFields) -> Markup {
    let field = |label: &str, name: &str, value: &Option<String>| {
        html! {
            label { (label) " " input type="search" name=(name) size="14" value=[value.as_deref()]
                placeholder="any, * for more"; }
        }
    };
    html! {
        form class="tools" method="get" action=(path) {
            (field("Host", "host", &filters.host))
            @if fields.storage { (field("Storage", "storage", &filters.storage)) }
            @if fields.origin {
                label { "Origin " select name="origin" {
                    option value="" { "any" }
                    @for word in OriginKind::WORDS {
                        option value=(word) selected[filters.origin.as_deref() == Some(*word)] {
                            (word)
                        }
                    }
                } }
            }
            @if fields.days {
                label { "Last days " input type="number" name="days" min="1" max="3660"
                    value=(filters.days); }
            }
            button type="submit" { "Show" }
        }
    }
}

/// Returns the links to the previous and the next page.
pub(super) fn pager(path: &str, filters: &PageFilters, more: bool) -> Markup {
    html! {
        @if filters.page > 1 || more {
            p class="pages" {
                @if filters.page > 1 {
                    a href=(filters.at(path, filters.page - 1)) rel="prev" { "Previous page" } " "
                }
                @if more { a href=(filters.at(path, filters.page + 1)) rel="next" { "Next page" } }
            }
        }
    }
}

/// Returns a listing of the command line as a page with at most `limit` rows.
pub(super) fn listing(
    listing: &FleetListing,
    filters: &PageFilters,
    limit: usize,
) -> (&'static str, Markup) {
    let (path, title, empty) = match listing.kind {
        ListingKind::Hosts => ("/", "Hosts", "No host matches."),
        ListingKind::Changes => ("/changes", "Changes, latest first", "Nothing changed."),
        ListingKind::Outliers => ("/outliers", "Outliers", "No storage differs from the usual."),
        ListingKind::Runs => ("/runs", "Runs, latest first", "No run was imported."),
    };
    let fields = FilterFields {
        storage: false,
        origin: listing.kind != ListingKind::Runs,
        days: matches!(listing.kind, ListingKind::Changes | ListingKind::Runs),
    };
    let (columns, numbers) = listing.kind.columns();
    let is_runs = listing.kind == ListingKind::Runs;
    let rows: Vec<Markup> = listing
        .rows
        .iter()
        .take(limit)
        .map(|row| {
            html! {
                tr { @for (index, (cell, column)) in
                    listing.cells(row).into_iter().zip(columns).enumerate() {
                    td class=[(!numbers.contains(&index)).then_some("word")] {
                        @if is_runs && index == 0 {
                            label { input type="checkbox" name="run" value=(text(row, "run_uuid"));
                                " " (cell) }
                        } @else if *column == "host" {
                            (host_link(row, "host"))
                        } @else { (cell) }
                    }
                } }
            }
        })
        .collect();
    let body = html! {
        @if listing.kind == ListingKind::Outliers {
            p class="soft" {
                "Storage whose read-ahead differs from that of most hosts' storage of the same \
                 name. At least three hosts have it, and more than half of them have the usual \
                 value."
            }
        }
        (form(path, filters, fields))
        @if rows.is_empty() { p { (empty) } }
        @else if is_runs {
            form method="get" action="/compare" {
                (table(title, columns, numbers, &rows))
                p { button type="submit" { "Compare the chosen runs" } }
            }
        } @else { (table(title, columns, numbers, &rows)) }
        (pager(path, filters, listing.rows.len() > limit))
    };
    (title, section_html("list", title, &body))
}
