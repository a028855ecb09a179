//! Infers the pages of mappings that a program touched. The kernel reports a touch only of a page
//! that is not mapped yet, and maps the cached pages around it at once (`fault_around_bytes`), but
//! not the page with the mark of a window. The recording therefore shows the first page of a piece,
//! and one page in each further range.
//!
//! The recording does not show how far a piece extends within its last range. The share of pieces
//! that cross the end of a range, by its distance from the start of the piece, is the share of
//! pieces that are longer than this distance (current status data). The estimate, which never
//! increases, pools adjacent violators: Ayer et al., Annals of Mathematical Statistics 26, 1955.
//! With too few pieces, only a lower and an upper bound are known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use rangemap::RangeSet;
use units::Nanos;

use crate::recording::{AccessKind, FileAccess, PAGE_BYTES, PageTouch, ProfileRecording};

/// Pages that are mapped at once if the recording does not say: an aligned 64 KiB.
const AROUND_PAGES: u64 = 16;
/// Minimum number of pieces of a file for an inference: a share of one half then has a standard
/// error of one tenth.
const MIN_PIECES: usize = 30;
/// Limits the correction for unseen touches: beyond it, too few are seen for an estimate.
const MAX_TOUCHES_PER_SEEN: f64 = 2.0;
/// Fractional part of the golden ratio: its multiples are spread evenly between 0 and 1.
const GOLDEN_SHARE: f64 = 0.618_033_988_749_894_9;

/// A touch that the kernel reported, and the bytes that it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MappedPiece {
    /// Index of the access; `None` for a touch of a cached page.
    pub access: Option<u32>,
    pub start: Nanos,
    pub end: Nanos,
    pub tid: u32,
    pub inode: u32,
    pub offset: u64,
    /// Lower and upper bound of the bytes that were touched up to the next touch; equal if known or
    /// inferred.
    pub least: u64,
    pub most: u64,
}

/// A touch before the inference.
#[derive(Clone, Copy, Debug)]
struct ObservedTouch {
    access: Option<u32>,
    start: Nanos,
    end: Nanos,
    tid: u32,
    inode: u32,
    page: u64,
    /// Pages up to the end of the range that is mapped at once.
    room: u64,
}

/// Returns the faults and the touches of cached pages, sorted by thread and time.
pub(crate) fn mapped_pieces(recording: &ProfileRecording) -> Vec<MappedPiece> {
    let seen = observed_touches(recording);
    // Pieces: consecutive touches of one thread, each of which may continue the one before it.
    let mut chains: Vec<Range<usize>> = Vec::new();
    for index in 0..seen.len() {
        match chains.last_mut() {
            Some(chain) if is_contiguous(&seen[index - 1], &seen[index]) => chain.end = index + 1,
            _ => chains.push(index..index + 1),
        }
    }
    let mut of_file: BTreeMap<u32, Vec<&[ObservedTouch]>> = BTreeMap::new();
    for chain in &chains {
        of_file.entry(seen[chain.start].inode).or_default().push(&seen[chain.clone()]);
    }
    let lengths: BTreeMap<u32, PieceLengths> = of_file
        .into_iter()
        // Faults alone do not show whether a piece continued to cached pages.
        .filter(|(_, chains)| chains.len() >= MIN_PIECES && !recording.touches.is_empty())
        .map(|(inode, chains)| (inode, PieceLengths::of(&chains)))
        .collect();
    let mut pieces = Vec::with_capacity(seen.len());
    for (number, chain) in chains.into_iter().enumerate() {
        let first = seen[chain.start].page;
        for index in chain.clone() {
            let one = &seen[index];
            let next = (index + 1 < chain.end).then(|| seen[index + 1].page - one.page);
            let (least, most) = match (next, lengths.get(&one.inode)) {
                (Some(pages), _) => (pages, pages),
                (None, None) => (1, one.room),
                (None, Some(lengths)) => {
                    let before = one.page - first;
                    let share = (number as f64 * GOLDEN_SHARE).fract();
                    let pages = lengths.draw(before, before + one.room, share) - before;
                    (pages, pages)
                }
            };
            pieces.push(one.piece(least, most));
        }
    }
    pieces
}

