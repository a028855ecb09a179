//! Prefetches the next of many files before they are opened.
//!
//! A reader of many files waits for the disk at the start of each, which no window prevents. If
//! files are started in an order of their directory (as listed, by name forward or backward, or by
//! inode), the next ones are prefetched: whole if they are small, otherwise what the device reads
//! until the controller can set the window of a file that has just been opened.
//!
//! Access samples of some files, the markers, show the reader's progress. If accesses cannot be
//! sampled, reads of cached pages are invisible. Then the first page of each marker is not
//! prefetched, so that the reader misses it.

mod trial;

use std::collections::{BTreeMap, VecDeque, vec_deque};
use std::sync::Arc;

use units::{Nanos, Pages};

use super::action::{DirectoryQuery, NextFile};
use super::inputs::{FileKey, FileState};
use super::memory::WindowShare;
use crate::tuning::Tuning;
use policy::OpenFileId;
use trial::{FileProgress, SequenceTrial};

#[derive(Clone, Copy, Debug)]
struct Begun {
    file: FileKey,
    key: OpenFileId,
    at: Nanos,
    /// Pages that the device had read by then.
    pages: u64,
}

/// The highest rate of a device so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRate {
    pub pages_per_second: f64,
    pub rotates: bool,
}

/// A directory whose files are read in one of its orders.
#[derive(Clone, Debug)]
struct Sequence {
    /// Open file through which the directory was found.
    key: OpenFileId,
    files: Vec<FileKey>,
    places: BTreeMap<FileKey, u64>,
    /// Pages that are prefetched of each file.
    wanted: Pages,
    /// The reader has started the files before index `at`; files before `done` are requested.
    at: u64,
    done: u64,
    depth: u64,
    /// Distance between two markers, in files.
    spacing: u64,
    late: bool,
    moved: Nanos,
    /// Number of files started outside the directory since the last one in it.
    elsewhere: u64,
    /// Position at the last interval, and the decaying maximum of files per interval.
    before: u64,
    pace: u64,
    is_reported: bool,
    tuning: Arc<Tuning>,
}

/// Tracks the files that readers start on a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequences {
    begun: VecDeque<Begun>,
    /// When readers started the first file since they rested.
    since: Nanos,
    /// Files started so far, and the count below which no directory is listed again.
    count: u64,
    list_after: u64,
    /// Consecutive listings without a fitting order.
    unfit: u32,
    current: Option<Sequence>,
    /// Files that all readers have started, seen or not, and pages that the device has read.
    passed: u64,
    pages: u64,
    /// The trial of prefetching, until readers rest.
    trial: Option<SequenceTrial>,
    /// Time before which nothing is tried; number of consecutive attempts without a gain.
    not_before: Nanos,
    failed_attempts: u32,
    /// Moving average of file sizes in pages; 0 before the first file.
    typical: f64,
    /// Sizes of the last files, in pages.
    sizes: VecDeque<u64>,
    /// State of the file that was examined last.
    facts: Option<FileState>,
    tuning: Arc<Tuning>,
}

impl Sequences {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Records that a reader started to read a file: this is the first event of a new open file, or
    /// a miss of the first page.
    pub fn on_file_begun(&mut self, file: FileKey, key: OpenFileId, at: Nanos) {
        if self.begun.back().is_some_and(|last| last.file == file) {
            return;
        }
        let rested = |last: &Begun| at.saturating_sub(last.at) > self.tuning.idle_timeout;
        if self.begun.back().is_none_or(rested) {
            self.since = at;
        }
        if self.begun.len() == self.tuning.max_remembered {
            self.begun.pop_front();
        }
        self.begun.push_back(Begun { file, key, at, pages: self.pages });
        self.count += 1;
        // The place of the reader that is followed shows its files.
        let is_elsewhere = |current: &Sequence| !current.places.contains_key(&file);
        self.passed += u64::from(self.current.as_ref().is_none_or(is_elsewhere));
        if let Some(current) = &mut self.current {
            current.reader_at(file, at);
        }
        // The reader of a directory tree has moved on to another directory.
        if self.current.as_ref().is_some_and(Sequence::has_moved_on) {
            self.current = None;
        }
    }

    /// Records an access sample of a file.
    pub fn on_sample(&mut self, file: FileKey, at: Nanos) {
        if let Some(current) = &mut self.current {
            current.on_sample(file, at);
        }
    }

    /// Returns the files whose access samples show the reader's progress.
    pub fn markers(&self) -> Vec<FileKey> {
        self.current.as_ref().map(Sequence::markers).unwrap_or_default()
    }

    pub fn stop(&mut self) {
        (self.current, self.trial) = (None, None);
    }

