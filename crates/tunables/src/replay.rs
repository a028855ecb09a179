//! Reads a journal and determines which changes are still to be undone.

use std::path::{Path, PathBuf};

use crate::journal_entry::{JournalEntry, OLDEST_VERSION, UndoneEntry, VERSION, read_own};
use crate::registry::{admits, find_exactly};
use crate::{JournalError, JournalHeader, JournaledChange, Tunable, Value};

/// A journal that was read and checked.
#[derive(Clone, Debug)]
pub struct Replay {
    pub(crate) path: PathBuf,
    /// The length of the complete lines in bytes.
    pub(crate) sound_bytes: u64,
    /// The first line; `None` if it is incomplete, in which case nothing was changed.
    pub header: Option<JournalHeader>,
    /// Changes that are not yet restored.
    pub open: Vec<OpenChange>,
    /// True if the owner completed an apply.
    pub kept: bool,
    /// The tunable of the last change, if its side effects are not yet handled; otherwise `None`.
    pub(crate) upsetting: Option<&'static Tunable>,
    changes: u64,
}

/// A file of a tunable that is or may be changed.
#[derive(Clone, Debug)]
pub struct OpenChange {
    pub tunable: &'static Tunable,
    pub file: PathBuf,
    /// True if requested; false if the value was only preserved during other changes.
    pub asked: bool,
    /// The value before the first change.
    pub original: Value,
    /// The values that may be present because of this run: the value that the last change wrote or
    /// was about to write, and the value that it replaced, if that was also from this run, because
    /// the write may not have happened.
    pub ours: Vec<Value>,
}

impl Replay {
    /// Reads and checks the journal at `path`.
    pub fn load(path: &Path) -> Result<Self, JournalError> {
        Self::parse(path, &read_own(path)?)
    }

    /// Checks the content of the journal at `path`.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, JournalError> {
        if !may_begin(bytes) {
            let problem = "it does not start like a journal".to_owned();
            return Err(JournalError::Refused { path: path.to_owned(), line: 1, problem });
        }
        let sound = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut replay = Self {
            path: path.to_owned(),
            sound_bytes: sound as u64,
            header: None,
            open: Vec::new(),
            kept: false,
            upsetting: None,
            changes: 0,
        };
        let lines = bytes[..sound].split_inclusive(|byte| *byte == b'\n');
        for (index, line) in lines.enumerate() {
            let entry = serde_json::from_slice(line).map_err(|error| error.to_string());
            entry.and_then(|entry| replay.take(entry)).map_err(|problem| {
                JournalError::Refused { path: path.to_owned(), line: index + 1, problem }
            })?;
        }
        Ok(replay)
    }

    fn take(&mut self, entry: JournalEntry) -> Result<(), String> {
        match entry {
            JournalEntry::Begin(header) => self.begin(header),
            JournalEntry::Change(change) => self.change(change),
            JournalEntry::Confirmed { number } => self.calm(number),
            JournalEntry::Kept { .. } => self.keep(),
            JournalEntry::Undone(settled) => self.settle(&settled),
        }
    }

    fn begin(&mut self, header: JournalHeader) -> Result<(), String> {
        if self.header.is_some() {
            return Err("a second beginning".to_owned());
        }
        if !(OLDEST_VERSION..=VERSION).contains(&header.version) {
            return Err(format!("version {} is not {OLDEST_VERSION} to {VERSION}", header.version));
        }
        self.header = Some(header);
        Ok(())
    }

    fn change(&mut self, change: JournaledChange) -> Result<(), String> {
        let header = self.header.as_ref().ok_or("a change before the header")?;
        if change.number != self.changes + 1 {
            return Err(format!("change {} follows change {}", change.number, self.changes));
        }
        let tunable = find_exactly(&change.tunable)
            .ok_or_else(|| format!("there is no tunable {:?}", change.tunable))?;
        if !admits(tunable, &header.site, &change.file) {
            let (recorded, right) = (change.file.display(), tunable.file(&header.site));
            return Err(format!("{} is at {}, not {recorded}", tunable.name(), right.display()));
        }
        for value in [&change.old, &change.new] {
            tunable.encode(value).map_err(|error| error.to_string())?;
        }
        self.changes += 1;
        if !change.held {
            self.upsetting = (!tunable.side_effects().is_empty()).then_some(tunable);
        }
        let known = |open: &&mut OpenChange| open.is(tunable.name(), &change.file);
        match self.open.iter_mut().find(known) {
            Some(open) => {
                // A value of another process does not become ours because a change found it.
                open.ours.retain(|value| *value == change.old);
                open.ours.push(change.new);
                open.asked |= !change.held;
            }
            None => self.open.push(OpenChange {
                tunable,
                file: change.file,
                asked: !change.held,
                original: change.old,
                ours: vec![change.new],
            }),
        }
        Ok(())
    }

    fn calm(&mut self, number: u64) -> Result<(), String> {
        if number > self.changes {
            return Err(format!("change {number} was not made"));
        }
        self.upsetting = None;
        Ok(())
    }

    fn keep(&mut self) -> Result<(), String> {
        if self.header.is_none() || self.kept {
            return Err("kept before the header, or twice".to_owned());
        }
        self.kept = true;
        Ok(())
    }

    fn settle(&mut self, settled: &UndoneEntry) -> Result<(), String> {
        let one = |open: &OpenChange| {
            open.tunable.name() == settled.tunable
                && settled.file.as_ref().is_none_or(|file| open.file == *file)
        };
        let at = self.open.iter().position(one);
        let at = at.ok_or_else(|| format!("{:?} was not changed", settled.tunable))?;
        self.open.remove(at);
        Ok(())
    }
}

