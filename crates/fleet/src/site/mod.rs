//! Serves the database as web pages.

mod compare;
mod filters;
mod host;
mod matrix;
mod parts;

use maud::Markup;
use report::serve::{PageAddress, Response, Site};
use serde_json::Value;

use crate::database::Database;
use crate::error::FleetError;
use crate::listing::{ListingFilter, ListingKind};
use crate::sql_text::{bind, like, quoted, quoted_or_null};
use crate::uuid;
use filters::PageFilters;

/// Rows per page; a host takes several lines.
const ROWS_PER_PAGE: u32 = 100;
const HOSTS_PER_PAGE: u32 = 50;
/// Maximum number of periods in the history of a host.
const MAX_PERIODS: u32 = 500;
const MAX_COMPARED_RUNS: usize = 16;

/// The pages of a database: hosts with their settings, changes, outliers and runs. Each page is one
/// `psql` query in a read-only transaction.
#[derive(Debug)]
pub struct FleetSite {
    database: Database,
}

enum NoPage {
    Unknown,
    /// The address has an invalid filter.
    Invalid(String),
    Database(FleetError),
}

impl From<FleetError> for NoPage {
    fn from(error: FleetError) -> Self {
        Self::Database(error)
    }
}

/// The title and body of a page, without its frame.
struct Page {
    title: String,
    body: Markup,
}

impl Site for FleetSite {
    fn page(&self, address: &PageAddress) -> Response {
        match self.find(address) {
            Ok(page) => {
                let html = report::tables_html(&page.title, &parts::links(), &page.body);
                Response::html(html)
            }
            Err(NoPage::Unknown) => Response::not_found(),
            Err(NoPage::Invalid(why)) => Response::plain(400, &report::clean::plain(&why)),
            Err(NoPage::Database(error)) => Response::unavailable(&error.to_string()),
        }
    }
}

impl FleetSite {
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Checks that the database can be read and has tables of this version.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or if its tables are missing or have another version.
    pub fn check(&self) -> Result<(), FleetError> {
        self.database.rows("SELECT 1").map(drop)
    }

    fn find(&self, address: &PageAddress) -> Result<Page, NoPage> {
        let filters = PageFilters::from_address(address).map_err(NoPage::Invalid)?;
        match address.parts()[..] {
            [] => self.hosts(&filters),
            ["changes"] => self.listing(ListingKind::Changes, &filters),
            ["outliers"] => self.listing(ListingKind::Outliers, &filters),
            ["runs"] => self.listing(ListingKind::Runs, &filters),
            ["host", id] if uuid::is_uuid(id) => self.host(id),
            ["compare"] => self.compare(&address.values("run")),
            _ => Err(NoPage::Unknown),
        }
    }

    fn hosts(&self, filters: &PageFilters) -> Result<Page, NoPage> {
        let any_storage = filters.storage.is_none() && filters.origin.is_none();
        let values = [
            ("name", like(filters.host.as_deref())),
            ("storage", like(filters.storage.as_deref())),
            ("any_storage", any_storage.to_string()),
            ("origin", quoted_or_null(filters.origin.as_deref())),
            ("days", filters.days.to_string()),
            ("limit", HOSTS_PER_PAGE.to_string()),
            ("skip", filters.skip(HOSTS_PER_PAGE).to_string()),
        ];
        let sql = concat!(include_str!("../sql/usual.sql"), include_str!("../sql/site-hosts.sql"));
        let hosts = self.database.rows(&bind(sql, &values))?;
        Ok(Page { title: "Hosts".to_owned(), body: matrix::body(&hosts, filters) })
    }

    fn listing(&self, kind: ListingKind, filters: &PageFilters) -> Result<Page, NoPage> {
        let filter = ListingFilter {
            host: filters.host.clone(),
            origin: filters.origin.clone(),
            days: filters.days,
            // One row more than shown, to detect whether there is another page.
            limit: ROWS_PER_PAGE + 1,
            skip: filters.skip(ROWS_PER_PAGE),
        };
        let listing = self.database.list(kind, &filter)?;
        let (title, body) = parts::listing(&listing, filters, ROWS_PER_PAGE as usize);
        Ok(Page { title: title.to_owned(), body })
    }

    fn host(&self, id: &str) -> Result<Page, NoPage> {
        let values = [("host", quoted(id)), ("limit", MAX_PERIODS.to_string())];
        let found = self.database.rows(&bind(include_str!("../sql/site-host.sql"), &values))?;
        let host = found.first().ok_or(NoPage::Unknown)?;
        Ok(Page { title: format!("Host {}", parts::text(host, "name")), body: host::body(host) })
    }

    fn compare(&self, runs: &[String]) -> Result<Page, NoPage> {
        if !(2..=MAX_COMPARED_RUNS).contains(&runs.len()) {
            return Err(NoPage::Invalid(format!(
                "choose 2 to {MAX_COMPARED_RUNS} runs to compare, not {}",
                runs.len()
            )));
        }
        if let Some(wrong) = runs.iter().find(|run| !uuid::is_uuid(run)) {
            return Err(NoPage::Invalid(format!("{wrong} is not the identity of a run")));
        }
        let list = runs.iter().map(|run| quoted(run)).collect::<Vec<_>>().join(",");
        let values = [("runs", format!("(ARRAY[{list}])"))];
        let found: Vec<Value> =
            self.database.rows(&bind(include_str!("../sql/site-compare.sql"), &values))?;
        if found.len() < 2 {
            return Err(NoPage::Unknown);
        }
        Ok(Page { title: "Runs compared".to_owned(), body: compare::body(&found) })
    }
}