    /// Records the state of a new open file. A file that is unmanaged, or whose program advised
    /// random reads, is not part of a sequence.
    pub fn on_open_file(&mut self, key: OpenFileId, facts: FileState) {
        if !facts.has_read_ahead() {
            self.begun.retain(|one| one.key != key);
            return;
        }
        let pages = facts.file_pages.get();
        let known = if self.typical == 0.0 { pages as f64 } else { self.typical };
        self.typical = known + 0.1 * (pages as f64 - known);
        if self.sizes.len() == 2 * self.tuning.few_samples as usize {
            self.sizes.pop_front();
        }
        self.sizes.push_back(pages);
        self.facts = Some(facts);
    }

    /// Returns the median size of the last files that were seen: a single large one would make each
    /// unseen file count as thousands of pages. 0 before the first file.
    fn usual_size(&self) -> u64 {
        let mut sizes: Vec<u64> = self.sizes.iter().copied().collect();
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).copied().unwrap_or_default()
    }

    /// Returns the state of the file examined last, whose cache limits the prefetches.
    pub fn facts(&self) -> Option<FileState> {
        self.facts
    }

    /// Returns the directory that should be listed. To list others that the reader has not reached
    /// costs seeks on a rotating disk, so there the reader must have read one in order before.
    pub fn wants(&self, now: Nanos, device: DeviceRate) -> DirectoryQuery {
        let lately = self.lately(now, device.rotates);
        let is_paused = self.count < self.list_after || now < self.not_before;
        let few = self.tuning.few_samples as usize;
        if self.current.is_some() || is_paused || lately.len() < few {
            return DirectoryQuery::default();
        }
        // On a rotating disk, a trial without a gain costs most.
        if device.rotates && !self.may_gain_on_a_disk(lately, now, device) {
            return DirectoryQuery::default();
        }
        let with_next = !device.rotates || self.trial.is_some();
        let files = self.begun.iter().rev().take(few).map(|one| one.key).collect();
        DirectoryQuery { files, with_next }
    }

    /// Returns whether the readers of these files may be faster on a rotating disk.
    fn may_gain_on_a_disk(
        &self,
        lately: vec_deque::Iter<'_, Begun>,
        now: Nanos,
        device: DeviceRate,
    ) -> bool {
        let count = lately.len();
        let before = progress(lately);
        // A program reads its first files more slowly than the others.
        let is_known = self.trial.is_some()
            || count == self.tuning.max_remembered
            || before.time >= self.tuning.min_rotating_span();
        let is_at_full_rate =
            before.pages_per_second() >= self.tuning.full_rate_share() * device.pages_per_second;
        // The drive reads adjacent files ahead itself. Only an array gains much, and a reader that
        // soon ends does not make up for the trial.
        let usual = self.tuning.min_rotating_file_time.as_secs_f64();
        let are_adjacent = before.files_per_second() * usual > 1.0;
        let is_long = now.saturating_sub(self.since) >= self.tuning.idle_timeout;
        is_known && !is_at_full_rate && (is_long || !are_adjacent)
    }

    /// Returns the last files, which show the rate of the reader. Files before them may have been
    /// prefetched if there is a trial.
    fn lately(&self, now: Nanos, rotates: bool) -> vec_deque::Iter<'_, Begun> {
        let is_old = |one: &Begun| now.saturating_sub(one.at) >= self.tuning.idle_timeout;
        let most = if rotates && self.trial.is_none() {
            self.tuning.max_remembered
        } else {
            2 * self.tuning.few_samples as usize
        };
        let first = self.begun.partition_point(is_old).max(self.begun.len().saturating_sub(most));
        self.begun.range(first..)
    }

    /// Takes the files of the directory of an open file, in the orders in which they may be read,
    /// and follows the order that fits best. `read` returns how many pages at the start of a file
    /// were read, if that is known.
    pub fn list(
        &mut self,
        key: OpenFileId,
        orders: Vec<Vec<FileKey>>,
        read: impl Fn(FileKey) -> Option<u64>,
        now: Nanos,
        device: DeviceRate,
    ) {
        let (mut best, wanted) = (0, self.usually_read(read, device.pages_per_second));
        for files in orders.into_iter().filter(|_| !wanted.is_zero()) {
            let mut sequence = Sequence::new(key, files, wanted, now, Arc::clone(&self.tuning));
            let fit = sequence.fit(&self.begun);
            if fit > best {
                (best, self.current) = (fit, Some(sequence));
            }
        }
        // A reader new to this directory fits after a few more files; a random reader never fits.
        self.unfit = if best > 0 { 0 } else { self.unfit + 1 };
        if self.unfit > self.tuning.max_backoff_doublings {
            self.not_before = now + self.tuning.retry_interval;
        }
        let doublings = self.unfit.saturating_sub(1).min(self.tuning.max_backoff_doublings);
        self.list_after = self.count + (self.tuning.few_samples << doublings);
        if self.current.is_some() && self.trial.is_none() {
            let before = progress(self.lately(now, device.rotates));
            let tuning = Arc::clone(&self.tuning);
            self.trial = Some(SequenceTrial::new(before, device.rotates, tuning));
        }
    }

    /// Returns how many pages of the next files to prefetch, at this rate of the device: as many as
    /// were read of the last ones, or as many as are useful if that was most of them. 0 if they
    /// were read from the middle.
    fn usually_read(&self, read: impl Fn(FileKey) -> Option<u64>, rate: f64) -> Pages {
        // The last file is still being read.
        let earlier = self.begun.iter().rev().skip(1).take(2 * self.tuning.few_samples as usize);
        let pages: Vec<u64> = earlier.filter_map(|one| read(one.file)).collect();
        let mean = pages.iter().sum::<u64>() / (pages.len() as u64).max(1);
        let is_most = mean as f64 >= self.tuning.majority_share * self.typical;
        let useful = (rate * self.tuning.max_head_time().as_secs_f64()) as u64;
        let most = useful.max(self.tuning.piece_pages);
        let whole = pages.is_empty() || is_most;
        Pages::new(if whole { most } else { mean.min(most) })
    }

    /// Ends an interval in which the device read `read` pages; returns the number of pages that the
    /// reader passed in it unseen. Reads of large files are seen: they last for several intervals.
    pub fn interval(&mut self, now: Nanos, read: u64) -> u64 {
        self.pages += read;
        let idle = |at: Nanos| now.saturating_sub(at) > self.tuning.idle_timeout;
        if self.begun.back().is_none_or(|last| idle(last.at)) && self.current.is_none() {
            self.trial = None;
        }
        let Some(current) = &mut self.current else { return 0 };
        if idle(current.moved) {
            self.current = None;
            return 0;
        }
        let came = current.at.saturating_sub(current.before);
        (current.before, current.pace) = (current.at, came.max(current.pace - current.pace / 4));
        self.passed += came;
        let pages = self.usual_size().clamp(1, self.pages_per_file().get());
        let unseen = if pages <= self.tuning.piece_pages { came * pages } else { 0 };
        self.judge(now);
        unseen
    }

    /// Stops prefetching if it has gained nothing.
    fn judge(&mut self, now: Nanos) {
        // The start of each file may be prefetched further than it is read.
        let piece = Pages::new(self.tuning.piece_pages);
        let are_whole = self.current.as_ref().is_some_and(|current| current.wanted >= piece);
        let are_large = self.facts.is_some_and(|facts| self.typical > facts.window.get() as f64);
        let progress = FileProgress { time: now, files: self.passed, pages: self.pages };
        let used_up = self.current.as_ref().is_none_or(|current| current.at >= current.done);
        match self
            .trial
            .as_mut()
            .and_then(|trial| trial.interval(progress, are_large && are_whole, used_up))
        {
            Some(true) => self.failed_attempts = 0,
            Some(false) => {
                let doublings = self.failed_attempts.min(self.tuning.max_backoff_doublings);
                self.not_before = now + self.tuning.backoff_time * (1 << doublings);
                self.failed_attempts += 1;
                (self.current, self.trial) = (None, None);
            }
            None => {}
        }
    }

    /// Returns how many pages of a file are usually prefetched, at least 1.
    fn pages_per_file(&self) -> Pages {
        let wanted = self.current.as_ref().map_or(Pages::new(u64::MAX), |current| current.wanted);
        Pages::new((self.typical as u64).max(1)).min(wanted)
    }

    pub fn is_at_work(&self) -> bool {
        self.current.is_some()
    }

    /// Returns the open file, the files to prefetch now in order of use, and the reason, which is
    /// empty except the first time. With `samples`, no first page is left out.
    pub fn due(
        &mut self,
        share: &WindowShare,
        samples: bool,
    ) -> Option<(OpenFileId, Vec<NextFile>, String)> {
        if self.trial.as_ref().is_some_and(SequenceTrial::is_paused) {
            return None;
        }
        let pages_per_file = self.pages_per_file();
        let current = self.current.as_mut()?;
        let due = current.due(pages_per_file, share, samples);
        if due.is_empty() {
            return None;
        }
        let first = !std::mem::replace(&mut current.is_reported, true);
        let why = "the files of its directory are read one after another, and each is waited for";
        Some((current.key, due, if first { why.to_owned() } else { String::new() }))
    }
}

