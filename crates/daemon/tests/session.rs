//! Recording the loop and replaying it.
#![allow(clippy::unwrap_used)] // a test may panic

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};
use std::rc::Rc;

use control::{
    ActionKind, ActionSink, BdiKey, BdiSample, Bounds, ControlLoop, DirectoryQuery, EventSource,
    ExternalChange, FileAction, FileKey, FileState, Listing, LoopNote, LoopSample, MemoryInputs,
    Released,
};
use foreread_daemon::{
    RecordingBackend, SessionEntry, SessionError, SessionHeader, SessionReport, SessionWriter,
    decide_session_again, read_session, replay_session,
};
use observe::OpenFileId;
use policy::{AccessEvent, DeviceCompletions, EventKind, Window};
use proptest::prelude::*;
use units::{Bytes, Nanos, PageSize, Pages};

const INTERVAL: Nanos = Nanos::from_millis(100);

/// The reads of a random reader in an interval.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Forward,
    Backward,
    Random(u64),
    Nothing,
    Closed,
}

/// Returns the bdi of a reader's file: each bdi has two readers.
fn bdi_of(reader: usize) -> BdiKey {
    BdiKey(reader as u32 / 2)
}

/// Readers that follow a random script.
struct Scripted {
    now: Nanos,
    script: Vec<Vec<Reading>>,
    step: usize,
    windows: Vec<Pages>,
    places: Vec<u64>,
    completions: DeviceCompletions,
    events: Vec<(BdiKey, (FileKey, AccessEvent))>,
    /// The step at which another process changes the last bdi.
    changed_at: Option<usize>,
    acted: Vec<FileAction>,
}

impl Scripted {
    fn new(script: Vec<Vec<Reading>>, changed_at: Option<usize>) -> Self {
        let readers = script.first().map_or(0, Vec::len);
        Self {
            now: Nanos::from_secs(1),
            script,
            step: 0,
            windows: vec![Pages::new(32); readers],
            places: vec![1 << 20; readers],
            completions: DeviceCompletions::default(),
            events: Vec::new(),
            changed_at,
            acted: Vec::new(),
        }
    }

    fn read(&mut self, reader: usize, reading: Reading) {
        let size = self.windows[reader].max(Pages::new(1));
        for round in 0..4 {
            let place = &mut self.places[reader];
            *place = match reading {
                Reading::Forward => *place + size.get(),
                Reading::Backward => place.saturating_sub(size.get()),
                Reading::Random(seed) => (seed + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44,
                Reading::Nothing | Reading::Closed => return,
            };
            let window = Window { start: *place, size, async_size: size };
            let kinds = [
                EventKind::Miss { before: Window::default() },
                EventKind::Window { window, mapped: false },
                EventKind::Stall { wait: Nanos::from_millis(12) },
            ];
            let event = |kind| AccessEvent {
                at: self.now,
                kind,
                file: Some(OpenFileId::new(reader as u64)),
                index: *place,
                request: size,
                previous: None,
            };
            let key = FileKey(0, reader as u64);
            self.events.extend(kinds.map(|kind| (bdi_of(reader), (key, event(kind)))));
            self.completions.reads += 1;
            self.completions.bytes += size.to_bytes(PageSize::FOUR_KIB);
            self.completions.time += Nanos::from_millis(12);
        }
    }

    fn reading(&self, reader: usize) -> Reading {
        let step = self.script.get(self.step.saturating_sub(1));
        step.and_then(|step| step.get(reader)).copied().unwrap_or(Reading::Nothing)
    }
}

impl EventSource for Scripted {
    type Error = io::Error;

    fn now(&self) -> Nanos {
        self.now
    }

    fn poll(&mut self) -> bool {
        self.now += INTERVAL;
        self.step += 1;
        for reader in 0..self.places.len() {
            self.read(reader, self.reading(reader));
        }
        !self.events.is_empty()
    }

