//! `foreread auto` above Linux 6.18: the kernel's own read-ahead, and a controller that sees it
//! through probes and acts from outside.
//!
//! The controller hears of what the kernel's tracepoints tell and nothing else, decides in
//! intervals, and does only what can be done to a stock kernel: windows of open files, and
//! `readahead(2)` with its limit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use units::{Bytes, Nanos, Pages};

use super::linux_6_18::Linux618;
use crate::cache::{Cache, DeviceLimits, Fill, Memory, PAGE, Submission, Trigger, Upcoming};
use crate::control::{
    Act, Answer, Bounds, Controller, Facts, FileKey, NextFile, OpenKey, Order, ReadEnd, Seen,
    Situation,
};
use crate::page::{Extent, Folio, Page};
use crate::policy::{
    Account, Advice, Call, Eviction, FileId, Outcome, Policy, StreamId, Surroundings, Touch,
};
use crate::registry::{Entry, Parameter};

/// This algorithm's line in the registry.
pub const ENTRY: Entry = Entry {
    name: "auto",
    summary: "Linux 6.18 with `foreread auto`: windows and prefetching from outside",
    source: "this project",
    parameters: &[
        Parameter { name: "most", summary: "the largest window", default: "8M" },
        Parameter { name: "interval", summary: "milliseconds between decisions", default: "100" },
        Parameter { name: "reaction", summary: "microseconds to answer a miss", default: "50" },
        Parameter { name: "prefetch", summary: "on: also read ahead by itself", default: "on" },
    ],
    build: |settings| {
        let bounds = Bounds {
            most: Pages::new(settings.pages("most")?),
            prefetch: settings.flag("prefetch")?,
            ..Bounds::default()
        };
        let interval = Nanos::from_millis(settings.count("interval", 1, 60_000)?);
        let reaction = Nanos::from_micros(settings.count("reaction", 0, 1_000_000)?);
        Ok(Box::new(Auto::new(bounds, interval, reaction)))
    },
};

/// Linux 6.18 under control: see the module.
#[derive(Clone, Debug)]
pub struct Auto {
    kernel: Linux618,
    controller: Controller,
    interval: Nanos,
    /// When it decides next.
    decides: Nanos,
    /// The time from a miss to what answers it.
    reaction: Nanos,
    answers: BTreeMap<StreamId, Answer>,
    /// What is to be read in answer to misses, and when, in order of time.
    due: VecDeque<(Nanos, StreamId, Extent)>,
    files: BTreeMap<StreamId, FileId>,
    /// The open file by which a file may be read.
    by_file: BTreeMap<FileId, StreamId>,
    /// Open files of which nothing was read yet.
    fresh: BTreeSet<StreamId>,
    /// The window of files to be opened, at the last interval.
    opens: Option<Pages>,
    account: Account,
}

/// Decisions that are kept word by word.
const TOLD: usize = 512;

impl Auto {
    /// A kernel without open files, and a controller within these bounds.
    pub fn new(bounds: Bounds, interval: Nanos, reaction: Nanos) -> Self {
        let controller = Controller::new(bounds);
        Self {
            kernel: Linux618::new(),
            decides: controller.patience(interval),
            controller,
            interval,
            reaction,
            answers: BTreeMap::new(),
            due: VecDeque::new(),
            files: BTreeMap::new(),
            by_file: BTreeMap::new(),
            fresh: BTreeSet::new(),
            opens: None,
            account: Account::default(),
        }
    }

    fn see(&mut self, now: Nanos, stream: StreamId, seen: Seen) {
        if let Some(file) = self.files.get(&stream) {
            let file = FileKey(0, u64::from(file.0));
            self.controller.see(OpenKey(u64::from(stream.0)), file, now, seen);
        }
    }

