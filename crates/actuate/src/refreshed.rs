//! Records of open files whose windows `apply` has changed, so that `rollback` can restore them.
//!
//! A journal holds the changes in `/sys`. The changes to open files are stored next to it, in a
//! file with the name of the journal, which is written before the first window is changed. A record
//! is valid until the next boot, when no recorded file is open any more.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use host::{Dirs, Root};
use observe::{OpenFile, OpenFileFilter};
use serde::{Deserialize, Serialize};
use sys::replace::{Durability, FileMode, replace};
use tunables::{BdiLease, JournalError, TunableScope};
use units::Bytes;

use crate::{
    AccessRule, AccessRules, ActionOutcome, ActuateError, ActuateFailure, Actuator, FileAdvice,
};

const VERSION: u32 = 1;

/// The open files whose windows one `apply` has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefreshedFiles {
    version: u32,
    boot_id: String,
    /// The name of the journal with the settings.
    pub journal: String,
    pub site: TunableScope,
    /// The new window of the files.
    pub window: Bytes,
    allow: Vec<AccessRule>,
    deny: Vec<AccessRule>,
    /// The open files in their original state.
    pub files: Vec<OpenFile>,
}

/// An open file whose window is to be restored or was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverted {
    /// The state of the file just before it is restored.
    pub file: OpenFile,
    /// The window before `apply`.
    pub original: Bytes,
    /// `None` in a preview.
    pub outcome: Option<ActionOutcome>,
}

impl RefreshedFiles {
    /// Creates a record of files that are about to get the window `window`.
    pub fn new(
        journal: &str,
        site: &TunableScope,
        window: Bytes,
        limits: &AccessRules,
        files: Vec<OpenFile>,
    ) -> Self {
        Self {
            version: VERSION,
            boot_id: boot_id(),
            journal: journal.to_owned(),
            site: site.clone(),
            window,
            allow: limits.allow.clone(),
            deny: limits.deny.clone(),
            files,
        }
    }

