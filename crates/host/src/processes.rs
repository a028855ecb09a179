//! Processes and their large mapped files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use units::Bytes;

use crate::{DevNo, HostError, Root};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    pub pid: u32,
    /// The kernel's name of the process (`comm`), at most 15 bytes.
    pub name: String,
    /// File name of the program, from the first argument; `None` if that is empty.
    pub program: Option<String>,
    pub arguments: Vec<String>,
}

/// A large file mapping that is not code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMapping {
    pub pid: u32,
    pub name: String,
    /// Device of the file's file system.
    pub device: DevNo,
    pub size: Bytes,
    pub path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Device of the file's file system.
    pub device: DevNo,
    pub size: Bytes,
    pub executable: bool,
    pub path: PathBuf,
}

const MIN_MAPPING: Bytes = Bytes::from_mib(16);
/// Maximum number of examined processes.
const MAX_PROCESSES: usize = 8192;

/// Returns all visible processes. Kernel threads are skipped: they have no arguments.
pub fn processes(root: &Root) -> Vec<ProcessInfo> {
    numbers(root).filter_map(|pid| process(root, pid)).collect()
}

fn numbers(root: &Root) -> impl Iterator<Item = u32> {
    let names = root.names("/proc").into_iter();
    names.filter_map(|name| name.parse().ok()).take(MAX_PROCESSES)
}

fn process(root: &Root, pid: u32) -> Option<ProcessInfo> {
    let line = root.read(format!("/proc/{pid}/cmdline")).ok().filter(|line| !line.is_empty())?;
    let mut words = line.split('\0').map(str::to_owned);
    let first = words.next()?;
    // Programs that show their state in this argument add spaces or colons: `postgres: writer`.
    let program = first.split([' ', ':']).next().unwrap_or("");
    let program = program.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned);
    let name = root.read(format!("/proc/{pid}/comm")).ok()?;
    Some(ProcessInfo { pid, name, program, arguments: words.collect() })
}

/// Returns the large files that processes have mapped as data, and whether some processes could not
/// be examined. Programs and libraries are skipped with all their mappings, executable or not.
pub fn large_mappings(root: &Root) -> (Vec<ProcessMapping>, bool) {
    let mut found = Vec::new();
    let mut hidden = false;
    for pid in numbers(root) {
        let maps = match root.read(format!("/proc/{pid}/maps")) {
            Ok(maps) => parse_maps(&maps),
            Err(HostError::Read { source, .. }) => {
                hidden |= source.kind() == std::io::ErrorKind::PermissionDenied;
                continue;
            }
            Err(_) => continue,
        };
        let code: BTreeSet<&Path> =
            maps.iter().filter(|mapped| mapped.executable).map(|m| m.path.as_path()).collect();
        let large = |mapped: &&MappedFile| {
            mapped.size >= MIN_MAPPING && !code.contains(mapped.path.as_path())
        };
        let mut large = maps.iter().filter(large).peekable();
        if large.peek().is_some() {
            let name = root.read(format!("/proc/{pid}/comm")).unwrap_or_default();
            found.extend(large.map(|mapped| ProcessMapping {
                pid,
                name: name.clone(),
                device: mapped.device,
                size: mapped.size,
                path: mapped.path.clone(),
            }));
        }
    }
    (found, hidden)
}

/// Parses `/proc/PID/maps` (proc_pid_maps(5)) and returns the file mappings.
pub fn parse_maps(text: &str) -> Vec<MappedFile> {
    text.lines().filter_map(parse_mapping).collect()
}

fn parse_mapping(line: &str) -> Option<MappedFile> {
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    let size = address(to)?.checked_sub(address(from)?)?;
    let rights = fields.next()?;
    let _offset = fields.next()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let device = DevNo { major: number(major)?, minor: number(minor)? };
    let inode: u64 = fields.next()?.parse().ok()?;
    let path = fields.next()?.trim();
    let executable = rights.contains('x');
    (inode != 0 && path.starts_with('/')).then(|| MappedFile {
        device,
        size: Bytes::new(size),
        executable,
        path: PathBuf::from(path),
    })
}

/// Returns the names of installed packages of dpkg, apk and pacman. RPM's database is omitted: only
/// RPM's library can read it.
pub fn installed_packages(root: &Root) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(text) = root.lines_of("/var/lib/dpkg/status") {
        found.extend(dpkg_packages(&text));
    }
    if let Some(text) = root.lines_of("/lib/apk/db/installed") {
        let names = text.lines().filter_map(|line| line.strip_prefix("P:"));
        found.extend(names.map(str::to_owned));
    }
    for entry in root.names("/var/lib/pacman/local") {
        // NAME-VERSION-RELEASE
        let name = entry.rsplitn(3, '-').nth(2);
        found.extend(name.map(str::to_owned));
    }
    found
}

/// Returns the installed packages in dpkg's status file.
pub fn dpkg_packages(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(package) = line.strip_prefix("Package: ") {
            name = Some(package.trim());
        } else if line.starts_with("Status: ") && line.ends_with(" installed") {
            found.extend(name.take().map(str::to_owned));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mappings_of_files_are_told_from_others() {
        let text = "\
7f0000000000-7f0001000000 r--s 00000000 08:01 131 /srv/my data.mdb
7f0002000000-7f0002001000 r-xp 00000000 08:01 132 /usr/bin/x
7f0003000000-7f0004000000 rw-p 00000000 00:00 0 [heap]
7f0005000000-7f0006000000 rw-p 00000000 00:00 0
nonsense
";
        let maps = parse_maps(text);
        assert_eq!(maps.len(), 2);
        assert_eq!(maps[0].size, Bytes::from_mib(16));
        assert_eq!(maps[0].path, PathBuf::from("/srv/my data.mdb"));
        assert!(!maps[0].executable && maps[1].executable);
    }

    #[test]
    fn packages_that_were_removed_are_not_installed() {
        let text = "Package: a\nStatus: install ok installed\n\nPackage: b\n\
                    Status: deinstall ok config-files\n";
        assert_eq!(dpkg_packages(text), ["a"]);
    }

    #[test]
    fn this_process_is_among_those_that_run() {
        let all = processes(&Root::system());
        assert!(all.iter().any(|process| process.pid == std::process::id()));
        let (_, _hidden) = large_mappings(&Root::system());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([0-9a-f]{1,17}|[-: /]|\\PC|\n){0,60}") {
            parse_maps(&text);
            dpkg_packages(&text);
        }
    }
}
