//! The virtual disks of this machine: list, show, remove.

use std::fs;
use std::io;

use host::Dirs;
use serde::{Deserialize, Serialize};

use crate::control;
use crate::counters::DiskCounters;
use crate::error::VdiskError;
use crate::layout::{DiskDirs, folder, read_json};
use crate::record::DiskRecord;
use crate::teardown::{InUse, take_down};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskState {
    /// Somebody makes it just now, or died while at it.
    Unfinished,
    Serving,
    /// Its server is gone; only removing is left.
    Dead,
}

impl DiskState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Serving => "serving",
            Self::Dead => "dead",
        }
    }
}

/// One virtual disk in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskListing {
    pub name: String,
    pub state: DiskState,
    /// What is known of it; `None` if it was never finished.
    pub record: Option<DiskRecord>,
    /// What it counts, if it works.
    pub counters: Option<DiskCounters>,
}

/// All virtual disks under these directories, by name.
pub fn list(dirs: &Dirs) -> Result<Vec<DiskListing>, VdiskError> {
    names(dirs)?.iter().map(|name| Ok(look_at(&DiskDirs::of(dirs, name)?))).collect()
}

/// The virtual disk of this name.
pub fn show(dirs: &Dirs, name: &str) -> Result<DiskListing, VdiskError> {
    Ok(look_at(&existing(dirs, name)?))
}

/// Removes the disk of this name, whatever state it is in: unmounts it, releases its loop device,
/// ends its server, removes its directory.
///
/// A disk that works is left to those who use it. One whose server is dead is taken from under
/// them; what the kernel keeps for them ends when they let go of it.
///
/// # Errors
///
/// [`VdiskError::Held`] while the process lives that makes it or made it for itself alone,
/// [`VdiskError::Busy`] while somebody uses it.
pub fn remove(dirs: &Dirs, name: &str) -> Result<(), VdiskError> {
    let home = existing(dirs, name)?;
    match home.hold()? {
        None => Err(VdiskError::Held { name: home.name() }),
        Some(_hold) => take_down(&home, InUse::Refuse),
    }
}

/// Whether a process lives that makes the disk of this name, or made it for itself alone.
pub fn is_held(dirs: &Dirs, name: &str) -> Result<bool, VdiskError> {
    Ok(existing(dirs, name)?.hold()?.is_none())
}

/// Whether the disk of this name has no server that could answer, so that nobody can use it.
pub fn is_dead(dirs: &Dirs, name: &str) -> Result<bool, VdiskError> {
    let home = existing(dirs, name)?;
    Ok(!crate::teardown::may_answer(&home))
}

/// Where the disk of this name is, if there is one.
pub(crate) fn existing(dirs: &Dirs, name: &str) -> Result<DiskDirs, VdiskError> {
    let home = DiskDirs::of(dirs, name)?;
    if home.exists() {
        return Ok(home);
    }
    Err(VdiskError::NoSuchDisk { name: name.to_owned(), known: names(dirs)? })
}

pub(crate) fn names(dirs: &Dirs) -> Result<Vec<String>, VdiskError> {
    let folder = folder(dirs);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(VdiskError::io("reading", &folder)(error)),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| DiskDirs::of(dirs, name).is_ok_and(|home| home.exists()))
        .collect();
    names.sort();
    Ok(names)
}

fn look_at(home: &DiskDirs) -> DiskListing {
    // A record that cannot be read is as good as none: what matters is that the disk is shown.
    let record: Option<DiskRecord> = read_json(&home.record()).ok().flatten();
    let counters = control::counters(home).ok();
    let state = match (&counters, &record) {
        (Some(_), Some(_)) => DiskState::Serving,
        (_, None) => DiskState::Unfinished,
        (None, Some(_)) => DiskState::Dead,
    };
    DiskListing { name: home.name(), state, record, counters }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_server_is_listed_and_can_be_removed() {
        let base = tempfile::tempdir().unwrap();
        let dirs = Dirs::under(base.path());
        assert_eq!(list(&dirs).unwrap(), []);
        let home = DiskDirs::claim(&dirs, "left-over").unwrap();
        fs::write(home.log(), "it began well").unwrap();
        let disks = list(&dirs).unwrap();
        assert_eq!(disks.len(), 1);
        assert_eq!((&*disks[0].name, disks[0].state), ("left-over", DiskState::Unfinished));
        remove(&dirs, "left-over").unwrap();
        assert_eq!(list(&dirs).unwrap(), []);
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let base = tempfile::tempdir().unwrap();
        let dirs = Dirs::under(base.path());
        let error = show(&dirs, "one").unwrap_err().to_string();
        assert!(error.ends_with("there are none"), "{error}");
        DiskDirs::claim(&dirs, "two").unwrap();
        let error = remove(&dirs, "one").unwrap_err().to_string();
        assert!(error.contains("two"), "{error}");
    }
}
