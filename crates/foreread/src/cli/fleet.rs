//! `foreread fleet`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use doctor::check::check;
use doctor::{OriginKind, Windows};
use fleet::{Database, HostSurvey, ListingFilter, ListingKind, PolicyResult};
use serde_json::json;

use super::examination::{Tree, examine};
use super::{Context, ResultFile, policy_file};
use crate::exit::{Exit, bail_usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread fleet survey -o survey.json              on each host; needs no database
  foreread fleet import surveys/ --database postgresql://fleet@db/foreread
  foreread fleet hosts --host 'web*' --origin tuned
  foreread fleet changes --days 7
  foreread fleet outliers --json

FOREREAD_DATABASE can also name the database. psql connects to it, so PGPASSFILE, PGSSLMODE and
pg_service.conf work. docs/book/fleet.md describes the tables and the rights that they need.";

/// Keep surveys and runs of many hosts in one PostgreSQL database
///
/// `survey` writes the read-ahead settings of a host. `import` loads surveys, captured hosts and
/// records of runs. It writes a row only if something has changed, so it may be repeated. The other
/// verbs list the content of the database.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct FleetArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print this host's survey as JSON, to be imported elsewhere
    Survey {
        /// Include the result of this policy (`foreread check` explains policies)
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
        #[command(flatten)]
        tree: Tree,
        #[command(flatten)]
        file: ResultFile,
    },
    /// Load surveys, captured hosts and records of runs into the database
    Import {
        /// Surveys, captured hosts (trees), or directories of them. A file runs.sqlite next to a
        /// survey.json is that host's record
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        server: DatabaseArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List hosts with their current settings; most violations first
    Hosts(ListArgs),
    /// List settings whose value or origin changed, latest first
    Changes {
        #[command(flatten)]
        list: ListArgs,
        /// How many days to look back
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        days: u32,
    },
    /// List storage that differs from the same storage of most other hosts
    ///
    /// Storage is the same if it has the same name: a mount point or a device. At least three hosts
    /// must have it, and more than half of them the same value.
    Outliers(ListArgs),
}

#[derive(Clone, Debug, Args)]
struct DatabaseArgs {
    /// The database, as for psql: a URL or a connection string
    #[arg(long, value_name = "URL", env = "FOREREAD_DATABASE", hide_env_values = true)]
    database: Option<String>,
}

#[derive(Clone, Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    server: DatabaseArgs,
    /// Only hosts with this name; `*` matches any characters
    #[arg(long, value_name = "PATTERN")]
    host: Option<String>,
    /// Only storage whose read-ahead has this origin: kernel, udev, tuned, …
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    origin: Option<String>,
    /// Maximum number of rows to print
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ResultFile,
}

fn origin(word: &str) -> Result<String, String> {
    match OriginKind::WORDS.contains(&word) {
        true => Ok(word.to_owned()),
        false => Err(format!("must be one of {}", OriginKind::WORDS.join(", "))),
    }
}

impl DatabaseArgs {
    fn open(&self) -> anyhow::Result<Database> {
        open_database("--database", self.database.as_deref().unwrap_or_default())
    }
}

/// Opens the database that the option names, or else `FOREREAD_DATABASE`.
pub fn open_database(option: &str, named: &str) -> anyhow::Result<Database> {
    let default = || std::env::var("FOREREAD_DATABASE").unwrap_or_default();
    let connection = if named.is_empty() { default() } else { named.to_owned() };
    if connection.is_empty() {
        bail_usage!("name the database: {option} URL, or FOREREAD_DATABASE");
    }
    Ok(Database::at(&connection)?)
}

impl FleetArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.action {
            Action::Survey { policy, tree, .. } => survey(context, policy, &tree),
            Action::Import { paths, server, json } => import(context, &paths, &server, json),
            Action::Hosts(list) => list.print(ListingKind::Hosts, 0),
            Action::Changes { list, days } => list.print(ListingKind::Changes, days),
            Action::Outliers(list) => list.print(ListingKind::Outliers, 0),
        }
    }
}

fn survey(context: &Context, policy: Option<PathBuf>, tree: &Tree) -> anyhow::Result<Exit> {
    let policy = policy.as_deref().map(policy_file::read).transpose()?;
    let host = tree.host(context)?;
    let examination = examine(&host, &[], Windows::not_asked())?;
    let snapshot = examination.snapshots.first().context("no storage was examined")?;
    let result = policy.map(|(policy, text)| {
        PolicyResult::new(&text, &check(&policy, snapshot, &examination.diagnoses))
    });
    output::print_json(&HostSurvey::of(snapshot, &examination.diagnoses, result)?)?;
    Ok(Exit::Fine)
}

fn import(
    context: &Context,
    paths: &[PathBuf],
    server: &DatabaseArgs,
    json: bool,
) -> anyhow::Result<Exit> {
    let report = fleet::import(&server.open()?, paths)?;
    let failed = report.errors.len();
    for error in report.errors {
        output::error(&error.into(), context.global.quiet);
    }
    let fleet::ImportSummary { surveys, outdated, storage_rows, policy_rows, runs, trials } =
        report.summary;
    if json {
        output::print_versioned(&json!({
            "surveys": surveys, "outdated": outdated, "storage_rows": storage_rows,
            "policy_rows": policy_rows, "runs": runs, "trials": trials, "failed": failed,
        }))?;
    } else {
        output::print(&format!(
            "imported: {surveys} surveys ({outdated} known or outdated, {failed} failed); wrote \
             {storage_rows} storage rows, {policy_rows} policy results, {runs} runs, {trials} \
             trials\n"
        ))?;
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::Failed })
}

impl ListArgs {
    fn print(self, kind: ListingKind, days: u32) -> anyhow::Result<Exit> {
        let filter = ListingFilter {
            host: self.host,
            origin: self.origin,
            days,
            limit: self.limit,
            skip: 0,
        };
        let listing = self.server.open()?.list(kind, &filter)?;
        if self.json {
            output::print_json(&listing.json())?;
        } else {
            output::print(&listing.table())?;
        }
        Ok(Exit::Fine)
    }
}
