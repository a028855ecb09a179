//! `foreread info`.

mod features;
mod tools;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use observe::{Rung, Signal};
use report::clean::plain;
use serde::Serialize;

use self::features::{Cgroups, Feature, Rights};
use self::tools::Tool;
use super::build_info::Build;
use super::config::ConfigFile;
use super::{Context, ResultFile};
use crate::exit::Exit;
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread info
  foreread info --json -o info.json";

/// Show version, kernel, privileges, probes, programs and files
///
/// Changes nothing and needs no privileges, but shows what more privileges would enable. Attach the
/// output to bug reports.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct InfoArgs {
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ResultFile,
}

/// The kernel.
#[derive(Debug, Serialize)]
struct Kernel {
    release: String,
    page_bytes: u64,
    /// Whether the kernel has BTF type information, which probes need.
    btf: bool,
    cgroups: Cgroups,
}

/// The directories that foreread uses.
#[derive(Debug, Serialize)]
struct Directories {
    state: PathBuf,
    runtime: PathBuf,
    store: PathBuf,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Document {
    #[serde(flatten)]
    build: Build,
    kernel: Kernel,
    rights: Rights,
    /// Probes of read-ahead; empty if the kernel cannot be observed (`features` has the reason).
    signals: Vec<Signal>,
    features: Vec<Feature>,
    tools: Vec<Tool>,
    directories: Directories,
    configuration: Vec<ConfigFile>,
}

impl Document {
    fn of(context: &Context) -> Self {
        let root = &context.root;
        let release = root.read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let (signals, features) = features::look(context);
        Self {
            build: Build::this(),
            kernel: Kernel {
                release: release.trim().to_owned(),
                page_bytes: host::page_size().bytes().get(),
                btf: root.exists("/sys/kernel/btf/vmlinux"),
                cgroups: Cgroups::detect(root),
            },
            rights: Rights::detect(root),
            signals,
            features,
            tools: tools::all(),
            directories: Directories {
                state: context.dirs.state.clone(),
                runtime: context.dirs.runtime.clone(),
                store: context.store_path(),
            },
            configuration: context.configuration.clone(),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: &str| {
            let _ = writeln!(text, "{what:<16} {}", plain(value));
        };
        line("foreread", self.build.version);
        line("commit", self.build.commit);
        line("target", self.build.target);
        line("kernel probes", if self.build.kernel_probes { "built in" } else { "not built in" });
        line("kernel", &self.kernel.release);
        line("page size", &format!("{} bytes", self.kernel.page_bytes));
        line("kernel types", if self.kernel.btf { "described (BTF)" } else { "not described" });
        line("cgroups", self.kernel.cgroups.words());
        line("user", &self.rights.words());
        line("state", &self.directories.state.display().to_string());
        line("runtime", &self.directories.runtime.display().to_string());
        line("record", &self.directories.store.display().to_string());
        for file in &self.configuration {
            let state = match (&file.problem, file.read) {
                (Some(problem), _) => problem.clone(),
                (None, true) => format!("{} (read)", file.path.display()),
                (None, false) => format!("{} (not there)", file.path.display()),
            };
            let _ = writeln!(text, "{:<16} {}", "configuration", plain(&state));
        }
        self.add_signals(&mut text);
        self.add_features(&mut text);
        self.add_tools(&mut text);
        text
    }

    fn add_signals(&self, text: &mut String) {
        if self.signals.is_empty() {
            return;
        }
        text.push_str("\nSignals of read-ahead:\n");
        for signal in &self.signals {
            let by = match signal.rung {
                Rung::TpBtf => "tracepoint".to_owned(),
                Rung::Fentry => "function entry".to_owned(),
                Rung::Kprobe => "kprobe".to_owned(),
                Rung::Missing => format!("missing: {}", signal.refused.join("; ")),
            };
            let _ = writeln!(text, "  {:<14} {}", signal.name, plain(&by));
        }
    }

    fn add_features(&self, text: &mut String) {
        text.push_str("\nWhat works here:\n");
        for feature in self.features.iter().filter(|feature| feature.works) {
            let note = feature.reason.as_deref().map(|why| format!(" ({})", plain(why)));
            let _ = writeln!(text, "  {}{}", feature.title, note.unwrap_or_default());
        }
        let mut lacking = self.features.iter().filter(|feature| !feature.works).peekable();
        if lacking.peek().is_none() {
            return;
        }
        text.push_str("\nWhat does not work here:\n");
        for feature in lacking {
            let why = feature.reason.as_deref().unwrap_or("reason unknown");
            let _ = writeln!(text, "  {}: {}", feature.title, plain(why));
        }
    }

    fn add_tools(&self, text: &mut String) {
        text.push_str("\nExternal programs:\n");
        for tool in &self.tools {
            let place = match &tool.path {
                Some(path) => plain(&path.display().to_string()),
                None => format!("not found ({})", tool.used_for),
            };
            let _ = writeln!(text, "  {:<14} {place}", tool.name);
        }
    }
}

impl InfoArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let document = Document::of(context);
        if self.json {
            output::print_versioned(&document)?;
        } else {
            output::print(&document.text())?;
        }
        Ok(Exit::Fine)
    }
}
