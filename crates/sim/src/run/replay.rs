//! Passes page numbers through a cache, without time.
//!
//! A list of page numbers has no times, and without a device no reader waits: the reads of a policy
//! arrive at once. The cache and the policies are those of the simulation, so hits, waste and
//! thrashing are counted in the same way.

use policy::cache::PAGE;
use policy::{Call, DeviceLimits, Extent, FileId, Page, Policy, ReadWalk, StreamId, TouchOutcome};
use units::{Bytes, Nanos, Pages};

use super::page_lru::PageLru;
use super::view::{CacheView, NO_STEPS};
use crate::cache::PageCache;
use crate::disk_layout::Placed;
use crate::error::SimError;
use crate::machine::SimMachine;
use crate::outcome::CacheUse;
use crate::scenario::FileOnDisk;

/// Passes single pages of one file, in order, through the machine's page cache and policy. Returns
/// the counters of the cache. Skips pages at or beyond `pages`.
///
/// # Errors
///
/// If the machine is invalid.
pub fn replay(
    machine: &SimMachine,
    pages: Pages,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<CacheUse, SimError> {
    machine.validate()?;
    let policy = machine.policy.build()?;
    let max_request = machine.model.host().max_request;
    let limits = DeviceLimits {
        read_ahead: machine.read_ahead.to_bytes().to_pages_floor(PAGE),
        max_request: max_request.to_pages_floor(PAGE),
    };
    let disk = FileOnDisk {
        size: pages.to_bytes(PAGE),
        start: Bytes::ZERO,
        layout: machine.filesystem.layout,
        pieces: None,
    };
    let placed = Placed::new(0, disk, max_request.get());
    if PageLru::suits(machine, policy.as_ref(), pages) {
        let mut replay = PageLru::new(machine, policy, placed, limits, pages);
        numbers.into_iter().for_each(|number| replay.page(Page::new(number)));
        return Ok(replay.counts());
    }
    let mut replay = Replay::new(machine, policy, placed, limits, pages);
    numbers.into_iter().for_each(|number| replay.page(Page::new(number)));
    Ok(replay.counts())
}

struct Replay {
    policy: Box<dyn Policy>,
    wants_access_events: bool,
    cache: PageCache,
    placed: Placed,
    limits: DeviceLimits,
    batches: Vec<Extent>,
    pages: Pages,
    visited: (Page, Page),
    known: CacheUse,
}

impl Replay {
    fn new(
        machine: &SimMachine,
        policy: Box<dyn Policy>,
        placed: Placed,
        limits: DeviceLimits,
        pages: Pages,
    ) -> Self {
        let guarded = policy.wants_evict_events();
        let capacity = machine.cache.to_pages_floor(PAGE);
        let mut cache = PageCache::new(capacity, machine.replacement, guarded);
        cache.add_file(pages, machine.filesystem.folio_limit, false);
        let wants_access_events = policy.wants_access_events();
        let mut this = Self {
            policy,
            wants_access_events,
            cache,
            placed,
            limits,
            batches: Vec::new(),
            pages,
            visited: (Page::FIRST, Page::FIRST),
            known: CacheUse::default(),
        };
        this.ask(|policy, view| policy.open(view, StreamId(0), FileId(0)));
        this
    }

    /// Calls the policy. The pages that it submits have arrived when the call returns.
    fn ask<T>(&mut self, act: impl FnOnce(&mut dyn Policy, &mut CacheView<'_>) -> T) -> T {
        let mut view = CacheView {
            cache: &mut self.cache,
            placed: &self.placed,
            file: 0,
            stream: StreamId(0),
            limits: self.limits,
            now: Nanos::ZERO,
            congested: false,
            lookahead: &NO_STEPS,
            whole: false,
            batches: &mut self.batches,
        };
        let said = act(self.policy.as_mut(), &mut view);
        for batch in self.batches.drain(..) {
            self.cache.arrive(0, batch);
        }
        said
    }
}

impl Replay {
    fn page(&mut self, page: Page) {
        if page.get() >= self.pages.get() {
            return;
        }
        let one = Pages::new(1);
        self.known.references += one;
        let offset = Bytes::new(page.get() * PAGE.bytes().get());
        let call = Call { offset, length: PAGE.bytes() };
        let plain_hit = self.cache.tree(0).is_plain_hit(page);
        if !plain_hit || self.wants_access_events {
            self.visit_page(call);
        } else {
            if self.policy.wants_call_events() {
                self.ask(|policy, view| policy.begin(view, StreamId(0), call));
            }
            self.cache.set_used(0, Extent::new(page, one));
        }
        // Continuing within a folio is not another visit.
        if !(self.visited.0 <= page && page < self.visited.1) {
            self.cache.touch(0, Extent::new(page, one));
            let limit = self.cache.folio_limit(0);
            let folio = limit.and_then(|_| self.cache.tree(0).folio(page));
            self.visited = folio.map_or((page, page), |folio| (folio.head, folio.end()));
        }
        self.policy.end(StreamId(0), offset + PAGE.bytes());
    }

    /// Reads a page that is missing or that requires a call of the policy.
    fn visit_page(&mut self, call: Call) {
        let walk = ReadWalk::new(call, self.placed.size()).0;
        let outcome = self.ask(|policy, view| {
            policy.begin(view, StreamId(0), call);
            walk.visit(policy, view, StreamId(0)).outcome
        });
        if outcome == TouchOutcome::Missed {
            self.known.misses += Pages::new(1);
        }
        self.cache.reclaim(self.policy.as_mut());
    }

    fn counts(&self) -> CacheUse {
        let counts = self.cache.counts();
        CacheUse {
            references: self.known.references,
            hits: self.known.references.saturating_sub(self.known.misses),
            misses: self.known.misses,
            used: counts.read.saturating_sub(counts.thrashed + self.cache.unused()),
            ..counts
        }
    }
}
