//! `foreread check`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use diagnose::Windows;
use diagnose::check::{Policy, check, emit};
use sys::input::InputKind;

use super::doctor::{Tree, examine};

use super::{Context, ResultFile};
use crate::exit::{Exit, Usage};
use crate::output;

/// Check this host's read-ahead against a policy: exit code 0 if it is kept, 3 if not
///
/// A policy is TOML: [[rule]] tables that say what they are about (class, mount, filesystem, label,
/// device; patterns allowed), which read-ahead is allowed there (min, max) and which owners are not
/// (forbidden_owners). docs/book/doctor.md has an example; --emit-policy writes one from the
/// present state. A rule that is about nothing here is broken if it says required = true, if a name
/// in it looks like a slip of one that is here, or if no rule is about anything; required = false
/// allows it.
#[derive(Debug, Args)]
pub struct Check {
    /// The policy; `-` is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "emit_policy")]
    policy: Option<PathBuf>,
    /// Write a policy that the present state keeps, and check nothing
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

impl Check {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let named = self.policy.as_deref().filter(|_| !self.emit_policy);
        let policy = named.map(read).transpose()?;
        if policy.is_none() && !self.emit_policy {
            let usage = "say what to check: --policy FILE; --emit-policy writes one";
            return Err(Usage(usage.to_owned()).into());
        }
        let host = self.tree.host(context)?;
        let examination = examine(&host, &[], Windows::not_asked())?;
        let scene = examination.scenes.first().context("nothing was looked at")?;
        let Some((name, policy)) = policy else {
            output::print_document(&emit(scene, &examination.diagnoses))?;
            return Ok(Exit::Fine);
        };
        let report = check(&policy, scene, &examination.diagnoses);
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

/// Reads a policy; what is wrong with it is an error of the command line.
fn read(path: &Path) -> anyhow::Result<(String, Policy)> {
    let name = path.display().to_string();
    let text = sys::input::read_text(path, InputKind::POLICY)?;
    let policy = Policy::parse(&text).map_err(|error| Usage(format!("policy {name}, {error}")))?;
    Ok((name, policy))
}
