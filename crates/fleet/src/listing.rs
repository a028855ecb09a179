//! The listings of the database.

use report::{clean, plain_grid};
use serde_json::{Value, json};
use units::Kib;

use crate::sql_text::{bind, like, quoted_or_null};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingKind {
    /// The current state of each host; most violations first.
    Hosts,
    /// Changes of values and origins; latest first.
    Changes,
    /// Storage whose value differs from that of most hosts' storage with the same name.
    Outliers,
    /// Runs on the hosts; latest first.
    Runs,
}

/// Restricts a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingFilter {
    /// A host's name; `*` matches any text. `None` matches all hosts.
    pub host: Option<String>,
    /// A kind of origin; `None` for all.
    pub origin: Option<String>,
    /// Age limit of changes and runs, in days.
    pub days: u32,
    /// Maximum number of rows.
    pub limit: u32,
    /// Number of rows to skip.
    pub skip: u32,
}

/// The rows of a listing, most important first.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetListing {
    pub kind: ListingKind,
    pub rows: Vec<Value>,
}

impl ListingKind {
    pub(crate) fn sql(self, filter: &ListingFilter) -> String {
        let template = match self {
            Self::Hosts => include_str!("sql/hosts.sql"),
            Self::Changes => include_str!("sql/changes.sql"),
            Self::Outliers => {
                concat!(include_str!("sql/usual.sql"), include_str!("sql/outliers.sql"))
            }
            Self::Runs => include_str!("sql/runs.sql"),
        };
        let values = [
            ("limit", filter.limit.to_string()),
            ("skip", filter.skip.to_string()),
            ("days", filter.days.to_string()),
            ("origin", quoted_or_null(filter.origin.as_deref())),
            ("name", like(filter.host.as_deref())),
        ];
        bind(template, &values)
    }

    /// Returns the JSON key of the rows.
    fn word(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Changes => "changes",
            Self::Outliers => "outliers",
            Self::Runs => "runs",
        }
    }

    /// Returns the names of the columns, and the indices of numeric columns.
    pub(crate) fn columns(self) -> (&'static [&'static str], &'static [usize]) {
        match self {
            Self::Hosts => (
                &["host", "storage", "smallest", "largest", "violations", "origins", "seen (UTC)"],
                &[1, 2, 3, 4],
            ),
            Self::Changes => {
                (&["since (UTC)", "host", "storage", "before", "now", "origin"], &[3, 4])
            }
            Self::Outliers => (
                &["host", "storage", "value", "usual", "hosts with it", "origin", "since (UTC)"],
                &[2, 3, 4],
            ),
            Self::Runs => (&["begun (UTC)", "host", "target", "verb", "trials", "status"], &[4]),
        }
    }
}

impl FleetListing {
    pub fn json(&self) -> Value {
        json!({ "schema_version": report::SCHEMA_VERSION, self.kind.word(): self.rows })
    }

    /// Returns the table for a terminal.
    pub fn table(&self) -> String {
        let (header, numbers) = self.kind.columns();
        let rows = self.rows.iter().map(|row| self.cells(row));
        plain_grid(header, rows, |column| numbers.contains(&column)).join("\n") + "\n"
    }

    pub(crate) fn cells(&self, row: &Value) -> Vec<String> {
        let text = |key: &str| clean::plain(row[key].as_str().unwrap_or_default());
        let kib = |key: &str| row[key].as_u64().map(|kib| Kib::new(kib).to_string());
        let kib = |key: &str| kib(key).unwrap_or_else(|| "-".to_owned());
        let count = |key: &str| row[key].as_u64().map_or("-".to_owned(), |count| count.to_string());
        let time = |key: &str| report::utc(row[key].as_f64().unwrap_or_default());
        let origins = || {
            let words = row["origins"].as_array().into_iter().flatten().filter_map(Value::as_str);
            clean::plain(&words.collect::<Vec<_>>().join(", "))
        };
        match self.kind {
            ListingKind::Hosts => vec![
                text("name"),
                count("storage"),
                kib("min_read_ahead_kib"),
                kib("max_read_ahead_kib"),
                count("violations"),
                origins(),
                time("last_seen_unix_s"),
            ],
            ListingKind::Changes => vec![
                time("since_unix_s"),
                text("host"),
                text("storage"),
                kib("before_kib"),
                kib("read_ahead_kib"),
                match (text("before_origin"), text("origin")) {
                    (before, now) if before == now => now,
                    (before, now) => format!("{before} → {now}"),
                },
            ],
            ListingKind::Outliers => vec![
                text("host"),
                text("storage"),
                kib("read_ahead_kib"),
                kib("usual_kib"),
                format!("{} of {}", count("usual_hosts"), count("hosts")),
                text("origin"),
                time("since_unix_s"),
            ],
            ListingKind::Runs => vec![
                time("created_unix_s"),
                text("host"),
                text("target"),
                text("command"),
                count("trials"),
                text("status"),
            ],
        }
    }
}
