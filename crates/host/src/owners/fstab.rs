//! fstab(5): mount options that set read-ahead.

use std::path::PathBuf;

use units::{Bytes, Kib};

use super::{Certainty, Claim, FileLocation, OwnerKind, Target, Wanted};
use crate::Root;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FstabEntry {
    pub source: String,
    pub point: PathBuf,
    pub fstype: String,
    pub options: Vec<String>,
    /// Line number, from 1.
    pub line: usize,
}

/// Options that set read-ahead, with their units in bytes.
const OPTIONS: &[(&str, u64)] = &[
    // CephFS and CIFS, in bytes.
    ("rasize", 1),
    // libfuse, in bytes: the limit that the server requests.
    ("max_readahead", 1),
    // Mount helpers of cloud providers, in KiB.
    ("read_ahead_kb", 1024),
    ("x-foreread.read_ahead_kb", 1024),
];

/// Reads `/etc/fstab`.
pub(super) fn read(root: &Root) -> Vec<FstabEntry> {
    root.lines_of("/etc/fstab").map(|text| parse(&text)).unwrap_or_default()
}

/// Parses fstab; invalid lines are skipped.
pub fn parse(text: &str) -> Vec<FstabEntry> {
    let entry = |(index, line): (usize, &str)| {
        let mut fields = line.split_whitespace();
        let source = fields.next().filter(|field| !field.starts_with('#'))?;
        Some(FstabEntry {
            source: unescape(source),
            point: PathBuf::from(unescape(fields.next()?)),
            fstype: fields.next()?.to_owned(),
            options: fields.next().unwrap_or("").split(',').map(str::to_owned).collect(),
            line: index + 1,
        })
    };
    text.lines().enumerate().filter_map(entry).collect()
}

/// Decodes `\040`, `\011` and `\134`, which stand for spaces, tabs and backslashes in names.
fn unescape(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

pub(super) fn claims(entries: &[FstabEntry], target: &Target) -> Vec<Claim> {
    let ours = entries.iter().filter(|entry| target.points.contains(&entry.point));
    let claim = |entry: &FstabEntry| {
        let (option, wanted) = entry.options.iter().find_map(|option| {
            let (key, value) = option.split_once('=')?;
            let (_, unit) = OPTIONS.iter().find(|(name, _)| *name == key)?;
            let bytes = value.parse::<u64>().ok()?.checked_mul(*unit)?;
            let kib: Kib = Bytes::new(bytes).to_kib_floor();
            let wanted =
                if key == "max_readahead" { Wanted::AtMost(kib) } else { Wanted::Exactly(kib) };
            Some((option, wanted))
        })?;
        Some(Claim {
            owner: OwnerKind::MountOption,
            wanted,
            place: FileLocation::new("/etc/fstab", entry.line),
            text: option.clone(),
            comment: None,
            certainty: Certainty::Sure,
            by_foreread: false,
        })
    };
    ours.filter_map(claim).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_read_with_their_escapes() {
        let text = "# c\n/dev/sda1 / ext4 defaults 0 1\n\
                    mon:/ /mnt/my\\040ceph ceph rasize=4194304\n\
                    broken\n";
        let entries = parse(text);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[1].point, PathBuf::from("/mnt/my ceph"));
        assert_eq!(entries[1].line, 3);
        let target = Target {
            bdi: crate::BdiId::new("ceph-1").unwrap(),
            name: None,
            dm: None,
            fstype: Some("ceph".to_owned()),
            points: vec![PathBuf::from("/mnt/my ceph")],
        };
        let claims = claims(&entries, &target);
        assert_eq!(claims[0].wanted, Wanted::Exactly(Kib::new(4096)));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            parse(&text);
        }
    }
}
