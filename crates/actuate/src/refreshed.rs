//! Open files that were given another window to stay, remembered so that a rollback can undo it.
//!
//! A journal holds what was written to `/sys`; the windows of open files are not there. So what
//! was done to them is kept beside the journals, in a file of the journal's name, and is written
//! before the first of them is touched. It holds until the machine is started again: then nothing
//! is open any more that it speaks of.

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

/// The open files that one apply gave another window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefreshedFiles {
    version: u32,
    boot_id: String,
    /// The name of the journal that has the settings.
    pub journal: String,
    pub site: TunableScope,
    /// The window that they were given.
    pub window: Bytes,
    allow: Vec<String>,
    deny: Vec<String>,
    /// The open files, as they were before.
    pub files: Vec<OpenFile>,
}

/// One open file whose window is to be, or was, changed back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverted {
    /// It, as it is now or was just before.
    pub file: OpenFile,
    /// The window that it had before the apply.
    pub original: Bytes,
    /// What came of it; `None` in a preview.
    pub outcome: Option<ActionOutcome>,
}

impl RefreshedFiles {
    /// What is about to be done to these files, at a site whose window is `window` now.
    pub fn new(
        journal: &str,
        site: &TunableScope,
        window: Bytes,
        limits: &AccessRules,
        files: Vec<OpenFile>,
    ) -> Self {
        let words = |rules: &[AccessRule]| rules.iter().map(AccessRule::to_string).collect();
        Self {
            version: VERSION,
            boot_id: boot_id(),
            journal: journal.to_owned(),
            site: site.clone(),
            window,
            allow: words(&limits.allow),
            deny: words(&limits.deny),
            files,
        }
    }

    /// Puts it on stable storage; one without files is removed.
    pub fn store(&self, dirs: &Dirs) -> Result<(), JournalError> {
        let path = self.path(dirs);
        if self.files.is_empty() {
            return self.remove(dirs);
        }
        let fail = |source| JournalError::Io { doing: "write", path: path.clone(), source };
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from).map_err(fail)?;
        write_private(&path, &text).map_err(fail)
    }

    /// Removes it: nothing of it is left to undo.
    pub fn remove(&self, dirs: &Dirs) -> Result<(), JournalError> {
        let path = self.path(dirs);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(JournalError::Io { doing: "remove", path, source })
            }
            _ => Ok(()),
        }
    }

    /// All since the machine was started, the latest first, and why others cannot be read.
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

    /// Removes those from before the machine was started: nothing is open any more of what they
    /// speak of.
    pub fn forget_earlier_boots(dirs: &Dirs) {
        for entry in fs::read_dir(directory(dirs)).into_iter().flatten().flatten() {
            if Self::load(&entry.path()).is_ok_and(|record| !record.is_of_this_boot()) {
                // What stays is left out by whoever lists them.
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
            return Err(refuse(format!("it is of another journal, {:?}", record.journal)));
        }
        record.limits().map_err(refuse)?;
        Ok(record)
    }

    /// Whose open files the apply was allowed to touch.
    pub fn limits(&self) -> Result<AccessRules, String> {
        let rules = |words: &[String]| {
            let parsed = words.iter().map(|word| word.parse::<AccessRule>());
            parsed.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())
        };
        Ok(AccessRules { allow: rules(&self.allow)?, deny: rules(&self.deny)? })
    }

    fn path(&self, dirs: &Dirs) -> PathBuf {
        directory(dirs).join(format!("{}.json", self.journal))
    }

    /// The one of these files that is meant by `now`, if `window`, which that has or will have, is
    /// the one that it was given.
    fn original(&self, now: &OpenFile, window: Bytes) -> Option<&OpenFile> {
        let same = |then: &&OpenFile| {
            (then.id, then.device, then.inode) == (now.id, now.device, now.inode)
        };
        self.files.iter().find(same).filter(|_| window == self.window)
    }
}

impl Actuator {
    /// Whether the limits let this open file be touched.
    ///
    /// # Errors
    ///
    /// Why not, or that it has been closed.
    pub fn permits(&self, file: &OpenFile) -> Result<(), ActuateFailure> {
        crate::reach::holders(&self.root, &self.limits, file).map(drop)
    }

    /// The open files of a record that still have the window that they were given, or will have it
    /// once those in `planned` have been given theirs back.
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

    /// Gives them the window back that they had, and the flag of `FADV_RANDOM`.
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

/// A word that changes with each boot.
fn boot_id() -> String {
    Root::system().read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Writes a file that only its owner may read, so that all of it or nothing is on stable storage.
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
    fn what_is_stored_is_listed_latest_first_until_it_is_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let dirs = Dirs::under(base.path());
        assert!(RefreshedFiles::list(&dirs).expect("none").0.is_empty());
        for journal in ["1-1-8:0", "2-1-8:0"] {
            record(journal).store(&dirs).expect("stored");
        }
        let (records, refused) = RefreshedFiles::list(&dirs).expect("two");
        assert_eq!(records, [record("2-1-8:0"), record("1-1-8:0")]);
        assert!(refused.is_empty());
        let limits = records[0].limits().expect("rules");
        assert_eq!(
            limits,
            AccessRules { allow: vec![AccessRule::Pid(7)], deny: vec![AccessRule::User(26)] }
        );
        RefreshedFiles { files: Vec::new(), ..record("2-1-8:0") }.store(&dirs).expect("removed");
        records[1].remove(&dirs).expect("removed");
        assert!(RefreshedFiles::list(&dirs).expect("none").0.is_empty());
    }

    #[test]
    fn a_file_counts_only_while_it_has_the_window_that_it_was_given() {
        let record = record("1");
        let given = OpenFile { window: record.window, ..record.files[0].clone() };
        let found = |file: &OpenFile| record.original(file, file.window).is_some();
        assert!(found(&given));
        assert!(!found(&record.files[0]), "somebody has changed it back");
        assert!(!found(&OpenFile { inode: 13, ..given }), "another file");
    }

    #[test]
    fn records_of_another_boot_go_and_those_of_others_hands_are_refused() {
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
            "looking is all it does"
        );
        RefreshedFiles::forget_earlier_boots(&dirs);
        assert!(!path.exists());
    }
}