/// Pages of a file that a process has mapped.
#[derive(Debug, Default)]
struct MappedPages {
    ranges: RangeSet<u64>,
    pages: u64,
    /// Estimated number of pages that were touched.
    touched: f64,
}

impl MappedPages {
    fn overlap(&self, range: &Range<u64>) -> u64 {
        let known = self.ranges.overlapping(range);
        known.map(|it| it.end.min(range.end) - it.start.max(range.start)).sum()
    }

    fn insert(&mut self, range: Range<u64>) {
        self.pages += range.end - range.start - self.overlap(&range);
        self.ranges.insert(range);
    }

    fn remove(&mut self, range: Range<u64>) {
        self.pages -= self.overlap(&range);
        self.ranges.remove(range);
    }
}

impl ObservedTouch {
    /// Returns the pages that are mapped with it: a fault maps only its own page.
    fn mapped(&self) -> Range<u64> {
        let start = self.page - self.page % AROUND_PAGES;
        if self.access.is_some() { self.page..self.page + 1 } else { start..self.page + self.room }
    }

    fn piece(&self, least: u64, most: u64) -> MappedPiece {
        let Self { access, start, end, tid, inode, page, .. } = *self;
        let (least, most) = (least * PAGE_BYTES, most * PAGE_BYTES);
        MappedPiece { access, start, end, tid, inode, offset: page * PAGE_BYTES, least, most }
    }
}

/// Returns the number of first touches of pages per recorded one, for files that are touched at
/// random: the next page may be any that was not touched before, but is seen only if it is not
/// mapped. 1 if only stretches of the run were kept.
pub(crate) fn touches_per_seen(recording: &ProfileRecording, inodes: &BTreeSet<u32>) -> f64 {
    let process: HashMap<u32, u32> =
        recording.threads.iter().map(|thread| (thread.tid, thread.pid)).collect();
    let mut seen = observed_touches(recording);
    seen.retain(|one| inodes.contains(&one.inode));
    seen.sort_by_key(|one| one.start);
    if seen.is_empty() || recording.kept_of.is_some() {
        return 1.0;
    }
    let mut evictions = recording.evictions.iter().peekable();
    let mut mappings: HashMap<(u32, u32), MappedPages> = HashMap::new();
    let mut all = 0.0;
    for one in &seen {
        while let Some(evicted) = evictions.next_if(|it| it.at <= one.start) {
            let start = evicted.offset.get() / PAGE_BYTES;
            let pages = start..start + evicted.length.get().div_ceil(PAGE_BYTES);
            let of_file = mappings.iter_mut().filter(|((_, inode), _)| *inode == evicted.inode);
            of_file.for_each(|(_, mapped)| mapped.remove(pages.clone()));
        }
        let pid = process.get(&one.tid).copied().unwrap_or(one.tid);
        let mapped = mappings.entry((pid, one.inode)).or_default();
        let pages = recording.files[one.inode as usize].size.get().div_ceil(PAGE_BYTES) as f64;
        let unmapped = (pages - mapped.pages as f64).max(1.0);
        let factor = ((pages - mapped.touched) / unmapped).clamp(1.0, MAX_TOUCHES_PER_SEEN);
        mapped.touched += factor;
        mapped.insert(one.mapped());
        all += factor;
    }
    all / seen.len() as f64
}

/// Returns the faults and all other touches, each once, sorted by thread and time.
fn observed_touches(recording: &ProfileRecording) -> Vec<ObservedTouch> {
    let faults = (0..).zip(&recording.accesses).filter(|(_, it)| it.kind == AccessKind::Fault);
    let faults = faults.map(|(place, access)| of_access(place, access, recording));
    let mut all: Vec<ObservedTouch> =
        faults.chain(recording.touches.iter().map(of_touch)).collect();
    all.sort_by_key(|one| (one.tid, one.start, one.access.is_some()));
    let mut seen: Vec<ObservedTouch> = Vec::with_capacity(all.len());
    for one in all {
        // A fault is reported as a touch before its page lookup, and again when the page is there.
        match seen.last_mut() {
            Some(last) if (last.tid, last.inode, last.page) == (one.tid, one.inode, one.page) => {
                let room = one.room.min(last.room);
                let is_same_fault = last.access.is_none() && one.access.is_some();
                *last = if is_same_fault {
                    ObservedTouch { room, ..one }
                } else {
                    ObservedTouch { room, ..*last }
                };
            }
            _ => seen.push(one),
        }
    }
    seen
}

