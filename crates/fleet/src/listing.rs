//! What can be asked of the database.

use comfy_table::{CellAlignment, Table as Grid, presets};
use report::clean;
use serde_json::{Value, json};
use units::Kib;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingKind {
    /// Each host as it is now; most violations first.
    Hosts,
    /// Values and origins that changed, latest first.
    Changes,
    /// Storage whose value differs from that of most hosts' storage of the same name.
    Outliers,
}

/// Restricts a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingFilter {
    /// A host's name, in which `*` stands for any letters.
    pub host: Option<String>,
    /// A kind of origin.
    pub origin: Option<String>,
    /// How far back changes are listed.
    pub days: u32,
    /// Number of rows.
    pub limit: u32,
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
            Self::Outliers => include_str!("sql/outliers.sql"),
        };
        let pattern = filter.host.as_deref().map_or_else(|| "%".to_owned(), like);
        let origin = filter.origin.as_deref().map_or_else(|| "NULL".to_owned(), quoted);
        template
            .replace(":limit:", &filter.limit.to_string())
            .replace(":days:", &filter.days.to_string())
            .replace(":origin:", &origin)
            .replace(":name:", &quoted(&pattern))
    }

    /// The key of the rows in JSON.
    fn word(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Changes => "changes",
            Self::Outliers => "outliers",
        }
    }
}

/// A pattern of LIKE for one with `*`.
fn like(pattern: &str) -> String {
    let escaped = pattern.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    escaped.replace('*', "%")
}

/// A literal of SQL, without characters that a shell's argument cannot have.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', "''"))
}

impl FleetListing {
    pub fn json(&self) -> Value {
        json!({ "schema_version": report::SCHEMA_VERSION, self.kind.word(): self.rows })
    }

    /// The table for a terminal.
    pub fn table(&self) -> String {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        let (header, numbers): (&[&str], &[usize]) = match self.kind {
            ListingKind::Hosts => (
                &["host", "storage", "smallest", "largest", "violations", "origins", "seen (UTC)"],
                &[1, 2, 3, 4],
            ),
            ListingKind::Changes => {
                (&["since (UTC)", "host", "storage", "before", "now", "origin"], &[3, 4])
            }
            ListingKind::Outliers => (
                &["host", "storage", "value", "usual", "hosts with it", "origin", "since (UTC)"],
                &[2, 3, 4],
            ),
        };
        grid.set_header(header);
        for row in &self.rows {
            grid.add_row(self.cells(row));
        }
        for index in numbers {
            if let Some(column) = grid.column_mut(*index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!("{grid}\n")
    }

    fn cells(&self, row: &Value) -> Vec<String> {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_cannot_leave_its_quotes() {
        let filter = ListingFilter {
            host: Some("a'; DROP TABLE x; --_*\\".to_owned()),
            origin: Some(":name:'".to_owned()),
            limit: 5,
            ..ListingFilter::default()
        };
        let sql = ListingKind::Hosts.sql(&filter);
        assert!(sql.contains(r"LIKE 'a''; DROP TABLE x; --\_%\\'"), "{sql}");
        assert!(sql.ends_with("LIMIT 5\n"), "{sql}");
        assert_eq!(sql.matches('\'').count() % 2, 0, "{sql}");
    }
}
