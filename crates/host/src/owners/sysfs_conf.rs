//! sysfs.conf of sysfsutils: `block/sda/queue/read_ahead_kb = 4096`.

use std::path::{Path, PathBuf};

use units::Kib;

use super::places::{comment_above, drop_ins, text_about};
use super::shell::{FoundWrite, Goal, Write};
use super::{Certainty, FileLocation, OwnerKind, Wanted, is_foreread};
use crate::Root;

/// Reads the lines of `/etc/sysfs.conf` and `/etc/sysfs.d` that write to files with this name.
pub(super) fn read(root: &Root, sought: &str) -> Vec<FoundWrite> {
    let mut files = vec![PathBuf::from("/etc/sysfs.conf")];
    files.extend(drop_ins(root, &["/etc/sysfs.d"], ".conf"));
    let texts = files.iter().filter_map(|file| Some((file, text_about(root, file, sought)?)));
    texts.flat_map(|(file, text)| parse(file, &text, sought)).collect()
}

pub fn parse(file: &Path, text: &str, sought: &str) -> Vec<FoundWrite> {
    let by_foreread = is_foreread(file, text);
    let lines: Vec<&str> = text.lines().collect();
    let line = |(index, line): (usize, &&str)| {
        let line = line.split('#').next().unwrap_or("").trim();
        let (attribute, value) = line.split_once('=')?;
        let attribute = attribute.trim();
        // `mode …` and `owner …` set permissions, not values.
        if attribute.contains(char::is_whitespace) || !attribute.ends_with(sought) {
            return None;
        }
        let wanted =
            value.trim().parse().map_or(Wanted::Unknown, |kib| Wanted::Exactly(Kib::new(kib)));
        let goal = Goal::File(format!("/sys/{}", attribute.trim_start_matches('/')));
        Some(FoundWrite {
            owner: OwnerKind::SysfsConf,
            place: FileLocation::new(file, index + 1),
            text: line.to_owned(),
            comment: comment_above(&lines, index),
            write: Write { goal, wanted, word: Some(value.trim().to_owned()) },
            certainty: Certainty::Sure,
            by_foreread,
        })
    };
    lines.iter().enumerate().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_paths_below_sys() {
        let text =
            "mode block/sda/queue/read_ahead_kb = 600\n\nblock/sda/queue/read_ahead_kb = 64\n";
        let found = parse(Path::new("/etc/sysfs.conf"), text, "read_ahead_kb");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place.line, 3);
        assert_eq!(found[0].write.wanted, Wanted::Exactly(Kib::new(64)));
    }
}
