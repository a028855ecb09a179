//! InnoDB's read-ahead in areas of 64 pages. Linear: an area is read when the neighbouring area was
//! read in order. Random: the rest of an area is read when enough of its pages were used recently.
//!
//! Source: `storage/innobase/buf/buf0rea.cc` of MySQL 5.6. Pages here are InnoDB's (16 KiB unless
//! set). The neighbour pointers inside a page are taken to follow the order of the file, as after a
//! fresh load. "Recently" is measured in uses of pages, not by the clock of the buffer pool.

use std::collections::HashMap;

use units::Pages;

use crate::cache::{Cache, Submission};
use crate::entry::{Entry, Parameter};
use crate::page::Page;
use crate::policy::{Eviction, FileId, Policy, StateTable, StreamId, Touch, TouchOutcome};

pub const ENTRY: Entry = Entry {
    name: "innodb",
    summary: "InnoDB: whole areas of 64 pages, by linear and by random read-ahead",
    source: "storage/innobase/buf/buf0rea.cc of MySQL",
    parameters: &[
        Parameter {
            name: "page",
            summary: "the size of a page (innodb_page_size)",
            default: "16K",
        },
        Parameter {
            name: "pool",
            summary: "the buffer pool (innodb_buffer_pool_size)",
            default: "128M",
        },
        Parameter {
            name: "threshold",
            summary: "pages of 64 read in order; 0 for no linear read-ahead",
            default: "56",
        },
        Parameter {
            name: "random",
            summary: "random read-ahead (innodb_random_read_ahead)",
            default: "off",
        },
    ],
    build: |args| {
        let page = args.pages("page")?;
        let pool = args.pages("pool")? / page;
        let threshold = args.count("threshold", 0, 64)?;
        Ok(Box::new(Innodb::new(page, pool, threshold, args.flag("random")?)))
    },
};

/// The largest area, in pages.
const MAX_AREA_PAGES: u64 = 64;

/// First and last use of a page, counted in uses of any page.
#[derive(Clone, Copy, Debug)]
struct PageUse {
    first: u64,
    last: u64,
}

#[derive(Clone, Debug, Default)]
struct Tablespace {
    used: HashMap<u64, PageUse>,
}

#[derive(Clone, Debug)]
pub struct Innodb {
    /// 4 KiB pages per InnoDB page.
    page: u64,
    pool: u64,
    area: u64,
    threshold: u64,
    random: bool,
    uses: u64,
    spaces: StateTable<Tablespace>,
    space_of: StateTable<u32>,
    /// The page that each stream used last, so that its 4 KiB pages count as one use.
    at: StateTable<u64>,
}

impl Innodb {
    /// `page` is the page size in 4 KiB pages, `pool` the size of the buffer pool in such pages.
    pub fn new(page: u64, pool: u64, threshold: u64, random: bool) -> Self {
        Self {
            page: page.max(1),
            pool,
            area: (pool / 32).max(1).next_power_of_two().min(MAX_AREA_PAGES),
            threshold,
            random,
            uses: 0,
            spaces: StateTable::default(),
            space_of: StateTable::default(),
            at: StateTable::default(),
        }
    }

    fn busy(&self, cache: &dyn Cache) -> bool {
        cache.memory().pending.get() / self.page > self.pool / 2
    }

    fn submit(&self, cache: &mut dyn Cache, first: u64, count: u64) {
        let start = Page::new(first.saturating_mul(self.page));
        cache.submit(Submission::plain(start, Pages::new(count.saturating_mul(self.page))));
    }

    /// `buf_read_ahead_random`: the page was not cached.
    fn random(&mut self, cache: &mut dyn Cache, space: u32, page: u64) {
        if !self.random || self.busy(cache) {
            return;
        }
        let (uses, young) = (self.uses, self.pool / 4);
        let low = page / self.area * self.area;
        let Some(space) = self.spaces.get(space) else { return };
        let recent = (low..low + self.area)
            .filter(|page| space.used.get(page).is_some_and(|used| uses - used.last < young.max(1)))
            .count() as u64;
        if recent >= 5 + self.area / 8 {
            self.submit(cache, low, self.area);
        }
    }

    /// `buf_read_ahead_linear`: the first use of the page.
    fn linear(&mut self, cache: &mut dyn Cache, space: u32, page: u64) {
        let area = self.area;
        let low = page / area * area;
        let high = low + area;
        let whole = cache.file_pages().get() / self.page;
        let border = page == low || page == high - 1;
        if self.threshold == 0 || !border || high > whole || self.busy(cache) {
            return;
        }
        let ascending = page != low;
        let allowed = MAX_AREA_PAGES.saturating_sub(self.threshold).min(area);
        let Some(space) = self.spaces.get(space) else { return };
        if failures(space, low..high, ascending) > allowed {
            return;
        }
        // The neighbouring page belongs to another area.
        let next = if ascending { Some(high) } else { low.checked_sub(area) };
        if let Some(next) = next.filter(|next| next + area <= whole) {
            self.submit(cache, next, area);
        }
    }
}

/// Returns the number of pages of an area that were not used, or not in order.
fn failures(space: &Tablespace, area: std::ops::Range<u64>, ascending: bool) -> u64 {
    let mut failures = 0;
    let mut before: Option<u64> = None;
    for page in area {
        let Some(used) = space.used.get(&page) else {
            failures += 1;
            continue;
        };
        if before.is_some_and(|before| (before < used.first) != ascending) {
            failures += 1;
        }
        before = Some(used.first);
    }
    failures
}

