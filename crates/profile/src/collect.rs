//! Turns events into accesses and waits.

use std::collections::{BTreeSet, HashMap};

use observe::{
    AdviceCall, BlockedWait, EvictedPages, InodeId, PageEvent, PageEventKind, ProfileEvent,
    ProfileEventKind, ReturnedRead, ThreadId, WaitReason,
};
use units::{Bytes, Nanos};

use crate::advice_values::lasts;
use crate::recording::{
    AccessKind, AdviceRecord, FileAccess, IoRequest, PageEviction, PageTouch, ProfileRecording,
    ProfiledFile, StorageWait, SubmittedPages, ThreadAccount, WaitClass,
};
use crate::stretches::KeptStretches;

/// Maximum records of each kind: less than 100 MB in total, and about as much to analyse them.
const MAX_RECORDS: usize = 200_000;

/// Adjacent evictions within this time are merged, because reclaim reports each folio.
const SAME_EVICTION: Nanos = Nanos::from_millis(1);

const PAGE_BYTES: Bytes = Bytes::new(4096);

/// State of a thread since its last call returned.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    misses: u32,
    marks: u32,
    submitted: u64,
    largest: u64,
    plain: u64,
    window_limit: u64,
    /// Index of the last fault's access, and whether the fault was within a call.
    fault: Option<(usize, bool)>,
    /// Index of the last read, which the next one may continue.
    last: Option<usize>,
}

/// Maps stack keys to indexes of the recording's stacks, and classifies waits.
pub(crate) trait StackIndex {
    fn place(&mut self, pid: u32, key: u64) -> u32;
    fn class(&self, place: u32, in_iowait: bool, reason: WaitReason) -> WaitClass;
    /// Returns whether the thread reads data of a file.
    fn reads_data(&self, place: u32) -> bool;
}

