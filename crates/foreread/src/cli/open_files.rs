//! Open files with an outdated window: `apply` lists them and can refresh them. Rolling back the
//! apply restores their windows.

use std::collections::BTreeMap;
use std::path::Path;

use actuate::{
    AccessRule, AccessRules, ActionOutcome, ActuateError, Actuator, RefreshedFiles, Reverted,
};
use clap::Args;
use observe::{OpenFile, OpenFileFilter};
use serde_json::json;
use tunables::TunableScope;
use units::Bytes;

use super::Context;

/// Whether to refresh open files, and which.
#[derive(Debug, Args)]
pub struct OpenFilesOptions {
    /// Also give the new window to files that are already open. This discards the advice
    /// (posix_fadvise) that their programs have given the kernel
    #[arg(long)]
    pub open_files: bool,
    /// Change only open files that match: pid:N, user:NAME, cgroup:/PATH, exe:/PATH or mount:/PATH
    #[arg(long, value_name = "RULE", requires = "open_files")]
    pub only: Vec<AccessRule>,
    /// Never change open files that match; same syntax as --only
    #[arg(long, value_name = "RULE", requires = "open_files")]
    pub except: Vec<AccessRule>,
}

/// An open file, and its actual or planned change.
struct One {
    file: OpenFile,
    fate: ChangeState,
}

enum ChangeState {
    /// Keeps its window.
    Keeps,
    /// Would get this window in a refresh.
    Would(Bytes),
    Got(ActionOutcome),
}

/// The open files of a bdi whose window differs from that of newly opened files.
pub struct Refreshed {
    files: Vec<One>,
    /// Number of files that a preview omits because the rules exclude them.
    excluded: usize,
}

impl OpenFilesOptions {
    /// Lists files that would keep another window than `wanted`, or get it with `--open-files`.
    pub fn preview(
        &self,
        site: &TunableScope,
        wanted: Bytes,
        context: &Context,
    ) -> Option<Refreshed> {
        match self.try_preview(site, wanted) {
            Ok(refreshed) => Some(refreshed),
            Err(error) => {
                context.note(&format!("already open files cannot be listed: {error}"));
                None
            }
        }
    }

    fn try_preview(&self, site: &TunableScope, wanted: Bytes) -> Result<Refreshed, ActuateError> {
        let actuator = Actuator::load(self.limits())?;
        let mut refreshed = Refreshed { files: Vec::new(), excluded: 0 };
        for file in actuator.open_files(&OpenFileFilter::on_bdi(&site.bdi))? {
            if file.direct || file.window == wanted {
                continue;
            }
            if !self.open_files {
                refreshed.files.push(One { file, fate: ChangeState::Keeps });
            } else if actuator.permits(&file).is_ok() {
                refreshed.files.push(One { file, fate: ChangeState::Would(wanted) });
            } else {
                refreshed.excluded += 1;
            }
        }
        Ok(refreshed)
    }

    /// Refreshes the permitted files, if requested, and records them with `journal`, so that
    /// undoing the journal also restores them. If open files cannot be listed, prints a note.
    pub fn refresh(
        &self,
        site: &TunableScope,
        journal: &Path,
        context: &Context,
    ) -> Option<Refreshed> {
        match self.try_refresh(site, journal, context) {
            Ok(refreshed) => Some(refreshed),
            Err(error) => {
                context.note(&format!(
                    "already open files keep their window and cannot be listed: {error:#}"
                ));
                None
            }
        }
    }

