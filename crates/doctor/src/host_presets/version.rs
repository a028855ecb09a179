//! Detects the versions of the software on this host.

use std::collections::BTreeSet;
use std::path::Path;

use host::ProcessInfo;

use crate::HostSnapshot;
use crate::presets::Group;

/// Returns the major versions of a group's software: those that run or, if unknown, those
/// installed. Empty if unknown.
pub(super) fn installed(
    snapshot: &HostSnapshot,
    group: &Group,
    processes: &[ProcessInfo],
    packages: &[String],
) -> Vec<u32> {
    if group.versions.is_empty() && group.version_files.is_empty() {
        return Vec::new();
    }
    let running: BTreeSet<u32> = processes
        .iter()
        .filter(|process| runs(process, group))
        .flat_map(|process| &process.arguments)
        .filter_map(|argument| in_path(argument, &group.versions))
        .collect();
    if !running.is_empty() {
        return Vec::from_iter(running);
    }
    let mut found: BTreeSet<u32> =
        group.versions.iter().flat_map(|pattern| in_folder(snapshot, pattern)).collect();
    let files = group.version_files.iter().filter_map(|file| snapshot.root.read(file).ok());
    found.extend(files.filter_map(|text| major(&text)));
    found.extend(packages.iter().filter_map(|package| in_package(package, group)));
    Vec::from_iter(found)
}

/// Returns whether a process belongs to a group.
pub(super) fn runs(process: &ProcessInfo, group: &Group) -> bool {
    let named = |name: &str| group.processes.iter().any(|wanted| wanted == name);
    // The kernel truncates process names to fifteen bytes, and Java programs are named java: their
    // main class identifies them.
    named(&process.name)
        || process.program.as_deref().is_some_and(named)
        || (process.name == "java"
            && process
                .arguments
                .iter()
                .any(|word| named(word) || word.rsplit('.').next().is_some_and(named)))
}

/// Returns the numbers at the star of a pattern, from the names in that directory: 15 if
/// `/usr/lib/postgresql/15` exists.
fn in_folder(snapshot: &HostSnapshot, pattern: &str) -> Vec<u32> {
    let Some((before, after)) = pattern.split_once('*') else { return Vec::new() };
    let (folder, start) = before.rsplit_once('/').unwrap_or(("", before));
    let names = snapshot.root.names(Path::new(if folder.is_empty() { "/" } else { folder }));
    let number = |name: &String| major(name.strip_prefix(start)?.strip_suffix(after)?);
    names.iter().filter_map(number).collect()
}

/// Returns the number at the star from a command-line path, as in `-D /var/lib/postgresql/15/main`.
fn in_path(argument: &str, patterns: &[String]) -> Option<u32> {
    let at = argument.find('/')?;
    patterns.iter().find_map(|pattern| {
        let rest = argument[at..].strip_prefix(pattern.split_once('*')?.0)?;
        major(rest.split('/').next()?)
    })
}

/// Returns the major version in a package name: 15 for postgresql-15 or postgresql15-server.
fn in_package(package: &str, group: &Group) -> Option<u32> {
    let rest = package.strip_prefix(group.name.as_str())?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let rest = rest.strip_suffix("-server").unwrap_or(rest);
    major(rest)
}

/// Returns the first number of a version.
fn major(text: &str) -> Option<u32> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.split('.').next()?.parse().ok())?
}
