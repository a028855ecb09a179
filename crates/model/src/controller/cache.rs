//! The controller's cache of read-ahead data.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::slots::SlotIndex;

/// The index that marks the end of the LRU list.
const LIST_END: u32 = u32::MAX;

/// A cache line: present, or in flight with the requests that wait for it.
#[derive(Debug)]
struct Line {
    number: u64,
    ready: bool,
    /// The neighbours in the LRU list: the lines used before and after this one.
    older: u32,
    newer: u32,
    waiters: Vec<SlotIndex>,
}

/// Cache lines by number; a full cache evicts the least recently used line.
#[derive(Debug)]
pub(super) struct ControllerCache {
    places: HashMap<u64, u32, BuildHasherDefault<Scatter>>,
    lines: Vec<Line>,
    oldest: u32,
    newest: u32,
    limit: usize,
}

/// A hash for line numbers. They are not attacker-controlled, so a multiplication suffices.
#[derive(Debug, Default)]
struct Scatter(u64);

impl Hasher for Scatter {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheLookup {
    Ready,
    Coming,
    Missing,
}

impl ControllerCache {
    /// Creates a cache of at most `limit` lines.
    pub(super) fn new(limit: usize) -> Self {
        // Indices have 32 bits; no controller has that much memory.
        let limit = limit.min(LIST_END as usize);
        let (places, lines) = (HashMap::default(), Vec::new());
        Self { places, lines, oldest: LIST_END, newest: LIST_END, limit }
    }

    /// Returns the state of a line without updating the LRU list.
    pub(super) fn has(&self, number: u64) -> CacheLookup {
        match self.places.get(&number) {
            Some(&place) if self.lines[place as usize].ready => CacheLookup::Ready,
            Some(_) => CacheLookup::Coming,
            None => CacheLookup::Missing,
        }
    }

    /// Looks up a line for `reader`. If the line is in flight, adds the reader to its waiters.
    pub(super) fn read(&mut self, number: u64, reader: SlotIndex) -> CacheLookup {
        let Some(&place) = self.places.get(&number) else { return CacheLookup::Missing };
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
        let line = &mut self.lines[place as usize];
        if line.ready {
            CacheLookup::Ready
        } else {
            line.waiters.push(reader);
            CacheLookup::Coming
        }
    }

    /// Reserves a line for fetched data; returns false if all lines are in flight.
    pub(super) fn reserve(&mut self, number: u64) -> bool {
        let place = if self.lines.len() < self.limit {
            let (older, newer, waiters) = (LIST_END, LIST_END, Vec::new());
            self.lines.push(Line { number, ready: false, older, newer, waiters });
            self.lines.len() as u32 - 1
        } else {
            let Some(place) = self.oldest_ready() else { return false };
            self.unlink(place);
            let line = &mut self.lines[place as usize];
            self.places.remove(&line.number);
            (line.number, line.ready) = (number, false);
            place
        };
        self.link(place);
        self.places.insert(number, place);
        true
    }

    fn oldest_ready(&self) -> Option<u32> {
        let mut place = self.oldest;
        while place != LIST_END && !self.lines[place as usize].ready {
            place = self.lines[place as usize].newer;
        }
        (place != LIST_END).then_some(place)
    }

    /// Removes a line from the LRU list.
    fn unlink(&mut self, place: u32) {
        let Line { older, newer, .. } = self.lines[place as usize];
        match older {
            LIST_END => self.oldest = newer,
            older => self.lines[older as usize].newer = newer,
        }
        match newer {
            LIST_END => self.newest = older,
            newer => self.lines[newer as usize].older = older,
        }
    }

    /// Adds a line to the LRU list as the most recently used.
    fn link(&mut self, place: u32) {
        let older = std::mem::replace(&mut self.newest, place);
        match older {
            LIST_END => self.oldest = place,
            older => self.lines[older as usize].newer = place,
        }
        let line = &mut self.lines[place as usize];
        (line.older, line.newer) = (older, LIST_END);
    }

    /// Marks a line as present; returns the readers that waited for it.
    pub(super) fn arrived(&mut self, number: u64) -> Vec<SlotIndex> {
        let Some(&place) = self.places.get(&number) else { return Vec::new() };
        let line = &mut self.lines[place as usize];
        line.ready = true;
        std::mem::take(&mut line.waiters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_goes_first() {
        let mut cache = ControllerCache::new(2);
        for number in [1, 2] {
            assert!(cache.reserve(number));
            cache.arrived(number);
        }
        assert_eq!(cache.read(1, 0), CacheLookup::Ready);
        assert!(cache.reserve(3));
        assert_eq!(cache.has(2), CacheLookup::Missing);
        assert_eq!(cache.has(1), CacheLookup::Ready);
    }

    #[test]
    fn who_waits_for_a_line_is_told() {
        let mut cache = ControllerCache::new(1);
        assert!(cache.reserve(7));
        assert_eq!(cache.read(7, 42), CacheLookup::Coming);
        assert!(!cache.reserve(8), "a line on its way must stay");
        assert_eq!(cache.arrived(7), [42]);
        assert!(cache.reserve(8));
    }
}
