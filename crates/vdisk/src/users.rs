//! Finds users of a disk.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the first of these directories or devices that a process has open, mapped or as working
/// directory. Compares only the names of open files, because accessing the files could block on a
/// hanging disk.
pub(crate) fn used(places: &[PathBuf]) -> Option<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    processes
        .filter(|process| process.file_name().to_str().is_some_and(numbered))
        .flat_map(|process| open_in(&process.path()))
        .find_map(|open| places.iter().find(|place| open.starts_with(place)).cloned())
}

/// Returns the names of all files that a process has open.
fn open_in(process: &Path) -> Vec<PathBuf> {
    let links = |dir: PathBuf| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect::<Vec<_>>()
    };
    let mut open = links(process.join("fd"));
    open.extend(links(process.join("map_files")));
    let single = ["cwd", "root", "exe"].iter();
    open.extend(single.filter_map(|name| fs::read_link(process.join(name)).ok()));
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_is_in_use_until_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().canonicalize().unwrap();
        let places = [PathBuf::from("/no/such/place"), place.clone()];
        assert_eq!(used(&places), None);
        let file = fs::File::create(place.join("file")).unwrap();
        assert_eq!(used(&places), Some(place));
        drop(file);
        assert_eq!(used(&places), None);
    }
}
