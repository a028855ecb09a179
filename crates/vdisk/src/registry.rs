//! Lists, shows and removes the virtual disks of this machine.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DiskState {
    /// The disk is being created, or its creator died.
    Unfinished,
    Serving,
    /// The server is dead; the disk can only be removed.
    Dead,
}

impl DiskState {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A virtual disk in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskListing {
    pub name: String,
    pub state: DiskState,
    /// Description of the disk; `None` if its creation was not completed.
    pub record: Option<DiskRecord>,
    /// Counters of the disk; `None` if it is not running.
    pub counters: Option<DiskCounters>,
}

/// Returns all virtual disks in these directories, sorted by name.
pub fn list(dirs: &Dirs) -> Result<Vec<DiskListing>, VdiskError> {
    names(dirs)?.iter().map(|name| Ok(look_at(&DiskDirs::new(dirs, name)?))).collect()
}

/// Returns the virtual disk with this name.
pub fn show(dirs: &Dirs, name: &str) -> Result<DiskListing, VdiskError> {
    Ok(look_at(&existing(dirs, name)?))
}

/// Removes the disk with this name in any state: unmounts it, releases its loop device, stops its
/// server and removes its directory.
///
/// A running disk that is in use is not removed. A disk whose server is dead is removed even if it
/// is in use; the kernel removes the rest when its users close it.
///
/// # Errors
///
/// [`VdiskError::Held`] while its creator or owner is running; [`VdiskError::Busy`] while it is in
/// use.
pub fn remove(dirs: &Dirs, name: &str) -> Result<(), VdiskError> {
    let home = existing(dirs, name)?;
    match home.hold()? {
        None => Err(VdiskError::Held { name: home.name() }),
        Some(_hold) => take_down(&home, InUse::Refuse),
    }
}

/// Returns whether the process that creates or owns the disk is running.
pub fn is_held(dirs: &Dirs, name: &str) -> Result<bool, VdiskError> {
    Ok(existing(dirs, name)?.hold()?.is_none())
}

/// Returns whether the disk has no server that could reply, so that it is unusable.
pub fn is_dead(dirs: &Dirs, name: &str) -> Result<bool, VdiskError> {
    let home = existing(dirs, name)?;
    Ok(!crate::teardown::may_answer(&home))
}

/// Returns the directory of the disk with this name if it exists.
pub(crate) fn existing(dirs: &Dirs, name: &str) -> Result<DiskDirs, VdiskError> {
    let home = DiskDirs::new(dirs, name)?;
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
        .filter(|name| DiskDirs::new(dirs, name).is_ok_and(|home| home.exists()))
        .collect();
    names.sort();
    Ok(names)
}

fn look_at(home: &DiskDirs) -> DiskListing {
    // Ignore an unreadable record, so that the disk is listed.
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
