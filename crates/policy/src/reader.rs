//! A read call as the kernel executes it, page by page, with a call of the policy before each read.
//!
//! [`read`] executes a whole call at once. The simulator uses the same [`ReadWalk`] and lets time
//! pass between its steps, so replaying recordings through [`read`] also tests the simulator.

use units::{Bytes, Pages};

use crate::cache::{Cache, PAGE};
use crate::page::{Extent, Page};
use crate::policy::{Call, Method, Policy, StreamId, Touch, TouchOutcome};

/// The remaining pages of a read call.
#[derive(Clone, Copy, Debug)]
pub struct ReadWalk {
    pub page: Page,
    /// The page after the last requested page within the file.
    pub stop: Page,
    /// The page after the last requested page.
    request_end: Page,
}

/// The result of accessing a page.
#[derive(Clone, Copy, Debug)]
pub struct PageVisit {
    pub outcome: TouchOutcome,
    /// Pages of the folio. The reader waits until they are ready.
    pub folio: Extent,
    /// Next page of the walk: after the folio, or the end of the call.
    pub next: Page,
}

impl ReadWalk {
    /// Returns the walk of a call on a file of this size, and the offset after the last byte read.
    #[inline]
    pub fn new(call: Call, file_size: Bytes) -> (Self, Bytes) {
        let request_end = call.offset.get().saturating_add(call.length.get());
        let end = request_end.min(file_size.get()).max(call.offset.get());
        let page_bytes = PAGE.bytes().get();
        let page = Page::new(call.offset.get() / page_bytes);
        let reads = end > call.offset.get();
        let walk = Self {
            page,
            stop: if reads { Page::new(end.div_ceil(page_bytes)) } else { page },
            request_end: Page::new(request_end.div_ceil(page_bytes)),
        };
        (walk, Bytes::new(end))
    }

    #[inline]
    pub fn is_done(&self) -> bool {
        self.page >= self.stop
    }

    /// Returns the number of pages left.
    #[inline]
    pub fn left(&self) -> Pages {
        self.stop.since(self.page)
    }

    /// Executes the read of the next page up to the point where the reader waits: calls the policy,
    /// after which the submissions are in flight. Does not advance the walk.
    #[inline]
    pub fn visit<C: Cache>(
        &self,
        policy: &mut dyn Policy,
        cache: &mut C,
        stream: StreamId,
    ) -> PageVisit {
        let touch_of = |page: Page| {
            let request = self.request_end.since(page);
            Touch { stream, page, request, method: Method::Read }
        };
        let page = self.page;
        let mut outcome = TouchOutcome::Hit;
        let mut folio = cache.folio(page);
        if folio.is_none() {
            outcome = TouchOutcome::Missed;
            policy.miss(cache, touch_of(page));
            folio = cache.folio(page);
            if folio.is_none() {
                cache.demand(page);
                folio = cache.folio(page);
            }
        } else if !cache.is_ready(page) {
            outcome = TouchOutcome::Waited;
        }
        let Some(folio) = folio else {
            // Beyond the largest file that the cache supports.
            let next = page.plus(Pages::new(1));
            return PageVisit { outcome, folio: Extent::new(page, Pages::new(1)), next };
        };
        // The kernel checks the mark once per folio, at its first page.
        if folio.marked {
            policy.mark(cache, touch_of(folio.head), folio);
        }
        let next = folio.end().min(self.stop);
        if policy.wants_access_events() {
            let mut page_outcome = outcome;
            for page in page.get()..next.get() {
                policy.access(cache, touch_of(Page::new(page)), page_outcome);
                page_outcome = TouchOutcome::Hit;
            }
        }
        cache.set_used(Extent::new(page, next.since(page)));
        PageVisit { outcome, folio: Extent::new(folio.head, folio.pages()), next }
    }
}

