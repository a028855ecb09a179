//! Tests the control loop with a simulated back end that records its calls.

use std::collections::BTreeMap;
use std::convert::Infallible;

use foreread_control::{
    AbTest, ActionKind, ActionSink, BdiKey, BdiSample, Bounds, ControlLoop, DirectoryQuery,
    EventSource, ExternalChange, FileAction, FileKey, FileState, Listing, LoopConfig, LoopNote,
    LoopSample, LoopState, MemoryInputs, Released, Tuning,
};
use policy::{AccessEvent, DeviceCompletions, EventKind, OpenFileId, Window};
use units::{Bytes, Nanos, PageSize, Pages};

const BDI: BdiKey = BdiKey(0);
const INTERVAL: Nanos = Nanos::from_millis(100);

/// A call of the loop to the back end.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Act(Vec<ActionKind>),
    Advise(Vec<ActionKind>),
    NewFileWindow(Option<Pages>),
    Restore,
    Reapply,
    Release { leave: bool },
    Note(LoopNote),
}

/// A bdi with sequential readers that wait for about half of the time.
struct Fake {
    now: Nanos,
    windows: Vec<Pages>,
    places: Vec<u64>,
    reads: bool,
    events: Vec<(FileKey, AccessEvent)>,
    completions: DeviceCompletions,
    under_pressure: bool,
    changed: Option<ExternalChange>,
    calls: Vec<Call>,
    samples: usize,
}

impl Fake {
    fn new(readers: usize) -> Self {
        Self {
            now: Nanos::from_secs(1),
            windows: vec![Pages::new(32); readers],
            places: vec![0; readers],
            reads: true,
            events: Vec::new(),
            completions: DeviceCompletions::default(),
            under_pressure: false,
            changed: None,
            calls: Vec::new(),
            samples: 0,
        }
    }

    /// Simulates one interval of reading: larger windows read more.
    fn read(&mut self) {
        self.now += INTERVAL;
        if !self.reads {
            return;
        }
        for (reader, place) in self.places.iter_mut().enumerate() {
            let size = self.windows[reader].max(Pages::new(1));
            for _ in 0..4 {
                let window = Window { start: *place, size, async_size: size };
                let kinds = [
                    EventKind::Mark { before: Window::default() },
                    EventKind::Window { window, mapped: false },
                    EventKind::Stall { wait: Nanos::from_millis(12) },
                ];
                let file = Some(OpenFileId::new(reader as u64));
                let event = |kind| AccessEvent {
                    at: self.now,
                    kind,
                    file,
                    index: *place,
                    request: size,
                    previous: None,
                };
                let key = FileKey(0, reader as u64);
                self.events.extend(kinds.map(|kind| (key, event(kind))));
                *place += size.get();
                self.completions.reads += 1;
                self.completions.bytes += size.to_bytes(PageSize::FOUR_KIB);
                self.completions.time += Nanos::from_millis(12);
            }
        }
    }

    fn run(&mut self, control: &mut ControlLoop, intervals: usize) {
        for _ in 0..intervals {
            self.read();
            let Ok(()) = control.step(self);
        }
    }

    fn count(&self, is: impl Fn(&Call) -> bool) -> usize {
        self.calls.iter().filter(|call| is(call)).count()
    }

    fn windows_set(&self) -> usize {
        let is_window = |kind: &ActionKind| matches!(kind, ActionKind::SetWindow(_));
        self.count(|call| matches!(call, Call::Act(kinds) if kinds.iter().any(is_window)))
    }
}

impl EventSource for Fake {
    type Error = Infallible;

    fn now(&self) -> Nanos {
        self.now
    }

    fn poll(&mut self) -> bool {
        !self.events.is_empty()
    }

