//! `foreread check`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use doctor::Windows;
use doctor::check::{check, emit};

use super::examination::{Tree, examine};
use super::policy_file;

use super::{Context, ResultFile};
use crate::exit::{Exit, bail_usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread check --emit-policy -o policy.toml
  foreread check --policy policy.toml
  foreread check --policy policy.toml --junit -o result.xml";

/// Check this host's read-ahead against a policy file
///
/// A policy is TOML with [[rule]] tables. Each rule selects storage (class, mount, filesystem,
/// label, device; patterns allowed) and limits its read-ahead (min, max) and its owners
/// (forbidden_owners). docs/book/doctor.md has an example; --emit-policy writes one from the
/// present state. A rule that selects nothing on this host is an error if it has required = true,
/// if a name in it looks mistyped, or if no rule selects anything; required = false allows it. The
/// exit code is 3 if a rule is violated.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct CheckArgs {
    /// The policy file; `-` is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "emit_policy")]
    policy: Option<PathBuf>,
    /// Print a policy that this host meets at present; check nothing
    #[arg(long, conflicts_with_all = ["policy", "json", "junit"])]
    emit_policy: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long, conflicts_with = "junit")]
    json: bool,
    /// Print JUnit XML, for continuous integration
    #[arg(long)]
    junit: bool,
    #[command(flatten)]
    tree: Tree,
    #[command(flatten)]
    file: ResultFile,
}

impl CheckArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let named = self.policy.as_deref().filter(|_| !self.emit_policy);
        let policy = named.map(policy_file::read).transpose()?;
        if policy.is_none() && !self.emit_policy {
            bail_usage!("name the policy: --policy FILE; --emit-policy writes one");
        }
        let host = self.tree.host(context)?;
        let examination = examine(&host, &[], Windows::not_asked())?;
        let snapshot = examination.snapshots.first().context("no storage was examined")?;
        let Some((policy, _)) = policy else {
            output::print_document(&emit(snapshot, &examination.diagnoses))?;
            return Ok(Exit::Fine);
        };
        let name = named.unwrap_or(Path::new("-")).display().to_string();
        let report = check(&policy, snapshot, &examination.diagnoses);
        if self.json {
            output::print_json(&report::check_json(&name, &report, host.tree.as_deref()))?;
        } else if self.junit {
            output::print_document(&report::check_junit(&name, &report))?;
        } else {
            output::print(&report::check_text(
                &name,
                &report,
                host.tree.as_deref(),
                output::look(),
            ))?;
        }
        Ok(if report.kept() { Exit::Fine } else { Exit::Drift })
    }
}
