//! The controller's memory for what it has read ahead.

use std::collections::{BTreeMap, HashMap};

/// A unit of memory: there, or on its way to some requests that wait for it.
#[derive(Debug, Default)]
struct Line {
    ready: bool,
    used: u64,
    waiters: Vec<usize>,
}

/// Lines by number, the least recently used of which goes first.
#[derive(Debug)]
pub(super) struct Cache {
    lines: HashMap<u64, Line>,
    by_use: BTreeMap<u64, u64>,
    limit: usize,
    clock: u64,
}

/// How a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Ready,
    Coming,
    Missing,
}

impl Cache {
    /// A cache of this many lines.
    pub(super) fn new(limit: usize) -> Self {
        Self { lines: HashMap::new(), by_use: BTreeMap::new(), limit, clock: 0 }
    }

    /// How a line stands, without touching it.
    pub(super) fn has(&self, number: u64) -> Found {
        match self.lines.get(&number) {
            Some(line) if line.ready => Found::Ready,
            Some(_) => Found::Coming,
            None => Found::Missing,
        }
    }

    /// Looks for a line that `reader` needs; if it is on its way, the reader will be told.
    pub(super) fn read(&mut self, number: u64, reader: usize) -> Found {
        let Some(line) = self.lines.get_mut(&number) else { return Found::Missing };
        self.clock += 1;
        self.by_use.remove(&line.used);
        line.used = self.clock;
        self.by_use.insert(self.clock, number);
        if line.ready {
            Found::Ready
        } else {
            line.waiters.push(reader);
            Found::Coming
        }
    }

    /// Makes room for a line that is to be fetched; false if all lines are on their way.
    pub(super) fn reserve(&mut self, number: u64) -> bool {
        if self.lines.len() >= self.limit {
            let oldest = self.by_use.iter().find(|(_, number)| self.is_ready(**number));
            let Some((&used, &victim)) = oldest else { return false };
            self.by_use.remove(&used);
            self.lines.remove(&victim);
        }
        self.clock += 1;
        let line = Line { ready: false, used: self.clock, waiters: Vec::new() };
        self.lines.insert(number, line);
        self.by_use.insert(self.clock, number);
        true
    }

    fn is_ready(&self, number: u64) -> bool {
        self.has(number) == Found::Ready
    }

    /// Notes that a line is there; gives back who waits for it.
    pub(super) fn arrived(&mut self, number: u64) -> Vec<usize> {
        let Some(line) = self.lines.get_mut(&number) else { return Vec::new() };
        line.ready = true;
        std::mem::take(&mut line.waiters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_goes_first() {
        let mut cache = Cache::new(2);
        for number in [1, 2] {
            assert!(cache.reserve(number));
            cache.arrived(number);
        }
        assert_eq!(cache.read(1, 0), Found::Ready);
        assert!(cache.reserve(3));
        assert_eq!(cache.has(2), Found::Missing);
        assert_eq!(cache.has(1), Found::Ready);
    }

    #[test]
    fn who_waits_for_a_line_is_told() {
        let mut cache = Cache::new(1);
        assert!(cache.reserve(7));
        assert_eq!(cache.read(7, 42), Found::Coming);
        assert!(!cache.reserve(8), "a line on its way must stay");
        assert_eq!(cache.arrived(7), [42]);
        assert!(cache.reserve(8));
    }
}
