//! The drive's write cache.

use std::collections::BTreeMap;

/// The maximum size of a write operation in bytes, so that reads do not wait for long.
const MAX_WRITE_BYTES: u64 = 1 << 20;

/// The maximum number of runs that are compared to find the nearest one.
const MAX_COMPARED_RUNS: usize = 32;

/// Runs of unwritten bytes by start offset; no two are adjacent.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteCache {
    runs: BTreeMap<u64, u64>,
    bytes: u64,
    limit: u64,
    /// Number of bytes that are being written, and the time until which they occupy space.
    leaving: (u64, u64),
}

impl WriteCache {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns whether a write of this length could be accepted by the empty cache.
    pub(super) fn may_hold(&self, length: u64) -> bool {
        length <= self.limit && self.limit > 0
    }

    /// Returns whether there is space for `length` bytes at `time`.
    pub(super) fn has_room(&self, length: u64, time: u64) -> bool {
        let leaving = if time < self.leaving.1 { self.leaving.0 } else { 0 };
        self.bytes.saturating_add(leaving).saturating_add(length) <= self.limit
    }

    /// Returns whether the cache is at least three quarters full, so that writing cannot wait.
    pub(super) fn is_pressing(&self) -> bool {
        self.bytes > 0 && self.bytes >= self.limit / 4 * 3
    }

    /// Adds `start..end` and merges it with adjacent runs.
    pub(super) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut from, mut to) = (start, end);
        while let Some((&left, &right)) = self.runs.range(..=to).next_back() {
            if right < from {
                break;
            }
            self.runs.remove(&left);
            self.bytes -= right - left;
            from = from.min(left);
            to = to.max(right);
        }
        self.runs.insert(from, to);
        self.bytes += to - from;
    }

    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        self.runs.range(..=start).next_back().is_some_and(|(_, &right)| end <= right)
    }

    /// Returns the starts of candidate runs: those at or above `near`, then those from the lowest.
    pub(super) fn candidates(&self, near: u64) -> impl Iterator<Item = u64> {
        let above = self.runs.range(near..);
        above.chain(self.runs.range(..near)).map(|(&start, _)| start).take(MAX_COMPARED_RUNS)
    }

    /// Returns the part of the run at `start` that one operation writes.
    pub(super) fn piece(&self, start: u64) -> Option<(u64, u64)> {
        self.runs.get(&start).map(|&end| (start, end.min(start + MAX_WRITE_BYTES)))
    }

    /// Removes a piece; it still occupies its space until it is written, at time `until`.
    pub(super) fn remove(&mut self, start: u64, end: u64, until: u64) {
        let Some(right) = self.runs.remove(&start) else { return };
        self.bytes -= right - start;
        if end < right {
            self.runs.insert(end, right);
            self.bytes += right - end;
        }
        self.leaving = (end.min(right) - start, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_runs_become_one() {
        let mut cache = WriteCache::new(1 << 20);
        cache.insert(4096, 8192);
        cache.insert(16384, 20480);
        cache.insert(8192, 16384);
        assert_eq!(cache.piece(4096), Some((4096, 20480)));
        assert_eq!(cache.bytes, 16384);
        assert!(cache.covers(5000, 20480) && !cache.covers(0, 5000));
        cache.insert(0, 1 << 19);
        assert_eq!(cache.bytes, 1 << 19);
    }

    #[test]
    fn a_piece_keeps_its_room_until_it_is_written() {
        let mut cache = WriteCache::new(8192);
        cache.insert(0, 8192);
        assert!(cache.is_pressing() && !cache.has_room(1, 0));
        cache.remove(0, 8192, 100);
        assert!(!cache.has_room(1, 99) && cache.has_room(8192, 100));
        assert!(cache.is_empty());
    }
}
