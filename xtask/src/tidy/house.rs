//! A room uses only rooms below it.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

/// The house from the cellar up; rooms on one floor do not see each other.
const FLOORS: &[&[&str]] = &[
    &["units", "spelling", "fuzz"],
    &["sys"],
    &["policy", "model", "workload", "stats", "results"],
    &["host"],
    &["tunables"],
    &["observe"],
    &["actuate"],
    &["sim", "bench", "vdisk", "trace", "diagnose", "postgres"],
    &["study", "reproduce"],
    &["auto", "experiment"],
    &["report"],
    &["serve"],
    // Only its tests see this one.
    &["browser"],
    &["foreread"],
];

/// What stands beside the house: it may use anything and nothing in the house uses it.
const OUTSIDE: &[&str] = &["xtask"];

/// Every arrow between rooms that does not run downward, and every room without a floor.
pub fn complaints(root: &Path) -> Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .context("reading cargo metadata")?;
    let arrows: Vec<(String, Vec<String>)> = metadata
        .workspace_packages()
        .iter()
        .map(|package| {
            let used = package.dependencies.iter().filter(|used| used.path.is_some());
            (room(&package.name).to_owned(), used.map(|used| room(&used.name).to_owned()).collect())
        })
        .collect();
    Ok(check(&arrows))
}

/// The room that a package is: `foreread-units` is `units`.
fn room(package: &str) -> &str {
    package.strip_prefix("foreread-").unwrap_or(package)
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn check(arrows: &[(String, Vec<String>)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (from, used) in arrows.iter().filter(|(from, _)| !OUTSIDE.contains(&from.as_str())) {
        let Some(above) = floor(from) else {
            complaints.push(format!("{from}: give this room a floor in xtask/src/tidy/house.rs"));
            continue;
        };
        for to in used {
            match floor(to) {
                Some(below) if below < above => {}
                _ => complaints.push(format!("{from} uses {to}, which is not below it")),
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(from: &str, to: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![(from.to_owned(), to.iter().map(|to| (*to).to_owned()).collect())]
    }

    #[test]
    fn downward_is_fine_and_every_other_direction_is_not() {
        assert_eq!(check(&arrows("study", &["bench", "units"])), Vec::<String>::new());
        assert_eq!(check(&arrows("model", &["workload"])).len(), 1, "the same floor");
        assert_eq!(check(&arrows("units", &["sys"])).len(), 1, "upward");
        assert_eq!(check(&arrows("host", &["xtask"])).len(), 1, "out of the house");
        assert_eq!(check(&arrows("attic", &[])).len(), 1, "no floor");
    }
}
