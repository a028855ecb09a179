//! Adaptive read-ahead, Wu Fengguang, 2006: windows as large as memory allows without evicting the
//! pages of a stream before they are read.
//!
//! Source: "Adaptive read-ahead V12" to V14 (LKML, May and June 2006) and the consolidated patch
//! for 2.6.17-rc5. It was never merged; its page marks were (Linux 2.6.23). Sizes are in pages
//! throughout. Eight methods are tried in order. Each limits its request to the estimated thrashing
//! threshold. Unlike the patch, this does not check whether pages are on the active list.

mod context;

use units::{Bytes, Pages};

use crate::cache::{Cache, PAGE, Submission};
use crate::entry::{Entry, Parameter};
use crate::page::{Folio, Page};
use crate::policy::{Call, FileId, Method, Policy, StateTable, StreamId, Touch, TouchOutcome};

pub const ENTRY: Entry = Entry {
    name: "ara-2006",
    summary: "adaptive read-ahead of 2006: windows by thrashing threshold, any pattern",
    source: "Wu Fengguang, Adaptive read-ahead V12 to V14, LKML 2006",
    parameters: &[
        Parameter {
            name: "ratio",
            summary: "percent of the thrashing threshold to use (readahead_ratio)",
            default: "50",
        },
        Parameter {
            name: "hit_rate",
            summary: "pages per hit that still count as success (readahead_hit_rate)",
            default: "1",
        },
    ],
    build: |args| {
        let ratio = args.count("ratio", 0, 100)?;
        Ok(Box::new(Ara2006::new(ratio, args.count("hit_rate", 1, 1024)?)))
    },
};

/// The tail after the mark is 1/8 of the request (LOOKAHEAD_RATIO).
const LOOKAHEAD_RATIO: u64 = 8;
/// 128 KiB: the initial value of both averages, and the limit for a new file.
const INITIAL_PAGES: u64 = 32;
/// The smallest request: 16 KiB.
const MIN_PAGES: u64 = 4;
/// 1 GiB in pages.
const GIB: u64 = 1 << 18;

/// The method that made the last request of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Class {
    #[default]
    None,
    Initial,
    State,
    Context,
    FromStart,
    Backward,
    Recovery,
    Seek,
}

#[derive(Clone, Debug, Default)]
struct OpenFile {
    /// The page of the algorithm's last invocation.
    la_index: u64,
    ra_index: u64,
    lookahead: u64,
    readahead: u64,
    /// First uses of pages: since the last request, in this sequence, in the two before.
    hits: [u64; 4],
    age: u64,
    class: Class,
    previous: Option<u64>,
    /// The first page of the current read call.
    call: u64,
    used: u64,
    read: u64,
    reached_end: bool,
}

/// Averages of a device, in bytes.
#[derive(Clone, Copy, Debug)]
struct Averages {
    /// Bytes of a new file that are used.
    expect: u64,
    /// Bytes that survive in the cache until they are used.
    thrash: u64,
}

#[derive(Clone, Copy, Debug)]
struct Tunables {
    ratio: u64,
    hit_rate: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    min: u64,
    max: u64,
}

#[derive(Clone, Debug)]
pub struct Ara2006 {
    tunables: Tunables,
    averages: Averages,
    files: StateTable<OpenFile>,
}

impl Ara2006 {
    /// `ratio` is `readahead_ratio` in percent, `hit_rate` is `readahead_hit_rate`.
    pub fn new(ratio: u64, hit_rate: u64) -> Self {
        let first = INITIAL_PAGES * PAGE.bytes().get();
        Self {
            tunables: Tunables { ratio, hit_rate },
            averages: Averages { expect: first, thrash: first },
            files: StateTable::default(),
        }
    }
}

impl Bounds {
    fn from_cache(cache: &dyn Cache) -> Self {
        let pages = GIB.min(cache.memory().available.get() / 2);
        let max = pages.min(65_535).min(cache.limits().read_ahead.get());
        Self { min: (MIN_PAGES + pages / 8192).min(INITIAL_PAGES).min(max / 2), max }
    }
}

impl Averages {
    /// Updates the averages for a stream with a steady window of `pages`.
    fn steady(&mut self, pages: u64) {
        let bytes = pages * PAGE.bytes().get();
        self.thrash = if self.thrash < bytes {
            (bytes + 1023 * self.thrash) / 1024
        } else {
            (bytes + 7 * self.thrash) / 8
        };
    }

    /// Updates the averages for a closed file: `read` pages were cached, `used` were used.
    fn closed(&mut self, read: u64, used: u64) {
        let page = PAGE.bytes().get();
        self.expect = if used >= read {
            (self.expect + read * page / 8).min(INITIAL_PAGES * page)
        } else {
            self.expect.saturating_sub((read - used) * page / 2)
        };
    }
}

