//! Configuration directories in which a file masks files of the same name in later directories, as
//! for udev, tmpfiles and sysctl.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Root;

/// Returns the files with this ending in these directories, sorted by name; the first directory has
/// precedence. A link to `/dev/null` masks a file.
pub(super) fn drop_ins(root: &Root, folders: &[&str], ending: &str) -> Vec<PathBuf> {
    let mut chosen: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in folders {
        for name in root.names(folder) {
            if name.ends_with(ending) {
                chosen.entry(name.clone()).or_insert_with(|| Path::new(folder).join(&name));
            }
        }
    }
    let masked = |path: &PathBuf| {
        fs::read_link(root.path(path)).is_ok_and(|target| target == Path::new("/dev/null"))
    };
    chosen.into_values().filter(|path| !masked(path)).collect()
}

/// The name of the read-ahead file.
pub(super) const READ_AHEAD: &str = "read_ahead_kb";

/// Returns whether a text may concern read-ahead. Most files do not, and need no parsing.
pub(super) fn concerns_read_ahead(text: &str) -> bool {
    ["read_ahead", "setra", "readahead", "nfsrahead"].iter().any(|word| text.contains(word))
}

/// Returns whether a text may concern the kernel file with this name.
pub(super) fn concerns(text: &str, file: &str) -> bool {
    if file == READ_AHEAD { concerns_read_ahead(text) } else { text.contains(file) }
}

/// Returns the text of a file if it may concern kernel files with this name.
pub(super) fn text_about(root: &Root, file: &Path, sought: &str) -> Option<String> {
    root.lines_of(file).filter(|text| concerns(text, sought))
}

/// Returns the comment right above `lines[at]` or at its end, where administrators note units.
pub(super) fn comment_above(lines: &[&str], at: usize) -> Option<String> {
    let above = lines[..at]
        .iter()
        .rev()
        .map(|line| line.trim())
        .take_while(|line| line.starts_with(['#', ';']))
        .map(|line| line.trim_start_matches(['#', ';', ' ']))
        .take(4);
    let mut words: Vec<&str> = above.collect();
    words.reverse();
    if let Some((_, trailing)) = lines.get(at).and_then(|line| line.split_once(" #")) {
        words.push(trailing.trim());
    }
    let text = words.join(" ");
    (!text.is_empty()).then_some(text)
}
