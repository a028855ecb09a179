//! The possible values of options and arguments.

use clap::Arg;
use doctor::presets;
use study::Store;
use workload::Workload;

use super::super::Context;
use super::{CompletionCandidate, Offer};

#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    Fixed(Vec<CompletionCandidate>),
    Target,
    Model,
    Workload,
    Tunable,
    Preset,
    Run,
    Table,
    VirtualDisk,
    File,
    Free,
}

impl Kind {
    /// Returns the kind of value that an option or argument takes.
    pub fn from_arg(arg: &Arg) -> Self {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            let shown = possible.iter().filter(|value| !value.is_hide_set());
            let candidate = |value: &clap::builder::PossibleValue| {
                let about = value.get_help().map(ToString::to_string).unwrap_or_default();
                CompletionCandidate::new(value.get_name(), about)
            };
            return Self::Fixed(shown.map(candidate).collect());
        }
        let names = arg.get_value_names().unwrap_or_default();
        let name = names.first().map(|name| name.as_str()).unwrap_or_default();
        match (arg.get_id().as_str(), arg.is_positional()) {
            ("workload" | "fio", _) => Self::Workload,
            ("vary" | "settings", _) => Self::Tunable,
            ("preset" | "software", _) => Self::Preset,
            ("run" | "runs" | "from" | "which", _) => Self::Run,
            ("table", true) => Self::Table,
            ("names" | "name", true) => Self::VirtualDisk,
            _ if name.starts_with("TARGET") => Self::Target,
            _ if name.starts_with("MODEL") => Self::Model,
            _ => match ["FILE", "PATH", "DIR", "TRACE", "SPEC", "SEEK"]
                .iter()
                .any(|it| name.contains(it))
            {
                true => Self::File,
                false => Self::Free,
            },
        }
    }

    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns candidates for `word`; the caller keeps those that start with it.
    pub fn offer(&self, word: &str, context: &Context) -> Offer {
        let (candidates, files) = match self {
            Self::Fixed(words) => (after_comma(word, words.clone()), false),
            Self::Target => {
                (targets(word), !word.starts_with("virtual:") && !word.starts_with("sim:"))
            }
            Self::Model => (model(word, false), true),
            Self::Workload => (workloads(word), true),
            Self::Tunable => (tunables(word), false),
            Self::Preset => (groups(), false),
            Self::Run => (runs(context), false),
            Self::Table => (tables(), false),
            Self::VirtualDisk => (disks(context), false),
            Self::File => (Vec::new(), true),
            Self::Free => (Vec::new(), false),
        };
        Offer { candidates, files }
    }
}

/// Prefixes each candidate with the text before the last comma.
fn after_comma(word: &str, candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let Some((before, _)) = word.rsplit_once(',') else { return candidates };
    prefixed(&format!("{before},"), candidates)
}

fn prefixed(prefix: &str, candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let put = |one: CompletionCandidate| {
        CompletionCandidate::new(format!("{prefix}{}", one.word), one.about)
    };
    candidates.into_iter().map(put).collect()
}

fn targets(word: &str) -> Vec<CompletionCandidate> {
    for (kind, simulated) in [("virtual:", false), ("sim:", true)] {
        if let Some(model_word) = word.strip_prefix(kind) {
            return prefixed(kind, model(model_word, simulated));
        }
    }
    vec![
        CompletionCandidate::new(
            "virtual:",
            "a virtual disk: the real kernel over a model of a device",
        ),
        CompletionCandidate::new("sim:", "a simulation of device, page cache and read-ahead"),
    ]
}

/// Returns candidates for a model, or for a key after it.
fn model(word: &str, simulated: bool) -> Vec<CompletionCandidate> {
    let Some((before, key)) = word.rsplit_once(',') else {
        let presets = model::presets().iter();
        return presets
            .map(|preset| CompletionCandidate::new(preset.name, preset.summary()))
            .collect();
    };
    let keys = match (key.split_once('='), simulated) {
        (Some((key @ ("policy" | "kernel"), _)), true) => prefixed(&format!("{key}="), policies()),
        (Some(("fs", _)), simulated) => {
            let names: &[&str] = match simulated {
                true => &["xfs", "ext4", "ext3", "plain"],
                false => &["ext4", "xfs", "btrfs", "ext3", "raw"],
            };
            names.iter().map(|name| CompletionCandidate::new(format!("fs={name}"), "")).collect()
        }
        (Some(_), _) => Vec::new(),
        (None, true) => sim::KEYS
            .iter()
            .map(|(key, about)| CompletionCandidate::new(format!("{key}="), *about))
            .collect(),
        (None, false) => {
            ["fs=", "size=", "dilation="].map(|key| CompletionCandidate::new(key, "")).to_vec()
        }
    };
    prefixed(&format!("{before},"), keys)
}

fn policies() -> Vec<CompletionCandidate> {
    control::POLICIES
        .entries()
        .map(|entry| CompletionCandidate::new(entry.name, entry.summary))
        .collect()
}

fn workloads(word: &str) -> Vec<CompletionCandidate> {
    let suite = Workload::suite().into_iter().chain(Workload::writing());
    let mut all: Vec<CompletionCandidate> = suite
        .map(|workload| CompletionCandidate::new(workload.name.clone(), workload.pattern.name()))
        .collect();
    all.extend([
        CompletionCandidate::new("trace:", "replay a trace"),
        CompletionCandidate::new("fio:", "a job file of fio"),
        CompletionCandidate::new("dd", "streaming reads at the start, middle and end"),
        CompletionCandidate::new("bonnie++", "bonnie++"),
        CompletionCandidate::new("cmd:", "any command"),
    ]);
    after_comma(word, all)
}

fn tunables(word: &str) -> Vec<CompletionCandidate> {
    match word.split_once('=') {
        Some((key @ ("policy" | "kernel"), values)) => {
            prefixed(&format!("{key}="), after_comma(values, policies()))
        }
        Some(_) => Vec::new(),
        None => {
            let registry = tunables::REGISTRY.iter().map(|tunable| tunable.name());
            let names = registry.chain(["policy"]);
            names.map(|name| CompletionCandidate::new(format!("{name}="), "")).collect()
        }
    }
}

fn groups() -> Vec<CompletionCandidate> {
    presets::groups()
        .iter()
        .map(|group| CompletionCandidate::new(group.name.as_str(), ""))
        .collect()
}

/// Returns the runs of the record; empty if it cannot be read.
fn runs(context: &Context) -> Vec<CompletionCandidate> {
    let store = Store::open_read_only(&context.store_path()).ok().flatten();
    let runs = store.and_then(|store| store.runs().ok()).unwrap_or_default();
    let run = |run: &study::RunSummary| {
        CompletionCandidate::new(run.id.to_string(), report::clean::plain(&run.target))
    };
    [CompletionCandidate::new("last", "the latest run")]
        .into_iter()
        .chain(runs.iter().map(run))
        .collect()
}

fn tables() -> Vec<CompletionCandidate> {
    let all = CompletionCandidate::new("all", "all tables");
    let tables = reproduce::EXPERIMENTS
        .iter()
        .map(|table| CompletionCandidate::new(table.name, table.title));
    [all].into_iter().chain(tables).collect()
}

fn disks(context: &Context) -> Vec<CompletionCandidate> {
    let disks = vdisk::list(&context.dirs).unwrap_or_default();
    disks.into_iter().map(|disk| CompletionCandidate::new(disk.name, "")).collect()
}