/// Computes the request and its tail from the safe number of pages and the tail of the previous
/// request; `None` if that tail alone reaches the safe number (`adjust_rala`).
fn adjust(limit: u64, safe: u64, tail: u64) -> Option<(u64, u64)> {
    let size = safe.checked_sub(tail).filter(|&size| size > 0)?;
    let (new_tail, size) = (size / LOOKAHEAD_RATIO, size.min(limit));
    let mut new_tail = new_tail.min(size);
    let shift = tail + size - new_tail;
    new_tail = new_tail.saturating_sub((size / 4).saturating_sub(shift));
    Some((size, new_tail))
}

impl OpenFile {
    fn has(&self, index: u64) -> bool {
        self.la_index <= index && index < self.readahead
    }

    fn hits_enough(&self, tunables: Tunables) -> bool {
        self.hits[0] * tunables.hit_rate >= self.lookahead.saturating_sub(self.la_index)
    }

    /// Records and submits a request of `size` pages from `start`, made at page `at`.
    fn request(
        &mut self,
        cache: &mut dyn Cache,
        class: Class,
        at: u64,
        start: u64,
        (size, tail): (u64, u64),
    ) {
        self.hits[1] += std::mem::take(&mut self.hits[0]);
        if class != Class::State {
            self.hits = [0, 0, self.hits[1], self.hits[2]];
        }
        self.class = class;
        self.age = cache.memory().aged.get();
        (self.la_index, self.ra_index) = (at, start);
        (self.readahead, self.lookahead) = (start + size, start + size - tail);
        self.dispatch(cache);
    }

    /// `ra_dispatch`: extends a request that would leave a small rest of the file.
    fn dispatch(&mut self, cache: &mut dyn Cache) {
        let end = cache.file_pages().get();
        if self.ra_index >= end {
            return;
        }
        let size = self.readahead - self.ra_index;
        if self.readahead + size / 4 > end {
            let keeps = self.class == Class::FromStart && end > self.lookahead + 1;
            self.readahead = end;
            self.lookahead = if keeps { self.lookahead } else { end };
        }
        self.reached_end |= self.readahead == end;
        let (size, tail) = (self.readahead - self.ra_index, self.readahead - self.lookahead);
        let window =
            Submission::marked(Page::new(self.ra_index), Pages::new(size), Pages::new(tail));
        self.read += cache.submit(window).get();
    }

    /// Sizes the request by the movement of the inactive list since the last request.
    fn state_based(&mut self, cache: &mut dyn Cache, now: Now<'_>) {
        let memory = cache.memory();
        let tail = self.readahead - now.index;
        let old = self.readahead - self.ra_index;
        let ratio = now.tunables.ratio;
        let limit = now.request + now.bounds.max / 16 + (2 + ratio / 64) * old;
        let moved = memory.aged.get().saturating_sub(self.age).max(1);
        let all = memory.available.get();
        let share = |pages: u64| {
            let product = u128::from(self.hits[0]) * u128::from(pages) / u128::from(moved);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        let safe = u64::try_from(u128::from(share(all)) * u128::from(ratio) / 100);
        let remain = share(all.saturating_sub(moved));
        if now.marked && remain <= tail && tail > 1 {
            return cache.rescue(Page::new(now.index), Pages::new(tail));
        }
        let limit = limit.min(now.bounds.max);
        if let Some(size) = adjust(limit, safe.unwrap_or(u64::MAX), tail) {
            if 8 * size.0 <= 9 * old {
                now.averages.steady(size.0);
            }
            self.request(cache, Class::State, now.index, self.readahead, size);
        }
    }

    /// Handles an evicted page of the last request: reads the rest of the request again, or three
    /// quarters of the number of pages that is now known to survive.
    fn recover(&mut self, cache: &mut dyn Cache, now: Now<'_>) {
        let size = if now.index < self.ra_index {
            self.ra_index - now.index
        } else {
            self.hits[0] * 3 / 4
        };
        let size = size.clamp(1, now.bounds.max);
        now.averages.thrash = now.averages.thrash.min(size.max(MIN_PAGES) * PAGE.bytes().get());
        let tail = size / LOOKAHEAD_RATIO;
        self.request(cache, Class::Recovery, now.index, now.index, (size, tail));
    }

    /// Handles backward reading, if the previous page is close enough.
    fn backward(&mut self, cache: &mut dyn Cache, now: &Now<'_>) -> bool {
        let Some(previous) = self.previous.filter(|&previous| now.index < previous) else {
            return false;
        };
        let continues = self.class == Class::Backward && self.has(previous);
        let (size, end) = if continues {
            (now.request + 2 * self.hits[0], self.la_index)
        } else {
            (2 * now.request, previous)
        };
        let size = size.min(now.bounds.max).min(end);
        let begin = end - size;
        if size == 0 || now.index < begin || now.index >= end {
            return false;
        }
        self.request(cache, Class::Backward, begin, begin, (size, 0));
        true
    }

    /// After several sequences of similar length, expects another one of that length.
    fn seek(&mut self, cache: &mut dyn Cache, now: &Now<'_>) -> bool {
        let hit1 = self.hits[1] + self.hits[0];
        let [_, _, hit2, hit3] = self.hits;
        let alike = hit1 > hit2 / 2 && hit2 > hit3 / 2 && hit3 > hit1 / 2;
        let known = self.previous.is_some_and(|previous| self.has(previous));
        if !known || now.request >= hit1 || !alike {
            return false;
        }
        let size = hit1.max(hit2).min(now.bounds.max);
        let start = if self.class == Class::Backward {
            (now.index + now.request).saturating_sub(size)
        } else {
            now.index
        };
        self.request(cache, Class::Seek, start, start, (size, 0));
        true
    }
}

/// The current request and the state of the device and the memory.
struct Now<'a> {
    index: u64,
    request: u64,
    marked: bool,
    bounds: Bounds,
    tunables: Tunables,
    averages: &'a mut Averages,
}