impl Policy for Innodb {
    fn own_window(&self) -> Pages {
        Pages::new(MAX_AREA_PAGES * self.page)
    }

    fn open(&mut self, _cache: &mut dyn Cache, stream: StreamId, file: FileId) {
        if self.spaces.get(file.0).is_none() {
            self.spaces.put(file.0, Tablespace::default());
        }
        self.space_of.put(stream.0, file.0);
        self.at.put(stream.0, u64::MAX);
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        let page = touch.page.get() / self.page;
        self.submit(cache, page, 1);
        if let Some(space) = self.space_of.get(touch.stream.0).copied() {
            self.random(cache, space, page);
        }
    }

    fn wants_access_events(&self) -> bool {
        true
    }

    fn access(&mut self, cache: &mut dyn Cache, touch: Touch, outcome: TouchOutcome) {
        let page = touch.page.get() / self.page;
        let Some(space) = self.space_of.get(touch.stream.0).copied() else { return };
        let Some(at) = self.at.get(touch.stream.0) else { return };
        if *at == page && outcome != TouchOutcome::Missed {
            return;
        }
        *at = page;
        self.uses += 1;
        let uses = self.uses;
        let Some(tablespace) = self.spaces.get(space) else { return };
        let known = tablespace.used.contains_key(&page);
        let used = tablespace.used.entry(page).or_insert(PageUse { first: uses, last: uses });
        used.last = uses;
        if !known {
            self.linear(cache, space, page);
        }
    }

    fn wants_evict_events(&self) -> bool {
        true
    }

    fn evict(&mut self, file: FileId, page: Page, _used: bool) -> Eviction {
        if let Some(space) = self.spaces.get(file.0) {
            space.used.remove(&(page.get() / self.page));
        }
        Eviction::Release
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        self.space_of.take(stream.0);
        self.at.take(stream.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;

    fn bench(random: bool) -> Bench<Innodb> {
        Bench::new(Innodb::new(4, 8192, 56, random), 4 * 1024)
    }

    /// Reads 16 KiB pages and returns the device reads in such pages.
    fn scan(
        bench: &mut Bench<Innodb>,
        pages: impl Iterator<Item = u64>,
    ) -> Vec<(u64, Vec<(u64, u64)>)> {
        let mut all = Vec::new();
        for page in pages {
            let reads: Vec<_> = bench.read(4 * page, 4);
            let reads: Vec<_> = reads.into_iter().map(|(at, pages)| (at / 4, pages / 4)).collect();
            if reads.iter().any(|&(_, count)| count > 1) {
                all.push((page, reads));
            }
        }
        all
    }

    #[test]
    fn the_size_of_an_area_depends_on_the_pool() {
        let area = |pool| Innodb::new(4, pool, 56, false).area;
        assert_eq!((area(8192), area(1000), area(320), area(0)), (64, 32, 16, 1));
    }

    #[test]
    fn the_last_page_of_an_area_triggers_the_next_area() {
        let reads = scan(&mut bench(false), 0..200);
        assert_eq!(
            reads,
            [(63, vec![(63, 1), (64, 64)]), (127, vec![(128, 64)]), (191, vec![(192, 64)])]
        );
    }

    #[test]
    fn descending_scans_are_recognised() {
        let reads = scan(&mut bench(false), (100..256).rev());
        assert_eq!(reads, [(192, vec![(192, 1), (128, 64)]), (128, vec![(64, 64)])]);
    }

    #[test]
    fn eight_of_sixty_four_may_fail() {
        let skipping = |step: u64| (0..128).filter(move |page| page % step != 1 || *page > 63);
        assert_eq!(scan(&mut bench(false), skipping(8)).len(), 2);
        // Nine pages that are skipped or out of order are too many.
        assert_eq!(scan(&mut bench(false), skipping(7)).first().map(|first| first.0), Some(127));
        let backward_within = (0..64).map(|page| page ^ 1);
        assert!(scan(&mut bench(false), backward_within).is_empty());
    }

    #[test]
    fn only_the_first_use_of_a_border_page_counts() {
        let mut bench = bench(false);
        scan(&mut bench, 0..64);
        bench.drop_pages(256..512);
        assert!(scan(&mut bench, std::iter::once(63)).is_empty());
    }

    #[test]
    fn the_next_area_must_be_complete() {
        let mut bench = Bench::new(Innodb::new(4, 8192, 56, false), 4 * 127);
        assert!(scan(&mut bench, 0..64).is_empty());
    }

    #[test]
    fn thirteen_recently_used_pages_trigger_random_read_ahead() {
        let order = |nth: u64| nth * 29 % 64;
        assert!(scan(&mut bench(false), (0..13).map(order)).is_empty());
        let mut bench = bench(true);
        assert!(scan(&mut bench, (0..13).map(order)).is_empty());
        let reads = scan(&mut bench, std::iter::once(order(13)));
        assert_eq!(reads.len(), 1);
        assert_eq!(bench.stage.file.tree().cached(), Pages::new(4 * 64));
    }

    #[test]
    fn a_busy_pool_gets_no_read_ahead() {
        let mut bench = bench(false);
        let mut memory = bench.stage.memory();
        memory.pending = Pages::new(4 * 4097);
        bench.stage.memory = Some(memory);
        assert!(scan(&mut bench, 0..64).is_empty());
    }
}
