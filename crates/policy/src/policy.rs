//! The interface between a read-ahead algorithm and its caller.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

use crate::cache::{Cache, Memory};
pub(crate) use crate::directory::FileId;
use crate::directory::FileTree;
use crate::page::{Extent, Folio, Page};

/// An open file (open file description). The caller assigns the numbers. It should reuse small
/// numbers after a close, because they are indices of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// Advice on a range of a mapping (`madvise`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapAdvice {
    /// MADV_SEQUENTIAL.
    pub sequential: bool,
    /// MADV_RANDOM.
    pub random: bool,
    /// MADV_HUGEPAGE.
    pub huge: bool,
    /// Pages of the executable mapping that contains the page, if any.
    pub code: Option<Extent>,
}

/// How a page is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Read,
    Fault(MapAdvice),
}

/// An access of a stream to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub stream: StreamId,
    /// The page; if a read call reaches a mark, the first page of the marked folio.
    pub page: Page,
    /// Number of pages from `page` to the end of the read call; 1 for a fault.
    pub request: Pages,
    pub method: Method,
}

/// A read call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub offset: Bytes,
    /// Requested length, which may extend beyond the end of the file.
    pub length: Bytes,
}

/// The state in which a reader found a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchOutcome {
    Hit,
    /// The page was in flight, and the reader waited for it.
    Waited,
    /// The page was not in the cache.
    Missed,
}

/// The decision of a policy on a page that is about to be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    Release,
    Retain,
}

/// Advice on an open file (`posix_fadvise`, `readahead`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// POSIX_FADV_NORMAL.
    Normal,
    /// POSIX_FADV_SEQUENTIAL.
    Sequential,
    /// POSIX_FADV_RANDOM.
    Random,
    /// POSIX_FADV_WILLNEED or `readahead(2)` of these pages.
    WillNeed(Extent),
}

/// A read-ahead algorithm, for all open files of one kernel, or of one program, on one device.
///
/// The `cache` argument of a callback is that of the stream's file. A callback for a stream that
/// was not opened does nothing.
pub trait Policy: Send {
    fn open(&mut self, cache: &mut dyn Cache, stream: StreamId, file: FileId);

    /// The program closes the descriptor of a mapped file: from then on, no process can set the
    /// window of the open file.
    fn descriptor_closed(&mut self, _stream: StreamId) {}

    fn begin(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _call: Call) {}

    /// The reader accesses a page that is not cached. If the policy does not submit this page or
    /// later ones of the call, the reader reads them itself, one by one.
    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch);

    /// The reader accesses a cached page of a marked folio.
    fn mark(&mut self, _cache: &mut dyn Cache, _touch: Touch, _folio: Folio) {}

    /// Returns whether to call [`Policy::access`], which takes time for each page.
    fn wants_access_events(&self) -> bool {
        false
    }

    /// The reader accessed a page. Called after [`Policy::miss`] or [`Policy::mark`].
    fn access(&mut self, _cache: &mut dyn Cache, _touch: Touch, _outcome: TouchOutcome) {}

    /// Faults found `pages` pages cached: the faulting page, or, if `around`, neighbouring pages
    /// that were mapped with it (fault-around).
    fn fault_hits(&mut self, _stream: StreamId, _pages: Pages, _around: bool) {}

    /// A page fault accesses one page, cached or not, or maps the cached pages of `extent`
    /// (fault-around).
    fn fault(&mut self, _now: Nanos, _stream: StreamId, _extent: Extent) {}

    /// A read call that returned data has finished; `position` is the offset after its last byte.
    fn end(&mut self, _stream: StreamId, _position: Bytes) {}

    /// Returns whether to call [`Policy::evict`], which takes time for each page.
    fn wants_evict_events(&self) -> bool {
        false
    }

    /// Returns whether to call [`Policy::begin`] and [`Policy::end`] for each read call. If not,
    /// one `end` without a `begin` may report a sequence of calls whose pages are all cached and
    /// unmarked. The caller asks at the start and after each [`Policy::tick`].
    fn wants_call_events(&self) -> bool {
        true
    }

    /// Returns the largest window of a stream if the policy itself determines it; zero if the
    /// device's read-ahead or memory does. A simulated cache holds at least this window.
    fn own_window(&self) -> Pages {
        Pages::ZERO
    }

    /// Returns whether the policy calls [`Cache::upcoming`].
    fn needs_lookahead(&self) -> bool {
        false
    }

    /// Returns whether all pages of one submission become readable together, when its last device
    /// request completes. Otherwise each page becomes readable when its own request completes.
    fn completes_per_window(&self) -> bool {
        false
    }

    /// A page is about to be evicted; `used` if it was accessed since it was read. The owner of the
    /// cache may let the policy retain it until the next pass over the cache.
    fn evict(&mut self, _file: FileId, _page: Page, _used: bool) -> Eviction {
        Eviction::Release
    }

    fn advise(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _advice: Advice) {}

    /// A reader of the stream has waited for the device.
    fn stalled(&mut self, _now: Nanos, _stream: StreamId, _wait: Nanos) {}

    /// Returns the time of the next [`Policy::tick`]. The caller asks at the start, after each read
    /// call and after each miss. A policy that returns `None` at the start never receives a tick.
    fn next_tick(&self) -> Option<Nanos> {
        None
    }

    /// Does periodic work that does not depend on a read call.
    fn tick(&mut self, _context: &mut dyn TickContext) {}

    /// Returns the results of the periodic work so far.
    fn stats(&self) -> PolicyStats {
        PolicyStats::default()
    }

    fn close(&mut self, cache: &mut dyn Cache, stream: StreamId);
}

/// The results of a policy's periodic work, without the effects of read calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyStats {
    /// Pages that priming read and that were not cached before.
    pub primed: Pages,
    /// The first decisions, as a time and one line of text each.
    pub decisions: Vec<(Nanos, String)>,
}

/// Counters of completed device requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCompletions {
    pub reads: u64,
    pub bytes: Bytes,
    /// Sum of the service times. It grows faster than the clock if requests overlap.
    pub time: Nanos,
}

/// The environment of [`Policy::tick`].
pub trait TickContext {
    fn now(&self) -> Nanos;

    fn completions(&self) -> DeviceCompletions;

    fn memory(&self) -> Memory;

    /// Returns whether the device is a rotating disk.
    fn rotates(&self) -> bool {
        false
    }

    /// Returns the directories of the files; `None` if the files have none.
    fn file_tree(&self) -> Option<&FileTree> {
        None
    }

    /// Calls `act` with the cache of a stream's file, or does nothing if there is no such stream.
    /// No reader waits for the pages that `act` submits.
    fn with(&mut self, stream: StreamId, act: &mut dyn FnMut(&mut dyn Cache));
}

/// A table of states by stream or file number.
#[derive(Clone, Debug)]
pub(crate) struct StateTable<T>(Vec<Option<T>>);

impl<T> Default for StateTable<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> StateTable<T> {
    pub(crate) fn put(&mut self, id: u32, state: T) {
        let slot = id as usize;
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some(state);
    }

    pub(crate) fn get(&mut self, id: u32) -> Option<&mut T> {
        self.0.get_mut(id as usize)?.as_mut()
    }

    pub(crate) fn take(&mut self, id: u32) -> Option<T> {
        self.0.get_mut(id as usize)?.take()
    }
}
