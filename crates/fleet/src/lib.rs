//! Many hosts in one PostgreSQL database: the read-ahead of each host, since when it applies, and
//! the host's measurements.
//!
//! Hosts hold no credentials. A host writes a [`HostSurvey`]; the database's administrator imports
//! surveys and records of runs ([`import`]). An import writes a row only if something changed, so
//! it may be repeated. foreread accesses PostgreSQL through `psql`, which supports every login
//! method and TLS, and adds no library to the binary.

mod database;
mod device_key;
mod error;
mod import;
mod listing;
mod record;
mod site;
mod source;
mod sql_text;
mod survey;
mod uuid;

pub use database::{Database, ImportSummary};
pub use error::FleetError;
pub use import::{ImportReport, import};
pub use listing::{FleetListing, ListingFilter, ListingKind};
pub use site::FleetSite;
pub use survey::{HostIdentity, HostSurvey, PolicyResult, SurveyedStorage};
