//! What the controller never does, whatever it sees.

use std::collections::{BTreeMap, BTreeSet};

use foreread_policy::control::{
    Act, Bounds, Completions, Controller, Facts, FileKey, OpenKey, Order, ReadEnd, Seen, Situation,
};
use foreread_policy::{Extent, Page};
use proptest::prelude::*;
use units::{Bytes, Nanos, Pages};

const PAGE: Bytes = Bytes::from_kib(4);
const FILE: u64 = 1 << 20;
const OPENS: u64 = 6;
/// This one is under FADV_RANDOM, and this one is closed after a while.
const HANDS_OFF: u64 = 4;
const CLOSES: u64 = 5;

fn situation(now: Nanos, tight: bool) -> Situation {
    let done = now.get() / 1_000_000;
    Situation {
        now,
        completions: Completions {
            reads: done,
            bytes: Bytes::from_kib(128) * done,
            time: Nanos::from_millis(done),
        },
        memory: BTreeMap::from([(0, Bytes::from_mib(256))]),
        asked: None,
        limited: BTreeSet::from([0]),
        tight,
    }
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let place = (0..FILE, 1_u64..64);
    prop_oneof![
        (place.clone(), any::<bool>()).prop_map(|((index, pages), follows)| Seen::Miss {
            index: Page::new(index),
            pages: Pages::new(pages),
            previous: follows.then(|| ReadEnd::of(Bytes::new(index * 4096), PAGE)),
        }),
        place.clone().prop_map(|(index, pages)| Seen::Mark {
            index: Page::new(index),
            pages: Pages::new(pages)
        }),
        (place, any::<bool>()).prop_map(|((index, pages), mapped)| Seen::Window {
            window: Extent::new(Page::new(index), Pages::new(pages)),
            index: Page::new(index),
            mapped,
        }),
        (0_u64..200).prop_map(|ms| Seen::Stall { wait: Nanos::from_millis(ms) }),
    ]
}

/// A machine whose open files take the windows that they are given.
struct Stage {
    controller: Controller,
    windows: [Pages; OPENS as usize],
    now: Nanos,
}

impl Stage {
    fn new(bounds: Bounds) -> Self {
        let windows = [Pages::new(32); OPENS as usize];
        Self { controller: Controller::new(bounds), windows, now: Nanos::ZERO }
    }

    fn see(&mut self, open: u64, seen: Seen) {
        self.controller.see(OpenKey(open), FileKey(0, open), self.now, seen);
    }

    fn tick(&mut self, closed: bool, tight: bool) -> Vec<Order> {
        self.now += Nanos::from_millis(100);
        let windows = self.windows;
        let facts = |key: OpenKey| {
            (!closed || key.0 != CLOSES).then(|| Facts {
                file_pages: Pages::new(FILE),
                window: windows[key.0 as usize],
                position: None,
                hands_off: key.0 == HANDS_OFF,
                domain: 0,
                page: PAGE,
            })
        };
        let orders = self.controller.decide(&situation(self.now, tight), facts);
        for order in &orders {
            if let Act::Window(window) = order.act {
                self.windows[order.key.0 as usize] = window;
            }
        }
        orders
    }
}

proptest! {
    #[test]
    fn orders_stay_within_what_was_agreed(
        ticks in prop::collection::vec(
            (prop::collection::vec((0..OPENS, any_seen()), 0..40), prop::bool::weighted(0.1)),
            1..80,
        ),
        most in prop::sample::select(vec![16_u64, 32, 272, 2048]),
    ) {
        let bounds = Bounds { most: Pages::new(most), ..Bounds::default() };
        let mut stage = Stage::new(bounds);
        let mut without = [0; OPENS as usize];
        for (number, (seen, tight)) in ticks.into_iter().enumerate() {
            for (open, seen) in seen {
                stage.see(open, seen);
            }
            let closed = number > 20;
            let own = stage.windows;
            let orders = stage.tick(closed, tight);
            let mut met = BTreeSet::new();
            for order in &orders {
                prop_assert!(order.key.0 != HANDS_OFF, "{order:?}");
                prop_assert!(!closed || order.key.0 != CLOSES, "{order:?}");
                match &order.act {
                    Act::Window(window) => {
                        let before = own[order.key.0 as usize];
                        prop_assert!(*window <= Pages::new(most).max(before).max(Pages::new(32)));
                        prop_assert!(met.insert(order.key), "two windows at once: {orders:?}");
                        let on_its_way = window.is_zero();
                        prop_assert!(order.why.is_empty() == on_its_way && !order.primes);
                    }
                    Act::Files(_) => prop_assert!(false, "no directory was given: {order:?}"),
                    Act::Answer(run) => prop_assert!(run.is_none_or(|run| run.get() > 1)),
                    Act::Prefetch(extents) => prop_assert!(
                        extents.len() <= 16_384 && extents.iter().all(|it| it.end().get() <= FILE)
                    ),
                }
            }
            for (open, window) in stage.windows.iter().enumerate() {
                let gone = closed && open as u64 == CLOSES;
                without[open] = if window.is_zero() && !gone { without[open] + 1 } else { 0 };
                prop_assert!(without[open] <= 6, "{open} stays without a window");
            }
            prop_assert!(stage.controller.for_new().is_none_or(|window| window.get() <= most));
        }
    }
}

/// Four streams that always wait and get the same whatever their window is, for ten minutes.
#[test]
fn where_nothing_is_won_it_comes_to_rest() {
    let mut stage = Stage::new(Bounds::default());
    let (mut changes, mut at) = (Vec::new(), [0_u64; 4]);
    for tick in 0..6000 {
        for open in 0..4_u64 {
            // 64 pages a tick, in windows of its present size or less.
            let place = &mut at[open as usize];
            let size = stage.windows[open as usize].get().clamp(1, 64);
            for _ in 0..64 / size {
                let index = Page::new(*place % FILE);
                stage.see(open, Seen::Mark { index, pages: Pages::new(16) });
                let window = Extent::new(index, Pages::new(size));
                stage.see(open, Seen::Window { window, index, mapped: false });
                stage.see(open, Seen::Stall { wait: Nanos::from_millis(5) });
                *place += size;
            }
        }
        let orders = stage.tick(false, false);
        let windows = orders.iter().filter(|order| matches!(order.act, Act::Window(_)));
        changes.extend(windows.map(|_| tick));
    }
    let late = changes.iter().filter(|tick| **tick >= 3000).count();
    assert!(changes.len() <= 160, "{} changes in ten minutes", changes.len());
    assert!(late <= 32, "{late} changes in the last five minutes");
}