    /// Has the kernel act on `touch` and tells the controller what probes see of that.
    fn probe(
        &mut self,
        cache: &mut dyn Cache,
        touch: Touch,
        act: impl FnOnce(&mut Linux618, &mut Probed<'_>),
    ) {
        // Who first misses has just opened the file: what waits to be read was not opened yet.
        if self.fresh.remove(&touch.stream)
            && let Some(window) = self.controller.for_new()
        {
            self.kernel.set_window(touch.stream, window);
        }
        let (now, file_pages, mut seen) = (cache.now(), cache.file_pages(), Vec::new());
        let mut probed =
            Probed { cache, seen: &mut seen, page: touch.page, asked: None, read: Pages::ZERO };
        act(&mut self.kernel, &mut probed);
        for one in seen {
            self.see(now, touch.stream, one);
            if let Seen::Miss { index, pages, .. } = one
                && let Some(answer) = self.answers.get_mut(&touch.stream)
                && let Some(rest) = answer.miss(index, pages, file_pages)
            {
                self.due.push_back((now + self.reaction, touch.stream, rest));
            }
        }
    }

    fn facts(kernel: &mut Linux618, key: OpenKey, pages: Pages) -> Option<Facts> {
        let stream = StreamId(u32::try_from(key.0).ok()?);
        let (window, position, random) = kernel.state(stream)?;
        Some(Facts {
            file_pages: pages,
            window,
            position,
            hands_off: random,
            domain: 0,
            page: PAGE.bytes(),
        })
    }

    fn follow(&mut self, order: &Order, around: &mut dyn Surroundings) {
        let Ok(stream) = u32::try_from(order.key.0).map(StreamId) else { return };
        if !order.why.is_empty() && self.account.told.len() < TOLD {
            self.account.told.push((around.now(), told(order)));
        }
        match &order.act {
            Act::Window(pages) => self.kernel.set_window(stream, *pages),
            Act::Files(files) => self.read_files(files, around),
            Act::Answer(run) => {
                self.answers.remove(&stream);
                if let Some(run) = run {
                    self.answers.insert(stream, Answer::new(*run));
                }
            }
            Act::Prefetch(extents) => around.with(stream, &mut |cache| {
                let read = self.prefetch(cache, stream, extents);
                if order.primes {
                    self.account.primed += read;
                }
            }),
        }
    }

    /// Reads what is due in answer to misses.
    fn answer(&mut self, around: &mut dyn Surroundings) {
        let now = around.now();
        while let Some((at, stream, rest)) = self.due.front().copied()
            && at <= now
        {
            self.due.pop_front();
            around.with(stream, &mut |cache| {
                self.prefetch(cache, stream, &[rest]);
            });
        }
    }

    fn decide(&mut self, around: &mut dyn Surroundings) {
        let memory = around.memory().available.to_bytes(PAGE);
        let situation = Situation {
            now: around.now(),
            completions: around.completions(),
            // The simulated cache is all that there is for these readers.
            memory: BTreeMap::from([(0, memory)]),
            asked: None,
            limited: BTreeSet::from([0]),
            tight: false,
        };
        let kernel = &mut self.kernel;
        let mut orders = self.controller.decide(&situation, |key| {
            let stream = StreamId(u32::try_from(key.0).ok()?);
            let mut pages = None;
            around.with(stream, &mut |cache| pages = Some(cache.file_pages()));
            Self::facts(kernel, key, pages?)
        });
        if let Some(key) = self.controller.wants_directory(situation.now).first().copied() {
            // All files are of one directory, and listed as they were made.
            let files = self.by_file.keys().map(|file| FileKey(0, u64::from(file.0))).collect();
            orders.extend(self.controller.directory(key, vec![files], &situation));
        }
        for order in &orders {
            self.follow(order, around);
        }
        let opens = self.controller.for_new();
        if opens != self.opens && self.account.told.len() < TOLD {
            let window = opens.map_or("the device's own".to_owned(), |pages| pages.to_string());
            self.account.told.push((around.now(), format!("files to be opened: {window}")));
        }
        self.opens = opens;
    }

    /// Has files read that need not be open: what is to be opened has its number already.
    fn read_files(&mut self, files: &[NextFile], around: &mut dyn Surroundings) {
        for next in files {
            let is_it = |file: &FileId| u64::from(file.0) == next.file.1;
            let stream = self.by_file.get(&FileId(next.file.1 as u32)).copied();
            let Some(stream) = stream.filter(|stream| self.files.get(stream).is_some_and(is_it))
            else {
                continue;
            };
            around.with(stream, &mut |cache| {
                let pages = cache.file_pages().saturating_sub(next.from);
                let rest = Extent::new(Page::new(next.from.get()), pages);
                self.prefetch(cache, stream, &[rest]);
            });
        }
    }

    /// Has these pages read, and says how many of them were not cached.
    fn prefetch(&mut self, cache: &mut dyn Cache, stream: StreamId, extents: &[Extent]) -> Pages {
        // One call is cut off at this size.
        let window = self.kernel.state(stream).map_or(Pages::ZERO, |state| state.0);
        let piece = cache.limits().max_request.max(window).max(Pages::new(1));
        let (page, mut unheard) = (Page::FIRST, Vec::new());
        let mut probed = Probed { cache, seen: &mut unheard, page, asked: None, read: Pages::ZERO };
        for extent in extents {
            let mut at = extent.start;
            while at < extent.end() {
                let pages = piece.min(extent.end().since(at));
                let extent = Extent::new(at, pages);
                self.kernel.advise(&mut probed, stream, Advice::WillNeed(extent));
                at = extent.end();
            }
        }
        probed.read
    }
}

fn told(order: &Order) -> String {
    match &order.act {
        Act::Window(window) => format!("{}: {window} pages: {}", order.key.0, order.why),
        Act::Prefetch(extents) => {
            let pages: Pages = extents.iter().map(|extent| extent.pages).sum();
            format!("{}: reads {pages} pages: {}", order.key.0, order.why)
        }
        Act::Files(files) => {
            format!("{}: reads {} files: {}", order.key.0, files.len(), order.why)
        }
        Act::Answer(run) => {
            let run = run.map_or(0, Pages::get);
            format!("{}: answers with runs of {run} pages: {}", order.key.0, order.why)
        }
    }
}

impl Policy for Auto {
    fn open(&mut self, cache: &mut dyn Cache, stream: StreamId, file: FileId) {
        self.files.insert(stream, file);
        self.by_file.insert(file, stream);
        self.fresh.insert(stream);
        self.kernel.open(cache, stream, file);
    }