/// Returns whether the bytes may be the start of a journal, possibly torn. A power loss leaves the
/// start of the first line, zeros, or both.
fn may_begin(bytes: &[u8]) -> bool {
    const OPENING: &[u8] = br#"{"begin":"#;
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let start = &bytes[..bytes.len() - zeros];
    let shared = start.len().min(OPENING.len());
    start[..shared] == OPENING[..shared]
}

impl OpenChange {
    fn is(&self, tunable: &str, file: &Path) -> bool {
        self.tunable.name() == tunable && self.file == file
    }

    /// Returns the name of the tunable and the file.
    pub(crate) fn key(&self) -> (&'static str, PathBuf) {
        (self.tunable.name(), self.file.clone())
    }

    /// Returns the value last written or about to be written.
    pub fn last(&self) -> &Value {
        self.ours.last().unwrap_or(&self.original)
    }
}

#[cfg(test)]
mod tests {
    use host::{BdiId, DevNo};
    use proptest::prelude::*;
    use units::Bytes;

    use super::*;
    use crate::journal_entry::JournalOwner;
    use crate::journal_entry::JournalPurpose;
    use crate::{Identity, RestoreOutcome, TunableScope};

    fn kib(kib: u64) -> Value {
        Bytes::from_kib(kib).into()
    }

    fn begin() -> JournalEntry {
        let bdi = BdiId::new("7:0").expect("a bdi");
        JournalEntry::Begin(JournalHeader {
            version: VERSION,
            owner: JournalOwner { pid: 7, start_time: 8, boot_id: "b".to_owned() },
            site: TunableScope {
                bdi,
                devices: vec![DevNo { major: 7, minor: 0 }],
                ..TunableScope::nowhere()
            },
            identity: Identity::default(),
            purpose: JournalPurpose::Study,
            unix_ms: 1,
        })
    }

    fn change(number: u64, old: u64, new: u64) -> JournalEntry {
        JournalEntry::Change(JournaledChange {
            number,
            tunable: "read_ahead".to_owned(),
            file: "/sys/class/bdi/7:0/read_ahead_kb".into(),
            old: kib(old),
            new: kib(new),
            held: false,
            unix_ms: 2,
        })
    }

    fn undone() -> JournalEntry {
        let outcome = RestoreOutcome::Restored;
        let tunable = "read_ahead".to_owned();
        JournalEntry::Undone(UndoneEntry { tunable, file: None, outcome, unix_ms: 3 })
    }

    fn text(entries: &[JournalEntry]) -> String {
        let line = |entry| serde_json::to_string(entry).expect("JSON") + "\n";
        entries.iter().map(line).collect()
    }