    fn sample(
        &mut self,
        _followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, Infallible> {
        self.samples += 1;
        let bdi = BdiSample {
            bounds: Bounds::default(),
            completions: self.completions,
            events: std::mem::take(&mut self.events),
        };
        let memory = MemoryInputs {
            caches: BTreeMap::from([(0, Bytes::from_gib(4))]),
            under_pressure: self.under_pressure,
            ..MemoryInputs::default()
        };
        Ok(LoopSample { now: self.now, bdis: BTreeMap::from([(BDI, bdi)]), memory })
    }

    fn file_state(&mut self, _bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        Some(FileState {
            file_pages: Pages::new(1 << 30),
            window: *self.windows.get(file.get() as usize)?,
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
}

impl ActionSink for Fake {
    fn maintain(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn act(
        &mut self,
        _bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, Infallible> {
        for action in &actions {
            if let ActionKind::SetWindow(window) = action.kind {
                self.windows[action.file.get() as usize] = window;
            }
        }
        self.calls.push(Call::Act(actions.into_iter().map(|action| action.kind).collect()));
        Ok(Ok(()))
    }

    fn set_new_file_window(
        &mut self,
        _bdi: BdiKey,
        window: Option<Pages>,
    ) -> Result<Result<(), ExternalChange>, Infallible> {
        self.calls.push(Call::NewFileWindow(window));
        Ok(Ok(()))
    }

    fn advise(&mut self, _bdi: BdiKey, actions: Vec<FileAction>) -> Result<(), Infallible> {
        self.calls.push(Call::Advise(actions.into_iter().map(|action| action.kind).collect()));
        Ok(())
    }

    fn check_external_change(
        &mut self,
        _bdi: BdiKey,
    ) -> Result<Result<(), ExternalChange>, Infallible> {
        Ok(self.changed.clone().map_or(Ok(()), Err))
    }

    fn keep_directory(&mut self, _bdi: BdiKey, _keep: bool) {}

    fn restore(&mut self, _bdi: BdiKey) -> Result<(), Infallible> {
        self.calls.push(Call::Restore);
        self.windows.fill(Pages::new(32));
        Ok(())
    }

    fn reapply(&mut self, _bdi: BdiKey) -> Result<(), Infallible> {
        self.calls.push(Call::Reapply);
        Ok(())
    }

    fn release(&mut self, _bdi: BdiKey, leave: bool) -> Result<Released, Infallible> {
        self.calls.push(Call::Release { leave });
        Ok(Released { changed: 2, restored: 1 })
    }

    fn note(&mut self, note: &LoopNote) {
        self.calls.push(Call::Note(note.clone()));
    }
}

fn config() -> LoopConfig {
    LoopConfig {
        dry_run: false,
        new_files: true,
        leave: false,
        ab_test: None,
        page: PageSize::FOUR_KIB,
        tuning: Tuning::DEFAULT,
    }
}

#[test]
fn waiting_streams_get_larger_windows_and_the_end_restores() {
    let (mut fake, mut control) = (Fake::new(2), ControlLoop::new(config()));
    fake.run(&mut control, 60);
    assert!(fake.windows_set() > 0, "{:?}", fake.calls);
    assert!(fake.windows.iter().all(|window| *window > Pages::new(32)), "{:?}", fake.windows);
    assert!(fake.count(|call| matches!(call, Call::NewFileWindow(Some(_)))) > 0);
    let Ok(released) = control.end(&mut fake);
    assert_eq!(released, Released { changed: 2, restored: 1 });
    assert_eq!(fake.calls.last(), Some(&Call::Release { leave: false }));
}

#[test]
fn a_dry_run_reports_and_does_nothing() {
    let mut control = ControlLoop::new(LoopConfig { dry_run: true, ..config() });
    let mut fake = Fake::new(2);
    fake.run(&mut control, 60);
    let advised = |call: &Call| matches!(call, Call::Advise(kinds) if !kinds.is_empty());
    assert!(fake.count(advised) > 0);
    assert_eq!(fake.count(|call| !matches!(call, Call::Advise(_))), 0, "{:?}", fake.calls);
    let Ok(released) = control.end(&mut fake);
    assert_eq!((released, control_calls(&fake)), (Released::default(), 0));
}

fn control_calls(fake: &Fake) -> usize {
    fake.count(|call| !matches!(call, Call::Advise(_)))
}

#[test]
fn a_bdi_that_another_process_changes_is_managed_no_longer() {
    let (mut fake, mut control) = (Fake::new(2), ControlLoop::new(config()));
    fake.run(&mut control, 30);
    let change = ExternalChange("read_ahead_kb was changed".to_owned());
    fake.changed = Some(change.clone());
    fake.calls.clear();
    fake.run(&mut control, 1);
    let note = Call::Note(LoopNote::Unmanaged(BDI, change.clone()));
    assert_eq!(fake.calls, [Call::Release { leave: true }, note]);
    assert_eq!(*control.state(), LoopState::Unmanaged(change));
    fake.run(&mut control, 30);
    let Ok(released) = control.end(&mut fake);
    assert_eq!((released, fake.calls.len()), (Released::default(), 2), "it is left alone");
}

#[test]
fn lasting_memory_pressure_restores_everything_until_it_is_over() {
    let (mut fake, mut control) = (Fake::new(2), ControlLoop::new(config()));
    fake.run(&mut control, 30);
    fake.under_pressure = true;
    fake.run(&mut control, 50);
    fake.under_pressure = false;
    fake.run(&mut control, 1);
    assert_eq!(fake.count(|call| *call == Call::Restore), 0, "five seconds are not long enough");
    fake.under_pressure = true;
    fake.run(&mut control, 110);
    assert_eq!(*control.state(), LoopState::MemoryPressure);
    let stopped = Call::Note(LoopNote::Stopped(LoopState::MemoryPressure));
    assert_eq!(
        fake.calls.iter().rev().take(2).rev().collect::<Vec<_>>(),
        [&Call::Restore, &stopped]
    );
    fake.under_pressure = false;
    fake.run(&mut control, 110);
    assert_eq!(*control.state(), LoopState::Acting);
    assert_eq!(fake.count(|call| *call == Call::Note(LoopNote::Resumed)), 1);
}

#[test]
fn an_a_b_test_alternates_and_measures() {
    let ab_test = Some(AbTest::new(Nanos::from_secs(2), 7));
    let mut control = ControlLoop::new(LoopConfig { ab_test, ..config() });
    let mut fake = Fake::new(2);
    fake.run(&mut control, 600);
    let restored = fake.count(|call| *call == Call::Restore);
    let reapplied = fake.count(|call| *call == Call::Reapply);
    assert!(restored >= 8 && reapplied.abs_diff(restored) <= 1, "{restored} {reapplied}");
    let effect = control.effect().expect("enough slots");
    assert!(effect.pairs >= 6 && effect.ratio > 1.0, "{effect:?}");
}

#[test]
fn an_idle_loop_samples_once_a_second_and_gives_new_files_the_bdis_own_window() {
    let (mut fake, mut control) = (Fake::new(2), ControlLoop::new(config()));
    fake.run(&mut control, 60);
    fake.reads = false;
    fake.run(&mut control, 50);
    (fake.samples, fake.calls) = (0, Vec::new());
    fake.run(&mut control, 100);
    assert!((8..=11).contains(&fake.samples), "{}", fake.samples);
    assert!(fake.count(|call| matches!(call, Call::NewFileWindow(Some(_)))) == 0);
    assert!(fake.count(|call| *call == Call::NewFileWindow(None)) > 90);
}

#[test]
fn pauses_are_short_while_readers_begin_and_long_after_a_long_step() {
    let control = ControlLoop::new(config());
    assert_eq!(control.next_delay(INTERVAL, Nanos::ZERO), INTERVAL, "nothing is known");
    let (mut fake, mut control) = (Fake::new(2), ControlLoop::new(config()));
    fake.run(&mut control, 2);
    assert_eq!(control.next_delay(INTERVAL, Nanos::ZERO), INTERVAL.scaled(0.25));
    assert_eq!(control.next_delay(INTERVAL, Nanos::from_millis(2)), Nanos::from_millis(60));
    assert_eq!(control.next_delay(INTERVAL, Nanos::from_millis(20)), INTERVAL);
}
