//! Invariants of the controller under any events, and its behaviour in some situations.

use std::collections::{BTreeMap, BTreeSet};

use foreread_control::{
    ActionKind, BdiController, Bounds, Features, FileAction, FileKey, FileState, Inputs,
    MemoryInputs,
};
use policy::{AccessEvent, DeviceCompletions, EventKind, OpenFileId, Window};
use proptest::prelude::*;
use units::{Bytes, Nanos, PageSize, Pages};

const PAGE: PageSize = PageSize::FOUR_KIB;
const FILE: u64 = 1 << 20;
const OPENS: u64 = 6;
/// Open files, in this order: one that bypasses the cache, one whose program advised random reads,
/// one whose descriptor is closed but which is mapped, and one that is closed after a while.
const UNMANAGED: u64 = 4;
const RANDOM: u64 = 3;
const ONLY_MAPPED: u64 = 2;
const CLOSES: u64 = 5;

fn inputs(now: Nanos, under_pressure: bool) -> Inputs {
    let done = now.get() / 1_000_000;
    Inputs {
        now,
        completions: DeviceCompletions {
            reads: done,
            bytes: Bytes::from_kib(128) * done,
            time: Nanos::from_millis(done),
        },
        memory: MemoryInputs {
            caches: BTreeMap::from([(0, Bytes::from_mib(256))]),
            prefetched: None,
            limited: BTreeSet::from([0]),
            under_pressure,
        },
    }
}

fn event(kind: EventKind, index: u64, pages: u64) -> AccessEvent {
    let (at, file) = (Nanos::ZERO, None);
    AccessEvent { at, kind, file, index, request: Pages::new(pages), previous: None }
}

fn window(start: u64, pages: u64, mapped: bool) -> AccessEvent {
    let window = Window { start, size: Pages::new(pages), async_size: Pages::ZERO };
    event(EventKind::Window { window, mapped }, start, pages)
}

fn mark(index: u64, pages: u64) -> AccessEvent {
    event(EventKind::Mark { before: Window::default() }, index, pages)
}

fn stall(ms: u64) -> AccessEvent {
    event(EventKind::Stall { wait: Nanos::from_millis(ms) }, 0, 0)
}

fn any_event() -> impl Strategy<Value = AccessEvent> {
    let place = (0..FILE, 1_u64..64);
    prop_oneof![
        (place.clone(), any::<bool>()).prop_map(|((index, pages), follows)| AccessEvent {
            previous: follows.then(|| Bytes::new(index * 4096)),
            ..event(EventKind::Miss { before: Window::default() }, index, pages)
        }),
        place.clone().prop_map(|(index, pages)| mark(index, pages)),
        (place, any::<bool>()).prop_map(|((index, pages), mapped)| window(index, pages, mapped)),
        (0_u64..200).prop_map(stall),
    ]
}

/// A machine whose open files get the windows that the controller requests.
struct Stage {
    controller: BdiController,
    windows: [Pages; OPENS as usize],
    now: Nanos,
}

impl Stage {
    fn new(bounds: Bounds) -> Self {
        let windows = [Pages::new(32); OPENS as usize];
        Self { controller: BdiController::new(bounds, PAGE), windows, now: Nanos::ZERO }
    }

    fn on_event(&mut self, open: u64, event: AccessEvent) {
        let event = AccessEvent { at: self.now, file: Some(OpenFileId::new(open)), ..event };
        self.controller.on_event(FileKey(0, open), &event);
    }

    fn tick(&mut self, closed: bool, under_pressure: bool) -> Vec<FileAction> {
        self.now += Nanos::from_millis(100);
        let windows = self.windows;
        let facts = |key: OpenFileId| {
            (!closed || key.get() != CLOSES).then(|| FileState {
                file_pages: Pages::new(FILE),
                window: windows[key.get() as usize],
                position: None,
                unmanaged: key.get() == UNMANAGED,
                random: key.get() == RANDOM,
                only_mapped: key.get() == ONLY_MAPPED,
                prime: false,
                domain: 0,
                page: PAGE.bytes(),
            })
        };
        let actions = self.controller.decide(&inputs(self.now, under_pressure), facts);
        for action in &actions {
            if let ActionKind::SetWindow(window) = action.kind {
                self.windows[action.file.get() as usize] = window;
            }
        }
        actions
    }
}

