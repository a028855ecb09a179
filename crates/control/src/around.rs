//! Which window serves the random faults of a mapping best, found by trial.
//!
//! A fault reads as much as the window allows around itself. Where single pages are wanted most of
//! that is in vain; where pieces of several pages are wanted, a small window costs a fault for each
//! part of a piece. Faults per second say nothing of either, so what is compared is how long
//! readers wait for a *piece*: for all faults that lie within a window's length of each other.
//! The mapping's own window is measured first, then smaller ones down to a page, until one is
//! worse than the best so far. Readers may come back to pages beside a piece much later, as who
//! reads a table by columns does. The own window would have brought these pages the first time. So
//! such a fault is added to the piece that was read there, and to the window that was too small.

use std::collections::{BTreeMap, VecDeque};

use crate::tuning::random_faults as tuning;
use policy::Window;
use units::{Nanos, Pages};

/// The waits of all pieces that were read with one window.
#[derive(Clone, Copy, Debug)]
struct Waits {
    window: Pages,
    pieces: u64,
    faults: u64,
    waited: Nanos,
}

impl Waits {
    fn mean(&self) -> f64 {
        self.waited.as_secs_f64() / self.pieces.max(1) as f64
    }

    fn is_known(&self, best: f64) -> bool {
        let hopeless = self.pieces >= tuning::MIN_PIECES_HOPELESS
            && self.mean() > tuning::HOPELESS_WAIT_RATIO * best;
        self.pieces >= tuning::MIN_PIECES
            || self.faults >= tuning::MAX_FAULTS
            || hopeless
            || self.is_too_small(best)
    }

    /// Whether most pieces took several faults. Faults cost more than the waits that are seen, so
    /// such a window must be clearly faster.
    fn is_too_small(&self, best: f64) -> bool {
        let faults_per_piece = self.faults as f64 / self.pieces.max(1) as f64;
        self.pieces >= tuning::MIN_PIECES_HOPELESS
            && faults_per_piece > tuning::MAX_FAULTS_PER_PIECE
            && self.mean() > tuning::CLEARLY_FASTER_WAIT_RATIO * best
    }
}

/// A piece: the pages between its first and its last fault, and all that was read for it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: u64,
    last: u64,
    read: (u64, u64),
}

/// Where pieces were read, and with which window: as many of the last ones as the cache would hold
/// of the own window.
#[derive(Clone, Debug, Default)]
struct Visited {
    /// The number of the piece that was read last there, and the window.
    places: BTreeMap<u64, (usize, Pages)>,
    pieces: usize,
    most: usize,
}