fn of_access(place: u32, access: &FileAccess, recording: &ProfileRecording) -> ObservedTouch {
    let page = access.offset.get() / PAGE_BYTES;
    let marked = recording.first_window(access).and_then(|window| mark_after(page, window));
    let room = AROUND_PAGES - page % AROUND_PAGES;
    ObservedTouch {
        access: Some(place),
        start: access.start,
        end: access.end,
        tid: access.tid,
        inode: access.inode,
        page,
        room: marked.map_or(room, |marked| room.min(marked - page)),
    }
}

/// Returns the page with the mark of a window around a fault, at three quarters of the window, if
/// it is after `page`. A window that begins at the fault is one of code, which has no mark, or of
/// `MADV_SEQUENTIAL`, which has it elsewhere. Source: `do_sync_mmap_readahead` in mm/filemap.c.
fn mark_after(page: u64, (start, end): (u64, u64)) -> Option<u64> {
    let (start, end) = (start / PAGE_BYTES, end / PAGE_BYTES);
    let marked = end - (end - start) / 4;
    (start < page && page < marked).then_some(marked)
}

fn of_touch(touch: &PageTouch) -> ObservedTouch {
    ObservedTouch {
        access: None,
        start: touch.at,
        end: touch.at,
        tid: touch.tid,
        inode: touch.inode,
        page: touch.offset.get() / PAGE_BYTES,
        room: (touch.length.get() / PAGE_BYTES).max(1),
    }
}

/// Returns whether a touch may continue the piece of the touch before it.
fn is_contiguous(last: &ObservedTouch, next: &ObservedTouch) -> bool {
    (last.tid, last.inode) == (next.tid, next.inode)
        && (last.page + 1..=last.page + last.room).contains(&next.page)
}

/// Distribution of piece lengths: the share of pieces longer than each number of pages.
#[derive(Clone, Debug, Default)]
struct PieceLengths(BTreeMap<u64, f64>);

impl PieceLengths {
    fn of(chains: &[&[ObservedTouch]]) -> Self {
        // By pages from the start of a piece to the end of a range: the pieces that crossed this
        // end, and all pieces that came to it; and by the pages to the start of the range.
        let mut ends: BTreeMap<u64, BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
        for chain in chains {
            for (index, one) in chain.iter().enumerate() {
                let (first, end) = (chain[0].page, one.page + one.room);
                let next = chain.get(index + 1).map(|next| next.page);
                if next.is_none_or(|next| next >= end) {
                    let of_end = ends.entry(end - first).or_default();
                    let count = of_end.entry(one.page - first).or_default();
                    count.0 += u64::from(next.is_some());
                    count.1 += 1;
                }
            }
        }
        let mut shares: BTreeMap<u64, f64> = BTreeMap::new();
        let mut blocks: Vec<(f64, f64, Vec<u64>)> = Vec::new();
        for (end, starts) in ends {
            let (mut beyond, mut all) = (0.0, 0.0);
            for (start, (crossed, came)) in starts {
                let before = shares.range(..=start).next_back().map_or(1.0, |(_, share)| *share);
                beyond += before * crossed as f64;
                all += came as f64;
            }
            let share = beyond / all;
            shares.insert(end, share);
            blocks.push((share, all, vec![end]));
            // A share that increases is pooled with the one before it.
            while let [.., before, last] = blocks.as_mut_slice()
                && last.0 > before.0
            {
                let weight = before.1 + last.1;
                before.0 = (before.0 * before.1 + last.0 * last.1) / weight;
                before.1 = weight;
                let joined = std::mem::take(&mut last.2);
                before.2.extend(joined);
                blocks.pop();
            }
        }
        let pooled = blocks
            .into_iter()
            .flat_map(|(share, _, ends)| ends.into_iter().map(move |end| (end, share)));
        Self(pooled.collect())
    }