proptest! {
    #[test]
    fn actions_stay_within_what_was_agreed(
        ticks in prop::collection::vec(
            (prop::collection::vec((0..OPENS, any_event()), 0..40), prop::bool::weighted(0.1)),
            1..80,
        ),
        most in prop::sample::select(vec![16_u64, 32, 272, 2048]),
    ) {
        let max_request = Pages::new(16);
        let bounds = Bounds { most: Pages::new(most), max_request, ..Bounds::default() };
        let mut stage = Stage::new(bounds);
        let mut without = [0; OPENS as usize];
        for (number, (events, pressure)) in ticks.into_iter().enumerate() {
            for (open, event) in events {
                stage.on_event(open, event);
            }
            let closed = number > 20;
            let own = stage.windows;
            let actions = stage.tick(closed, pressure);
            let mut met = BTreeSet::new();
            for action in &actions {
                prop_assert!(action.file.get() != UNMANAGED, "{action:?}");
                prop_assert!(!closed || action.file.get() != CLOSES, "{action:?}");
                match &action.kind {
                    ActionKind::SetWindow(window) => {
                        let file = action.file.get();
                        prop_assert!(![RANDOM, ONLY_MAPPED].contains(&file), "{action:?}");
                        let before = own[action.file.get() as usize];
                        prop_assert!(*window <= Pages::new(most).max(before).max(Pages::new(32)));
                        prop_assert!(met.insert(action.file), "two windows at once: {actions:?}");
                        let on_its_way = window.is_zero();
                        prop_assert!(action.why.is_empty() == on_its_way && !action.primes);
                    }
                    ActionKind::PrefetchFiles(_) | ActionKind::AwaitFiles(_) => {
                        prop_assert!(false, "no directory was given: {action:?}");
                    }
                    ActionKind::Report { .. } => prop_assert!(!action.why.is_empty()),
                    ActionKind::PrefetchMisses(run) => {
                        prop_assert!(action.file.get() != ONLY_MAPPED, "{action:?}");
                        prop_assert!(run.is_none_or(|run| run.get() > 1));
                    }
                    ActionKind::PrefetchCalls(_) => {
                        prop_assert!(![RANDOM, ONLY_MAPPED].contains(&action.file.get()));
                    }
                    ActionKind::Prefetch(extents) => prop_assert!(
                        extents.len() <= 16_384 && extents.iter().all(|it| it.end().get() <= FILE)
                    ),
                }
            }
            for (open, window) in stage.windows.iter().enumerate() {
                let gone = closed && open as u64 == CLOSES;
                without[open] = if window.is_zero() && !gone { without[open] + 1 } else { 0 };
                prop_assert!(without[open] <= 6, "{open} stays without a window");
            }
            let new_files = stage.controller.new_file_window();
            prop_assert!(new_files.is_none_or(|window| window.get() <= most));
        }
    }
}

/// Reads `count` pieces of this many pages at places far from each other, each in one call. Each
/// makes `waits` threads wait. Returns the actions of the ticks that follow.
fn read_pieces(
    stage: &mut Stage,
    (first, count): (u64, u64),
    pages: u64,
    waits: u64,
) -> Vec<ActionKind> {
    let mut kinds = Vec::new();
    for number in first..first + count {
        let place = number * 2000;
        let miss = event(EventKind::Miss { before: Window::default() }, place, pages);
        stage.on_event(0, AccessEvent { previous: Some(Bytes::ZERO), ..miss });
        (0..waits).for_each(|_| stage.on_event(0, stall(90)));
        kinds.extend(stage.tick(false, false).into_iter().map(|action| action.kind));
    }
    kinds
}

#[test]
fn large_calls_are_prefetched_until_calls_become_small() {
    let mut stage = Stage::new(Bounds { max_request: Pages::new(128), ..Bounds::default() });
    let is_about_calls = |kind: &ActionKind| {
        matches!(kind, ActionKind::PrefetchCalls(_) | ActionKind::PrefetchMisses(None))
    };
    let mut of_calls = |first, pages| {
        let kinds = read_pieces(&mut stage, (first, 20), pages, 1).into_iter();
        kinds.filter(is_about_calls).collect::<Vec<_>>()
    };
    assert_eq!(of_calls(0, 128), [], "the kernel reads them at once");
    let begun = [ActionKind::PrefetchCalls(Pages::new(1024))];
    assert_eq!((of_calls(20, 240), of_calls(40, 240)), (begun.to_vec(), vec![]));
    assert_eq!(of_calls(60, 16), [ActionKind::PrefetchMisses(None)]);
    assert_eq!(of_calls(80, 1025), [], "the prefetch would take too long");
}

