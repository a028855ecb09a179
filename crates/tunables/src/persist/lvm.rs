//! Read-ahead in the metadata of a logical volume, which LVM applies on activation.
//!
//! There is no file to write: `lvchange` sets the value, immediately and permanently. The copies of
//! the metadata in `/etc/lvm/backup` show the current value.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use host::owners::lvm::{read_ahead_sectors, volume_of};
use host::{DevNo, Root};
use serde::{Deserialize, Serialize};
use units::Bytes;

use super::PersistError;
use crate::TunableScope;

/// A logical volume, with the new and the previous read-ahead of its metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LvmVolume {
    group: String,
    name: String,
    /// In sectors, as in LVM; `None` means automatic, -1 none.
    sectors: Option<i64>,
    before: Option<i64>,
}

impl LvmVolume {
    /// Finds the volume of a bdi; `None` if the bdi is not a volume.
    pub(super) fn find(root: &Root, site: &TunableScope, window: Bytes) -> Option<Self> {
        let device: DevNo = site.bdi.as_str().parse().ok()?;
        let (group, name) = volume_of(root, device)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "+_.-".contains(c);
        let plain = |word: &str| word.chars().all(fits) && !word.starts_with(['-', '.']);
        if !plain(&group) || !plain(&name) {
            return None;
        }
        let sectors = i64::try_from(window.get() / 512).ok()?;
        let sectors = Some(if sectors == 0 { -1 } else { sectors });
        let before = read_ahead_sectors(root, &group, &name);
        Some(Self { group, name, sectors, before })
    }

    /// Returns the volume's path in records.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/{}/{}", self.group, self.name))
    }

    pub(super) fn command(&self) -> Vec<String> {
        self.change(self.sectors)
    }

    /// Returns the command that restores the previous value.
    fn undo(&self) -> Vec<String> {
        self.change(self.before)
    }

    fn change(&self, sectors: Option<i64>) -> Vec<String> {
        let value = match sectors {
            None => "auto".to_owned(),
            Some(sectors) if sectors < 0 => "none".to_owned(),
            Some(sectors) => sectors.to_string(),
        };
        let volume = format!("{}/{}", self.group, self.name);
        ["lvchange", "-q", "--readahead", &value, &volume].map(str::to_owned).to_vec()
    }

    /// Returns whether the metadata have the persisted value.
    pub(super) fn is_set(&self, root: &Root) -> bool {
        read_ahead_sectors(root, &self.group, &self.name) == self.sectors
    }

    /// Takes the previous value from an earlier record.
    pub(super) fn keep_before(&mut self, earlier: Option<&Self>) {
        if let Some(earlier) = earlier {
            self.before = earlier.before;
        }
    }

    /// Runs lvchange to set the value.
    pub(super) fn install(&self, root: &Root) -> Result<(), PersistError> {
        run(root, &self.command())
    }

    /// Runs lvchange to restore the previous value.
    pub(super) fn remove(&self, root: &Root) -> Result<(), PersistError> {
        run(root, &self.undo())
    }
}

fn run(root: &Root, words: &[String]) -> Result<(), PersistError> {
    let program = words.first().map_or("lvchange", String::as_str);
    let fail = |problem: String| PersistError::Program { command: words.join(" "), problem };
    if !root.is_system() {
        return Err(fail("another machine's volumes cannot be changed from here".to_owned()));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(program)
        .args(&words[1..])
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| fail(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
    Err(fail(last.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use host::BdiId;

    use super::*;

    #[test]
    fn a_volume_is_changed_by_lvm_s_own_words() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        file("sys/dev/block/253:0/dm/name", "my--vg-home\n");
        file("sys/dev/block/253:0/dm/uuid", "LVM-abc\n");
        let root = Root::at(dir.path());
        let bdi = BdiId::new("253:0").expect("a bdi");
        let site = TunableScope { bdi, ..TunableScope::nowhere() };
        let volume = LvmVolume::find(&root, &site, Bytes::from_mib(1)).expect("a volume");
        assert_eq!(volume.path(), PathBuf::from("/dev/my-vg/home"));
        assert_eq!(volume.command().join(" "), "lvchange -q --readahead 2048 my-vg/home");
        assert_eq!(volume.undo().join(" "), "lvchange -q --readahead auto my-vg/home");
        assert!(!volume.is_set(&root));
        let metadata = "my-vg {\n logical_volumes {\n home {\n read_ahead = 2048\n }\n }\n}\n";
        file("etc/lvm/backup/my-vg", metadata);
        assert!(volume.is_set(&root));
        let none = LvmVolume::find(&root, &site, Bytes::ZERO).expect("a volume");
        assert_eq!(none.command()[3], "none");
        assert_eq!(none.undo()[3], "2048", "what was there before");
        assert!(run(&root, &none.command()).is_err(), "not on a tree");
        assert!(LvmVolume::find(&root, &TunableScope::nowhere(), Bytes::ZERO).is_none());
    }
}