impl Visited {
    /// A piece begins here with this window. Where the own one would have brought it before, the
    /// window that was in force then.
    fn add(&mut self, index: u64, window: Pages, own: Pages) -> Option<Pages> {
        self.pieces += 1;
        if self.most == 0 {
            return None;
        }
        let around = own.get() / 2;
        let mut near =
            self.places.range_mut(index.saturating_sub(around)..=index.saturating_add(around));
        if let Some((_, last)) = near.next() {
            let (_, before) = std::mem::replace(last, (self.pieces, window));
            return Some(before);
        }
        if self.places.len() >= self.most {
            let since = self.pieces - self.most / 2;
            self.places.retain(|_, (last, _)| *last > since);
        }
        self.places.insert(index, (self.pieces, window));
        None
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct RandomFaults {
    waits: Vec<Waits>,
    /// Which of them counts at the moment.
    current: Option<usize>,
    recent: VecDeque<Piece>,
    visited: Visited,
    /// Whether the own window was measured again after a smaller one had won.
    is_confirmed: bool,
    /// Pieces and their pages of late.
    pieces: f64,
    pages: f64,
}

impl RandomFaults {
    /// A fault had this window read around itself, in a mapping with that window of its own.
    pub fn fault(&mut self, index: u64, window: Window, own: Pages) {
        let read = (window.start, window.end());
        let goes_on = self.goes_on(index, read, own);
        let mut again = None;
        if !goes_on {
            if self.recent.len() == tuning::MAX_CURRENT_PIECES {
                self.recent.pop_front();
            }
            self.recent.push_back(Piece { first: index, last: index, read });
            (self.pieces, self.pages) = (self.pieces + 1.0, self.pages + 1.0);
            again = self.visited.add(index, window.size, own);
        }
        self.current = self.number_of(again.unwrap_or(window.size), own);
        if let Some(waits) = self.current.and_then(|current| self.waits.get_mut(current)) {
            waits.faults += 1;
            waits.pieces += u64::from(!goes_on && again.is_none());
        }
    }

    /// The number of the waits with a window, if it is one of those that are compared.
    fn number_of(&mut self, window: Pages, own: Pages) -> Option<usize> {
        let known = self.waits.iter().position(|waits| waits.window == window);
        known.or_else(|| {
            let tried = window == own || tuning::SMALLER_WINDOWS_PAGES.contains(&window.get());
            let none = Waits { window, pieces: 0, faults: 0, waited: Nanos::ZERO };
            tried.then(|| self.waits.push(none))?;
            Some(self.waits.len() - 1)
        })
    }

    /// A reader met this page within what was read before.
    pub fn mark(&mut self, index: u64, own: Pages) {
        self.goes_on(index, (index, index), own);
    }

    /// Whether a fault belongs to a piece that has begun; then it does.
    fn goes_on(&mut self, index: u64, read: (u64, u64), own: Pages) -> bool {
        let near = |piece: &Piece| {
            let (start, end) = piece.read;
            (start.saturating_sub(own.get())..=end.saturating_add(own.get())).contains(&index)
        };
        let Some(at) = self.recent.iter().rposition(near) else { return false };
        let Some(mut piece) = self.recent.remove(at) else { return false };
        let before = piece.last - piece.first;
        (piece.first, piece.last) = (piece.first.min(index), piece.last.max(index));
        piece.read = (piece.read.0.min(read.0), piece.read.1.max(read.1));
        self.pages += (piece.last - piece.first - before) as f64;
        self.recent.push_back(piece);
        true
    }

    /// The cache holds so many windows.
    pub fn cache_holds(&mut self, windows: u64) {
        let windows = usize::try_from(windows).unwrap_or(usize::MAX);
        self.visited.most = windows.min(tuning::MAX_VISITED_PIECES);
    }

    pub fn waited(&mut self, wait: Nanos) {
        if let Some(waits) = self.current.and_then(|current| self.waits.get_mut(current)) {
            waits.waited += wait;
        }
    }

    /// What was seen so far counts for this part only in the length of pieces.
    pub fn fade(&mut self, part: f64) {
        (self.pieces, self.pages) = (self.pieces * part, self.pages * part);
    }

    /// Whether pieces are no longer than the own window on average: it is read here and there.
    pub fn is_random(&self, own: Pages) -> bool {
        self.pieces > 0.0 && self.pages <= self.pieces * own.get() as f64
    }

    /// The window that it is to have: the best of those that were tried, or one that is to be
    /// tried; `primed`: its file is being primed.
    pub fn window(&self, own: Pages, primed: bool) -> Pages {
        let waits_of = |window| self.waits.iter().find(|waits| waits.window == window);
        let Some(of_own) = waits_of(own).filter(|waits| waits.is_known(f64::INFINITY)) else {
            return own;
        };
        let (mut best, mut tried) = (of_own.mean(), vec![*of_own]);
        let smaller = tuning::SMALLER_WINDOWS_PAGES
            .map(Pages::new)
            .into_iter()
            .filter(|window| *window < own);
        for window in smaller {
            let Some(waits) = waits_of(window).filter(|waits| waits.is_known(best)) else {
                return window;
            };
            if waits.is_too_small(best) {
                break;
            }
            tried.push(*waits);
            if waits.mean() > tuning::WORSE_WAIT_RATIO * best {
                break;
            }
            best = best.min(waits.mean());
        }
        let enough = if primed {
            tuning::MAX_WAIT_RATIO_PRIMED * of_own.mean()
        } else {
            tuning::EQUAL_WAIT_RATIO * best
        };
        let smallest = tried.iter().rev().find(|waits| waits.mean() <= enough);
        smallest.map_or(own, |waits| waits.window)
    }

    /// Measures the own window once more before a smaller one is settled on: first reads wait for
    /// metadata, too, and programs change what they do.
    pub fn confirm(&mut self, own: Pages) {
        if self.is_confirmed {
            return;
        }
        let chosen = self.window(own, false);
        let is_known = self.waits.iter().any(|waits| {
            waits.window == chosen && waits.pieces.max(waits.faults) >= tuning::MIN_PIECES
        });
        if chosen == own || !is_known {
            return;
        }
        self.is_confirmed = true;
        self.waits.retain(|waits| waits.window != own);
        self.current = None;
    }

    /// How long a piece takes with a window, as far as that is known.
    pub fn wait(&self, window: Pages) -> Option<Nanos> {
        let waits = self.waits.iter().find(|waits| waits.window == window)?;
        (waits.pieces > 0).then(|| Nanos::from_secs_f64(waits.mean()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Pages = Pages::new(32);

    fn window(start: u64, size: Pages) -> Window {
        Window { start, size, async_size: Pages::ZERO }
    }

    /// Reads pieces of so many pages until a window is settled on, where a fault takes `fault` and
    /// each page that it reads `page` microseconds; all windows that it had, and the pieces.
    fn settled(pages: u64, fault: u64, page: u64, primed: bool) -> (Vec<u64>, u64) {
        let (mut around, mut windows, mut pieces) = (RandomFaults::default(), vec![32], 0);
        for _ in 0..100 {
            let window = windows.last().copied().unwrap_or_default();
            for _ in 0..10 {
                let start = pieces * 7919 % 1000 * 1000;
                pieces += 1;
                let mut at = start;
                while at < start + pages {
                    let from = at.saturating_sub(window / 2);
                    let read = self::window(from, Pages::new(window));
                    around.fault(at, read, OWN);
                    around.waited(Nanos::from_micros(fault + page * window));
                    at = read.end().max(at + 1);
                }
            }
            assert!(around.is_random(OWN));
            around.confirm(OWN);
            let next = around.window(OWN, primed).get();
            if next != window {
                windows.push(next);
            }
        }
        (windows, pieces)
    }

    #[test]
    fn single_pages_get_a_page() {
        assert_eq!(settled(1, 100, 8, false).0, [32, 4, 1, 32, 1]);
        assert_eq!(settled(1, 330, 32, true).0, [32, 4, 1, 32, 1]);
    }

    #[test]
    fn pieces_of_several_pages_get_what_brings_them_at_once() {
        assert_eq!(settled(8, 330, 32, false).0, [32, 4, 32]);
        assert_eq!(settled(8, 8500, 45, false).0, [32, 4, 32]);
        assert_eq!(settled(16, 8500, 45, false).0, [32, 4, 32]);
    }

    #[test]
    fn a_window_that_takes_several_faults_for_a_piece_must_be_clearly_faster() {
        // Four faults wait nearly as long as one that reads four times as much as is wanted.
        assert_eq!(settled(8, 150, 32, false).0, [32, 4, 32]);
        let (windows, _) = settled(8, 20, 100, false);
        assert_eq!(windows.last(), Some(&1), "eight faults take a third of the time of one");
    }

    #[test]
    fn who_reads_a_table_by_columns_keeps_what_brings_several_at_once() {
        let windows = |columns: u64, holds: u64| {
            let (mut around, mut window) = (RandomFaults::default(), OWN.get());
            let mut cached = std::collections::BTreeSet::new();
            for row in 0..columns * 200 {
                let at = 10_000 + row % 200 * 96 + row / 200;
                if !cached.contains(&at) {
                    let read = self::window(at.saturating_sub(window / 2), Pages::new(window));
                    cached.extend(read.start..read.end());
                    around.fault(at, read, OWN);
                    around.waited(Nanos::from_micros(100 + 8 * window));
                }
                around.cache_holds(holds);
                around.confirm(OWN);
                window = around.window(OWN, false).get();
            }
            window
        };
        assert_eq!((windows(1, 1000), windows(3, 1000), windows(8, 1000)), (1, 4, OWN.get()));
        assert_eq!(windows(8, 0), 1, "the cache does not hold them until the next column");
    }

    #[test]
    fn first_reads_that_take_longer_do_not_decide() {
        let mut around = RandomFaults::default();
        let (mut window, mut pieces) = (OWN.get(), 0_u64);
        for _ in 0..30 {
            for _ in 0..10 {
                pieces += 1;
                let at = pieces * 7919 % 1000 * 1000;
                for fault in 0..8_u64.div_ceil(window) {
                    let read = self::window(at + fault * window, Pages::new(window));
                    around.fault(at + fault * window, read, OWN);
                    // Metadata is read with the first pieces.
                    let more = if pieces <= 20 { 2000 } else { 0 };
                    around.waited(Nanos::from_micros(300 + 8 * window + more));
                }
            }
            around.confirm(OWN);
            window = around.window(OWN, false).get();
        }
        assert_eq!(window, OWN.get());
    }

    #[test]
    fn where_seeks_take_the_time_a_primed_file_keeps_its_own_window() {
        assert_eq!(settled(1, 8500, 45, true).0, [32, 4, 1, 32]);
    }

    #[test]
    fn backward_and_forward_faults_near_each_other_are_one_long_piece() {
        for step in [16, -16] {
            let mut around = RandomFaults::default();
            let mut at = 100_000_u64;
            for _ in 0..20 {
                let read = window(at - 16, OWN);
                around.fault(at, read, OWN);
                at = at.saturating_add_signed(2 * step);
            }
            assert!(!around.is_random(OWN), "{step}");
        }
    }
}