    fn parse(text: &str) -> Result<Replay, String> {
        Replay::parse(Path::new("/j"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_old_value_is_the_original_and_the_last_change_is_ours() {
        let replay =
            parse(&text(&[begin(), change(1, 128, 4), change(2, 4, 64), change(3, 64, 4)]));
        let replay = replay.expect("sound");
        assert_eq!(replay.open.len(), 1);
        assert_eq!(replay.open[0].original, kib(128));
        assert_eq!(replay.open[0].ours, [kib(64), kib(4)]);
        assert_eq!(replay.changes, 3);
    }

    #[test]
    fn what_was_written_earlier_in_the_run_is_not_ours_any_more() {
        let changes = [begin(), change(1, 128, 4), change(2, 4, 64), change(3, 64, 1024)];
        let replay = parse(&text(&changes)).expect("sound");
        assert_eq!(replay.open[0].original, kib(128));
        assert_eq!(replay.open[0].ours, [kib(64), kib(1024)]);
        // Nor is a value that was found there and that this run had not written.
        let replay = parse(&text(&[begin(), change(1, 128, 4), change(2, 777, 64)]));
        assert_eq!(replay.expect("sound").open[0].ours, [kib(64)]);
    }

    #[test]
    fn what_was_put_back_is_not_open() {
        let replay = parse(&text(&[begin(), change(1, 128, 4), undone()])).expect("sound");
        assert!(replay.open.is_empty());
    }

    #[test]
    fn a_last_line_half_written_does_not_count() {
        let whole = text(&[begin(), change(1, 128, 4)]);
        let torn = text(&[begin(), change(1, 128, 4), change(2, 4, 64)]);
        for end in whole.len()..torn.len() {
            let replay = parse(&torn[..end]).expect("the last line counts for nothing");
            assert_eq!(replay.open[0].ours, [kib(4)]);
            assert_eq!(replay.sound_bytes, whole.len() as u64);
        }
        assert!(parse("").expect("nothing yet").header.is_none());
        assert!(parse("{\"begin\":{\"ver").expect("torn").header.is_none());
        assert!(parse("\0\0\0\0").expect("torn by a power cut").header.is_none());
    }

    #[test]
    fn hands_in_the_journal_are_found_out() {
        let sound = text(&[begin(), change(1, 128, 4), change(2, 4, 64)]);
        let edited = |from: &str, to: &str| {
            assert!(sound.contains(from), "{from}");
            parse(&sound.replacen(from, to, 1)).expect_err(to)
        };
        let elsewhere = edited("/sys/class/bdi/7:0/read_ahead_kb", "/etc/shadow");
        assert!(
            elsewhere.contains("line 2") && elsewhere.contains("not /etc/shadow"),
            "{elsewhere}"
        );
        // The bdi is in the first line, which accepts only names without a path separator.
        let out = edited(r#""bdi":"7:0""#, r#""bdi":"../../../etc""#);
        assert!(out.contains("line 1"), "{out}");
        assert!(edited(r#""bdi":"7:0""#, r#""bdi":"7:1""#).contains("line 2"));
        assert!(edited(r#""tunable":"read_ahead""#, r#""tunable":"ra""#).contains("no tunable"));
        assert!(edited(r#""number":2"#, r#""number":3"#).contains("line 3"));
        assert!(
            edited(r#""old":{"bytes":131072}"#, r#""old":{"bytes":131073}"#).contains("line 2")
        );
        assert!(edited(r#""old":{"bytes":131072}"#, r#""old":"0; rm""#).contains("line 2"));
        assert!(edited(r#""version":2"#, r#""version":3"#).contains("line 1"));
        assert!(edited(r#""unix_ms":2"#, r#""unix_ms":2,"run":"rm""#).contains("unknown field"));
        assert!(edited("\n", "\nnonsense\n").contains("line 2"));
        assert!(edited("\n", "\n\n").contains("line 2"));
    }

    #[test]
    fn entries_out_of_order_are_refused() {
        for entries in [
            vec![change(1, 128, 4)],
            vec![begin(), begin()],
            vec![begin(), undone()],
            vec![begin(), change(1, 128, 4), undone(), undone()],
            vec![begin(), change(2, 128, 4)],
        ] {
            assert!(parse(&text(&entries)).is_err(), "{entries:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Replay::parse(Path::new("/j"), &bytes);
        }

        #[test]
        fn any_one_byte_changed_is_survived_and_no_path_is_led_astray(
            at in any::<prop::sample::Index>(), byte: u8
        ) {
            let mut bytes = text(&[begin(), change(1, 128, 4), change(2, 4, 64)]).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(replay) = Replay::parse(Path::new("/j"), &bytes)
                && let Some(header) = &replay.header
            {
                for open in &replay.open {
                    let file = open.tunable.file(&header.site);
                    prop_assert!(file.starts_with("/sys/class/bdi"));
                    prop_assert!(file.ends_with("read_ahead_kb"));
                }
            }
        }

        #[test]
        fn cut_anywhere_a_journal_is_sound(cut in any::<prop::sample::Index>()) {
            let whole = text(&[begin(), change(1, 128, 4), change(2, 4, 64), undone()]);
            prop_assert!(parse(&whole[..cut.index(whole.len())]).is_ok());
        }
    }
}