#[test]
fn a_trend_is_followed_only_while_one_reader_waits() {
    let prefetches = |pages: u64, waits: u64| {
        let features = Features { what_if: false, ..Features::default() };
        let mut stage = Stage::new(Bounds { features, ..Bounds::default() });
        let kinds = read_pieces(&mut stage, (0, 40), pages, waits);
        kinds.iter().any(|kind| matches!(kind, ActionKind::Prefetch(_)))
    };
    assert_eq!((prefetches(16, 1), prefetches(16, 4)), (true, false));
    assert_eq!((prefetches(64, 1), prefetches(64, 4)), (true, false));
}

/// The reverse scan of a database: blocks of 3,809 bytes, backward, under `POSIX_FADV_RANDOM`.
#[test]
fn a_predictable_reader_that_advised_random_reads_is_prefetched() {
    let mut stage = Stage::new(Bounds::default());
    let mut end = FILE * 4096;
    let mut prefetched = Vec::new();
    for _ in 0..20 {
        for _ in 0..10 {
            let start = end - 3809;
            let (first, pages) = (start / 4096, (end - 1) / 4096 + 1 - start / 4096);
            stage.on_event(
                RANDOM,
                event(EventKind::Miss { before: Window::default() }, first, pages),
            );
            stage.on_event(RANDOM, stall(8));
            end = start;
        }
        for action in stage.tick(false, false) {
            match action.kind {
                ActionKind::Prefetch(extents) => prefetched.extend(extents),
                other => panic!("{other:?}"),
            }
        }
    }
    let pages: u64 = prefetched.iter().map(|it| it.pages.get()).sum();
    assert!(pages >= 150, "{pages} pages");
    let first = FILE - prefetched[0].end().get();
    assert!(first < 20, "it begins where the reader is, not {first} pages before the end");
}

/// Most reads hit the cache, and the misses have no regular step. Only samples show the backward
/// trend and the progress of the reader.
/// The faults of a mapping that is read in order: those that find pages cached map 16 pages, and
/// those between them are not sampled. A call came before.
#[test]
fn between_sampled_faults_of_a_mapping_nothing_is_left_out() {
    let prefetched = |mapped: bool| {
        let features = Features { what_if: false, ..Features::default() };
        let mut stage = Stage::new(Bounds { features, ..Bounds::default() });
        stage.on_event(0, event(EventKind::Miss { before: Window::default() }, 0, 1));
        for number in 1..=40 {
            stage.on_event(0, stall(1));
            stage.on_event(0, event(EventKind::Access { mapped }, number * 32, 16));
            let actions = stage.tick(false, false);
            let kinds = actions.into_iter().map(|action| action.kind);
            let pieces = kinds.filter_map(|kind| match kind {
                ActionKind::Prefetch(extents) => Some(extents),
                _ => None,
            });
            if let Some(piece) = pieces.flatten().next() {
                return Some(piece.pages.get() % 32);
            }
        }
        None
    };
    assert_eq!((prefetched(true), prefetched(false)), (Some(0), Some(16)));
}

#[test]
fn samples_of_cached_reads_show_a_trend_and_keep_a_plan_alive() {
    let mut stage = Stage::new(Bounds::default());
    let (mut page, mut prefetched) = (FILE, 0);
    let access = |index| event(EventKind::Access { mapped: false }, index, 2);
    let miss = |index| event(EventKind::Miss { before: Window::default() }, index, 1);
    stage.on_event(0, miss(page - 1));
    for tick in 0..100 {
        for _ in 0..64 {
            page -= 1;
            stage.on_event(0, access(page));
        }
        if tick < 3 {
            stage.on_event(0, miss(page - page * 7919 % 50));
            stage.on_event(0, stall(8));
        }
        let wanted = stage.controller.wants_samples(stage.now);
        assert!(tick == 0 || wanted.open == [OpenFileId::new(0)], "{wanted:?} at {tick}");
        for action in stage.tick(false, false) {
            if let ActionKind::Prefetch(extents) = action.kind {
                prefetched += extents.iter().map(|it| it.pages.get()).sum::<u64>();
            }
        }
    }
    assert!((5000..9000).contains(&prefetched), "{prefetched} pages for a reader of 6,400");
}

