//! Page references of all readers in one order.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use units::Bytes;

use super::OracleWork;
use crate::scenario::{ReadStep, Start};

/// Next use of a page that is never read again.
pub(super) const NO_NEXT_USE: u32 = u32::MAX;

/// A replacement: the reference that needs it, the fetched page and the evicted page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) at: u32,
    pub(super) page: u32,
    pub(super) victim: Option<u32>,
}

/// Page references in the order in which they would be made if all readers progressed at the same
/// speed: by bytes, or by time if times are given.
pub(super) struct References {
    /// File and page of each page number.
    pub(super) pages: Vec<(u32, u64)>,
    /// Page numbers in order of reference.
    pub(super) order: Vec<u32>,
    /// Index in `order` of the next reference to the same page.
    pub(super) next: Vec<u32>,
    /// Index in `order` of the first reference, and number of references, by reader and step.
    pub(super) steps: Vec<Vec<(u32, u32)>>,
    numbers: HashMap<(u32, u64), u32>,
}

/// Returns the file and the pages of a step, cut off at the end of the file.
pub(super) fn pages_of(work: &OracleWork, step: &ReadStep) -> Option<(u32, std::ops::Range<u64>)> {
    let file = work.opens.get(step.open as usize)?.file;
    let size = work.files.get(file as usize)?.size;
    let end = Bytes::new(step.offset.get().saturating_add(step.length.get())).min(size);
    if step.offset >= end {
        return None;
    }
    Some((file, step.offset.get() / 4096..end.get().div_ceil(4096)))
}

impl References {
    pub(super) fn of(work: &OracleWork) -> Self {
        let mut this = Self {
            pages: Vec::new(),
            order: Vec::new(),
            next: Vec::new(),
            steps: work.readers.iter().map(|steps| vec![(0, 0); steps.len()]).collect(),
            numbers: HashMap::new(),
        };
        let timed = |steps: &Vec<ReadStep>| {
            steps.iter().any(|step| matches!(step.start, Start::At(time) if time.get() > 0))
        };
        let timed = work.readers.iter().any(timed);
        let mut turns: BinaryHeap<Reverse<(u64, usize, usize)>> = BinaryHeap::new();
        let key = |done: u64, step: &ReadStep| match step.start {
            Start::At(time) if timed => time.get().max(done),
            _ => done,
        };
        for (reader, steps) in work.readers.iter().enumerate() {
            if let Some(step) = steps.first() {
                turns.push(Reverse((key(0, step), reader, 0)));
            }
        }
        while let Some(Reverse((done, reader, at))) = turns.pop() {
            let step = &work.readers[reader][at];
            this.add(work, reader, at, step);
            if let Some(next) = work.readers[reader].get(at + 1) {
                let done = if timed { done } else { done + step.length.get() };
                turns.push(Reverse((key(done, next), reader, at + 1)));
            }
        }
        this.look_back();
        this
    }

    fn add(&mut self, work: &OracleWork, reader: usize, at: usize, step: &ReadStep) {
        let start = self.order.len() as u32;
        if let Some((file, pages)) = pages_of(work, step) {
            for page in pages {
                let fresh = self.pages.len() as u32;
                let number = *self.numbers.entry((file, page)).or_insert(fresh);
                if number == fresh {
                    self.pages.push((file, page));
                }
                self.order.push(number);
            }
        }
        self.steps[reader][at] = (start, self.order.len() as u32 - start);
    }

    fn look_back(&mut self) {
        let mut seen = vec![NO_NEXT_USE; self.pages.len()];
        self.next = vec![NO_NEXT_USE; self.order.len()];
        for (at, number) in self.order.iter().enumerate().rev() {
            self.next[at] = seen[*number as usize];
            seen[*number as usize] = at as u32;
        }
    }

    /// Returns the replacements of Belady's MIN with a cache of `capacity` pages, in order.
    pub(super) fn plan(&self, capacity: u64) -> Vec<Planned> {
        let mut cached: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut due = vec![None; self.pages.len()];
        let mut plan = Vec::new();
        for (at, page) in (0u32..).zip(&self.order) {
            let next = self.next[at as usize];
            if let Some(old) = due[*page as usize].take() {
                cached.remove(&(old, *page));
            } else {
                let full = cached.len() as u64 >= capacity;
                let victim = if full { cached.pop_last().map(|(_, victim)| victim) } else { None };
                if let Some(victim) = victim {
                    due[victim as usize] = None;
                }
                plan.push(Planned { at, page: *page, victim });
            }
            due[*page as usize] = Some(next);
            cached.insert((next, *page));
        }
        plan
    }

    /// Returns the number of a page, if it is ever read.
    pub(super) fn number(&self, file: u32, page: u64) -> Option<u32> {
        self.numbers.get(&(file, page)).copied()
    }
}