    fn begin(&mut self, cache: &mut dyn Cache, stream: StreamId, call: Call) {
        self.kernel.begin(cache, stream, call);
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        self.probe(cache, touch, |kernel, cache| kernel.miss(cache, touch));
    }

    fn mark(&mut self, cache: &mut dyn Cache, touch: Touch, folio: Folio) {
        self.probe(cache, touch, |kernel, cache| kernel.mark(cache, touch, folio));
    }

    fn access(&mut self, cache: &mut dyn Cache, touch: Touch, outcome: Outcome) {
        self.kernel.access(cache, touch, outcome);
    }

    fn fault_hits(&mut self, stream: StreamId, pages: Pages, around: bool) {
        self.kernel.fault_hits(stream, pages, around);
    }

    fn end(&mut self, stream: StreamId, position: Bytes) {
        self.kernel.end(stream, position);
    }

    fn hears_calls(&self) -> bool {
        self.kernel.hears_calls()
    }

    fn completes_together(&self) -> bool {
        self.kernel.completes_together()
    }

    fn evict(&mut self, file: FileId, page: Page, used: bool) -> Eviction {
        self.kernel.evict(file, page, used)
    }

    fn advise(&mut self, cache: &mut dyn Cache, stream: StreamId, advice: Advice) {
        self.kernel.advise(cache, stream, advice);
    }

