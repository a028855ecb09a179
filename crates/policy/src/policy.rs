//! The contract between a read-ahead algorithm and whatever runs it.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

use crate::cache::{Cache, Memory};
use crate::page::{Extent, Folio, Page};

/// An open file (open file description), numbered by whoever runs the policy; small numbers that
/// are used again after a close keep the tables small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// What an application says of a range of a mapping (`madvise`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapAdvice {
    /// MADV_SEQUENTIAL.
    pub sequential: bool,
    /// MADV_RANDOM.
    pub random: bool,
    /// MADV_HUGEPAGE.
    pub huge: bool,
}

/// How a page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Read,
    Fault(MapAdvice),
}

/// A page that a stream asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub stream: StreamId,
    /// The page; for a mark met by a read call, the first of the marked folio.
    pub page: Page,
    /// How many pages there are from `page` to the end of the read call; 1 for a fault.
    pub request: Pages,
    pub method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub offset: Bytes,
    /// What it asks for, which may reach beyond the end of the file.
    pub length: Bytes,
}

/// What a reader met at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchOutcome {
    Hit,
    /// The page was on its way, and the reader waited for it.
    Waited,
    /// The page was not in the cache.
    Missed,
}

/// What a policy says of a page that is about to leave the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    Release,
    Retain,
}

/// What an application says of an open file (`posix_fadvise`, `readahead`).
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

/// A read-ahead algorithm: all open files of one kernel, or one program, on one device.
///
/// The cache that a callback is given is that of the stream's file. Callbacks of a stream that was
/// not opened do nothing.
pub trait Policy: Send {
    fn open(&mut self, cache: &mut dyn Cache, stream: StreamId, file: FileId);

    fn begin(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _call: Call) {}

    /// A page that is asked for is not cached. What the policy does not read, the reader reads
    /// by itself, page by page.
    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch);

    /// A cached page that is asked for belongs to a marked folio.
    fn mark(&mut self, _cache: &mut dyn Cache, _touch: Touch, _folio: Folio) {}

    /// Whether [`Policy::access`] is to be called: it costs time for each page.
    fn wants_access_events(&self) -> bool {
        false
    }

    /// A page was asked for, after [`Policy::miss`] or [`Policy::mark`].
    fn access(&mut self, _cache: &mut dyn Cache, _touch: Touch, _outcome: TouchOutcome) {}

    /// Faults found this many pages cached: the one that was touched, or those `around` it that
    /// were mapped along with it.
    fn fault_hits(&mut self, _stream: StreamId, _pages: Pages, _around: bool) {}

    /// A read call that read anything is over; `position` is the byte after its last.
    fn end(&mut self, _stream: StreamId, _position: Bytes) {}

    /// Whether [`Policy::evict`] is to be called: it costs time for each page.
    fn wants_evict_events(&self) -> bool {
        false
    }

    /// Whether it must hear of each read call. One that need not is told the end of the last of
    /// several which found all their pages cached and unmarked, and nothing of their beginnings.
    fn wants_call_events(&self) -> bool {
        true
    }

    /// The window that it surely comes to with a stream, whatever read-ahead the device has: no
    /// cache may be smaller. None if that has all to do with the device, or with memory.
    fn own_window(&self) -> Pages {
        Pages::ZERO
    }

    /// Whether it asks [`Cache::upcoming`].
    fn needs_lookahead(&self) -> bool {
        false
    }

    /// Whether pages that it asks for at once can be read all at once only, with the last of the
    /// requests to the device that bring them; otherwise each comes with its own request.
    fn completes_per_window(&self) -> bool {
        false
    }

    /// A page is about to leave the cache; `used`: it was asked for since it was read. Whoever
    /// owns the cache may let a policy keep it for another round.
    fn evict(&mut self, _file: FileId, _page: Page, _used: bool) -> Eviction {
        Eviction::Release
    }

    fn advise(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _advice: Advice) {}

    /// A reader of the stream has waited for the device.
    fn stalled(&mut self, _now: Nanos, _stream: StreamId, _wait: Nanos) {}

    /// When [`Policy::tick`] is to be called, asked at the beginning, after each call and after
    /// each miss; never unless it says so at the beginning.
    fn next_tick(&self) -> Option<Nanos> {
        None
    }

    /// It is time: for policies that are at work beside the readers.
    fn tick(&mut self, _around: &mut dyn TickContext) {}

    /// What it has done by itself so far, for a policy that is at work beside the readers.
    fn stats(&self) -> PolicyStats {
        PolicyStats::default()
    }

    fn close(&mut self, cache: &mut dyn Cache, stream: StreamId);
}

/// What a policy did by itself, beside what its readers' reads brought about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyStats {
    /// Pages that priming had read which were not cached before.
    pub primed: Pages,
    /// Its first decisions, a line each, and when they were made.
    pub decisions: Vec<(Nanos, String)>,
}

/// What a device has completed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCompletions {
    pub reads: u64,
    pub bytes: Bytes,
    /// How long they took, summed over them: with several under way it grows faster than the clock.
    pub time: Nanos,
}

/// What a policy may see and do when nobody reads: see [`Policy::tick`].
pub trait TickContext {
    fn now(&self) -> Nanos;

    /// What the device has completed so far.
    fn completions(&self) -> DeviceCompletions;

    fn memory(&self) -> Memory;

    /// Acts on the cache of a stream's file; not at all if there is no such stream. Nobody waits
    /// for what is submitted.
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