impl Ara2006 {
    /// `page_cache_readahead_adaptive`.
    fn decide(&mut self, cache: &mut dyn Cache, touch: Touch, marked: bool) {
        let Some(file) = self.files.get(touch.stream.0) else { return };
        let (tunables, bounds) = (self.tunables, Bounds::from_cache(cache));
        let (index, request) = (touch.page.get(), touch.request.get());
        let mut now =
            Now { index, request, marked, bounds, tunables, averages: &mut self.averages };
        if bounds.max == 0 || tunables.ratio == 0 {
            if !marked {
                cache.submit(Submission::plain(touch.page, touch.request));
            }
            return;
        }
        if index == 0 {
            let page = PAGE.bytes().get();
            let size = request.max(now.averages.expect / page).min(now.averages.thrash / page);
            let size = size.clamp(1, bounds.max);
            return file.request(cache, Class::Initial, 0, 0, (size, size / LOOKAHEAD_RATIO));
        }
        if index == file.lookahead
            && file.has(index.saturating_sub(1))
            && file.hits_enough(tunables)
        {
            return file.state_based(cache, now);
        }
        let follows = file.previous.is_some_and(|previous| previous + 1 == index);
        if !marked && follows && file.has(index) {
            return file.recover(cache, now);
        }
        if !marked && index == file.call && file.backward(cache, &now) {
            return;
        }
        if file.context(cache, &mut now) || marked || file.seek(cache, &now) {
            return;
        }
        cache.submit(Submission::plain(touch.page, Pages::new(request.min(bounds.max))));
    }
}

impl Policy for Ara2006 {
    fn open(&mut self, _cache: &mut dyn Cache, stream: StreamId, _file: FileId) {
        self.files.put(stream.0, OpenFile::default());
    }

    fn begin(&mut self, _cache: &mut dyn Cache, stream: StreamId, call: Call) {
        if let Some(file) = self.files.get(stream.0) {
            file.call = call.offset.to_pages_floor(PAGE).get();
        }
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        if let Method::Fault(advice) = touch.method {
            if advice.random {
                return;
            }
            if let Some(file) = self.files.get(touch.stream.0) {
                file.call = touch.page.get();
            }
        }
        self.decide(cache, touch, false);
    }

    fn mark(&mut self, cache: &mut dyn Cache, touch: Touch, folio: Folio) {
        cache.clear_mark(folio.head);
        if !cache.congested() {
            self.decide(cache, touch, true);
        }
    }

    fn wants_access_events(&self) -> bool {
        true
    }

    fn access(&mut self, cache: &mut dyn Cache, touch: Touch, _outcome: TouchOutcome) {
        let Some(file) = self.files.get(touch.stream.0) else { return };
        let page = touch.page.get();
        file.previous = Some(page);
        if !cache.is_used(touch.page) {
            file.used += 1;
            file.hits[0] += u64::from(file.has(page));
        }
    }

    fn end(&mut self, _stream: StreamId, _position: Bytes) {}

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        if let Some(file) = self.files.take(stream.0).filter(|file| file.reached_end) {
            self.averages.closed(file.read, file.used);
        }
    }
}

#[cfg(test)]
mod tests;
