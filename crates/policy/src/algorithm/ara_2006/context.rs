//! The stateless method: sizes a request by the cached pages before it.

use units::Pages;

use super::{Class, LOOKAHEAD_RATIO, Now, OpenFile, adjust};
use crate::cache::Cache;
use crate::page::Page;

/// Pages sampled from a cached range to estimate how many of its pages were used.
const SAMPLED_PAGES: u64 = 16;

impl OpenFile {
    /// Tries the method. Returns whether the method decided, possibly to read nothing.
    pub(super) fn context(&mut self, cache: &mut dyn Cache, now: &mut Now<'_>) -> bool {
        let max = now.bounds.max;
        let Some((index, start)) = place(cache, now) else { return now.marked };
        let behind = behind(cache, index, max);
        let safe = self.safe(cache, now, index, behind);
        let tail = start - index;
        if now.marked && behind <= tail && behind < index && tail > 1 {
            cache.rescue(Page::new(index), Pages::new(tail));
            return true;
        }
        let (class, size) = if safe == index {
            (Class::FromStart, Some(from_start(max, index, tail, now.tunables.ratio)))
        } else {
            (Class::Context, adjust(max, safe, tail))
        };
        if let Some(size) = size.filter(|size| size.0 > 0) {
            self.request(cache, class, index, start, size);
        }
        true
    }

    /// Returns the safe number of pages for a stream at `index`: at least the number of cached
    /// pages before it, of which `behind` are close (`query_page_cache_segment`).
    fn safe(&self, cache: &dyn Cache, now: &Now<'_>, index: u64, behind: u64) -> u64 {
        let (bounds, tunables) = (now.bounds, now.tunables);
        let known = index == self.readahead && self.hits_enough(tunables);
        let mut count =
            if known || hits(cache, index - behind, behind) * tunables.hit_rate >= behind {
                behind
            } else {
                bounds.min
            };
        if count >= bounds.max {
            let far = bounds.max * (LOOKAHEAD_RATIO + 1) * 100 / (tunables.ratio + 1);
            count += bounds.max;
            while count < far && count < index && cache.folio(Page::new(index - count)).is_some() {
                count += bounds.max;
            }
        }
        if count >= index { index } else { bounds.min.max(count * tunables.ratio / 100) }
    }
}

/// Returns the page at which the request counts as made, and the first page of the request.
fn place(cache: &dyn Cache, now: &mut Now<'_>) -> Option<(u64, u64)> {
    let index = now.index;
    if now.marked {
        let max = now.bounds.max * 5 / 4;
        let hole = cache.next_miss(Page::new(index), Pages::new(max))?.get();
        return (hole <= index + max).then_some((index, hole));
    }
    if cache.folio(Page::new(index - 1)).is_some() {
        return Some((index, index));
    }
    if now.tunables.hit_rate <= 1 {
        return None;
    }
    let reach = (now.tunables.hit_rate + now.bounds.min).min(index);
    let near = (2..=reach).find(|back| cache.folio(Page::new(index - back)).is_some())?;
    let start = index - near + 1;
    now.bounds.min += 2 * (index - start);
    Some((start, start))
}

/// Returns the number of consecutive cached pages directly before `index`, up to `max`.
fn behind(cache: &dyn Cache, index: u64, max: u64) -> u64 {
    let max = max.min(index);
    let cached = |back: u64| cache.folio(Page::new(index - 1 - back)).is_some();
    (0..max).find(|&back| !cached(back)).unwrap_or(max)
}

/// Estimates how many of `count` pages from `first` were used. Optimistic: it stops at the second
/// used page.
fn hits(cache: &dyn Cache, first: u64, count: u64) -> u64 {
    let mut found = 0;
    for sample in 0..SAMPLED_PAGES {
        // 29 and 16 are coprime, so all 16 parts are sampled, the distant ones first.
        let place = first + count * (sample * 29 % SAMPLED_PAGES) / SAMPLED_PAGES;
        found += u64::from(cache.is_used(Page::new(place)));
        if found == 2 {
            return count * found / (sample + 1);
        }
    }
    count * found / SAMPLED_PAGES
}

/// Returns the request of a stream that started at the start of its file. Half of it is a tail that
/// may be evicted early; `rescue` then protects it (`adjust_rala_aggressive`).
fn from_start(max: u64, index: u64, tail: u64, ratio: u64) -> (u64, u64) {
    let new_tail = index * ratio / 100;
    let size = (index.saturating_sub(tail) * ratio / 100 + new_tail).min(max);
    (size, new_tail.min(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_start_of_the_file_the_tail_equals_the_safe_number() {
        assert_eq!(from_start(256, 100, 20, 50), (90, 50));
        assert_eq!(from_start(64, 100, 20, 50), (64, 50));
        assert_eq!(from_start(30, 100, 20, 50), (30, 30));
    }
}
