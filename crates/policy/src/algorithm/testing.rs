//! A simulated file for the unit tests of algorithms.

use units::{Bytes, Nanos, Pages};

use crate::cache::{Cache, DeviceLimits, FileCache, FileShape, Memory, PAGE, Submission, Upcoming};
use crate::mapping::Mapping;
use crate::page::{Extent, Folio, Page};
use crate::policy::{Advice, Call, FileId, MapAdvice, Policy, StreamId};
use crate::reader::read;

/// A file with a device and memory that a test can set.
pub(crate) struct Stage {
    pub(crate) file: FileCache,
    pub(crate) now: Nanos,
    pub(crate) memory: Option<Memory>,
    pub(crate) congested: bool,
    pub(crate) contiguous: u64,
    pub(crate) scan: Option<Vec<Extent>>,
    pub(crate) rescued: Vec<(u64, u64)>,
}

impl Cache for Stage {
    fn file_size(&self) -> Bytes {
        self.file.file_size()
    }

    fn folio(&self, page: Page) -> Option<Folio> {
        self.file.folio(page)
    }

    fn hit_run(&self, page: Page, max: Pages) -> Pages {
        self.file.hit_run(page, max)
    }

    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.file.next_miss(from, max)
    }

    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.file.prev_miss(from, max)
    }

    fn submit(&mut self, window: Submission) -> Pages {
        self.file.submit(window)
    }

    fn set_mark(&mut self, page: Page) {
        self.file.set_mark(page);
    }

    fn clear_mark(&mut self, page: Page) {
        self.file.clear_mark(page);
    }

    fn is_used(&self, page: Page) -> bool {
        self.file.is_used(page)
    }

    fn set_used(&mut self, extent: Extent) {
        self.file.set_used(extent);
    }

    fn limits(&self) -> DeviceLimits {
        self.file.limits()
    }

    fn congested(&self) -> bool {
        self.congested
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn memory(&self) -> Memory {
        self.memory.unwrap_or_else(|| self.file.memory())
    }

    fn rescue(&mut self, start: Page, pages: Pages) {
        self.rescued.push((start.get(), pages.get()));
    }

    fn contiguous(&self, page: Page) -> Pages {
        Pages::new(self.contiguous - page.get() % self.contiguous)
    }

    fn upcoming(&self, nth: u64) -> Upcoming {
        match &self.scan {
            None => Upcoming::Unknown,
            Some(scan) => {
                scan.get(nth as usize).map_or(Upcoming::End, |&pages| Upcoming::Pages(pages))
            }
        }
    }
}

/// An algorithm with a file and the device of the golden sequences: window 128 KiB, largest request
/// 320 pages.
pub(crate) struct Bench<P> {
    pub(crate) policy: P,
    pub(crate) stage: Stage,
}

const FILE: FileId = FileId(0);

impl<P: Policy> Bench<P> {
    /// Opens a file of `pages` pages as stream 0.
    pub(crate) fn new(policy: P, pages: u64) -> Self {
        Self::with_window(policy, pages, 32)
    }

    pub(crate) fn with_window(policy: P, pages: u64, window: u64) -> Self {
        let limits = DeviceLimits { read_ahead: Pages::new(window), max_request: Pages::new(320) };
        let size = Pages::new(pages).to_bytes(PAGE);
        let file = FileCache::new(FileShape { size, folio_limit: None, limits });
        let stage = Stage {
            file,
            now: Nanos::ZERO,
            memory: None,
            congested: false,
            contiguous: 1 << 40,
            scan: None,
            rescued: Vec::new(),
        };
        let mut bench = Self { policy, stage };
        bench.open(0);
        bench
    }

    pub(crate) fn open(&mut self, stream: u32) {
        self.policy.open(&mut self.stage, StreamId(stream), FILE);
    }

    pub(crate) fn close(&mut self, stream: u32) {
        self.policy.close(&mut self.stage, StreamId(stream));
    }

    pub(crate) fn advise(&mut self, advice: Advice) {
        self.policy.advise(&mut self.stage, StreamId(0), advice);
    }

    /// Reads pages through stream 0. Returns the device reads as (start, pages).
    pub(crate) fn read(&mut self, page: u64, pages: u64) -> Vec<(u64, u64)> {
        self.read_by(0, page, pages)
    }

    pub(crate) fn read_by(&mut self, stream: u32, page: u64, pages: u64) -> Vec<(u64, u64)> {
        let offset = Pages::new(page).to_bytes(PAGE);
        let call = Call { offset, length: Pages::new(pages).to_bytes(PAGE) };
        read(&mut self.policy, &mut self.stage, StreamId(stream), call);
        self.reads()
    }

    /// Accesses a page of a new mapping.
    pub(crate) fn touch(&mut self, page: u64, advice: MapAdvice) -> Vec<(u64, u64)> {
        let mut mapping = Mapping::new(StreamId(0), self.stage.file_pages());
        let all = Extent::new(Page::FIRST, self.stage.file_pages());
        mapping.advise(all, |to| *to = advice);
        mapping.touch(&mut self.policy, &mut self.stage, Page::new(page));
        self.reads()
    }

    /// Removes pages from the cache without calling the policy.
    pub(crate) fn drop_pages(&mut self, pages: std::ops::Range<u64>) {
        for page in pages {
            self.stage.file.remove(Page::new(page));
        }
    }

    pub(crate) fn marked(&self) -> Vec<u64> {
        let all = Extent::new(Page::FIRST, self.stage.file_pages());
        let folios = self.stage.file.tree().folios(all);
        folios.filter(|folio| folio.marked).map(|folio| folio.head.get()).collect()
    }

    fn reads(&mut self) -> Vec<(u64, u64)> {
        let reads = self.stage.file.take_reads();
        reads.iter().map(|read| (read.start.get(), read.pages.get())).collect()
    }
}
