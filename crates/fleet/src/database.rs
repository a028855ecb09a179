//! Accesses the database through `psql`.

use pg::{Client, RunLimit};
use serde::Deserialize;
use serde_json::Value;

use crate::error::FleetError;
use crate::listing::{FleetListing, ListingFilter, ListingKind};

/// The steps from each version of the tables to the next. Never edit a released step: add one that
/// ends with an update of foreread.version.
const MIGRATIONS: &[&str] = &[include_str!("sql/schema-1.sql")];
const MERGE: &str = include_str!("sql/merge.sql");
/// `foreread` as a number: the lock that lets only one import at a time migrate and merge.
const ADVISORY_LOCK_ID: i64 = 0x666f_7265_7265_6164;
/// Restricts errors to one line, without the statement.
const TERSE: &str = "\\set VERBOSITY terse\n";
const IMPORT_TIMEOUT_SECONDS: u64 = 3600;
const QUERY_TIMEOUT_SECONDS: u64 = 60;

/// Number of rows that an import wrote or skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ImportSummary {
    /// Surveys that were newer than the latest one of their host.
    pub surveys: u64,
    /// Skipped surveys: not newer than the latest one of their host.
    pub outdated: u64,
    /// New or changed storage.
    pub storage_rows: u64,
    /// New or changed results of policies.
    pub policy_rows: u64,
    /// New runs, and runs whose status changed.
    pub runs: u64,
    pub trials: u64,
}

impl ImportSummary {
    pub(crate) fn add(&mut self, other: &Self) {
        self.surveys += other.surveys;
        self.outdated += other.outdated;
        self.storage_rows += other.storage_rows;
        self.policy_rows += other.policy_rows;
        self.runs += other.runs;
        self.trials += other.trials;
    }
}

#[derive(Clone, Debug)]
pub struct Database {
    client: Client,
}

impl Database {
    /// Creates the database for a connection string or URL, as for `psql`; does not connect yet.
    ///
    /// # Errors
    ///
    /// If `psql` is missing, or if the URL has the scheme of another database.
    pub fn at(connection: &str) -> Result<Self, FleetError> {
        if let Some((scheme, _)) = connection.split_once("://")
            && !["postgresql", "postgres"].contains(&scheme)
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return Err(FleetError::OtherUrl { scheme: scheme.to_owned() });
        }
        Ok(Self { client: Client::writing_to(connection)? })
    }

    /// Merges rows in one transaction: all or nothing. Creates or migrates the tables first.
    pub(crate) fn merge(&self, lines: &str) -> Result<ImportSummary, FleetError> {
        let script = format!(
            "{TERSE}{}CREATE TEMP TABLE incoming (kind text, doc jsonb) ON COMMIT DROP;\n\
             COPY incoming FROM STDIN;\n{lines}\\.\n{MERGE}",
            prepare()
        );
        let said = self.client.run(&script, &RunLimit::seconds(IMPORT_TIMEOUT_SECONDS))?;
        answer(&said)
    }

    /// Reads a listing in a read-only transaction.
    ///
    /// # Errors
    ///
    /// If the database cannot be read, or if its tables have another version.
    pub fn list(
        &self,
        kind: ListingKind,
        filter: &ListingFilter,
    ) -> Result<FleetListing, FleetError> {
        Ok(FleetListing { kind, rows: self.rows(&kind.sql(filter))? })
    }

    /// Returns the rows of a query in a read-only transaction.
    pub(crate) fn rows(&self, query: &str) -> Result<Vec<Value>, FleetError> {
        let script = format!(
            "{TERSE}SET default_transaction_read_only = on;\n{}SELECT coalesce(json_agg(listed), \
             '[]') FROM ({query}) AS listed;\n",
            refuse_unknown_version(),
        );
        answer(&self.client.run(&script, &RunLimit::seconds(QUERY_TIMEOUT_SECONDS))?)
    }
}

/// Starts the transaction of an import, and creates or migrates the tables.
fn prepare() -> String {
    let mut script = format!(
        "BEGIN;\nDO $lock$ BEGIN PERFORM pg_advisory_xact_lock({ADVISORY_LOCK_ID}); END $lock$;\n\
         SELECT to_regclass('foreread.version') IS NULL AS fresh \\gset\n\\if :fresh\n{}\n\
         \\endif\n",
        MIGRATIONS[0]
    );
    for (index, step) in MIGRATIONS.iter().enumerate().skip(1) {
        script += &format!(
            "SELECT number = {index} AS due FROM foreread.version \\gset\n\\if :due\n{step}\n\
             \\endif\n"
        );
    }
    script + &refuse_unknown_version()
}

fn refuse_unknown_version() -> String {
    let known = MIGRATIONS.len();
    format!(
        "DO $check$ BEGIN\n\
         IF to_regclass('foreread.version') IS NULL THEN\n    \
         RAISE EXCEPTION 'no host was imported into this database yet: foreread fleet import';\n\
         ELSIF (SELECT number FROM foreread.version) <> {known} THEN\n    \
         RAISE EXCEPTION 'the tables have version %, and this foreread knows version {known}: use \
         the newest foreread, and import with it once',\n        \
         (SELECT number FROM foreread.version);\nEND IF;\nEND $check$;\n"
    )
}

/// Parses psql's output as JSON.
fn answer<T: serde::de::DeserializeOwned>(said: &str) -> Result<T, FleetError> {
    // json_agg prints each row on its own line.
    serde_json::from_str(said.trim())
        .map_err(|error| FleetError::Answer(format!("{error} in {said:.200}")))
}
