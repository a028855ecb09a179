//! tmpfiles.d(5): `w /sys/block/sda/queue/read_ahead_kb - - - - 4096`.

use std::path::Path;

use units::Kib;

use super::places::{comment_above, drop_ins, text_about};
use super::shell::{FoundWrite, Goal, Write};
use super::{Certainty, FileLocation, OwnerKind, Wanted, is_foreread};
use crate::Root;

const FOLDERS: &[&str] =
    &["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// Reads the lines in all tmpfiles.d directories that write to files with this name.
pub(super) fn read(root: &Root, sought: &str) -> Vec<FoundWrite> {
    let files = drop_ins(root, FOLDERS, ".conf");
    let texts = files.iter().filter_map(|file| Some((file, text_about(root, file, sought)?)));
    texts.flat_map(|(file, text)| parse(file, &text, sought)).collect()
}

pub fn parse(file: &Path, text: &str, sought: &str) -> Vec<FoundWrite> {
    let by_foreread = is_foreread(file, text);
    let lines: Vec<&str> = text.lines().collect();
    let line = |(index, line): (usize, &&str)| {
        let mut fields = line.split_whitespace();
        // Type `w`, possibly followed by `+`, `!` or `-`; other types create or remove files.
        if !fields.next()?.starts_with('w') {
            return None;
        }
        let path = fields.next()?.trim_matches('"').to_owned();
        if !path.ends_with(sought) {
            return None;
        }
        let value = fields.nth(4).map(|value| value.trim_matches('"'));
        let wanted = value.and_then(|value| value.parse().ok());
        let wanted = wanted.map_or(Wanted::Unknown, |kib| Wanted::Exactly(Kib::new(kib)));
        Some(FoundWrite {
            owner: OwnerKind::Tmpfiles,
            place: FileLocation::new(file, index + 1),
            text: line.trim().to_owned(),
            comment: comment_above(&lines, index),
            write: Write { goal: Goal::File(path), wanted, word: value.map(str::to_owned) },
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
    fn only_lines_that_write_count() {
        let text = "# four MiB\nw /sys/block/sd*/queue/read_ahead_kb - - - - 4096\n\
                    d /sys/read_ahead_kb\nw+ /sys/class/bdi/8:0/read_ahead_kb\n";
        let found = parse(Path::new("/etc/tmpfiles.d/ra.conf"), text, "read_ahead_kb");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].write.wanted, Wanted::Exactly(Kib::new(4096)));
        assert_eq!(found[0].comment.as_deref(), Some("four MiB"));
        assert_eq!((found[1].place.line, found[1].write.wanted), (4, Wanted::Unknown));
    }
}
