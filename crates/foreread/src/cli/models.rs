//! `foreread models`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use model::{Spec, SpecError, presets};
use sys::input::{self, InputKind};
use units::text::NamedSettings;

use super::ResultFile;
use crate::exit::Exit;
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread models
  foreread models show hdd-2008 > mine.toml
  foreread models show raid10-2008,chunk=256K";

/// List, explain or score device models
///
/// Keys of a model can be changed on the command line, as in
/// virtual:raid10-2008,chunk=256K,disk.rpm=15000. To make a model file, run foreread models show
/// hdd-2008 > mine.toml, edit the file, and use virtual:mine.toml.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Args)]
struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ResultFile,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the named models
    List(List),
    /// Explain a model: its description in TOML with sources, and its peak throughput and request
    /// rate
    Show {
        /// Name of the model, optionally with changed keys (NAME[,key=value…]), or a TOML file; `-`
        /// is standard input
        model: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        file: ResultFile,
    },
    /// Compare the drive model with the recorded service times of a real drive
    ///
    /// Parameters that the description leaves open are fitted to the first 2000 requests. The
    /// other requests are scored by the demerit figure of Ruemmler and Wilkes (1994): the root mean
    /// square of the horizontal distance between the two distributions of service time.
    Score {
        /// Service times of single requests in DiskSim's format, as text or compressed with zstd
        trace: PathBuf,
        /// The drive's measured seek curve: lines of `cylinders, milliseconds`
        seek: PathBuf,
        /// Known properties of the drive: name, speed, cylinders, capacity and media rates, in TOML
        #[arg(value_name = "SPEC.toml")]
        spec: PathBuf,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
}

impl ModelsArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.action.unwrap_or(Action::List(self.list)) {
            Action::List(List { json, .. }) => list(json)?,
            Action::Show { model, json, .. } => show(&model, json)?,
            Action::Score { trace, seek, spec, json } => score(&trace, &seek, &spec, json)?,
        }
        Ok(Exit::Fine)
    }
}

fn list(json: bool) -> anyhow::Result<()> {
    if json {
        let models: Vec<_> = presets()
            .iter()
            .map(|preset| serde_json::json!({ "name": preset.name, "summary": preset.summary() }))
            .collect();
        return output::print_versioned(&serde_json::json!({
            "models": models,
        }));
    }
    let widest = presets().iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for preset in presets() {
        text.push_str(&format!("{:widest$}  {}\n", preset.name, preset.summary()));
    }
    output::print(&text)
}

fn show(words: &str, json: bool) -> anyhow::Result<()> {
    let spec = spec(words)?;
    if json {
        let peak = spec.peak();
        return output::print_versioned(&serde_json::json!({
            "name": spec.name,
            "capacity_bytes": spec.capacity().get(),
            "peak_throughput_mib_s": peak.throughput.as_mib(),
            "peak_requests_s": peak.requests,
            "description_toml": spec.to_toml(),
        }));
    }
    // A preset's file has the sources in its comments. With changed keys, its text would be wrong,
    // so only the specification is printed.
    let preset = presets().iter().find(|preset| preset.name == words);
    let toml = preset.map_or_else(|| spec.to_toml(), |preset| preset.toml.to_owned());
    let described = spec.describe();
    let comment: String = described.lines().map(|line| format!("# {line}\n")).collect();
    output::print_document(&format!("{comment}\n{}\n", toml.trim_end()))
}

/// Parses a model: `NAME[,key=value…]`, or a file with a description.
fn spec(words: &str) -> anyhow::Result<Spec> {
    let words = NamedSettings::parse(words).map_err(SpecError::from)?;
    let mut spec = vdisk::model_named(words.name)?;
    for (key, value) in words.settings {
        spec.set(key, value)?;
    }
    spec.validate()?;
    Ok(spec)
}

fn score(trace: &Path, seek: &Path, spec: &Path, json: bool) -> anyhow::Result<()> {
    let read = |path| input::read_text(path, InputKind::SERVICE_TIMES);
    let times = input::read(trace, InputKind::SERVICE_TIMES)?;
    let score = model::score::score(&times, &read(seek)?, &read(spec)?)
        .with_context(|| format!("cannot score {}", trace.display()))?;
    if json {
        return output::print_json_line(&score);
    }
    output::print(&format!(
        "{}: {} requests scored, demerit {:.3} ms, {:.1} % of the mean service time\n",
        report::clean::plain(&score.drive),
        score.requests_scored,
        score.demerit_ms,
        score.demerit_percent
    ))
}