    fn sample(
        &mut self,
        _followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> io::Result<LoopSample> {
        let bdi = BdiSample {
            bounds: Bounds::default(),
            completions: self.completions,
            events: Vec::new(),
        };
        let last = bdi_of(self.places.len() - 1);
        let mut bdis: BTreeMap<_, _> = (0..=last.0).map(|key| (BdiKey(key), bdi.clone())).collect();
        for (bdi, event) in self.events.drain(..) {
            bdis.get_mut(&bdi).unwrap().events.push(event);
        }
        let caches = BTreeMap::from([(0, Bytes::from_gib(4))]);
        let memory = MemoryInputs { caches, ..MemoryInputs::default() };
        Ok(LoopSample { now: self.now, bdis, memory })
    }

    fn file_state(&mut self, bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        let reader = file.get() as usize;
        if bdi != bdi_of(reader) || matches!(self.reading(reader), Reading::Closed) {
            return None;
        }
        Some(FileState {
            file_pages: Pages::new(1 << 30),
            window: *self.windows.get(reader)?,
            position: None,
            unmanaged: false,
            random: false,
            only_mapped: false,
            prime: false,
            domain: 0,
            page: Bytes::from_kib(4),
        })
    }

    fn find_directory(&mut self, _bdi: BdiKey, _query: &DirectoryQuery) -> Option<Listing> {
        None
    }

    fn path(&self, file: OpenFileId) -> Option<String> {
        Some(format!("/srv/data/{}", file.get()))
    }
}

impl ActionSink for Scripted {
    fn maintain(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn act(
        &mut self,
        _bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> io::Result<Result<(), ExternalChange>> {
        for action in &actions {
            if let ActionKind::SetWindow(pages) = action.kind {
                self.windows[action.file.get() as usize] = pages;
            }
        }
        self.acted.extend(actions);
        Ok(Ok(()))
    }

    fn set_new_file_window(
        &mut self,
        _bdi: BdiKey,
        _window: Option<Pages>,
    ) -> io::Result<Result<(), ExternalChange>> {
        Ok(Ok(()))
    }

    fn advise(&mut self, _bdi: BdiKey, actions: Vec<FileAction>) -> io::Result<()> {
        self.acted.extend(actions);
        Ok(())
    }

    fn check_external_change(&mut self, bdi: BdiKey) -> io::Result<Result<(), ExternalChange>> {
        Ok(match self.changed_at {
            Some(step) if step <= self.step && bdi == bdi_of(self.places.len() - 1) => {
                Err(ExternalChange("tuned changed it".to_owned()))
            }
            _ => Ok(()),
        })
    }

    fn keep_directory(&mut self, _bdi: BdiKey, _keep: bool) {}

    fn restore(&mut self, _bdi: BdiKey) -> io::Result<()> {
        Ok(())
    }

    fn reapply(&mut self, _bdi: BdiKey) -> io::Result<()> {
        Ok(())
    }

    fn release(&mut self, _bdi: BdiKey, _leave: bool) -> io::Result<Released> {
        Ok(Released::default())
    }

    fn note(&mut self, _note: &LoopNote) {}
}

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs and records a script; returns the recording and the actions.
fn record(header: &SessionHeader, script: Scripted) -> (Vec<u8>, Vec<FileAction>) {
    let file = Shared::default();
    let steps = script.script.len();
    let writer = SessionWriter::new(Box::new(file.clone()));
    let mut control = ControlLoop::new(header.loop_config());
    let mut backend = RecordingBackend::new(script, header, Some(writer));
    for _ in 0..steps {
        control.step(&mut backend).unwrap();
    }
    control.end(&mut backend).unwrap();
    let acted = backend.backend().acted.clone();
    drop(backend);
    let bytes = file.0.borrow().clone();
    (bytes, acted)
}

fn replayed(recording: Vec<u8>) -> Result<(SessionReport, Vec<FileAction>), SessionError> {
    let mut acted = Vec::new();
    let entries = read_session(Cursor::new(recording))?;
    let report = replay_session(entries, |_, action, _| acted.push(action.clone()))?;
    Ok((report, acted))
}

fn header(dry_run: bool, ab_test: Option<(Nanos, u64)>) -> SessionHeader {
    SessionHeader { ab_test, ..SessionHeader::new(dry_run, true, false, PageSize::FOUR_KIB) }
}

/// Generates scripts of four readers, each of which changes its pattern after some steps.
fn scripts() -> impl Strategy<Value = Vec<Vec<Reading>>> {
    let reading = prop_oneof![
        4 => Just(Reading::Forward),
        2 => Just(Reading::Backward),
        2 => any::<u64>().prop_map(Reading::Random),
        1 => Just(Reading::Nothing),
        1 => Just(Reading::Closed),
    ];
    let phase = (prop::collection::vec(reading, 4), 1usize..25);
    prop::collection::vec(phase, 1..6).prop_map(|phases| {
        phases.into_iter().flat_map(|(step, times)| std::iter::repeat_n(step, times)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_replay_decides_as_the_recorded_loop_did(
        script in scripts(),
        dry_run in any::<bool>(),
        seed in prop::option::of(any::<u64>()),
        changed_at in prop::option::weighted(0.2, 0usize..60),
    ) {
        let header = header(dry_run, seed.map(|seed| (Nanos::from_secs(2), seed)));
        let steps = script.len() as u64;
        let (recording, acted) = record(&header, Scripted::new(script, changed_at));
        let (report, again) = replayed(recording).unwrap();
        prop_assert_eq!(&report.difference, &None);
        prop_assert_eq!(report.steps, steps);
        prop_assert!(!report.is_cut && report.failed.is_none());
        prop_assert_eq!(again, acted);
    }

    /// Any content of the file gives a report or an error.
    #[test]
    fn a_damaged_recording_is_an_error_or_ends_early(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let script = vec![vec![Reading::Forward; 4]; 30];
        let (mut recording, _) = record(&header(false, None), Scripted::new(script, None));
        let at = at.index(recording.len());
        if cut { recording.truncate(at) } else { recording[at] = byte }
        let _ = replayed(recording);
    }
}

fn forward() -> (Vec<u8>, Vec<FileAction>) {
    let script = vec![vec![Reading::Forward; 4]; 40];
    record(&header(false, None), Scripted::new(script, None))
}

#[test]
fn what_a_killed_process_left_is_replayed() {
    let (recording, acted) = forward();
    assert!(!acted.is_empty());
    let half = recording[..recording.len() / 2].to_vec();
    let (report, again) = replayed(half).unwrap();
    assert!(report.is_cut && report.difference.is_none(), "{report:?}");
    assert!(report.steps > 5 && acted.starts_with(&again), "{report:?}");
}

#[test]
fn the_first_other_decision_is_named() {
    let (recording, _) = forward();
    let entries: Vec<SessionEntry> =
        read_session(Cursor::new(recording)).unwrap().collect::<Result<_, _>>().unwrap();
    let is_act = |entry: &SessionEntry| {
        matches!(entry, SessionEntry::Decision(foreread_daemon::LoopDecision::Act { .. }))
    };
    let act = entries.iter().position(is_act).unwrap();
    let without = entries.iter().enumerate().filter(|(at, _)| *at != act).map(|(_, one)| one);
    let lines: String = without.map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
    let (report, _) = replayed(lines.into_bytes()).unwrap();
    let difference = report.difference.unwrap();
    assert!(difference.decided.is_some() && difference.step > 1, "{difference:?}");
}

#[test]
fn what_is_no_recording_is_refused() {
    for text in ["", "{}\n", "hello\n", "{\"end\":null}\n{\"end\":null}\n"] {
        let refused = replayed(text.as_bytes().to_vec());
        assert!(matches!(refused, Err(SessionError::NotASession)), "{text:?}: {refused:?}");
    }
    let mut newer = header(false, None);
    newer.session_version += 1;
    let line = serde_json::to_string(&SessionEntry::Begin(newer)).unwrap();
    let refused = replayed((line + "\n\n").into_bytes());
    assert!(matches!(refused, Err(SessionError::Newer { .. })), "{refused:?}");
}

/// Version 1 did not name the bdi of an external change and of a listing.
#[test]
fn answers_of_version_1_are_read() {
    let lines = [
        r#"{"changed":["check","tuned changed it"]}"#,
        r#"{"directory":{"file":7,"orders":[[[1,2]]]}}"#,
    ];
    let entries = read_session(Cursor::new(lines.join("\n") + "\n")).unwrap();
    let entries: Vec<SessionEntry> = entries.collect::<Result<_, _>>().unwrap();
    assert!(matches!(entries[0], SessionEntry::Changed(_, _, None)), "{entries:?}");
    assert!(matches!(&entries[1], SessionEntry::Directory(one) if one.bdi.is_none()));
}

/// Lists recordings of programs on a virtual disk (`hdd-2008`): data/sessions/README.md.
fn kept_sessions() -> Vec<std::path::PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sessions");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension() == Some("gz".as_ref())).collect();
    paths.sort();
    paths
}

#[test]
fn recorded_programs_get_the_same_decisions() {
    let paths = kept_sessions();
    assert!(paths.len() >= 4);
    for path in paths {
        let (report, acted) = replayed(std::fs::read(&path).unwrap()).unwrap();
        let name = path.display();
        assert_eq!(
            report.difference, None,
            "{name}: if that is meant, run this package's test `decide_again --ignored`"
        );
        assert!(!acted.is_empty() && !report.is_cut, "{name}: {report:?}");
    }
}

#[test]
#[ignore = "rewrites the recordings, after a change of the rules that is meant"]
fn decide_again() {
    for path in kept_sessions() {
        let entries = read_session(Cursor::new(std::fs::read(&path).unwrap())).unwrap();
        let file = Shared::default();
        let writer = SessionWriter::new(Box::new(file.clone()));
        decide_session_again(entries, writer).unwrap();
        std::fs::write(&path, &*file.0.borrow()).unwrap();
    }
}

#[test]
fn deciding_again_by_the_same_rules_changes_nothing() {
    let (recording, _) = forward();
    let file = Shared::default();
    let entries = read_session(Cursor::new(recording.clone())).unwrap();
    decide_session_again(entries, SessionWriter::new(Box::new(file.clone()))).unwrap();
    let all = |bytes: Vec<u8>| -> Vec<SessionEntry> {
        read_session(Cursor::new(bytes)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(all(file.0.borrow().clone()), all(recording));
}
