//! A read call as the kernel walks it: page by page, policy first.

use units::{Bytes, Pages};

use crate::cache::{Cache, PAGE};
use crate::page::{Extent, Page};
use crate::policy::{Call, Method, Outcome, Policy, StreamId, Touch};

/// Runs one read call of `stream` through its policy and cache, and says how much it delivers.
///
/// All reads arrive at once: what it shows is decisions, not time.
pub fn read(policy: &mut dyn Policy, cache: &mut dyn Cache, stream: StreamId, call: Call) -> Bytes {
    let size = cache.file_size();
    if call.length.is_zero() || call.offset >= size {
        return Bytes::ZERO;
    }
    policy.begin(cache, stream, call);
    let asked = Bytes::new(call.offset.get().saturating_add(call.length.get()));
    let position = asked.min(size);
    let beyond = Page::FIRST.plus(asked.to_pages_ceil(PAGE));
    let end = Page::FIRST.plus(position.to_pages_ceil(PAGE));
    let mut page = Page::FIRST.plus(call.offset.to_pages_floor(PAGE));
    while page < end {
        let touch = Touch { stream, page, request: beyond.since(page), method: Method::Read };
        page = step(policy, cache, touch, end);
    }
    policy.end(stream, position);
    position - call.offset
}

/// Reads the page of `touch`, and returns the next page that the policy is to hear of.
fn step(policy: &mut dyn Policy, cache: &mut dyn Cache, touch: Touch, end: Page) -> Page {
    let mut outcome = Outcome::Hit;
    if cache.folio(touch.page).is_none() {
        outcome = Outcome::Missed;
        policy.miss(cache, touch);
        if cache.folio(touch.page).is_none() {
            cache.demand(touch.page);
        }
    }
    let next = touch.page.plus(Pages::new(1));
    let Some(folio) = cache.folio(touch.page) else { return next };
    // A folio is asked about once in a call, at its first page.
    if folio.marked {
        let beyond = touch.page.plus(touch.request);
        let at = Touch { page: folio.head, request: beyond.since(folio.head), ..touch };
        policy.mark(cache, at, folio);
    }
    let used = Extent::new(touch.page, folio.end().min(end).since(touch.page));
    if policy.watches() {
        for page in used.start.get()..used.end().get() {
            let page = Page::new(page);
            let request = touch.page.plus(touch.request).since(page);
            policy.access(cache, Touch { page, request, ..touch }, outcome);
            outcome = Outcome::Hit;
        }
    }
    cache.set_used(used);
    folio.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{DeviceLimits, FileCache, FileShape};
    use crate::policy::FileId;

    /// Keeps what it is told.
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

        fn watches(&self) -> bool {
            true
        }

        fn access(&mut self, _cache: &mut dyn Cache, touch: Touch, outcome: Outcome) {
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