    /// Returns the share of pieces that are longer than `pages`.
    fn longer(&self, pages: u64) -> f64 {
        self.0.range(..=pages).next_back().map_or(1.0, |(_, share)| *share)
    }

    /// Returns a length above `least` and up to `most`, at the quantile `share` of such pieces.
    fn draw(&self, least: u64, most: u64, share: f64) -> u64 {
        let (from, to) = (self.longer(least), self.longer(most));
        let wanted = from - share * (from - to);
        (least + 1..most).find(|pages| self.longer(*pages) < wanted).unwrap_or(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::SubmittedPages;
    use units::Bytes;

    /// Records the touches that the kernel reports for pieces of `pages` pages all over a file.
    fn recording(pages: u64, count: u64) -> ProfileRecording {
        let mut recording = ProfileRecording::default();
        for number in 0..count {
            let first = number * 7919 % 100_003;
            let mut page = first;
            while page < first + pages {
                let room = AROUND_PAGES - page % AROUND_PAGES;
                recording.touches.push(PageTouch {
                    at: Nanos::new(1000 * number + page - first),
                    tid: 1,
                    inode: 0,
                    offset: Bytes::new(page * PAGE_BYTES),
                    length: Bytes::new(room * PAGE_BYTES),
                });
                page += room;
            }
        }
        recording
    }

    fn lengths(pieces: &[MappedPiece]) -> Vec<u64> {
        let mut lengths: Vec<u64> = Vec::new();
        let mut end = None;
        for piece in pieces {
            assert_eq!(piece.least, piece.most);
            match lengths.last_mut() {
                Some(length) if end == Some(piece.offset) => *length += piece.most / PAGE_BYTES,
                _ => lengths.push(piece.most / PAGE_BYTES),
            }
            end = Some(piece.offset + piece.most);
        }
        lengths
    }

    #[test]
    fn the_length_of_pieces_comes_from_how_often_they_leave_a_range() {
        for pages in [1, 3, 8, 15, 20, 64] {
            let lengths = lengths(&mapped_pieces(&recording(pages, 320)));
            assert_eq!(lengths.len(), 320, "{pages}");
            let right = lengths.iter().filter(|length| **length == pages).count();
            assert!(right > 300, "{pages}: {right}");
        }
    }

    #[test]
    fn without_touches_nothing_is_inferred_from_faults() {
        let mut recording = recording(1, 100);
        let faults = std::mem::take(&mut recording.touches).into_iter().map(|touch| FileAccess {
            kind: AccessKind::Fault,
            file: 0,
            offset: touch.offset,
            ..FileAccess::cached(touch.at, touch.at)
        });
        recording.accesses.extend(faults);
        let pieces = mapped_pieces(&recording);
        assert_eq!((pieces[0].least, pieces[0].most), (PAGE_BYTES, 16 * PAGE_BYTES));
    }

    #[test]
    fn unseen_touches_are_as_likely_as_mapped_pages() {
        const PAGES: u64 = 50_000;
        let mut recording = ProfileRecording::default();
        recording.files.push(crate::recording::ProfiledFile {
            id: observe::InodeId { device: host::DevNo { major: 7, minor: 1 }, inode: 1 },
            path: String::new(),
            size: Bytes::new(PAGES * PAGE_BYTES),
            start: None,
            jumps: Vec::new(),
        });
        let (mut touched, mut mapped) = (BTreeSet::new(), BTreeSet::new());
        for number in 0..2500_u64 {
            let page = crate::device::scattered(number) % PAGES;
            touched.insert(page);
            if mapped.contains(&page) {
                continue;
            }
            let end = page - page % AROUND_PAGES + AROUND_PAGES;
            mapped.extend(end - AROUND_PAGES..end);
            recording.touches.push(PageTouch {
                at: Nanos::new(number),
                tid: 1,
                inode: 0,
                offset: Bytes::new(page * PAGE_BYTES),
                length: Bytes::new((end - page) * PAGE_BYTES),
            });
        }
        let seen = recording.touches.len() as f64;
        let inferred = seen * touches_per_seen(&recording, &[0].into());
        assert!(seen < 0.8 * touched.len() as f64, "{seen} of {}", touched.len());
        assert!((inferred / touched.len() as f64 - 1.0).abs() < 0.05, "{inferred}");
    }

    /// Records pieces of `pages` pages, one in each 96, through windows of 32 pages around faults.
    fn faults(pages: u64, count: u64) -> ProfileRecording {
        let mut recording = ProfileRecording::default();
        for number in 0..count {
            let first = 17 + 96 * number;
            let (mut page, marked, mut at) = (first, first + 8, Nanos::from_millis(number));
            while page < first + pages {
                let room = AROUND_PAGES - page % AROUND_PAGES;
                let (offset, length) = (page * PAGE_BYTES, Bytes::new(room * PAGE_BYTES));
                let touch = PageTouch { at, tid: 1, inode: 0, offset: Bytes::new(offset), length };
                recording.touches.push(touch);
                if page == first {
                    let accessed = FileAccess::cached(at, at + Nanos::new(100));
                    let (kind, offset) = (AccessKind::Fault, Bytes::new(offset));
                    recording.accesses.push(FileAccess { kind, offset, file: 0, ..accessed });
                    recording.submitted.push(SubmittedPages {
                        at: at + Nanos::new(50),
                        tid: 1,
                        inode: 0,
                        offset: Bytes::new((first - 16) * PAGE_BYTES),
                        length: Bytes::new(32 * PAGE_BYTES),
                        is_window: true,
                    });
                }
                let end = page + room;
                page = if (page + 1..end).contains(&marked) { marked } else { end };
                at += Nanos::new(1000);
            }
        }
        recording
    }

    #[test]
    fn a_piece_that_does_not_reach_the_mark_of_its_window_ends_before_it() {
        // All pieces start at the same place of a range, so the mark is all there is to learn from.
        for (pages, inferred) in [(1, 8), (8, 8), (9, 15), (15, 15), (40, 47)] {
            let lengths = lengths(&mapped_pieces(&faults(pages, 40)));
            assert_eq!(lengths, [inferred; 40], "{pages}");
        }
    }

    #[test]
    fn a_window_that_begins_at_the_fault_has_no_mark_there() {
        let window = |start: u64| (start * PAGE_BYTES, (start + 32) * PAGE_BYTES);
        assert_eq!(mark_after(17, window(1)), Some(25));
        assert_eq!(mark_after(17, window(17)), None);
    }

    #[test]
    fn of_few_pieces_a_least_and_a_most_are_known() {
        let pieces = mapped_pieces(&recording(8, 3));
        let bounds: Vec<(u64, u64)> =
            pieces.iter().map(|it| (it.least / PAGE_BYTES, it.most / PAGE_BYTES)).collect();
        // Pieces start at page 0, 7919 (the last of its range: one page and seven more) and 15838.
        assert_eq!(bounds, [(1, 16), (1, 1), (1, 16), (2, 2), (1, 16)]);
    }

    #[test]
    fn a_fault_and_its_touches_are_one() {
        let mut recording = recording(1, 1);
        let touch = recording.touches[0];
        let fault = FileAccess {
            kind: AccessKind::Fault,
            misses: 1,
            file: 0,
            ..FileAccess::cached(Nanos::new(5), Nanos::new(90))
        };
        recording.touches.push(PageTouch { at: Nanos::new(91), ..touch });
        recording.accesses.push(fault);
        let pieces = mapped_pieces(&recording);
        assert_eq!(pieces.len(), 1);
        assert_eq!((pieces[0].access, pieces[0].end), (Some(0), Nanos::new(90)));
    }
}
