//! Replays page numbers through a plain list of single pages, the fastest way.
//!
//! No page is ever in flight here and no folio has a second page, so the list is one of pages: a
//! table by page number with the neighbours of each page in the order of use. The result equals
//! that of the simulation's own cache, which a test checks.

use policy::cache::{PAGE, PageTree, fill_into};
use policy::{
    Cache, Call, DeviceLimits, Extent, FileId, Folio, Memory, Page, Policy, ReadWalk, StreamId,
    Submission, TouchOutcome,
};
use units::{Bytes, Pages};

use crate::disk_layout::Placed;
use crate::machine::{Replacement, SimMachine};
use crate::outcome::CacheUse;

/// Maximum number of pages of a table, which then takes 128 MiB.
const MAX_TABLE_PAGES: u64 = 1 << 24;
/// Minimum number of pages that reclaim evicts at once (SWAP_CLUSTER_MAX).
const RECLAIM_BATCH_PAGES: u64 = 32;
/// Index of the list's sentinel, before the oldest and after the youngest page.
const LIST_ENDS: usize = 0;

/// Neighbours of a page in the order of use, each as its page number plus one.
#[derive(Clone, Copy, Default)]
struct Links {
    older: u32,
    newer: u32,
}

/// The cache that a policy sees: the pages of the only file.
struct ListedPages {
    tree: PageTree,
    placed: Placed,
    pages: Pages,
    limits: DeviceLimits,
    links: Vec<Links>,
    capacity: u64,
    aged: u64,
    counts: CacheUse,
    /// Pages that the policy submitted in the current call; they are not ready during the call.
    batches: Vec<Extent>,
}

/// A policy and its pages.
pub(super) struct PageLru {
    policy: Box<dyn Policy>,
    wants_call_events: bool,
    listed: ListedPages,
    references: u64,
    misses: u64,
    /// Last page, if its end has not been reported to the policy yet.
    unreported_end: Option<Page>,
}

impl PageLru {
    /// Returns whether the result equals that of the simulation's own cache.
    pub(super) fn suits(machine: &SimMachine, policy: &dyn Policy, pages: Pages) -> bool {
        let plain = machine.replacement == Replacement::Lru && !machine.page_by_page;
        let single = machine.filesystem.folio_limit.is_none();
        plain
            && single
            && pages.get() < MAX_TABLE_PAGES
            && !policy.wants_access_events()
            && !policy.wants_evict_events()
    }

    pub(super) fn new(
        machine: &SimMachine,
        mut policy: Box<dyn Policy>,
        placed: Placed,
        limits: DeviceLimits,
        pages: Pages,
    ) -> Self {
        let mut listed = ListedPages {
            tree: PageTree::new(),
            placed,
            pages,
            limits,
            links: vec![Links::default(); pages.get() as usize + 1],
            capacity: machine.cache.to_pages_floor(PAGE).get(),
            aged: 0,
            counts: CacheUse::default(),
            batches: Vec::new(),
        };
        policy.open(&mut listed, StreamId(0), FileId(0));
        let wants_call_events = policy.wants_call_events();
        Self { policy, wants_call_events, listed, references: 0, misses: 0, unreported_end: None }
    }

    #[inline]
    pub(super) fn page(&mut self, page: Page) {
        if page.get() >= self.listed.pages.get() {
            return;
        }
        self.references += 1;
        if !self.listed.tree.use_plain_hit(page) {
            self.visit_page(page);
        } else {
            if self.wants_call_events {
                self.policy.begin(&mut self.listed, StreamId(0), call(page));
                self.listed.batches.clear();
            }
            self.listed.touch(page);
        }
        if self.wants_call_events {
            self.report_end(page);
        } else {
            self.unreported_end = Some(page);
        }
    }

    fn report_end(&mut self, page: Page) {
        let end = Bytes::new((page.get() + 1) * PAGE.bytes().get());
        self.policy.end(StreamId(0), end);
    }

    /// Reads a page that is missing or that requires a call of the policy.
    fn visit_page(&mut self, page: Page) {
        if let Some(last) = self.unreported_end.take() {
            self.report_end(last);
        }
        let walk = ReadWalk::new(call(page), self.listed.file_size()).0;
        self.policy.begin(&mut self.listed, StreamId(0), call(page));
        let visit = walk.visit(self.policy.as_mut(), &mut self.listed, StreamId(0));
        self.misses += u64::from(visit.outcome == TouchOutcome::Missed);
        self.listed.batches.clear();
        self.listed.reclaim();
        // A window larger than the cache evicts its own first page.
        if self.listed.tree.contains(page) {
            self.listed.touch(page);
        } else {
            self.listed.aged += 1;
        }
    }