/// Four streams that always wait and have the same rate with any window, for ten minutes.
#[test]
fn where_nothing_is_won_it_comes_to_rest() {
    let mut stage = Stage::new(Bounds::default());
    let (mut changes, mut at) = (Vec::new(), [0_u64; 4]);
    for tick in 0..6000 {
        for open in 0..4_u64 {
            // 64 pages per tick, in windows of the current size, at most 64 pages.
            let place = &mut at[open as usize];
            let size = stage.windows[open as usize].get().clamp(1, 64);
            for _ in 0..64 / size {
                let index = *place % FILE;
                stage.on_event(open, mark(index, 16));
                stage.on_event(open, window(index, size, false));
                stage.on_event(open, stall(5));
                *place += size;
            }
        }
        let actions = stage.tick(false, false);
        let windows =
            actions.iter().filter(|action| matches!(action.kind, ActionKind::SetWindow(_)));
        changes.extend(windows.map(|_| tick));
    }
    let late = changes.iter().filter(|tick| **tick >= 3000).count();
    assert!(changes.len() <= 160, "{} changes in ten minutes", changes.len());
    assert!(late <= 32, "{late} changes in the last five minutes");
}

/// An open file is forgotten after a minute without an event, unless its window was changed: the
/// changed window would be mistaken for the original one.
#[test]
fn an_idle_open_file_keeps_its_own_window_in_memory() {
    const LIMIT: u64 = 272;
    let idle_for_two_minutes =
        |stage: &mut Stage| (0..1200).for_each(|_| drop(stage.tick(false, false)));
    let random_faults = |stage: &mut Stage| {
        for tick in 0..200 {
            for fault in 0..8 {
                // A larger window takes longer.
                let size = stage.windows[0].get().max(1);
                let number = tick * 8 + fault;
                let index = number * number * 7919 % FILE;
                stage.on_event(0, window(index, size, true));
                stage.on_event(0, stall(1 + size / 8));
            }
            stage.tick(false, false);
        }
    };
    let mut stage = Stage::new(Bounds { most: Pages::new(LIMIT), ..Bounds::default() });
    stage.on_event(1, mark(0, 16));
    random_faults(&mut stage);
    assert_ne!(stage.windows[0], Pages::new(32), "it was changed");
    idle_for_two_minutes(&mut stage);
    assert_eq!(stage.controller.followed(), 1, "the changed one, not the other");
}

/// A reader of a stream waits for each of `count` windows.
fn read_on(stage: &mut Stage, open: u64, place: &mut u64, count: u64) {
    for _ in 0..count {
        let pages = stage.windows[open as usize].get().max(1);
        stage.on_event(open, mark(*place, pages));
        stage.on_event(open, window(*place, pages, false));
        stage.on_event(open, stall(12));
        *place = (*place + pages) % FILE;
    }
}

/// A program reads a little of some files before it scans another one.
#[test]
fn streams_that_have_stopped_take_no_turns() {
    // Three streams would get this window later.
    let most = Pages::new(512);
    let mut stage = Stage::new(Bounds { most, ..Bounds::default() });
    [1, 5].into_iter().for_each(|open| read_on(&mut stage, open, &mut 0, 4));
    let mut place = 0;
    let windows = (0..14).map(|_| {
        read_on(&mut stage, 0, &mut place, 1);
        stage.tick(false, false);
        stage.windows[0]
    });
    assert_eq!(windows.max(), Some(most));
}

/// Returns the window for files opened later, while file 0 is read forward by a reader that waits.
/// `with_mapping` adds random reads of a mapping without a descriptor.
fn window_for_new_files(with_mapping: bool) -> Option<Pages> {
    let mut stage = Stage::new(Bounds::default());
    let (mut place, mut random) = (0, 1);
    for _ in 0..40 {
        read_on(&mut stage, 0, &mut place, 4);
        for _ in 0..if with_mapping { 8 } else { 0 } {
            random = random * 7919 % 10_007;
            stage.on_event(ONLY_MAPPED, window(random * 64 % FILE, 32, true));
            stage.on_event(ONLY_MAPPED, stall(5));
        }
        stage.tick(false, false);
    }
    stage.controller.new_file_window()
}

#[test]
fn random_reads_of_a_mapping_without_a_descriptor_leave_new_files_alone() {
    assert!(window_for_new_files(false) > Some(Pages::new(32)));
    assert_eq!(window_for_new_files(true), None);
}
