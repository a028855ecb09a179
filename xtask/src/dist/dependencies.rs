//! The crates in the binary, with their licences.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// Licences that permit shipping a binary. MPL-2.0 requires access to the library's source, which
/// the vendored source archive of the same release contains.
const LICENCES_ALLOWED: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "MPL-2.0",
    "CC0-1.0",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
];

pub fn read(root: &Path) -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    let platform = "--filter-platform=x86_64-unknown-linux-musl".to_owned();
    command.manifest_path(root.join("Cargo.toml")).other_options(["--locked".into(), platform]);
    command.exec().context("reading cargo metadata")
}

/// Returns the packages in the binary, sorted by name, without build and test dependencies.
pub fn linked(metadata: &Metadata) -> Result<Vec<&Package>> {
    let resolve = metadata.resolve.as_ref().context("cargo metadata resolves nothing")?;
    let top = metadata.packages.iter().find(|package| package.name.as_str() == "foreread");
    let mut left = vec![&top.context("no package foreread")?.id];
    let mut found: BTreeSet<&PackageId> = BTreeSet::new();
    while let Some(id) = left.pop() {
        if !found.insert(id) {
            continue;
        }
        let node = resolve.nodes.iter().find(|node| node.id == *id).context("no node")?;
        for used in &node.deps {
            if used.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal) {
                left.push(&used.pkg);
            }
        }
    }
    let mut packages: Vec<&Package> =
        metadata.packages.iter().filter(|package| found.contains(&package.id)).collect();
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(packages)
}

/// Returns the list of licences with their texts.
///
/// # Errors
///
/// If a crate has no licence, or none that is allowed.
pub fn licences(metadata: &Metadata) -> Result<String> {
    let mut text = "Libraries in the binary of foreread, and their licences.\n".to_owned();
    for package in linked(metadata)?.iter().filter(|package| package.source.is_some()) {
        let licence = package.license.as_deref();
        let licence = licence.with_context(|| format!("{} names no licence", package.name))?;
        ensure!(is_allowed(licence), "{}: the licence {licence} is not allowed", package.name);
        let rule = "=".repeat(72);
        let _ = writeln!(text, "\n{rule}\n{} {}: {licence}", package.name, package.version);
        let directory = package.manifest_path.parent().context("a manifest without directory")?;
        for file in texts(directory.as_std_path())? {
            let _ = writeln!(text, "\n{}", fs::read_to_string(&file)?.trim_end());
        }
    }
    Ok(text)
}

/// Returns whether one choice in each part of the expression is allowed.
fn is_allowed(expression: &str) -> bool {
    let choices = expression.replace('/', " OR ");
    let choices = choices.replace(['(', ')'], "");
    let mut each = choices.split(" AND ");
    each.all(|part| part.split(" OR ").any(|one| LICENCES_ALLOWED.contains(&one.trim())))
}

fn texts(directory: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_text = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|start| name.starts_with(start));
        if is_text && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_choice_of_each_part_is_needed() {
        assert!(is_allowed("MIT OR Apache-2.0"));
        assert!(is_allowed("MIT/Apache-2.0"));
        assert!(is_allowed("GPL-3.0 OR MIT"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_allowed("GPL-3.0"));
        assert!(!is_allowed("MIT AND GPL-3.0"));
    }

    #[test]
    fn every_library_in_the_binary_may_be_shipped() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a repository");
        let metadata = read(root).expect("metadata");
        let names: Vec<&str> =
            linked(&metadata).expect("packages").iter().map(|p| p.name.as_str()).collect();
        assert!(names.contains(&"mimalloc"), "the allocator of static builds: {names:?}");
        assert!(!names.contains(&"proptest"), "only for tests");
        licences(&metadata).expect("licences that are allowed");
    }
}
