//! Checks persisted settings: the files, and the values that they set.

use std::path::{Path, PathBuf};

use host::{Root, Storage, resolve};
use serde_json::json;
use tunables::TunableScope;
use tunables::persist::{Persisted, PersistedState, persisted, persisted_state};

use crate::cli::Context;

/// A persisted setting compared with its current state.
pub struct PersistedCheck {
    record: Persisted,
    state: PersistedState,
    /// Differences from the persisted values.
    drift: Vec<String>,
}

impl PersistedCheck {
    pub fn is_good(&self) -> bool {
        self.state == PersistedState::Intact && self.drift.is_empty()
    }

    pub fn line(&self) -> String {
        let path = self.record.path.display();
        let settings = &self.record.settings;
        match self.state {
            PersistedState::Edited => {
                format!("DRIFT: {path} was edited by another program or user")
            }
            PersistedState::Gone => format!("DRIFT: {path} is gone"),
            PersistedState::Intact if settings.is_empty() => format!("holds: {path}"),
            PersistedState::Intact if self.drift.is_empty() => {
                format!("holds: {settings} ({path})")
            }
            PersistedState::Intact => format!("DRIFT: {} ({path})", self.drift.join("; ")),
        }
    }

    pub fn json(&self) -> serde_json::Value {
        json!({
            "path": self.record.path,
            "owner": self.record.backend,
            "settings": self.record.settings,
            "target": self.record.target,
            "file": self.state,
            "drift": self.drift,
        })
    }
}

/// Checks the persisted settings of one storage, or of all.
pub fn verify(context: &Context, storage: Option<&Storage>) -> anyhow::Result<Vec<PersistedCheck>> {
    let mut checks = Vec::new();
    for (_, record) in persisted(&context.dirs)? {
        let of = |path: &Path| {
            let there = |storage: &Storage| {
                resolve(&context.root, path).is_ok_and(|meant| meant.path == storage.path)
            };
            storage.is_none_or(there)
        };
        if record.target.as_deref().is_some_and(|path| !of(path)) {
            continue;
        }
        let state = persisted_state(&context.root, &record);
        let drift = drift(&context.root, &record);
        checks.push(PersistedCheck { record, state, drift });
    }
    Ok(checks)
}

fn drift(root: &Root, record: &Persisted) -> Vec<String> {
    let site = match &record.target {
        None => Ok(TunableScope::machine()),
        Some(path) => resolve(root, path).map(|storage| TunableScope::with_layers(root, &storage)),
    };
    let site = match site {
        Ok(site) => site,
        Err(error) => return vec![error.to_string()],
    };
    let one = |setting: &tunables::Setting| {
        let name = setting.tunable.name();
        match tunables::read_all(root, setting.tunable, &site) {
            Err(error) => Some(error.to_string()),
            Ok(found) => found.into_iter().find(|(_, value)| *value != setting.value).map(
                |(file, value): (PathBuf, _)| {
                    format!("{name} is {value} in {}, not {}", file.display(), setting.value)
                },
            ),
        }
    };
    record.settings.iter().filter_map(one).collect()
}
