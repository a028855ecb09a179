//! Checks that a crate uses only crates in lower layers.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

/// Crates from the top layer to the bottom; crates in one layer do not use each other.
const LAYERS: &[&[&str]] = &[
    &["foreread"],
    &["fleet"],
    &["report"],
    &["daemon"],
    &["experiment"],
    &["pg"],
    &["study", "reproduce"],
    &["bench", "vdisk", "doctor", "batch", "profile"],
    &["control"],
    &["sim"],
    &["actuate"],
    &["observe"],
    &["tunables"],
    &["trace"],
    &["host"],
    &["policy", "model", "workload", "stats"],
    &["sys"],
    &["units"],
    &["testkit"],
];

/// Crates above the layers: they may use all others, and no other crate may use them.
const OUTSIDE: &[&str] = &["xtask"];

/// First line of the documented table of layers.
const TABLE_HEAD: &str = "| crate |";

/// Returns every use of a crate that is not in a lower layer, and every crate without a layer.
pub fn complaints(root: &Path) -> Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .context("reading cargo metadata")?;
    let uses: Vec<(String, Vec<String>)> = metadata
        .workspace_packages()
        .iter()
        .map(|package| {
            let used = package.dependencies.iter().filter(|used| used.path.is_some());
            let used = used.map(|used| short_name(&used.name).to_owned());
            (short_name(&package.name).to_owned(), used.collect())
        })
        .collect();
    Ok(check(&uses))
}

/// Returns `units` for the package `foreread-units`.
fn short_name(package: &str) -> &str {
    package.strip_prefix("foreread-").unwrap_or(package)
}

/// Returns the layer of a crate; 0 is the top.
fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

fn check(uses: &[(String, Vec<String>)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (user, used) in uses.iter().filter(|(user, _)| !OUTSIDE.contains(&user.as_str())) {
        let Some(above) = layer(user) else {
            complaints
                .push(format!("{user}: add this crate to a layer in xtask/src/tidy/layers.rs"));
            continue;
        };
        for name in used {
            if layer(name).is_none_or(|below| below <= above) {
                complaints.push(format!("{user} uses {name}, which is not in a lower layer"));
            }
        }
    }
    complaints
}

/// Returns the differences between the table of crates in docs/architecture.md and the layers: the
/// table must have every crate once, upper layers first.
pub fn table_complaints(architecture: &str) -> Vec<String> {
    let rows = architecture.lines().skip_while(|line| !line.starts_with(TABLE_HEAD)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let names: Vec<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let mut complaints = Vec::new();
    for name in LAYERS.iter().copied().flatten() {
        let count = names.iter().filter(|shown| *shown == name).count();
        if count != 1 {
            complaints.push(format!("docs/architecture.md: {count} rows for {name}, not one"));
        }
    }
    for pair in names.windows(2) {
        let [lower, upper] = [pair[0], pair[1]];
        if layer(upper).is_some_and(|above| layer(lower) > Some(above)) {
            complaints.push(format!("docs/architecture.md: {upper} is in a layer above {lower}"));
        }
    }
    let unknown = names.iter().filter(|name| layer(name).is_none());
    complaints
        .extend(unknown.map(|name| format!("docs/architecture.md: no crate is named {name}")));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(user: &str, used: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![(user.to_owned(), used.iter().map(|name| (*name).to_owned()).collect())]
    }

    #[test]
    fn downward_is_fine_and_every_other_direction_is_not() {
        assert_eq!(check(&uses("study", &["bench", "units"])), Vec::<String>::new());
        assert_eq!(check(&uses("model", &["workload"])).len(), 1, "the same layer");
        assert_eq!(check(&uses("units", &["sys"])).len(), 1, "upward");
        assert_eq!(check(&uses("host", &["xtask"])).len(), 1, "outside");
        assert_eq!(check(&uses("attic", &[])).len(), 1, "no layer");
    }

    #[test]
    fn the_table_has_every_crate_once_and_from_top_to_bottom() {
        let row = |names: &[&str]| format!("| `{}` | text |\n", names.join("`, `"));
        let rows: String = LAYERS.iter().map(|names| row(names)).collect();
        let table =
            |rows: &str| format!("text\n\n{TABLE_HEAD} what |\n|---|---|\n{rows}\nend `x`\n");
        assert_eq!(table_complaints(&table(&rows)), Vec::<String>::new());
        let twice = table(&(rows.clone() + &row(&["units"])));
        assert_eq!(table_complaints(&twice).len(), 2, "twice, and below the last");
        assert_eq!(table_complaints(&table(&rows.replace("`sys`", "`os`"))).len(), 2);
    }
}
