//! Values of ranges of bytes, of which a later one replaces what it covers.

use std::collections::BTreeMap;

/// Ranges that do not overlap, each with a value.
#[derive(Clone, Debug)]
pub(crate) struct RangeMap<T> {
    /// By the start: the end, and the value.
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { ranges: BTreeMap::new() }
    }
}

impl<T: Copy> RangeMap<T> {
    /// Sets the value of `start..end`.
    pub(crate) fn insert(&mut self, start: u64, end: u64, value: T) {
        if start < end {
            self.remove(start, end);
            self.ranges.insert(start, (end, value));
        }
    }

    /// Forgets `start..end`.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        let before = self.ranges.range(..start).next_back();
        if let Some((first, (last, value))) = before.map(|(first, rest)| (*first, *rest))
            && last > start
        {
            self.ranges.insert(first, (start, value));
            if last > end {
                self.ranges.insert(end, (last, value));
            }
        }
        let within: Vec<u64> = self.ranges.range(start..end).map(|(first, _)| *first).collect();
        for first in within {
            let Some((last, value)) = self.ranges.remove(&first) else { continue };
            if last > end {
                self.ranges.insert(end, (last, value));
            }
        }
    }

    /// The value at a place.
    pub(crate) fn get(&self, at: u64) -> Option<T> {
        let (_, (end, value)) = self.ranges.range(..=at).next_back()?;
        (at < *end).then_some(*value)
    }

    /// How many places have a value.
    pub(crate) fn covered(&self) -> u64 {
        self.ranges.iter().map(|(start, (end, _))| end - start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_range_replaces_what_it_covers() {
        let mut map = RangeMap::default();
        map.insert(0, 100, 'a');
        map.insert(40, 60, 'b');
        let at = |map: &RangeMap<char>| [0, 39, 40, 59, 60, 99, 100].map(|place| map.get(place));
        let (a, b) = (Some('a'), Some('b'));
        assert_eq!(at(&map), [a, a, b, b, a, a, None]);
        assert_eq!(map.covered(), 100);
        map.insert(30, 70, 'c');
        assert_eq!(
            (map.get(29), map.get(30), map.get(69), map.get(70)),
            (a, Some('c'), Some('c'), a)
        );
        map.remove(0, 31);
        map.remove(99, 200);
        assert_eq!((map.get(0), map.get(31), map.get(99)), (None, Some('c'), None));
        assert_eq!(map.covered(), 68);
        map.insert(5, 5, 'd');
        assert_eq!(map.get(5), None);
    }
}
