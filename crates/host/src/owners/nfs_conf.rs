//! `[nfsrahead]` in nfs.conf(5): read-ahead of NFS mounts in KiB, which nfs-utils' udev rule sets.

use std::path::{Path, PathBuf};

use units::Kib;

use super::FileLocation;
use super::places::drop_ins;
use crate::Root;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NfsConf {
    lines: Vec<NfsConfLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NfsConfLine {
    key: String,
    kib: Kib,
    place: FileLocation,
}

impl NfsConf {
    pub(super) fn read(root: &Root) -> Self {
        let mut files = vec![PathBuf::from("/etc/nfs.conf")];
        files.extend(drop_ins(root, &["/etc/nfs.conf.d"], ".conf"));
        let mut conf = Self::default();
        for file in files {
            if let Some(text) = root.lines_of(&file) {
                conf.add(&file, &text);
            }
        }
        conf
    }

    /// Adds the settings of a file; later files overwrite earlier ones.
    pub fn add(&mut self, file: &Path, text: &str) {
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split(['#', ';']).next().unwrap_or("").trim();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                section = name.0.trim().to_lowercase();
            } else if section == "nfsrahead"
                && let Some((key, value)) = line.split_once('=')
                && let Ok(kib) = value.trim().parse()
            {
                let place = FileLocation::new(file, index + 1);
                let key = key.trim().to_lowercase();
                self.lines.push(NfsConfLine { key, kib: Kib::new(kib), place });
            }
        }
    }

    /// Returns the setting for mounts of this type or the default, with its location.
    pub fn of(&self, fstype: &str) -> Option<(Kib, &FileLocation)> {
        let last = |key: &str| self.lines.iter().rev().find(|line| line.key == key);
        let line = last(fstype).or_else(|| last("default"))?;
        Some((line.kib, &line.place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_type_comes_before_the_default() {
        let mut conf = NfsConf::default();
        conf.add(
            Path::new("/etc/nfs.conf"),
            "[general]\nnfs=1\n[ nfsrahead ]\nnfs4 = 16000 # KiB\ndefault=128\n",
        );
        let (kib, place) = conf.of("nfs4").unwrap();
        assert_eq!((kib, place.line), (Kib::new(16000), 4));
        assert_eq!(conf.of("nfs").unwrap().0, Kib::new(128));
        conf.add(Path::new("/etc/nfs.conf.d/a.conf"), "[nfsrahead]\nnfs4=1\n");
        assert_eq!(conf.of("nfs4").unwrap().0, Kib::new(1));
        assert_eq!(NfsConf::default().of("nfs"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            NfsConf::default().add(Path::new("/etc/nfs.conf"), &text);
        }
    }
}