    pub(super) fn counts(&self) -> CacheUse {
        let all = Extent::new(Page::FIRST, self.listed.pages);
        let unused = self.listed.tree.unused(all).1;
        let counts = self.listed.counts;
        CacheUse {
            references: Pages::new(self.references),
            hits: Pages::new(self.references - self.misses),
            misses: Pages::new(self.misses),
            used: counts.read.saturating_sub(counts.thrashed + unused),
            ..counts
        }
    }
}

fn call(page: Page) -> Call {
    Call { offset: Bytes::new(page.get() * PAGE.bytes().get()), length: PAGE.bytes() }
}

impl ListedPages {
    #[inline]
    fn touch(&mut self, page: Page) {
        self.aged += 1;
        let place = page.get() as u32 + 1;
        if self.links[LIST_ENDS].older != place {
            self.unlink(place);
            self.link(place);
        }
    }

    #[inline]
    fn unlink(&mut self, place: u32) {
        let Links { older, newer } = self.links[place as usize];
        self.links[older as usize].newer = newer;
        self.links[newer as usize].older = older;
    }

    /// Adds a page at the young end.
    #[inline]
    fn link(&mut self, place: u32) {
        let youngest = std::mem::replace(&mut self.links[LIST_ENDS].older, place);
        self.links[youngest as usize].newer = place;
        self.links[place as usize] = Links { older: youngest, newer: LIST_ENDS as u32 };
    }

    /// Evicts the oldest pages while there are too many.
    fn reclaim(&mut self) {
        let cached = self.tree.cached().get();
        if cached <= self.capacity {
            return;
        }
        for _ in 0..(cached - self.capacity).max(RECLAIM_BATCH_PAGES).min(cached) {
            let oldest = self.links[LIST_ENDS].newer;
            if oldest == LIST_ENDS as u32 {
                return;
            }
            self.unlink(oldest);
            let used = self.tree.remove_single(Page::new(u64::from(oldest) - 1));
            self.counts.thrashed += Pages::new(u64::from(used == Some(false)));
            self.counts.evicted += Pages::new(1);
            self.aged += 1;
        }
    }
}

impl policy::Cache for ListedPages {
    fn file_size(&self) -> Bytes {
        self.placed.size()
    }

    fn file_pages(&self) -> Pages {
        self.pages
    }

    fn folio(&self, page: Page) -> Option<Folio> {
        self.tree.folio(page)
    }

    fn is_ready(&self, page: Page) -> bool {
        !self.batches.iter().any(|batch| batch.contains(page))
    }

    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.tree.next_miss(from, max)
    }

    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.tree.prev_miss(from, max)
    }

    fn submit(&mut self, window: Submission) -> Pages {
        let first = self.batches.len();
        let end = Page::FIRST.plus(self.pages);
        fill_into(&mut self.tree, &window, end, None, &mut self.batches);
        let mut filled = Pages::ZERO;
        for index in first..self.batches.len() {
            let batch = self.batches[index];
            for page in batch.start.get()..batch.end().get() {
                self.link(page as u32 + 1);
            }
            filled += batch.pages;
        }
        self.counts.windows += u64::from(!filled.is_zero());
        self.counts.read += filled;
        filled
    }

    fn set_mark(&mut self, page: Page) {
        self.tree.set_mark(page, true);
    }

    fn clear_mark(&mut self, page: Page) {
        self.tree.set_mark(page, false);
    }

    fn limits(&self) -> DeviceLimits {
        self.limits
    }

    fn memory(&self) -> Memory {
        Memory {
            total: Pages::new(self.capacity),
            available: Pages::new(self.capacity),
            aged: Pages::new(self.aged),
            pending: self.batches.iter().map(|batch| batch.pages).sum(),
        }
    }

    fn is_used(&self, page: Page) -> bool {
        self.tree.is_used(page)
    }

    fn set_used(&mut self, extent: Extent) {
        self.tree.set_used(extent);
    }

    fn rescue(&mut self, start: Page, pages: Pages) {
        for page in start.get()..start.plus(pages).get().min(self.pages.get()) {
            if self.tree.contains(Page::new(page)) {
                self.unlink(page as u32 + 1);
                self.link(page as u32 + 1);
            }
        }
    }

    fn contiguous(&self, page: Page) -> Pages {
        self.placed.contiguous(page)
    }
}
