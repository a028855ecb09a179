//! Writes, records, checks and removes the persisted files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::{Dirs, Root};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sys::replace::{Durability, FileMode, replace};

use super::lvm::LvmVolume;
use super::{Draft, PersistBackend, PersistError};
use crate::TunableValues;
use crate::journal_entry::unix_ms;
use crate::marks::slug;

/// The record of a file that foreread wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persisted {
    pub version: u32,
    pub path: PathBuf,
    pub backend: PersistBackend,
    pub settings: TunableValues,
    /// The target as the user named it; `None` for the whole machine.
    pub target: Option<PathBuf>,
    /// The SHA-256 checksum of the whole file.
    pub sha256: String,
    /// Time of writing in milliseconds since 1970.
    pub unix_ms: u64,
    /// The logical volume whose metadata contain the setting, instead of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<LvmVolume>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PersistedState {
    Intact,
    Edited,
    Gone,
}

pub(super) fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn directory(dirs: &Dirs) -> PathBuf {
    dirs.state.join("persisted")
}

fn fail(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PersistError {
    let path = path.to_owned();
    move |source| PersistError::Io { doing, path, source }
}

pub fn persisted(dirs: &Dirs) -> Result<Vec<(PathBuf, Persisted)>, PersistError> {
    let dir = directory(dirs);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail("list", &dir)(error)),
    };
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let bytes = crate::journal_entry::read_own(&path).map_err(crate::TunableError::from)?;
        let record: Persisted = serde_json::from_slice(&bytes).map_err(|error| {
            PersistError::Record { path: path.clone(), problem: error.to_string() }
        })?;
        let volume = record.volume.as_ref();
        if volume.map_or(!is_ours(&record.path), |volume| volume.path() != record.path) {
            let problem = format!("{} is not a file of foreread", record.path.display());
            return Err(PersistError::Record { path, problem });
        }
        all.push((path, record));
    }
    all.sort_by_key(|(_, record)| record.unix_ms);
    Ok(all)
}

/// Returns whether a path is one of foreread's files; records of other paths are invalid.
fn is_ours(path: &Path) -> bool {
    const FOLDERS: &[&str] = &[
        "/etc/udev/rules.d",
        "/etc/sysctl.d",
        "/etc/nfs.conf.d",
        "/etc/tuned/foreread",
        "/etc/systemd/system",
    ];
    let folder = path.parent().is_some_and(|dir| FOLDERS.iter().any(|f| dir == Path::new(f)));
    let named = path.to_string_lossy().contains("foreread");
    folder && named
}

/// Returns the current state of a record's file or volume.
pub fn persisted_state(root: &Root, record: &Persisted) -> PersistedState {
    if let Some(volume) = &record.volume {
        return if volume.is_set(root) { PersistedState::Intact } else { PersistedState::Edited };
    }
    match fs::read_to_string(root.path(&record.path)) {
        Ok(text) if checksum(&text) == record.sha256 => PersistedState::Intact,
        Ok(_) => PersistedState::Edited,
        Err(_) => PersistedState::Gone,
    }
}

/// Writes a file and its record. An existing file must be foreread's and unchanged.
pub fn install(
    dirs: &Dirs,
    root: &Root,
    draft: &Draft,
    target: Option<&Path>,
) -> Result<Persisted, PersistError> {
    let path = root.path(&draft.path);
    let known = persisted(dirs)?.into_iter().find(|(_, record)| record.path == draft.path);
    match &known {
        // LVM metadata may have any value; the one from before foreread is restored later.
        _ if draft.volume.is_some() => {}
        Some((_, record)) if persisted_state(root, record) == PersistedState::Edited => {
            return Err(PersistError::Edited { path });
        }
        None if path.exists() => return Err(PersistError::Foreign { path }),
        _ => {}
    }
    let text = draft.text();
    let mut record = Persisted {
        version: 1,
        path: draft.path.clone(),
        backend: draft.backend,
        settings: draft.settings.clone(),
        target: target.map(Path::to_owned),
        sha256: checksum(&text),
        unix_ms: unix_ms(),
        volume: draft.volume.clone(),
    };
    if let Some(volume) = &mut record.volume {
        volume.keep_before(known.as_ref().and_then(|(_, record)| record.volume.as_ref()));
    }
    // Write the record first, because a file without one could not be removed.
    let dir = directory(dirs);
    fs::create_dir_all(&dir).map_err(fail("make", &dir))?;
    let name = format!("{}.json", slug(&draft.path.to_string_lossy()));
    let record_path = dir.join(name);
    write_record(&record_path, &record)?;
    if let Some(volume) = &record.volume {
        volume.install(root)?;
        return Ok(record);
    }
    if let Err(error) = write_whole(&path, &text, 0o644) {
        // The file is unchanged, so the new record would report it as gone or edited. The first
        // error is the one to report.
        let _ = match &known {
            Some((_, earlier)) => write_record(&record_path, earlier),
            None => fs::remove_file(&record_path).map_err(fail("remove", &record_path)),
        };
        return Err(error);
    }
    if let Some(link) = wanted_by(&record.path) {
        // Creates the link of `systemctl enable`, which may be missing in an image build.
        let link = root.path(link);
        fs::create_dir_all(link.parent().unwrap_or(Path::new("/"))).map_err(fail("make", &link))?;
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&record.path, &link).map_err(fail("link", &link))?;
    }
    Ok(record)
}

/// Returns the link that makes systemd start a unit at boot; `None` if the file is not a unit.
fn wanted_by(path: &Path) -> Option<PathBuf> {
    let unit = path.extension().is_some_and(|ending| ending == "service");
    let name = path.file_name().filter(|_| unit)?;
    Some(Path::new("/etc/systemd/system/multi-user.target.wants").join(name))
}

fn write_record(path: &Path, record: &Persisted) -> Result<(), PersistError> {
    let json = serde_json::to_string_pretty(record).unwrap_or_default();
    write_whole(path, &json, 0o600)
}

/// Creates the directory and writes a file atomically and durably.
fn write_whole(path: &Path, text: &str, mode: u32) -> Result<(), PersistError> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(fail("make", dir))?;
    replace(path, text.as_bytes(), FileMode::Masked(mode), Durability::Synced)
        .map_err(fail("write", path))
}

/// Removes a file and its record; an edited file is an error.
pub fn remove(
    root: &Root,
    record_path: &Path,
    record: &Persisted,
    dry_run: bool,
) -> Result<(), PersistError> {
    let state = persisted_state(root, record);
    if state == PersistedState::Edited {
        return Err(PersistError::Edited { path: root.path(&record.path) });
    }
    if !dry_run {
        if let Some(link) = wanted_by(&record.path) {
            let _ = fs::remove_file(root.path(link));
        }
        if let Some(volume) = &record.volume {
            volume.remove(root)?;
        } else if state == PersistedState::Intact {
            let path = root.path(&record.path);
            fs::remove_file(&path).map_err(fail("remove", &path))?;
        }
        fs::remove_file(record_path).map_err(fail("remove", record_path))?;
    }
    Ok(())
}