    fn try_refresh(
        &self,
        site: &TunableScope,
        journal: &Path,
        context: &Context,
    ) -> anyhow::Result<Refreshed> {
        let actuator = Actuator::load(self.limits())?;
        let mut found = actuator.open_files(&OpenFileFilter::on_bdi(&site.bdi))?;
        found.retain(|file| !file.direct && file.differs_from_bdi());
        let mut files = Vec::new();
        if !self.open_files || found.is_empty() {
            files.extend(found.into_iter().map(|file| One { file, fate: ChangeState::Keeps }));
            return Ok(Refreshed { files, excluded: 0 });
        }
        let name = journal.file_stem().unwrap_or_default().to_string_lossy();
        let window = found.first().map_or(Bytes::ZERO, |file| file.bdi_window);
        let permitted = found.iter().filter(|file| actuator.permits(file).is_ok()).cloned();
        let (limits, permitted) = (self.limits(), permitted.collect());
        let mut record = RefreshedFiles::new(&name, site, window, &limits, permitted);
        // Record the files before the first change, so that it can be undone after a crash.
        record.store(&context.dirs)?;
        for file in found {
            let outcome = actuator.refresh(&file)?;
            if !matches!(outcome, ActionOutcome::Done { .. } | ActionOutcome::DidNotStick { .. }) {
                record.files.retain(|known| known.id != file.id);
            }
            files.push(One { file, fate: ChangeState::Got(outcome) });
        }
        record.store(&context.dirs)?;
        Ok(Refreshed { files, excluded: 0 })
    }

    fn limits(&self) -> AccessRules {
        AccessRules { allow: self.only.clone(), deny: self.except.clone() }
    }
}

impl Refreshed {
    /// Returns a summary in one line.
    pub fn summary(&self) -> String {
        let good = |one: &&One| match &one.fate {
            ChangeState::Keeps => false,
            ChangeState::Would(_) => true,
            ChangeState::Got(outcome) => outcome.is_good(),
        };
        let all = self.files.len() + self.excluded;
        let done = self.files.iter().filter(good).count();
        let would = self.excluded > 0 || self.files.iter().any(One::would);
        match all {
            0 => "no file is open with another window".to_owned(),
            _ if would => format!("{done} of {all} open files with another window would get it"),
            _ if self.files.iter().all(|one| matches!(one.fate, ChangeState::Keeps)) => {
                let keep = if all == 1 { "file keeps" } else { "files keep" };
                format!(
                    "{all} open {keep} another window until reopened; --open-files sets the new one"
                )
            }
            _ => format!("{done} of {all} open files with another window now have the new one"),
        }
    }

    pub fn text(&self) -> String {
        let line = |One { file, fate }: &One| {
            let what = match fate {
                ChangeState::Keeps => format!("window {}", file.window),
                ChangeState::Would(wanted) => format!("window {} → {wanted}", file.window),
                ChangeState::Got(outcome) => outcome.to_string(),
            };
            format!("# open in {}: {what}", holder(file))
        };
        counted(self.files.iter().map(line))
    }

    pub fn json(&self) -> serde_json::Value {
        self.files.iter().map(One::json).collect()
    }
}

impl One {
    fn would(&self) -> bool {
        matches!(self.fate, ChangeState::Would(_))
    }

    fn json(&self) -> serde_json::Value {
        let outcome = match &self.fate {
            ChangeState::Got(outcome) => Some(outcome),
            ChangeState::Keeps | ChangeState::Would(_) => None,
        };
        let mut json = file_json(&self.file);
        json["outcome"] = json!(outcome);
        json
    }
}

/// Describes what a rollback did or would do to the open files of one device.
pub fn reverted_text(files: &[Reverted]) -> String {
    let line = |Reverted { file, original, outcome }: &Reverted| match outcome {
        None => format!("# open in {}: window {} → {original}", holder(file), file.window),
        Some(outcome) => format!("open in {}: {outcome}", holder(file)),
    };
    counted(files.iter().map(line))
}

pub fn reverted_json(Reverted { file, original, outcome }: &Reverted) -> serde_json::Value {
    let mut json = file_json(file);
    json["original_kib"] = original.to_kib_floor().get().into();
    json["outcome"] = json!(outcome);
    json
}

fn file_json(file: &OpenFile) -> serde_json::Value {
    json!({
        "device": file.device,
        "inode": file.inode,
        "window_kib": file.window.to_kib_floor(),
        "random": file.random,
        "holders": file.holders,
    })
}

/// Returns the first process that has the file open.
fn holder(file: &OpenFile) -> String {
    file.holders.first().map_or_else(String::new, |holder| {
        format!("{} (process {})", report::clean::plain(&holder.comm), holder.pid)
    })
}

/// Formats the distinct lines with their counts.
fn counted(lines: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    let times = |count: usize| if count > 1 { format!(", {count} files") } else { String::new() };
    counts.into_iter().map(|(line, count)| format!("{line}{}\n", times(count))).collect()
}
