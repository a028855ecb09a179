//! Belady's MIN: the replacement with the fewest misses evicts the page that is not needed for the
//! longest time (Belady, IBM Systems Journal 5(2), 1966).

use std::collections::{BTreeSet, HashMap};

/// Returns the fewest misses that a cache of `capacity` pages can have on these references.
pub fn min_misses<T: Copy + Eq + std::hash::Hash>(references: &[T], capacity: usize) -> u64 {
    if capacity == 0 {
        return references.len() as u64;
    }
    let mut seen: HashMap<T, usize> = HashMap::new();
    let mut next = vec![usize::MAX; references.len()];
    for (at, page) in references.iter().enumerate().rev() {
        if let Some(later) = seen.insert(*page, at) {
            next[at] = later;
        }
    }
    if seen.len() <= capacity {
        return seen.len() as u64;
    }
    // Cached pages by their next reference, which differs for all pages that have one. Pages
    // without a next reference differ in their last one.
    let mut cached: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut held: HashMap<T, (usize, usize)> = HashMap::new();
    let mut misses = 0;
    for (at, page) in references.iter().enumerate() {
        let key = (next[at], at);
        match held.insert(*page, key) {
            Some(old) if cached.remove(&old) => {}
            _ => {
                misses += 1;
                if cached.len() >= capacity {
                    cached.pop_last();
                }
            }
        }
        cached.insert(key);
    }
    misses
}
