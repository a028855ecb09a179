//! The version in the manifests and in the changelog.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Release;
use crate::command::{cargo, output, run};

const UNRELEASED: &str = "## Unreleased";

/// Checks that the repository matches the release. A snapshot only needs the version.
pub fn check(release: &Release, snapshot: bool) -> Result<()> {
    let manifest = fs::read_to_string(release.root.join("Cargo.toml"))?;
    let found = manifest_version(&manifest).context("Cargo.toml has no version")?;
    ensure!(
        found == release.version,
        "Cargo.toml has version {found}, not {}: run dist --cut {}",
        release.version,
        release.version
    );
    if snapshot {
        return Ok(());
    }
    let changelog = fs::read_to_string(release.root.join("CHANGELOG.md"))?;
    ensure!(
        has_section(&changelog, &release.version),
        "CHANGELOG.md has no section '## {}': run dist --cut {}",
        release.version,
        release.version
    );
    let changed = output(release.command("git").args(["status", "--porcelain"]))?;
    ensure!(changed.is_empty(), "there are changes that are not committed:\n{changed}");
    Ok(())
}

/// Files with the version, and the number of lines that consist of it.
const MANIFESTS: [(&str, usize); 4] = [
    ("Cargo.toml", 1),
    ("python/Cargo.toml", 1),
    ("packaging/ansible/galaxy.yml", 1),
    ("packaging/helm/foreread/Chart.yaml", 2),
];

/// Sets the version, and gives the unreleased section of the changelog this version and a date.
pub fn cut(root: &Path, version: &str) -> Result<()> {
    let changelog = root.join("CHANGELOG.md");
    let date = output(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let mut texts =
        vec![(changelog.clone(), dated(&fs::read_to_string(changelog)?, version, &date)?)];
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let old = manifest_version(&text).context("Cargo.toml has no version")?;
    for (manifest, lines) in MANIFESTS {
        let path = root.join(manifest);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {manifest}"))?;
        let (text, found) = with_version(&text, old, version);
        ensure!(found == lines, "{manifest} has version {old} in {found} lines, not {lines}");
        texts.push((path, text));
    }
    texts.into_iter().try_for_each(|(path, text)| fs::write(path, text))?;
    for workspace in [root.to_owned(), root.join("python")] {
        let update = ["update", "--workspace", "--offline"];
        run(Command::new(cargo()).current_dir(workspace).args(update))?;
    }
    println!("now commit this as 'Release {version}', tag it v{version}, and run dist {version}");
    Ok(())
}

/// Returns a manifest with another version, and the number of lines that had the old one.
fn with_version(manifest: &str, old: &str, new: &str) -> (String, usize) {
    let forms = [
        format!("version = \"{old}\""),
        format!("version: {old}"),
        format!("appVersion: \"{old}\""),
    ];
    let mut found = 0;
    let lines = manifest.lines().map(|line| {
        let has_it = forms.iter().any(|form| form == line);
        found += usize::from(has_it);
        if has_it { line.replace(old, new) + "\n" } else { format!("{line}\n") }
    });
    (lines.collect(), found)
}

/// Returns the version that the workspace's manifest sets for all crates.
pub fn manifest_version(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("version = \""))?;
    line.split('"').nth(1)
}

fn has_section(changelog: &str, version: &str) -> bool {
    let heading = format!("## {version} ");
    changelog.lines().any(|line| line.starts_with(&heading))
}

fn dated(changelog: &str, version: &str, date: &str) -> Result<String> {
    ensure!(!has_section(changelog, version), "CHANGELOG.md has a section '## {version}' already");
    let (before, after) = changelog
        .split_once(&format!("{UNRELEASED}\n"))
        .with_context(|| format!("CHANGELOG.md has no section '{UNRELEASED}'"))?;
    let unreleased = after.split("\n## ").next().unwrap_or_default();
    ensure!(!unreleased.trim().is_empty(), "CHANGELOG.md has nothing unreleased");
    Ok(format!("{before}{UNRELEASED}\n\n## {version} ({date})\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changes\n\n## Unreleased\n\n- one\n\n## 0.1.0 (2026-01-02)\n\n- x\n";

    #[test]
    fn a_version_is_set_where_it_stands_alone() {
        let chart = "name: x\nversion: 0.1.0\nappVersion: \"0.1.0\"\nneeds: 0.1.0\n";
        let set = "name: x\nversion: 0.2.0\nappVersion: \"0.2.0\"\nneeds: 0.1.0\n";
        assert_eq!(with_version(chart, "0.1.0", "0.2.0"), (set.to_owned(), 2));
        let cargo = "[package]\nversion = \"0.1.0\"\nrust-version = \"1.89\"\n";
        assert_eq!(with_version(cargo, "0.1.0", "0.2.0"), (cargo.replace("0.1.0", "0.2.0"), 1));
        assert_eq!(with_version(cargo, "0.3.0", "0.4.0"), (cargo.to_owned(), 0));
    }

    #[test]
    fn every_manifest_has_the_version_of_the_workspace() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let version = manifest_version(&text).unwrap();
        for (manifest, lines) in MANIFESTS {
            let text = fs::read_to_string(root.join(manifest)).unwrap();
            assert_eq!(with_version(&text, version, "x").1, lines, "{manifest}");
        }
    }

    #[test]
    fn a_cut_dates_what_is_unreleased() {
        let cut = dated(CHANGELOG, "0.2.0", "2026-11-23").expect("something unreleased");
        assert!(cut.contains("## Unreleased\n\n## 0.2.0 (2026-11-23)\n\n- one\n"), "{cut}");
        assert!(has_section(&cut, "0.2.0"));
        assert!(dated(&cut, "0.2.0", "2026-11-23").is_err(), "twice");
        assert!(dated(&cut, "0.3.0", "2026-11-23").is_err(), "nothing is unreleased");
    }

    #[test]
    fn a_version_is_found_only_as_a_whole() {
        assert!(has_section(CHANGELOG, "0.1.0"));
        assert!(!has_section(CHANGELOG, "0.1"));
        assert_eq!(manifest_version("[a]\nversion = \"1.2.3\"\n"), Some("1.2.3"));
    }
}
