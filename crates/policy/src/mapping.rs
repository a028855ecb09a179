//! A mapped file: its mapped pages and its page faults.

use std::collections::HashMap;

use units::Pages;

use crate::cache::Cache;
use crate::page::{Extent, Page};
use crate::policy::{MapAdvice, Method, Policy, StreamId, Touch, TouchOutcome};

/// A fault also maps the other pages of its aligned 64 KiB (`fault_around_bytes`).
const FAULT_AROUND_PAGES: u64 = 16;

/// A range of the mapping with one advice: a VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    extent: Extent,
    advice: MapAdvice,
}

/// A whole file mapped for reading at an aligned address.
#[derive(Clone, Debug)]
pub struct Mapping {
    stream: StreamId,
    areas: Vec<Area>,
    mapped: HashMap<u64, u64>,
}

impl Mapping {
    /// Maps the first `pages` pages through `stream`'s open file.
    pub fn new(stream: StreamId, pages: Pages) -> Self {
        let area = Area { extent: Extent::new(Page::FIRST, pages), advice: MapAdvice::default() };
        Self { stream, areas: vec![area], mapped: HashMap::new() }
    }

    /// Returns the open file that was mapped.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Changes the advice for the pages of `extent`.
    pub fn advise(&mut self, extent: Extent, change: impl Fn(&mut MapAdvice)) {
        let mut areas = Vec::with_capacity(self.areas.len() + 2);
        for area in &self.areas {
            let cut = |from: Page, to: Page| {
                let pages = to.min(area.extent.end()).since(from.max(area.extent.start));
                Extent::new(from.max(area.extent.start), pages)
            };
            let end = Page::new(u64::MAX);
            let (before, inside) =
                (cut(Page::FIRST, extent.start), cut(extent.start, extent.end()));
            let mut changed = area.advice;
            change(&mut changed);
            let after = cut(extent.end(), end);
            for (extent, advice) in [(before, area.advice), (inside, changed), (after, area.advice)]
            {
                push(&mut areas, Area { extent, advice });
            }
        }
        self.areas = areas;
    }

    /// Unmaps the pages of `extent` (MADV_DONTNEED). The pages stay in the cache.
    pub fn unmap(&mut self, extent: Extent) {
        let (first, last) = (extent.start.get() / 64, extent.end().get().div_ceil(64));
        if last - first > self.mapped.len() as u64 {
            self.mapped.retain(|&word, bits| {
                *bits &= !covered(word, extent);
                *bits != 0
            });
            return;
        }
        for word in first..last {
            if let Some(bits) = self.mapped.get_mut(&word) {
                *bits &= !covered(word, extent);
                if *bits == 0 {
                    self.mapped.remove(&word);
                }
            }
        }
    }

    /// Returns whether an access to `page` causes no fault.
    pub fn is_mapped(&self, page: Page) -> bool {
        self.mapped.get(&(page.get() / 64)).is_some_and(|bits| bits >> (page.get() % 64) & 1 == 1)
    }

    /// Accesses a page. Returns false if it is beyond the end of the mapping.
    pub fn touch(&mut self, policy: &mut dyn Policy, cache: &mut dyn Cache, page: Page) -> bool {
        if self.begin(policy, cache, page).is_none() {
            return false;
        }
        self.end(policy, cache, page);
        true
    }

    /// Executes the first half of an access: the fault up to the wait for the page. Returns the
    /// state of the page, or `None` if it is beyond the end of the mapping.
    pub fn begin(
        &mut self,
        policy: &mut dyn Policy,
        cache: &mut dyn Cache,
        page: Page,
    ) -> Option<TouchOutcome> {
        let area = self.area(page).filter(|_| page.get() < cache.file_pages().get())?;
        if self.is_mapped(page) {
            return Some(TouchOutcome::Hit);
        }
        self.map_around(policy, cache, area, page);
        if self.is_mapped(page) {
            return Some(TouchOutcome::Hit);
        }
        let one = Pages::new(1);
        let method = Method::Fault(area.advice);
        let touch = Touch { stream: self.stream, page, request: one, method };
        policy.fault(cache.now(), self.stream, Extent::new(page, one));
        let mut outcome = TouchOutcome::Hit;
        match cache.folio(page) {
            Some(folio) => {
                if !cache.is_ready(page) {
                    outcome = TouchOutcome::Waited;
                }
                if !area.advice.random {
                    policy.fault_hits(self.stream, one, false);
                    if folio.marked {
                        policy.mark(cache, touch, folio);
                    }
                }
            }
            None => {
                outcome = TouchOutcome::Missed;
                policy.miss(cache, touch);
                if cache.folio(page).is_none() {
                    cache.demand(page);
                }
            }
        }
        if policy.wants_access_events() {
            policy.access(cache, touch, outcome);
        }
        cache.set_used(Extent::new(page, one));
        Some(outcome)
    }

