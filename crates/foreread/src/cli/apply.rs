//! `foreread apply`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use doctor::presets;
use host::{Storage, resolve};
use serde_json::json;
use tunables::{ApplyPlan, GuardCommand, Setting, TunableScope, TunableValues, apply, plan_apply};
use units::Bytes;

use super::open_files::{OpenFilesOptions, Refreshed};
use super::{Context, number};
use crate::exit::{Exit, Usage, bail_usage, usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread apply read_ahead=1M --on /srv/data
  foreread apply read_ahead=1088K scheduler=mq-deadline max_sectors_kb=512 --on /dev/md0
  foreread apply --from 7                      the recommendation of run 7, on its target
  foreread apply --preset greenplum --on /data what a vendor recommends (`foreread presets`)
  foreread apply -n vm.dirty_bytes=256M        print the writes and their inverse
  foreread apply read_ahead=1M --on /srv --open-files --only user:postgres

Settings are applied atomically, in the order that their side effects require, and read back. They
hold until the next boot (`foreread persist` makes them permanent) or until `foreread rollback NAME`
undoes them, with the name that apply prints. `foreread rollback all` undoes all applied settings.";

/// Set tunables now; `foreread rollback all` undoes it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ApplyArgs {
    #[command(flatten)]
    pub choice: SettingArgs,
    #[command(flatten)]
    open_files: OpenFilesOptions,
    /// Change nothing; print what would be written, and what would undo it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
}

/// The settings to apply, and their target.
#[derive(Debug, Args)]
pub struct SettingArgs {
    /// What to set: read_ahead=1M, scheduler=none, vm.dirty_ratio=10…
    #[arg(value_name = "SETTING")]
    pub settings: Vec<String>,
    /// Path, mount point, device or MAJ:MIN; not needed for settings of the whole machine
    #[arg(long, value_name = "TARGET")]
    pub on: Option<PathBuf>,
    /// Apply the recommendation of this run of `tune` or `sweep` (a number or `last`), on its
    /// target unless --on names another
    #[arg(long, value_name = "RUN", conflicts_with = "settings")]
    pub from: Option<String>,
    /// With --from: if the recommendation has a condition, such as "if no process reads mapped
    /// files at random", apply the setting for hosts where the condition is not met
    #[arg(long, requires = "from")]
    pub unconditional: bool,
    /// The read-ahead that a vendor recommends for this software (`foreread presets NAME` shows
    /// it); if the recommendation is a range, NAME=VALUE with a value in this range
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "from")]
    pub preset: Option<String>,
    /// Number of concurrent streams, used to estimate the memory that read-ahead needs
    #[arg(long, value_name = "N", default_value_t = tunables::DEFAULT_STREAMS,
        value_parser = number::within(1..=100_000_u32))]
    pub streams: u32,
}

/// Settings and their target.
pub struct ChosenSettings {
    pub settings: TunableValues,
    pub storage: Option<Storage>,
    pub site: TunableScope,
}

impl SettingArgs {
    /// Resolves the arguments.
    pub fn choose(&self, context: &Context) -> anyhow::Result<ChosenSettings> {
        let (settings, target) = match &self.from {
            Some(run) => self.recommended(run, context)?,
            None => (parse(&self.settings)?, None),
        };
        let settings = match &self.preset {
            Some(words) => with_preset(settings, words, context)?,
            None => settings,
        };
        if settings.is_empty() {
            bail_usage!(
                "no setting: give NAME=VALUE, as in read_ahead=1M, --from RUN or --preset \
                 NAME"
            );
        }
        let local = settings.iter().find(|setting| !setting.tunable.is_of_machine());
        let storage = match (self.on.clone().or(target), local) {
            (Some(path), _) => Some(resolve(&context.root, &path)?),
            (None, Some(setting)) => {
                bail_usage!("{setting} needs a target: --on TARGET");
            }
            (None, None) => None,
        };
        let site = match &storage {
            Some(storage) => TunableScope::with_layers(&context.root, storage),
            None => TunableScope::machine(),
        };
        Ok(ChosenSettings { settings, storage, site })
    }

    fn recommended(
        &self,
        word: &str,
        context: &Context,
    ) -> anyhow::Result<(TunableValues, Option<PathBuf>)> {
        let run = super::runs::load(word, context)?;
        let id = run.summary.id;
        let settings = recommended(&run, self.unconditional)?;
        let path = match &run.plan.target {
            study::Target::Path(path) => Some(path.clone()),
            _ if self.on.is_some() => None,
            other => {
                bail_usage!("run {id} measured {other}: name the target with --on");
            }
        };
        Ok((settings, path))
    }
}

/// Returns the settings that a run recommends to set or keep.
fn recommended(run: &study::Run, unconditional: bool) -> anyhow::Result<TunableValues> {
    let advice = study::analyse(run).recommendation;
    let window = |kib: units::Kib| TunableValues::read_ahead(kib.to_bytes());
    if unconditional && !advice.conditions.is_empty() {
        let other = advice.without_conditions.map(|other| other.read_ahead_kib).or(run.found);
        return other
            .map(window)
            .ok_or_else(|| usage!("no measured setting gains without the condition"));
    }
    if let Some(settings) = advice.to_set() {
        return Ok(settings.tunables());
    }
    if let Some(kept) = advice.value() {
        return Ok(window(kept));
    }
    let why = match advice.decision {
        study::Decision::Inconclusive(doubt) => doubt.to_string(),
        _ => "it found no measurable difference".to_owned(),
    };
    let id = run.summary.id;
    Err(usage!("run {id} recommends no setting ({why}): name one, as in read_ahead=1M"))
}