impl Sequence {
    fn new(
        key: OpenFileId,
        files: Vec<FileKey>,
        wanted: Pages,
        now: Nanos,
        tuning: Arc<Tuning>,
    ) -> Self {
        let places = files.iter().zip(0..).map(|(file, place)| (*file, place)).collect();
        Self {
            key,
            files,
            places,
            wanted,
            at: 0,
            done: 0,
            depth: 0,
            spacing: 1,
            late: false,
            moved: now,
            elsewhere: 0,
            before: 0,
            pace: 0,
            is_reported: false,
            tuning,
        }
    }

    /// Returns how many files were started one directly after another in this order, or 0 if the
    /// last files do not fit. The sequence continues after the last of them.
    fn fit(&mut self, begun: &VecDeque<Begun>) -> usize {
        let lately = || begun.iter().rev().take(2 * self.tuning.few_samples as usize).rev();
        let places: Vec<u64> =
            lately().filter_map(|one| self.places.get(&one.file).copied()).collect();
        let pairs = places.len().saturating_sub(1);
        let neighbors =
            |places: &[u64]| places.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        let Some(last) = places.last().filter(|_| pairs as u64 + 1 >= self.tuning.few_samples)
        else {
            return 0;
        };
        (self.at, self.done, self.before) = (last + 1, last + 1, last + 1);
        if (neighbors(&places) as f64) < self.tuning.min_neighbor_share() * pairs as f64 {
            return 0;
        }
        let all: Vec<u64> =
            begun.iter().filter_map(|one| self.places.get(&one.file).copied()).collect();
        neighbors(&all)
    }