    /// Writes the record to stable storage. A record without files is removed.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or removed.
    pub fn store(&self, dirs: &Dirs) -> Result<(), JournalError> {
        let path = self.path(dirs);
        if self.files.is_empty() {
            return self.remove(dirs);
        }
        let fail = |source| JournalError::Io { doing: "write", path: path.clone(), source };
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from).map_err(fail)?;
        write_private(&path, &text).map_err(fail)
    }

    /// Removes the record.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be removed.
    pub fn remove(&self, dirs: &Dirs) -> Result<(), JournalError> {
        let path = self.path(dirs);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(JournalError::Io { doing: "remove", path, source })
            }
            _ => Ok(()),
        }
    }

    /// Lists all records of the current boot, the latest first, and the errors of the records that
    /// cannot be read.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn list(dirs: &Dirs) -> Result<(Vec<Self>, Vec<JournalError>), JournalError> {
        let dir = directory(dirs);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            Err(source) => return Err(JournalError::Io { doing: "list", path: dir, source }),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        paths.sort();
        let (mut records, mut refused) = (Vec::new(), Vec::new());
        for path in paths.iter().rev() {
            match Self::load(path) {
                Ok(record) if record.is_of_this_boot() => records.push(record),
                Ok(_) => {}
                Err(error) => refused.push(error),
            }
        }
        Ok((records, refused))
    }

    /// Removes the records of earlier boots.
    pub fn forget_earlier_boots(dirs: &Dirs) {
        for entry in fs::read_dir(directory(dirs)).into_iter().flatten().flatten() {
            if Self::load(&entry.path()).is_ok_and(|record| !record.is_of_this_boot()) {
                // `list` ignores the records that cannot be removed.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn is_of_this_boot(&self) -> bool {
        self.boot_id == boot_id()
    }

    fn load(path: &Path) -> Result<Self, JournalError> {
        let bytes = tunables::read_own(path)?;
        let refuse = |problem| JournalError::Refused { path: path.to_owned(), line: 1, problem };
        let record: Self =
            serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
        if record.version != VERSION {
            return Err(refuse(format!("version {} is not {VERSION}", record.version)));
        }
        let named = path.file_stem().is_some_and(|stem| stem == record.journal.as_str());
        if !named {
            return Err(refuse(format!("belongs to another journal, {:?}", record.journal)));
        }
        Ok(record)
    }

    /// Returns the access rules of the `apply`.
    pub fn limits(&self) -> AccessRules {
        AccessRules { allow: self.allow.clone(), deny: self.deny.clone() }
    }

    fn path(&self, dirs: &Dirs) -> PathBuf {
        directory(dirs).join(format!("{}.json", self.journal))
    }

    /// Returns the original state of the open file `now`, if this record contains it and `window`,
    /// its present or future window, is the recorded one.
    fn original(&self, now: &OpenFile, window: Bytes) -> Option<&OpenFile> {
        let same = |then: &&OpenFile| {
            (then.id, then.device, then.inode) == (now.id, now.device, now.inode)
        };
        self.files.iter().find(same).filter(|_| window == self.window)
    }
}

impl Actuator {
    /// Checks the access rules for this open file.
    ///
    /// # Errors
    ///
    /// If a rule excludes the file, or it was closed.
    pub fn permits(&self, file: &OpenFile) -> Result<(), ActuateFailure> {
        crate::reach::holders(&self.root, &self.limits, file).map(drop)
    }

    /// Lists the open files of a record that still have the recorded window, or will have it after
    /// those in `planned` have been restored.
    ///
    /// # Errors
    ///
    /// If open files cannot be listed.
    pub fn still_refreshed(
        &self,
        record: &RefreshedFiles,
        planned: &[Reverted],
    ) -> Result<Vec<Reverted>, ActuateError> {
        let now = self.open_files(&OpenFileFilter::on_bdi(&record.site.bdi))?;
        let still = now.into_iter().filter_map(|file| {
            let before = planned.iter().rev().find(|one| one.file.id == file.id);
            let window = before.map_or(file.window, |one| one.original);
            let original = record.original(&file, window)?.window;
            Some(Reverted { file, original, outcome: None })
        });
        Ok(still.collect())
    }

    /// Restores the original windows and `FADV_RANDOM` flags of the files of a record.
    ///
    /// # Errors
    ///
    /// As [`Self::set_windows`].
    pub fn revert(
        &self,
        lease: &mut BdiLease,
        record: &RefreshedFiles,
    ) -> Result<Vec<Reverted>, ActuateError> {
        let mut still = self.still_refreshed(record, &[])?;
        let wanted: Vec<(&OpenFile, Bytes)> =
            still.iter().map(|one| (&one.file, one.original)).collect();
        let outcomes = self.set_windows(lease, &wanted)?.outcomes;
        for (one, outcome) in still.iter_mut().zip(outcomes) {
            let then = record.original(&one.file, one.file.window);
            let random = then.is_some_and(|then| then.random);
            let again = random && outcome.is_good() && !one.file.random;
            one.outcome = Some(outcome);
            if again {
                let advised = self.advise(&one.file, FileAdvice::Random)?;
                one.outcome = one.outcome.take().filter(|_| advised.is_good()).or(Some(advised));
            }
        }
        Ok(still)
    }
}

fn directory(dirs: &Dirs) -> PathBuf {
    dirs.state.join("open-files")
}

/// Returns the kernel's random identifier of the current boot.
fn boot_id() -> String {
    Root::system().read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Writes a file atomically to stable storage, readable by its owner only.
fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    replace(path, text, FileMode::Masked(0o600), Durability::Synced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(journal: &str) -> RefreshedFiles {
        let file = serde_json::from_value(serde_json::json!({
            "id": 7, "kind": "regular", "device": "8:1", "inode": 12, "bdi": "8:0", "size": 4096,
            "position": 0, "previous": null, "readable": true, "writable": false, "direct": false,
            "window": 131_072, "bdi_window": 131_072, "random": true, "holders": [],
        }));
        let limits =
            AccessRules { allow: vec![AccessRule::Pid(7)], deny: vec![AccessRule::User(26)] };
        let window = Bytes::from_kib(1088);
        let files = vec![file.expect("an open file")];
        RefreshedFiles::new(journal, &TunableScope::machine(), window, &limits, files)
    }

    #[test]
    fn stored_records_are_listed_latest_first_until_they_are_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let dirs = Dirs::under(base.path());
        assert!(RefreshedFiles::list(&dirs).expect("none").0.is_empty());
        for journal in ["1-1-8:0", "2-1-8:0"] {
            record(journal).store(&dirs).expect("stored");
        }
        let (records, refused) = RefreshedFiles::list(&dirs).expect("two");
        assert_eq!(records, [record("2-1-8:0"), record("1-1-8:0")]);
        assert!(refused.is_empty());
        let limits = records[0].limits();
        assert_eq!(
            limits,
            AccessRules { allow: vec![AccessRule::Pid(7)], deny: vec![AccessRule::User(26)] }
        );
        RefreshedFiles { files: Vec::new(), ..record("2-1-8:0") }.store(&dirs).expect("removed");
        records[1].remove(&dirs).expect("removed");
        assert!(RefreshedFiles::list(&dirs).expect("none").0.is_empty());
    }

    #[test]
    fn a_file_counts_only_while_it_has_the_recorded_window() {
        let record = record("1");
        let given = OpenFile { window: record.window, ..record.files[0].clone() };
        let found = |file: &OpenFile| record.original(file, file.window).is_some();
        assert!(found(&given));
        assert!(!found(&record.files[0]), "another process has restored it");
        assert!(!found(&OpenFile { inode: 13, ..given }), "another file");
    }

    #[test]
    fn records_of_another_boot_are_removed_and_invalid_ones_are_refused() {
        let base = tempfile::tempdir().expect("a directory");
        let dirs = Dirs::under(base.path());
        record("1").store(&dirs).expect("stored");
        let path = record("1").path(&dirs);
        let sound = fs::read_to_string(&path).expect("a record");
        for text in [
            "",
            "garbage",
            "{}",
            &sound.replace("\"version\": 1", "\"version\": 2"),
            &sound.replace("pid:7", "exe:sh"),
            &sound.replace("\"journal\": \"1\"", "\"journal\": \"../../etc\""),
        ] {
            fs::write(&path, text).expect("written");
            let (records, refused) = RefreshedFiles::list(&dirs).expect("listed");
            assert!(records.is_empty() && refused.len() == 1, "{text:?}: {records:?}");
        }
        fs::write(&path, sound.replace(&boot_id(), "another boot")).expect("written");
        let (records, refused) = RefreshedFiles::list(&dirs).expect("listed");
        assert!(
            records.is_empty() && refused.is_empty() && path.exists(),
            "listing removes nothing"
        );
        RefreshedFiles::forget_earlier_boots(&dirs);
        assert!(!path.exists());
    }
}
