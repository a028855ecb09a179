//! `foreread verify`.

use std::path::{Path, PathBuf};

use bench::{ReadProbe, probe};
use clap::Args;
use host::{Storage, resolve};
use serde_json::json;
use tunables::{AppliedSettings, DriftState, TunableScope, VerifiedValue};
use units::Bytes;

use super::Context;
use super::persist::PersistedCheck;
use crate::exit::Exit;
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread verify                 all applied and persisted settings
  foreread verify /srv/data       this storage, with a test read that shows the real windows
  foreread verify --json

The exit code is 3 if a setting differs from the applied value, or if the kernel uses other windows;
1 if a journal is damaged, so that the applied settings are unknown.";

/// Check that applied settings still hold and the kernel uses them
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct VerifyArgs {
    /// Only this storage: a path, mount point, device or MAJ:MIN
    target: Option<PathBuf>,
    /// Compare values only. Otherwise, if a TARGET is given, verify also reads a few MiB of cold
    /// data to measure which windows and requests the kernel really uses
    #[arg(long)]
    no_probe: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
}

/// The result of a probe read.
struct Probed {
    path: PathBuf,
    wanted: Bytes,
    result: Result<ReadProbe, String>,
}

impl Probed {
    fn agrees(&self) -> Option<bool> {
        self.result.as_ref().ok()?.agrees_with(self.wanted)
    }
}

impl VerifyArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let storage = match &self.target {
            Some(path) => Some(resolve(&context.root, path)?),
            None => None,
        };
        let (applied, refused) = tunables::remembered(&context.dirs)?;
        let unreadable: Vec<String> = refused.iter().map(ToString::to_string).collect();
        for error in refused {
            output::error(&error.into(), context.global.quiet);
        }
        let applied: Vec<AppliedSettings> = match &storage {
            Some(storage) => {
                let of = |one: &AppliedSettings| one.header.site.bdi == storage.bdi;
                applied.into_iter().filter(of).collect()
            }
            None => applied,
        };
        let verified = tunables::verify(&context.root, &applied)?;
        let persisted = super::persist::verify(context, storage.as_ref())?;
        let probed = storage.filter(|_| !self.no_probe).map(|storage| {
            let probed = probed(context, &storage, &verified);
            probed.map(|probed| probed.inspect_failure(context))
        });
        let probed = probed.transpose()?;
        if self.json {
            self.json(&verified, &persisted, probed.as_ref(), &unreadable)?;
        } else {
            output::print(&text(&verified, &persisted, probed.as_ref()))?;
        }
        let nothing = verified.is_empty() && persisted.is_empty() && probed.is_none();
        if nothing && unreadable.is_empty() {
            context.note("no applied or persisted settings");
        }
        let drifted = verified.iter().any(|one| one.state != DriftState::Holds)
            || persisted.iter().any(|one| !one.is_good())
            || probed.as_ref().and_then(Probed::agrees) == Some(false);
        Ok(match (unreadable.is_empty(), drifted) {
            (false, _) => Exit::Failed,
            (true, true) => Exit::Drift,
            (true, false) => Exit::Fine,
        })
    }

    fn json(
        &self,
        verified: &[VerifiedValue],
        persisted: &[PersistedCheck],
        probed: Option<&Probed>,
        unreadable: &[String],
    ) -> anyhow::Result<()> {
        output::print_versioned(&json!({
            "applied": verified.iter().map(verified_json).collect::<Vec<_>>(),
            "persisted": persisted.iter().map(PersistedCheck::json).collect::<Vec<_>>(),
            "unreadable_journals": unreadable,
            "probe": probed.map(|probed| json!({
                "path": probed.path,
                "wanted_kib": probed.wanted.to_kib_floor(),
                "agrees": probed.agrees(),
                "window_kib": probed.result.as_ref().ok()
                    .and_then(|probe| probe.window.map(Bytes::to_kib_floor)),
                "read_bytes": probed.result.as_ref().ok().map(|probe| probe.asked.get()),
                "device_requests": probed.result.as_ref().ok().map(|probe| probe.device_requests),
                "mean_request_kib": probed.result.as_ref().ok()
                    .map(|probe| probe.mean_request().to_kib_floor()),
                "error": probed.result.as_ref().err(),
            })),
        }))
    }
}

