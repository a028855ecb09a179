//! Files that are open already and have the window of before: reported, and refreshed if asked.

use std::collections::BTreeMap;

use actuate::{Actuator, Limits, Outcome, Rule};
use clap::Args;
use observe::{OpenFile, OpenFileFilter, open_files};
use serde_json::json;
use tunables::Site;

use super::Context;

/// Whether open files are refreshed, and whose.
#[derive(Debug, Args)]
pub struct OpenFilesOptions {
    /// Give files that are open already the new window, too; advice that their programs have given
    /// the kernel is forgotten by that
    #[arg(long)]
    pub open_files: bool,
    /// Only open files of these: pid:N, user:NAME, cgroup:/PATH, exe:/PATH or mount:/PATH
    #[arg(long, value_name = "RULE", requires = "open_files")]
    pub only: Vec<Rule>,
    /// Never open files of these
    #[arg(long, value_name = "RULE", requires = "open_files")]
    pub except: Vec<Rule>,
}

/// One open file, and what came of it; `None` where it was only looked at.
pub struct One {
    file: OpenFile,
    outcome: Option<Outcome>,
}

/// The open files of a bdi that had another window than files opened now get.
pub struct Refreshed {
    files: Vec<One>,
}

impl OpenFilesOptions {
    /// Those that there are before anything is set. All of them keep their window.
    pub fn preview(&self, site: &Site) -> anyhow::Result<Option<Refreshed>> {
        let Ok(files) = open_files(&OpenFileFilter::on_bdi(&site.bdi)) else { return Ok(None) };
        let files = files.into_iter().filter(|file| !file.direct);
        Ok(Some(Refreshed { files: files.map(|file| One { file, outcome: None }).collect() }))
    }

    /// Refreshes those that may be, if that was asked for. That open files cannot be seen is said.
    pub fn refresh(&self, site: &Site, context: &Context) -> Option<Refreshed> {
        match self.try_refresh(site) {
            Ok(refreshed) => Some(refreshed),
            Err(error) => {
                context.note(&format!(
                    "files that are open already keep the window they have; which those are \
                     cannot be told: {error}"
                ));
                None
            }
        }
    }

    fn try_refresh(&self, site: &Site) -> Result<Refreshed, actuate::ActuateError> {
        let limits = Limits { allow: self.only.clone(), deny: self.except.clone() };
        let actuator = Actuator::begin(limits)?;
        let mut files = Vec::new();
        for file in actuator.open_files(&OpenFileFilter::on_bdi(&site.bdi))? {
            if file.direct || !file.differs_from_bdi() {
                continue;
            }
            let outcome = if self.open_files { Some(actuator.refresh(&file)?) } else { None };
            files.push(One { file, outcome });
        }
        Ok(Refreshed { files })
    }
}

impl Refreshed {
    /// One line for people.
    pub fn summary(&self) -> String {
        let good = |one: &&One| one.outcome.as_ref().is_some_and(Outcome::is_good);
        let (all, done) = (self.files.len(), self.files.iter().filter(good).count());
        match all {
            0 => "no file is open with another window".to_owned(),
            _ if self.files.iter().all(|one| one.outcome.is_none()) => format!(
                "{all} open files keep another window: --open-files refreshes them, or their \
                 programs do when they open them anew"
            ),
            _ => format!("{done} of {all} open files with another window have the new one now"),
        }
    }

    /// A line for each, by process.
    pub fn text(&self) -> String {
        let mut lines: BTreeMap<String, usize> = BTreeMap::new();
        for One { file, outcome } in &self.files {
            let holder = file.holders.first();
            let who = holder.map_or_else(String::new, |holder| {
                format!("{} (process {})", report::clean::plain(&holder.comm), holder.pid)
            });
            let what = match outcome {
                Some(outcome) => outcome.to_string(),
                None => format!("window {}", file.window),
            };
            *lines.entry(format!("# open in {who}: {what}")).or_default() += 1;
        }
        let times =
            |count: usize| if count > 1 { format!(", {count} files") } else { String::new() };
        lines.into_iter().map(|(line, count)| format!("{line}{}\n", times(count))).collect()
    }

    /// The same for programs.
    pub fn json(&self) -> serde_json::Value {
        let one = |One { file, outcome }: &One| {
            json!({
                "device": file.device,
                "inode": file.inode,
                "window_kib": file.window.to_kib_floor(),
                "random": file.random,
                "holders": file.holders,
                "outcome": outcome,
            })
        };
        self.files.iter().map(one).collect()
    }
}