    fn close(&mut self, cache: &mut dyn Cache, stream: StreamId) {
        self.files.remove(&stream);
        self.fresh.remove(&stream);
        self.answers.remove(&stream);
        self.kernel.close(cache, stream);
    }

    fn stalled(&mut self, now: Nanos, stream: StreamId, wait: Nanos) {
        self.see(now, stream, Seen::Stall { wait });
    }

    fn wakes(&self) -> Option<Nanos> {
        let answers = self.due.front().map_or(Nanos::MAX, |(at, ..)| *at);
        Some(answers.min(self.decides))
    }

    fn tick(&mut self, around: &mut dyn Surroundings) {
        self.answer(around);
        if around.now() >= self.decides {
            self.decide(around);
            self.decides = around.now() + self.controller.patience(self.interval);
        }
    }

    fn account(&self) -> Account {
        self.account.clone()
    }
}

/// A cache that notes what the kernel's tracepoints tell.
struct Probed<'a> {
    cache: &'a mut dyn Cache,
    seen: &'a mut Vec<Seen>,
    /// The page that was touched.
    page: Page,
    /// The page of a miss or mark whose window is to come.
    asked: Option<Page>,
    /// Pages of what was submitted that were not cached.
    read: Pages,
}

impl Cache for Probed<'_> {
    fn submit(&mut self, window: Submission) -> Pages {
        let extent = Extent::new(window.start, window.pages);
        match (window.fill, self.asked.take()) {
            (Fill::Folios { .. }, asked) => {
                let index = asked.unwrap_or(self.page);
                let mapped = asked.is_none();
                self.seen.push(Seen::Window { window: extent, index, mapped });
            }
            (Fill::Single, Some(_)) => self.seen.push(Seen::Plain { pages: window.pages }),
            (Fill::Single, None) => {}
        }
        let read = self.cache.submit(window);
        self.read += read;
        read
    }

    fn trace(&mut self, trigger: Trigger) {
        match trigger {
            Trigger::Sync { index, request, previous } => {
                let previous = previous.map(|next| ReadEnd::of(next, PAGE.bytes()));
                self.seen.push(Seen::Miss { index, pages: request, previous });
                self.asked = Some(index);
            }
            Trigger::Async { index, request, .. } => {
                self.seen.push(Seen::Mark { index, pages: request });
                self.asked = Some(index);
            }
            Trigger::Direct => self.asked = None,
        }
        self.cache.trace(trigger);
    }

    fn file_size(&self) -> Bytes {
        self.cache.file_size()
    }
    fn file_pages(&self) -> Pages {
        self.cache.file_pages()
    }
    fn folio(&self, page: Page) -> Option<Folio> {
        self.cache.folio(page)
    }
    fn is_ready(&self, page: Page) -> bool {
        self.cache.is_ready(page)
    }
    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.cache.next_miss(from, max)
    }
    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.cache.prev_miss(from, max)
    }
    fn set_mark(&mut self, page: Page) {
        self.cache.set_mark(page);
    }
    fn clear_mark(&mut self, page: Page) {
        self.cache.clear_mark(page);
    }
    fn limits(&self) -> DeviceLimits {
        self.cache.limits()
    }
    fn folio_limit(&self) -> Option<u8> {
        self.cache.folio_limit()
    }
    fn congested(&self) -> bool {
        self.cache.congested()
    }
    fn now(&self) -> Nanos {
        self.cache.now()
    }
    fn memory(&self) -> Memory {
        self.cache.memory()
    }
    fn is_used(&self, page: Page) -> bool {
        self.cache.is_used(page)
    }
    fn set_used(&mut self, extent: Extent) {
        self.cache.set_used(extent);
    }
    fn rescue(&mut self, start: Page, pages: Pages) {
        self.cache.rescue(start, pages);
    }
    fn contiguous(&self, page: Page) -> Pages {
        self.cache.contiguous(page)
    }
    fn upcoming(&self, nth: u64) -> Upcoming {
        self.cache.upcoming(nth)
    }
}
