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