    /// Executes the second half of an access: the kernel repeats the fault when the page is ready.
    /// It then maps the pages that were read with it, and ignores a mark.
    pub fn end(&mut self, policy: &mut dyn Policy, cache: &mut dyn Cache, page: Page) {
        if let Some(area) = self.area(page).filter(|_| !self.is_mapped(page)) {
            self.map_around(policy, cache, area, page);
            self.map(page);
        }
    }

    fn area(&self, page: Page) -> Option<Area> {
        let inside = |area: &&Area| area.extent.start <= page && page < area.extent.end();
        self.areas.iter().find(inside).copied()
    }

    /// Maps the cached pages around `page` that are not marked.
    fn map_around(&mut self, policy: &mut dyn Policy, cache: &dyn Cache, area: Area, page: Page) {
        let aligned = page.get() / FAULT_AROUND_PAGES * FAULT_AROUND_PAGES;
        let start = aligned.max(area.extent.start.get());
        let end = (aligned + FAULT_AROUND_PAGES)
            .min(area.extent.end().get())
            .min(cache.file_pages().get());
        let mut hits = 0;
        for page in start..end {
            let page = Page::new(page);
            let unmarked = cache.folio(page).is_some_and(|folio| !folio.marked);
            if unmarked && cache.is_ready(page) {
                self.map(page);
                hits += 1;
            }
        }
        if hits > 0 {
            let extent = Extent::new(Page::new(start), Pages::new(end - start));
            policy.fault(cache.now(), self.stream, extent);
        }
        policy.fault_hits(self.stream, Pages::new(hits), true);
    }

    fn map(&mut self, page: Page) {
        *self.mapped.entry(page.get() / 64).or_default() |= 1 << (page.get() % 64);
    }
}

/// Returns the bits of `extent` in word number `word`.
fn covered(word: u64, extent: Extent) -> u64 {
    let from = extent.start.get().saturating_sub(word * 64).min(64);
    let to = extent.end().get().saturating_sub(word * 64).min(64);
    let below = |bit: u64| if bit == 64 { u64::MAX } else { (1 << bit) - 1 };
    below(to) & !below(from)
}

/// Appends an area, merged with the last one if they have the same advice.
fn push(areas: &mut Vec<Area>, area: Area) {
    if area.extent.pages.is_zero() {
        return;
    }
    match areas.last_mut() {
        Some(last) if last.advice == area.advice => {
            last.extent.pages += area.extent.pages;
        }
        _ => areas.push(area),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{DeviceLimits, FileCache, FileShape};
    use crate::policy::FileId;
    use units::{Bytes, Nanos};

    fn extent(start: u64, pages: u64) -> Extent {
        Extent::new(Page::new(start), Pages::new(pages))
    }

    #[test]
    fn advice_splits_and_joins_areas() {
        let mut mapping = Mapping::new(StreamId(0), Pages::new(100));
        mapping.advise(extent(20, 30), |advice| advice.random = true);
        let areas: Vec<_> =
            mapping.areas.iter().map(|area| (area.extent, area.advice.random)).collect();
        assert_eq!(
            areas,
            [(extent(0, 20), false), (extent(20, 30), true), (extent(50, 50), false)]
        );
        mapping.advise(extent(0, 1000), |advice| advice.random = false);
        assert_eq!(mapping.areas.len(), 1);
        assert_eq!(mapping.areas[0].extent, extent(0, 100));
    }

    #[test]
    fn unmapping_affects_the_range_only() {
        let mut mapping = Mapping::new(StreamId(0), Pages::new(200));
        for page in [0, 63, 64, 130] {
            mapping.map(Page::new(page));
        }
        mapping.unmap(extent(63, 2));
        let mapped = |page| mapping.is_mapped(Page::new(page));
        assert_eq!([mapped(0), mapped(63), mapped(64), mapped(130)], [true, false, false, true]);
    }

    #[derive(Default)]
    struct FaultLog(Vec<Extent>);

    impl Policy for FaultLog {
        fn open(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _file: FileId) {}

        fn miss(&mut self, _cache: &mut dyn Cache, _touch: Touch) {}

        fn fault(&mut self, _now: Nanos, _stream: StreamId, extent: Extent) {
            self.0.push(extent);
        }

        fn close(&mut self, _cache: &mut dyn Cache, _stream: StreamId) {}
    }

    #[test]
    fn faults_are_reported_with_their_page_or_the_range_that_they_map() {
        let limits = DeviceLimits { read_ahead: Pages::new(32), max_request: Pages::new(320) };
        let size = Bytes::new(100 * 4096);
        let mut cache = FileCache::new(FileShape { size, folio_limit: Some(9), limits });
        let mut mapping = Mapping::new(StreamId(0), Pages::new(100));
        mapping.advise(extent(6, 94), |advice| advice.sequential = true);
        cache.demand(Page::new(8));
        let mut log = FaultLog::default();
        // Cached; mapped by the same fault; missing, then mapped; mapped.
        for page in [8, 8, 20, 20] {
            mapping.touch(&mut log, &mut cache, Page::new(page));
        }
        assert_eq!(log.0, [extent(6, 10), extent(20, 1), extent(16, 16)]);
    }
}
