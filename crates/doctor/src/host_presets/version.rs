//! Versions of the software on this host.

use std::collections::BTreeSet;
use std::path::Path;

use host::ProcessInfo;

use crate::HostSnapshot;
use crate::presets::Group;

/// The major versions of a group's software: the running ones or, if unknown, the installed ones.
/// Empty if unknown.
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

/// Whether a process belongs to a group.
pub(super) fn runs(process: &ProcessInfo, group: &Group) -> bool {
    let named = |name: &str| group.processes.iter().any(|wanted| wanted == name);
    // The name of a process is limited to fifteen bytes, and that of Java programs is java: the
    // main class identifies them.
    named(&process.name)
        || process.program.as_deref().is_some_and(named)
        || (process.name == "java"
            && process
                .arguments
                .iter()
                .any(|word| named(word) || word.rsplit('.').next().is_some_and(named)))
}

/// Returns `15` from `/usr/lib/postgresql/15`: the part at the star of a pattern, if it is a
/// number.
fn in_folder(snapshot: &HostSnapshot, pattern: &str) -> Vec<u32> {
    let Some((before, after)) = pattern.split_once('*') else { return Vec::new() };
    let (folder, start) = before.rsplit_once('/').unwrap_or(("", before));
    let names = snapshot.root.names(Path::new(if folder.is_empty() { "/" } else { folder }));
    let number = |name: &String| major(name.strip_prefix(start)?.strip_suffix(after)?);
    names.iter().filter_map(number).collect()
}

/// The same for a path on a command line, as in `-D /var/lib/postgresql/15/main`.
fn in_path(argument: &str, patterns: &[String]) -> Option<u32> {
    let at = argument.find('/')?;
    patterns.iter().find_map(|pattern| {
        let rest = argument[at..].strip_prefix(pattern.split_once('*')?.0)?;
        major(rest.split('/').next()?)
    })
}

/// Returns `15` from a package called postgresql-15 or postgresql15-server.
fn in_package(package: &str, group: &Group) -> Option<u32> {
    let rest = package.strip_prefix(group.name.as_str())?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let rest = rest.strip_suffix("-server").unwrap_or(rest);
    major(rest)
}

/// The first number of a version.
fn major(text: &str) -> Option<u32> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.split('.').next()?.parse().ok())?
}
