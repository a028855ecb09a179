//! Many hosts in one PostgreSQL database: what each host's read-ahead is, since when, and what was
//! measured there.
//!
//! Hosts hold no credentials. A host writes a [`HostSurvey`]; whoever runs the database imports
//! surveys and records of runs ([`import`]). A row is written only when something changed, so an
//! import may be repeated. PostgreSQL is reached through `psql`, which supports every login method
//! and TLS, and adds no library to the binary.

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
