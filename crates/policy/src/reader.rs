//! A read call as the kernel walks it: page by page, policy first.
//!
//! [`read`] walks a whole call at once; the simulator walks the same [`ReadWalk`] and lets time
//! pass between its steps. So the recordings that are replayed through [`read`] test the walk of
//! the simulations.

use units::{Bytes, Pages};

use crate::cache::{Cache, PAGE};
use crate::page::{Extent, Page};
use crate::policy::{Call, Method, Policy, StreamId, Touch, TouchOutcome};

/// The pages of a read call that are still to be read.
#[derive(Clone, Copy, Debug)]
pub struct ReadWalk {
    pub page: Page,
    /// The page after the last that the file has of those requested.
    pub stop: Page,
    /// The page after the last requested.
    request_end: Page,
}

/// What a reader met at a page.
#[derive(Clone, Copy, Debug)]
pub struct PageVisit {
    pub outcome: TouchOutcome,
    /// The pages of its folio, which the reader waits for where they are not ready.
    pub folio: Extent,
    /// Where the walk goes on: after the folio, or at its own end.
    pub next: Page,
}

impl ReadWalk {
    /// The walk of a call on a file of this size, and the byte after the last that it reads.
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

    /// How many pages are left.
    #[inline]
    pub fn left(&self) -> Pages {
        self.stop.since(self.page)
    }

    /// Reads the next page up to where the reader waits for it: the policy is asked, and what it
    /// submits is in flight. The walk itself stays where it is.
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
            // Beyond the largest file that a cache takes: nothing to wait for.
            let next = page.plus(Pages::new(1));
            return PageVisit { outcome, folio: Extent::new(page, Pages::new(1)), next };
        };
        // A folio is asked about once in a call, at its first page.
        if folio.marked {
            policy.mark(cache, touch_of(folio.head), folio);
        }
        let next = folio.end().min(self.stop);
        if policy.wants_access_events() {
            let mut met = outcome;
            for page in page.get()..next.get() {
                policy.access(cache, touch_of(Page::new(page)), met);
                met = TouchOutcome::Hit;
            }
        }
        cache.set_used(Extent::new(page, next.since(page)));
        PageVisit { outcome, folio: Extent::new(folio.head, folio.pages()), next }
    }
}

/// Runs one read call of `stream` through its policy and cache, and returns the bytes it delivers.
///
/// All reads arrive at once: this shows decisions, not time.
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
    let watches = policy.wants_access_events();
    while !walk.is_done() {
        let run = if watches { Pages::ZERO } else { cache.hit_run(walk.page, walk.left()) };
        if run.is_zero() {
            walk.page = walk.visit(policy, cache, stream).next;
        } else {
            cache.set_used(Extent::new(walk.page, run));
            walk.page = walk.page.plus(run);
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
    struct Diary(Vec<String>);

    impl Policy for Diary {
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

    fn diary(cache: &mut FileCache, offset: u64, length: u64) -> (u64, Vec<String>) {
        let mut diary = Diary::default();
        let call = Call { offset: Bytes::new(offset), length: Bytes::new(length) };
        let got = read(&mut diary, cache, StreamId(0), call);
        (got.get(), diary.0)
    }

    fn cache(size: u64) -> FileCache {
        let limits = DeviceLimits { read_ahead: Pages::new(32), max_request: Pages::new(320) };
        FileCache::new(FileShape { size: Bytes::new(size), folio_limit: Some(9), limits })
    }

    #[test]
    fn a_policy_hears_of_pages_in_their_order() {
        let mut cache = cache(10_000);
        let (got, events) = diary(&mut cache, 4000, 1_000_000);
        // The request goes on beyond the end of the file, the reading does not.
        let pages = ["miss 0 246", "Missed 0", "miss 1 245", "Missed 1", "miss 2 244", "Missed 2"];
        assert_eq!(got, 6000);
        assert_eq!(events[0], "begin 4000");
        assert_eq!(events[1..7], pages);
        assert_eq!(events[7..], ["end 10000"]);
    }

    #[test]
    fn a_marked_folio_is_told_once_and_from_its_head() {
        let mut cache = cache(1 << 20);
        let fill = crate::Fill::Folios { order: 3 };
        let window = crate::Submission {
            fill,
            ..crate::Submission::marked(Page::FIRST, Pages::new(16), Pages::new(8))
        };
        cache.fill(&window);
        let (_, events) = diary(&mut cache, 10 * 4096, 8192);
        assert_eq!(events[1..], ["mark 8 4", "Hit 10", "Hit 11", "end 49152"]);
    }

    #[test]
    fn nothing_happens_where_nothing_can_be_read() {
        assert_eq!(diary(&mut cache(10_000), 0, 0), (0, vec![]));
        assert_eq!(diary(&mut cache(10_000), 10_000, 5), (0, vec![]));
        assert_eq!(diary(&mut cache(0), 0, 5), (0, vec![]));
    }
}