/// Passes one read call of `stream` through its policy and cache. Returns the number of bytes read.
///
/// All reads complete at once: this shows decisions, not times.
pub fn read<C: Cache>(
    policy: &mut dyn Policy,
    cache: &mut C,
    stream: StreamId,
    call: Call,
) -> Bytes {
    let (mut walk, end) = ReadWalk::new(call, cache.file_size());
    if walk.is_done() {
        return Bytes::ZERO;
    }
    policy.begin(cache, stream, call);
    let wants_access = policy.wants_access_events();
    while !walk.is_done() {
        let hits = if wants_access { Pages::ZERO } else { cache.hit_run(walk.page, walk.left()) };
        if hits.is_zero() {
            walk.page = walk.visit(policy, cache, stream).next;
        } else {
            cache.set_used(Extent::new(walk.page, hits));
            walk.page = walk.page.plus(hits);
        }
    }
    policy.end(stream, end);
    end - call.offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{DeviceLimits, FileCache, FileShape};
    use crate::policy::FileId;

    #[derive(Default)]
    struct EventLog(Vec<String>);

    impl Policy for EventLog {
        fn open(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _file: FileId) {}

        fn begin(&mut self, _cache: &mut dyn Cache, _stream: StreamId, call: Call) {
            self.0.push(format!("begin {}", call.offset.get()));
        }

        fn miss(&mut self, _cache: &mut dyn Cache, touch: Touch) {
            self.0.push(format!("miss {} {}", touch.page.get(), touch.request.get()));
        }

        fn mark(&mut self, _cache: &mut dyn Cache, touch: Touch, _folio: crate::Folio) {
            self.0.push(format!("mark {} {}", touch.page.get(), touch.request.get()));
        }

        fn wants_access_events(&self) -> bool {
            true
        }

        fn access(&mut self, _cache: &mut dyn Cache, touch: Touch, outcome: TouchOutcome) {
            self.0.push(format!("{outcome:?} {}", touch.page.get()));
        }

        fn end(&mut self, _stream: StreamId, position: Bytes) {
            self.0.push(format!("end {}", position.get()));
        }

        fn close(&mut self, _cache: &mut dyn Cache, _stream: StreamId) {}
    }

    fn event_log(cache: &mut FileCache, offset: u64, length: u64) -> (u64, Vec<String>) {
        let mut event_log = EventLog::default();
        let call = Call { offset: Bytes::new(offset), length: Bytes::new(length) };
        let got = read(&mut event_log, cache, StreamId(0), call);
        (got.get(), event_log.0)
    }

    fn cache(size: u64) -> FileCache {
        let limits = DeviceLimits { read_ahead: Pages::new(32), max_request: Pages::new(320) };
        FileCache::new(FileShape { size: Bytes::new(size), folio_limit: Some(9), limits })
    }

    #[test]
    fn a_policy_gets_pages_in_order() {
        let mut cache = cache(10_000);
        let (got, events) = event_log(&mut cache, 4000, 1_000_000);
        // The request extends beyond the end of the file; the read stops there.
        let pages = ["miss 0 246", "Missed 0", "miss 1 245", "Missed 1", "miss 2 244", "Missed 2"];
        assert_eq!(got, 6000);
        assert_eq!(events[0], "begin 4000");
        assert_eq!(events[1..7], pages);
        assert_eq!(events[7..], ["end 10000"]);
    }

    #[test]
    fn a_mark_is_reported_once_with_the_head_of_its_folio() {
        let mut cache = cache(1 << 20);
        let fill = crate::Fill::Folios { order: 3 };
        let window = crate::Submission {
            fill,
            ..crate::Submission::marked(Page::FIRST, Pages::new(16), Pages::new(8))
        };
        cache.fill(&window);
        let (_, events) = event_log(&mut cache, 10 * 4096, 8192);
        assert_eq!(events[1..], ["mark 8 4", "Hit 10", "Hit 11", "end 49152"]);
    }

    #[test]
    fn an_empty_read_calls_nothing() {
        assert_eq!(event_log(&mut cache(10_000), 0, 0), (0, vec![]));
        assert_eq!(event_log(&mut cache(10_000), 10_000, 5), (0, vec![]));
        assert_eq!(event_log(&mut cache(0), 0, 5), (0, vec![]));
    }
}