    /// Records that a reader started this file. A jump to another part of the directory is ignored.
    fn reader_at(&mut self, file: FileKey, at: Nanos) {
        let Some(place) = self.places.get(&file).copied() else {
            self.elsewhere += 1;
            return;
        };
        self.elsewhere = 0;
        if place < self.at || place > self.done + self.tuning.min_room {
            return;
        }
        let overtakes = place >= self.done;
        self.late |= overtakes;
        (self.at, self.moved) = (place + 1, at);
        // Files that the reader has overtaken need no prefetch.
        self.done = self.done.max(self.at);
    }

    /// Records a read of a file. Other readers may read files outside `at..done`.
    fn on_sample(&mut self, file: FileKey, at: Nanos) {
        if self.places.get(&file).is_some_and(|place| (self.at..self.done).contains(place)) {
            self.reader_at(file, at);
        }
    }

    /// Returns the files ahead of the reader that show its progress.
    fn markers(&self) -> Vec<FileKey> {
        let first = self.at.next_multiple_of(self.spacing);
        let places =
            (first..self.done).step_by(self.spacing as usize).take(self.tuning.max_remembered);
        places.filter_map(|place| self.files.get(place as usize).copied()).collect()
    }

    /// Returns whether the last files were all started outside the directory.
    fn has_moved_on(&self) -> bool {
        self.elsewhere >= self.tuning.few_samples
    }

    fn due(&mut self, per_file: Pages, share: &WindowShare, samples: bool) -> Vec<NextFile> {
        let fits = (share.memory.get() / per_file.get()).max(1);
        let least =
            self.tuning.min_room.min((self.tuning.min_room_pages() / per_file.get()).max(1));
        let room = (self.tuning.lookahead_intervals * self.pace).max(least).min(fits);
        self.depth = self.depth.max(least);
        if std::mem::take(&mut self.late) {
            self.depth = self.depth.saturating_mul(self.tuning.growth_factor).min(room);
        }
        let depth = self.depth.min(room);
        let until = self.at.saturating_add(depth).min(self.files.len() as u64);
        self.spacing = (depth / self.tuning.min_repeats()).clamp(1, self.tuning.min_room);
        let mut due = Vec::new();
        while self.done < until {
            let is_left_out = !samples && self.done.is_multiple_of(self.spacing);
            let from = Pages::new(u64::from(is_left_out));
            if let Some(file) = self.files.get(self.done as usize) {
                due.push(NextFile { file: *file, from, until: self.wanted });
            }
            self.done += 1;
        }
        due
    }
}

/// Returns the progress from the start of the first of these files to that of the last one. Several
/// readers may read different directories at once.
fn progress(mut files: vec_deque::Iter<'_, Begun>) -> FileProgress {
    let count = files.len().saturating_sub(1) as u64;
    let at = |one: &Begun, files| FileProgress { time: one.at, files, pages: one.pages };
    let (first, last) = (files.next(), files.next_back());
    last.zip(first)
        .map_or_else(FileProgress::default, |(last, first)| at(last, count).since(&at(first, 0)))
}

#[cfg(test)]
mod tests;