impl Probed {
    fn inspect_failure(self, context: &Context) -> Self {
        if let Err(error) = &self.result {
            context.note(&format!("no probe read: {error}"));
        }
        self
    }
}

/// Reads from the target and compares the windows with the applied value, or else the present one.
fn probed(
    context: &Context,
    storage: &Storage,
    verified: &[VerifiedValue],
) -> anyhow::Result<Probed> {
    let read_ahead = tunables::find("read_ahead")?;
    let site = TunableScope::from(storage);
    let applied = verified
        .iter()
        .find(|one| one.tunable.name() == read_ahead.name() && one.state != DriftState::Gone)
        .and_then(|one| one.wanted.bytes());
    let present = tunables::read(&context.root, read_ahead, &site)?.bytes().unwrap_or_default();
    let wanted = applied.unwrap_or(present);
    let result = probe(&context.root, storage, wanted.max(present)).map_err(|error| {
        let error = anyhow::Error::new(error);
        format!("{error:#}")
    });
    Ok(Probed { path: storage.path.clone(), wanted, result })
}

fn text(
    verified: &[VerifiedValue],
    persisted: &[PersistedCheck],
    probed: Option<&Probed>,
) -> String {
    let mut text = String::new();
    for one in verified {
        text.push_str(&format!("{}\n", line(one)));
    }
    for check in persisted {
        text.push_str(&format!("{}\n", check.line()));
    }
    if let Some(Probed { path, wanted, result: Ok(probe) }) = probed {
        let window = match probe.window {
            Some(window) => format!("windows of {window}"),
            None => "no steady window".to_owned(),
        };
        let word = match probe.agrees_with(*wanted) {
            Some(true) => "holds",
            Some(false) => "DRIFT",
            None => "unclear",
        };
        text.push_str(&format!(
            "{word}: {}: a probe read of {} saw {window} ({wanted} wanted), {} requests of {} on \
             average\n",
            report::clean::plain(&path.display().to_string()),
            probe.asked,
            probe.device_requests,
            probe.mean_request()
        ));
    }
    text
}

fn line(one: &VerifiedValue) -> String {
    let VerifiedValue { site, tunable, file, wanted, state, .. } = one;
    let (name, bdi) = (tunable.name(), &site.bdi);
    let place = short(file);
    match state {
        DriftState::Holds => format!("holds: {name} is {wanted} ({bdi}, {place})"),
        DriftState::Drifted { present } => {
            format!("DRIFT: {name} is {present}, and {wanted} was applied ({bdi}, {place})")
        }
        DriftState::Gone => {
            format!("gone: {name} was set to {wanted} ({bdi}), but the device no longer exists")
        }
    }
}

fn short(file: &Path) -> String {
    report::clean::plain(&file.display().to_string())
}

fn verified_json(one: &VerifiedValue) -> serde_json::Value {
    let (state, present) = match &one.state {
        DriftState::Holds => ("holds", Some(one.tunable.to_json(&one.wanted))),
        DriftState::Drifted { present } => ("drifted", Some(one.tunable.to_json(present))),
        DriftState::Gone => ("gone", None),
    };
    json!({
        "bdi": one.site.bdi,
        "tunable": one.tunable.name(),
        "unit_key": one.tunable.json_key(),
        "file": one.file,
        "wanted": one.tunable.to_json(&one.wanted),
        "present": present,
        "state": state,
        "journal": one.journal.file_stem().map(|stem| stem.to_string_lossy()),
    })
}