/// Turns events into a recording.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    pub recording: ProfileRecording,
    start: Nanos,
    kept: KeptStretches,
    threads: HashMap<u32, Pending>,
    files: HashMap<InodeId, u32>,
    /// Number of files at which files without records are removed.
    most_files: usize,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Self { most_files: MAX_RECORDS, ..Self::default() }
    }

    /// Ignores events before this time (`CLOCK_MONOTONIC`).
    pub(crate) fn start_at(&mut self, start: Nanos) {
        self.start = start;
    }

    /// Returns the index of a file; a new file has a placeholder path until its name arrives.
    pub(crate) fn file(&mut self, id: InodeId, size: Bytes) -> u32 {
        let files = &mut self.recording.files;
        let place = *self.files.entry(id).or_insert_with(|| {
            let path = format!("inode {} on {}", id.inode, id.device);
            files.push(ProfiledFile { id, path, size, start: None, jumps: Vec::new() });
            files.len() as u32 - 1
        });
        let file = &mut files[place as usize];
        file.size = file.size.max(size);
        place
    }

    pub(crate) fn name(&mut self, id: InodeId, size: Bytes, path: String) {
        if self.recording.files.len() >= self.most_files {
            self.forget_unused_files();
        }
        let place = self.file(id, size);
        self.recording.files[place as usize].path = path;
    }

    pub(crate) fn event(&mut self, event: &ProfileEvent, stacks: &mut impl StackIndex) {
        // Earlier requests belong to other processes.
        if event.at < self.start {
            return;
        }
        let at = event.at.saturating_sub(self.start);
        self.recording.taken += 1;
        let tid = event.thread.tid;
        self.make_room(at);
        if !self.is_kept(at, &event.what) {
            self.threads.remove(&tid);
            return;
        }
        match &event.what {
            ProfileEventKind::Read(call) => self.read(at, &event.thread, call),
            ProfileEventKind::Page(page) => self.page(at, tid, page),
            ProfileEventKind::Wait(wait) => self.wait(at, &event.thread, wait, stacks),
            ProfileEventKind::Advice(call) => self.advice(at, &event.thread, call, stacks),
            ProfileEventKind::Request(request) => {
                let kept = IoRequest {
                    end: at,
                    service: request.service,
                    device: request.device,
                    sector: request.sector,
                    length: request.length,
                    depth: request.depth,
                    is_read: request.is_read,
                    queued: request.queued,
                    neighbour: request.neighbour.as_ref().map(|_| event.thread.pid),
                };
                if let Some(name) = &request.neighbour {
                    let names = &mut self.recording.neighbours;
                    names.entry(event.thread.pid).or_insert_with(|| units::text::plain(name));
                }
                keep(&mut self.recording.requests, kept, &mut self.recording.not_kept);
            }
            ProfileEventKind::Eviction(pages) => self.eviction(at, pages),
        }
    }

    fn is_kept(&self, at: Nanos, what: &ProfileEventKind) -> bool {
        match what {
            ProfileEventKind::Wait(wait) => self.kept.touches(at.saturating_sub(wait.blocked), at),
            ProfileEventKind::Read(call) => self.kept.touches(at.saturating_sub(call.duration), at),
            ProfileEventKind::Advice(call) => {
                let lasts = lasts(call.call, call.advice, call.result);
                self.kept.keeps_advice(self.recording.advice.len(), at, lasts)
            }
            _ => self.kept.contains(at),
        }
    }

    /// Halves the kept stretches while any kind of record is full.
    fn make_room(&mut self, now: Nanos) {
        while self.is_full() && self.kept.halve(now) {
            self.kept.filter(&mut self.recording);
            self.threads.clear();
        }
    }

    fn is_full(&self) -> bool {
        let it = &self.recording;
        let pages = it.submitted.len().max(it.evictions.len()).max(it.touches.len());
        let calls = it.accesses.len().max(it.advice.len());
        pages.max(calls).max(it.waits.len()).max(it.requests.len()) >= MAX_RECORDS
    }

    fn forget_unused_files(&mut self) {
        let it = &mut self.recording;
        let mut used: Vec<&mut u32> = Vec::new();
        used.extend(it.accesses.iter_mut().map(|one| &mut one.inode));
        used.extend(it.waits.iter_mut().filter_map(|one| one.inode.as_mut()));
        used.extend(it.advice.iter_mut().filter_map(|one| one.inode.as_mut()));
        used.extend(it.submitted.iter_mut().map(|one| &mut one.inode));
        used.extend(it.evictions.iter_mut().map(|one| &mut one.inode));
        used.extend(it.touches.iter_mut().map(|one| &mut one.inode));
        let places: BTreeSet<u32> = used.iter().map(|place| **place).collect();
        let moved: HashMap<u32, u32> = places.into_iter().zip(0..).collect();
        for place in used {
            *place = moved[&*place];
        }
        let mut place = 0;
        it.files.retain(|_| {
            place += 1;
            moved.contains_key(&(place - 1))
        });
        self.files = it.files.iter().map(|file| file.id).zip(0..).collect();
        self.most_files = MAX_RECORDS.max(2 * it.files.len());
    }

    fn eviction(&mut self, at: Nanos, pages: &EvictedPages) {
        let inode = self.file(pages.inode, Bytes::ZERO);
        let EvictedPages { offset, length, is_advised, .. } = *pages;
        if let Some(last) = self.recording.evictions.last_mut()
            && (last.inode, last.is_advised) == (inode, is_advised)
            && last.offset + last.length == offset
            && at.saturating_sub(last.at) <= SAME_EVICTION
        {
            last.length += length;
            return;
        }
        let eviction = PageEviction { at, inode, offset, length, is_advised };
        keep(&mut self.recording.evictions, eviction, &mut self.recording.not_kept);
    }

    /// Adds a submission once: file systems without large folios report a window and its pages.
    fn submitted(&mut self, pages: SubmittedPages) {
        let last = self.recording.submitted.last();
        let is_same = last.is_some_and(|last| {
            !pages.is_window
                && last.is_window
                && (last.inode, last.tid, last.offset) == (pages.inode, pages.tid, pages.offset)
        });
        if !is_same {
            keep(&mut self.recording.submitted, pages, &mut self.recording.not_kept);
        }
    }

    fn read(&mut self, at: Nanos, thread: &ThreadId, call: &ReturnedRead) {
        let inode = self.file(call.inode, call.size);
        let pending = self.threads.entry(thread.tid).or_default();
        let before = std::mem::take(pending);
        let Ok(got) = u64::try_from(call.result) else { return };
        if got == 0 {
            return;
        }
        let access = FileAccess {
            start: at.saturating_sub(call.duration),
            end: at,
            tid: thread.tid,
            file: call.file,
            inode,
            offset: call.offset,
            length: Bytes::new(got),
            blocked: call.blocked,
            kind: AccessKind::Read,
            misses: before.misses,
            marks: before.marks,
            submitted: Bytes::new(before.submitted),
            largest_window: Bytes::new(before.largest),
            window_limit: Bytes::new(call.window.get() * PAGE_BYTES.get()),
            is_random: call.is_random,
            is_direct: call.is_direct,
            only_mapped: false,
            calls: call.calls,
        };
        let accesses = &mut self.recording.accesses;
        let place = match before.last.and_then(|last| Some((last, accesses.get_mut(last)?))) {
            Some((place, last))
                if continues(last, &access) && KeptStretches::are_together(last.start, at) =>
            {
                last.length += access.length;
                last.end = access.end;
                last.calls += access.calls;
                Some(place)
            }
            _ => keep(accesses, access, &mut self.recording.not_kept),
        };
        pending.last = place;
    }

    fn page(&mut self, at: Nanos, tid: u32, page: &PageEvent) {
        let inode = self.file(page.inode, page.size);
        if page.kind == PageEventKind::Touch {
            let touch = PageTouch { at, tid, inode, offset: page.offset, length: page.length };
            keep(&mut self.recording.touches, touch, &mut self.recording.not_kept);
            return;
        }
        if matches!(page.kind, PageEventKind::Window | PageEventKind::Plain) {
            let is_window = page.kind == PageEventKind::Window;
            let (offset, length) = (page.offset, page.length);
            self.submitted(SubmittedPages { at, tid, inode, offset, length, is_window });
        }
        let pending = self.threads.entry(tid).or_default();
        let accesses = &mut self.recording.accesses;
        if page.kind == PageEventKind::Fault {
            let again = pending.fault.filter(|(place, _)| {
                let last = &accesses[*place];
                last.inode == inode && last.offset == page.offset
            });
            if again.is_none() {
                let access = FileAccess {
                    start: at,
                    end: at,
                    tid,
                    inode,
                    offset: page.offset,
                    length: PAGE_BYTES,
                    kind: AccessKind::Fault,
                    calls: 1,
                    ..FileAccess::default()
                };
                let place = keep(accesses, access, &mut self.recording.not_kept);
                pending.fault = place.map(|place| (place, page.in_call));
                pending.last = None;
            }
            return;
        }
        let of_fault = pending
            .fault
            .filter(|(place, in_call)| *in_call == page.in_call && accesses[*place].inode == inode);
        let window = if page.kind == PageEventKind::Window { page.length } else { Bytes::ZERO };
        let plain = if page.kind == PageEventKind::Plain { page.length } else { Bytes::ZERO };
        let limit = Bytes::new(page.window.get() * PAGE_BYTES.get());
        let (miss, mark) = (page.kind == PageEventKind::Miss, page.kind == PageEventKind::Mark);
        if let Some((place, _)) = of_fault {
            let access = &mut accesses[place];
            access.misses += u32::from(miss || !window.is_zero());
            access.marks += u32::from(mark);
            access.submitted += window + plain;
            access.largest_window = access.largest_window.max(window);
            access.window_limit = access.window_limit.max(limit);
            access.only_mapped |= page.only_mapped;
        } else if page.in_call {
            pending.misses += u32::from(miss);
            pending.marks += u32::from(mark);
            pending.submitted += window.get();
            pending.plain += plain.get();
            pending.largest = pending.largest.max(window.get());
            pending.window_limit = limit.get();
        }
    }

    fn wait(
        &mut self,
        at: Nanos,
        thread: &ThreadId,
        wait: &BlockedWait,
        stacks: &mut impl StackIndex,
    ) {
        let place = stacks.place(thread.pid, wait.stack);
        let class = stacks.class(place, wait.in_iowait, wait.reason);
        if !class.is_storage() {
            return;
        }
        let known =
            wait.inode.inode != 0 && (class != WaitClass::Metadata || stacks.reads_data(place));
        let inode = known.then(|| self.file(wait.inode, Bytes::ZERO));
        if let Some((place, _)) = self.threads.get(&thread.tid).and_then(|one| one.fault) {
            let access = &mut self.recording.accesses[place];
            if Some(access.inode) == inode && wait.reason != WaitReason::None {
                access.blocked += wait.blocked;
                access.end = at;
            }
        }
        let wait = StorageWait {
            end: at,
            blocked: wait.blocked,
            tid: thread.tid,
            pid: thread.pid,
            stack: place,
            class,
            inode,
            file: if known { wait.file } else { 0 },
            offset: if known { wait.offset } else { Bytes::ZERO },
        };
        keep(&mut self.recording.waits, wait, &mut self.recording.not_kept);
    }

    fn advice(
        &mut self,
        at: Nanos,
        thread: &ThreadId,
        call: &AdviceCall,
        stacks: &mut impl StackIndex,
    ) {
        let before = self.threads.entry(thread.tid).or_default();
        let submitted = before.plain + before.submitted;
        *before = Pending::default();
        let known = call.inode.inode != 0;
        let advice = AdviceRecord {
            at,
            tid: thread.tid,
            call: call.call,
            advice: call.advice,
            file: call.file,
            inode: known.then(|| self.file(call.inode, Bytes::ZERO)),
            offset: call.offset,
            length: call.length,
            result: call.result,
            blocked: call.blocked,
            stack: stacks.place(thread.pid, call.stack),
            is_direct: call.is_direct,
            submitted: Bytes::new(submitted),
        };
        keep(&mut self.recording.advice, advice, &mut self.recording.not_kept);
    }

    /// Returns the recording of a run of this length.
    pub(crate) fn finish(self, wall: Nanos) -> ProfileRecording {
        let mut recording = self.recording;
        recording.wall = wall;
        // Processors may have reported their submissions in another order.
        recording.submitted.sort_by_key(|pages| pages.at);
        self.kept.join(&mut recording);
        recording
    }

    pub(crate) fn account(&mut self, time: &observe::ThreadTime) {
        self.recording.threads.push(ThreadAccount {
            pid: time.pid,
            tid: time.tid,
            comm: time.comm.clone(),
            span: time.last.saturating_sub(time.first),
            cpu: time.cpu,
            runnable: time.runnable,
            blocked: time.blocked,
        });
    }
}

/// Returns whether `next` continues `last` with equal calls, both without waits, misses and marks.
fn continues(last: &FileAccess, next: &FileAccess) -> bool {
    let is_plain = |access: &FileAccess| {
        access.blocked == Nanos::ZERO && access.misses == 0 && access.marks == 0
    };
    is_plain(last)
        && is_plain(next)
        && last.kind == AccessKind::Read
        && last.file == next.file
        && last.inode == next.inode
        && last.offset + last.length == next.offset
        && last.length.get() / u64::from(last.calls) == next.length.get() / u64::from(next.calls)
}

/// Adds a record and returns its index; `None` if there is no room.
fn keep<T>(records: &mut Vec<T>, record: T, not_kept: &mut u64) -> Option<usize> {
    if records.len() >= MAX_RECORDS {
        *not_kept += 1;
        return None;
    }
    records.push(record);
    Some(records.len() - 1)
}