/// Adds a vendor's recommendation and prints its source.
fn with_preset(
    settings: TunableValues,
    words: &str,
    context: &Context,
) -> anyhow::Result<TunableValues> {
    if settings.window().is_some() {
        bail_usage!("read_ahead is set twice: as SETTING and by --preset");
    }
    let (name, value) = match words.split_once('=') {
        Some((name, value)) => (name, Some(value.parse::<Bytes>()?.to_kib_floor())),
        None => (words, None),
    };
    let chosen = presets::choose(name, value).map_err(|error| Usage(error.to_string()))?;
    let preset = chosen.preset;
    context.note(&format!(
        "preset {name}: {} says {} for {} ({}, {}); that is advice, not a measurement",
        report::clean::plain(&preset.software),
        report::clean::plain(&format!("{} KiB", preset.recommended_kib)),
        report::clean::plain(&preset.device),
        report::clean::plain(&preset.source_title),
        preset.year.map_or_else(|| "no year".to_owned(), |year| year.to_string())
    ));
    let window = TunableValues::read_ahead(chosen.value.to_bytes());
    Ok(window.iter().cloned().fold(settings, TunableValues::with))
}

/// Parses settings; a tunable may occur only once.
fn parse(words: &[String]) -> anyhow::Result<TunableValues> {
    words.iter().try_fold(TunableValues::default(), |settings, word| {
        let setting: Setting = word.parse()?;
        if settings.get(setting.tunable.name()).is_some() {
            bail_usage!("{} is set twice", setting.tunable.name());
        }
        Ok(settings.with(setting))
    })
}

impl ApplyArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let chosen = self.choice.choose(context)?;
        let plan = plan_apply(&context.root, &chosen.site, &chosen.settings, self.choice.streams)?;
        for note in &plan.notes {
            context.note(&format!("note: {note}"));
        }
        for (setting, cost) in &plan.costs {
            context.note(&format!(
                "{setting} takes {} of memory: {}",
                cost.memory.rounded(),
                cost.explained
            ));
        }
        let window = plan.settings.window();
        if self.dry_run {
            let preview = |window| self.open_files.preview(&chosen.site, window, context);
            let refreshed = window.and_then(preview);
            self.show(&plan, None, refreshed.as_ref())?;
            if let Some(refreshed) = &refreshed {
                context.note(&refreshed.summary());
            }
            return Ok(Exit::Fine);
        }
        let guard = guard()?;
        let mut applied = apply(&context.dirs, &context.root, &chosen.site, &plan, &guard)?;
        for undone in &applied.inherited {
            context.note(&format!("left by a killed run: {undone}"));
        }
        for note in &applied.notes {
            context.note(&format!("note: {note}"));
        }
        let refresh = |_| self.open_files.refresh(&chosen.site, &applied.journal, context);
        let refreshed = window.and_then(refresh);
        drop(applied.lock.take());
        self.show(&plan, Some(&applied.journal), refreshed.as_ref())?;
        if let Some(refreshed) = &refreshed {
            context.note(&refreshed.summary());
        }
        Ok(Exit::Fine)
    }

    fn show(
        &self,
        plan: &ApplyPlan,
        journal: Option<&Path>,
        refreshed: Option<&Refreshed>,
    ) -> anyhow::Result<()> {
        let name = journal.and_then(Path::file_stem).map(|stem| stem.to_string_lossy());
        if self.json {
            return output::print_versioned(&json!({
                "applied": journal.is_some(),
                "journal": name,
                "settings": plan.settings,
                "writes": plan.writes.iter().map(write_json).collect::<Vec<_>>(),
                "memory": plan.costs.iter().map(|(setting, cost)| json!({
                    "setting": setting.to_string(),
                    "memory_bytes": cost.memory.get(),
                    "explained": cost.explained,
                })).collect::<Vec<_>>(),
                "open_files": refreshed.map(Refreshed::json),
            }));
        }
        let mut text = String::new();
        for write in &plan.writes {
            let file = write.file.display();
            let wanted = write.tunable.encode(&write.wanted)?;
            let line = match (write.changes(), journal) {
                (false, _) => format!("# {file} is {wanted} already\n"),
                (true, _) => format!("echo {wanted} > {file}\n"),
            };
            text.push_str(&line);
        }
        match &name {
            None => {
                text.push_str("# undo:\n");
                for write in plan.writes.iter().rev().filter(|write| write.changes()) {
                    let old = write.tunable.encode(&write.present)?;
                    text.push_str(&format!("echo {old} > {}\n", write.file.display()));
                }
            }
            Some(name) => text.push_str(&format!("# undo: foreread rollback {name}\n")),
        }
        if let Some(refreshed) = refreshed {
            text.push_str(&refreshed.text());
        }
        output::print(&text)
    }
}

fn write_json(write: &tunables::PlannedWrite) -> serde_json::Value {
    json!({
        "tunable": write.tunable.name(),
        "file": write.file,
        "before": write.tunable.to_json(&write.present),
        "after": write.tunable.to_json(&write.wanted),
        "unit_key": write.tunable.json_key(),
        "changes": write.changes(),
    })
}

/// Returns the command that starts the guard: this program.
pub fn guard() -> anyhow::Result<GuardCommand> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(GuardCommand { program, args: vec!["guard".into()] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunable_is_set_once() {
        let words =
            |words: &[&str]| parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["ra=1M", "scheduler=none"]).expect("settings").iter().count(), 2);
        assert!(words(&["ra=1M", "read_ahead_kb=4"]).is_err());
        assert!(words(&["ra"]).is_err());
    }
}
