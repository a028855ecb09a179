//! The next files of a sequence of small files, before anybody opens them.
//!
//! Who reads the files of a directory one after another waits for the disk at each of them, and no
//! window helps where a file is as small as one. Where files are begun in an order of their
//! directory (that in which it lists them, of their names, or of their inodes), the next ones are
//! read ahead.
//!
//! A read that finds its page in the cache passes no probe, so of one file in some the first page
//! is left out: that its reader misses it tells how far it has come.

use std::collections::{BTreeMap, VecDeque};

use units::{Nanos, Pages};

use super::action::NextFile;
use super::inputs::{FileKey, FileState};
use super::memory::WindowShare;
use super::rates::CountedRate;
use crate::tuning::next_files as tuning;
use policy::OpenFileId;

#[derive(Clone, Copy, Debug)]
struct Begun {
    file: FileKey,
    key: OpenFileId,
    at: Nanos,
}

/// Files that are read without reading ahead, to compare: those before the sequence may have been
/// read beside other work.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// The rate while they were read ahead.
    with: CountedRate,
    /// Where the reader was after the first file that was not, and when it had begun that.
    from: Option<(u64, Nanos)>,
}

/// Files that are read in an order of their directory.
#[derive(Clone, Debug)]
struct Sequence {
    /// The open file by which the directory was found.
    key: OpenFileId,
    files: Vec<FileKey>,
    places: BTreeMap<FileKey, u64>,
    /// The reader has begun those before `at`, and those before `done` were asked for.
    at: u64,
    done: u64,
    depth: u64,
    late: bool,
    moved: Nanos,
    astray: u32,
    /// Files that were begun elsewhere since the last one of these.
    elsewhere: usize,
    /// Where the reader was at the last interval, and the most files that it came by in one.
    before: u64,
    pace: u64,
    told: bool,
    /// Before reading ahead.
    original: CountedRate,
    /// Where and when reading ahead began, how many intervals it has lasted, and where and when its
    /// rate had settled.
    began: (u64, Nanos),
    intervals: u32,
    settled: (u64, Nanos),
    pause: Option<Pause>,
    judged: bool,
}

/// Follows the files that are begun on a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequences {
    begun: VecDeque<Begun>,
    current: Option<Sequence>,
    asked: Option<Nanos>,
    /// Until when nothing is tried, and how often in a row nothing was won.
    rests: Nanos,
    vain: u32,
    /// The size of files that are begun, of late.
    typical: f64,
    /// What is known of the one that was looked at last.
    facts: Option<FileState>,
}

impl Sequences {
    /// The first page of a file was missing.
    pub fn begun(&mut self, file: FileKey, key: OpenFileId, at: Nanos) {
        if self.begun.back().is_some_and(|last| last.file == file) {
            return;
        }
        if self.begun.len() == tuning::MAX_FILES_REMEMBERED {
            self.begun.pop_front();
        }
        self.begun.push_back(Begun { file, key, at });
        if let Some(current) = &mut self.current
            && !current.reader_at(file, at)
        {
            self.current = None;
        }
        // Who goes through a tree is in another directory now.
        if self.current.as_ref().is_some_and(Sequence::is_left) {
            (self.current, self.asked) = (None, None);
        }
    }

    pub fn stop(&mut self) {
        self.current = None;
    }

    /// An open file was looked at first. One of which its program says that it knows better is none
    /// of a sequence.
    pub fn met(&mut self, key: OpenFileId, facts: FileState) {
        if !facts.may_set_window() {
            self.begun.retain(|one| one.key != key);
            return;
        }
        let pages = facts.file_pages.get() as f64;
        let known = if self.typical == 0.0 { pages } else { self.typical };
        self.typical = known + 0.1 * (pages - known);
        self.facts = Some(facts);
    }

    /// What is known of the file that was looked at last: whose memory is filled.
    pub fn facts(&self) -> Option<FileState> {
        self.facts
    }

    /// Open files of one of which the directory should be listed, the one begun last first.
    pub fn wants(&self, now: Nanos) -> Vec<OpenFileId> {
        let lately =
            self.begun.iter().filter(|one| now.saturating_sub(one.at) < tuning::ORDER_TIME).count();
        let again = self.asked.is_some_and(|at| now.saturating_sub(at) < tuning::LISTING_INTERVAL);
        let rests = again || now < self.rests;
        let small = 0.0 < self.typical && self.typical <= tuning::MAX_SMALL_FILE_PAGES;
        if self.current.is_some() || rests || !small || lately < tuning::MIN_FILES {
            return Vec::new();
        }
        self.begun.iter().rev().take(tuning::MIN_FILES).map(|one| one.key).collect()
    }

    /// The files of the directory of an open file, in the orders in which they may be read.
    pub fn list(&mut self, key: OpenFileId, orders: Vec<Vec<FileKey>>, now: Nanos) {
        self.asked = Some(now);
        let sequences = orders.into_iter().map(|files| Sequence::new(key, files, now));
        let fitting = sequences.filter_map(|mut one| one.fits(&self.begun).then_some(one));
        self.current = fitting.into_iter().next();
    }

    /// An interval is over: how many files the reader of the sequence came by.
    pub fn interval(&mut self, now: Nanos) -> u64 {
        let Some(current) = &mut self.current else { return 0 };
        if now.saturating_sub(current.moved) > tuning::IDLE_TIMEOUT {
            // Elsewhere it may begin anew at once.
            (self.current, self.asked) = (None, None);
            return 0;
        }
        let came = current.at.saturating_sub(current.before);
        (current.before, current.pace) = (current.at, came.max(current.pace - current.pace / 4));
        match current.wins() {
            Some(true) => self.vain = 0,
            Some(false) => {
                self.rests = now
                    + tuning::BACKOFF_TIME * (1 << self.vain.min(tuning::MAX_BACKOFF_DOUBLINGS));
                self.vain += 1;
                self.current = None;
            }
            None => {}
        }
        came
    }

    /// The size of the files, of late.
    pub fn typical(&self) -> Pages {
        Pages::new((self.typical as u64).max(1))
    }

    pub fn is_at_work(&self) -> bool {
        self.current.is_some()
    }

    /// What is to be read now, in order of use; and why, the first time.
    pub fn due(&mut self, share: &WindowShare) -> Option<(OpenFileId, Vec<NextFile>, String)> {
        let typical = self.typical();
        let current = self.current.as_mut()?;
        let due = current.due(typical, share);
        if due.is_empty() {
            return None;
        }
        let first = !std::mem::replace(&mut current.told, true);
        let why = "the files of its directory are read one after another, and each is waited for";
        Some((current.key, due, if first { why.to_owned() } else { String::new() }))
    }
}

impl Sequence {
    fn new(key: OpenFileId, files: Vec<FileKey>, now: Nanos) -> Self {
        let places = files.iter().zip(0..).map(|(file, place)| (*file, place)).collect();
        Self {
            key,
            files,
            places,
            at: 0,
            done: 0,
            depth: tuning::FIRST_DEPTH_FILES,
            late: false,
            moved: now,
            astray: 0,
            elsewhere: 0,
            before: 0,
            pace: 0,
            told: false,
            original: CountedRate::default(),
            began: (0, now),
            intervals: 0,
            settled: (0, now),
            pause: None,
            judged: false,
        }
    }

    /// Whether files were begun in this order; if so, it goes on where they ended.
    fn fits(&mut self, begun: &VecDeque<Begun>) -> bool {
        let lately = begun.iter().rev().take(2 * tuning::MIN_FILES).rev();
        let placed = lately.filter_map(|one| Some((*self.places.get(&one.file)?, one.at)));
        let (places, times): (Vec<u64>, Vec<Nanos>) = placed.unzip();
        let pairs = places.len().saturating_sub(1);
        let next = places.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        let Some(last) = places.last().filter(|_| pairs + 1 >= tuning::MIN_FILES) else {
            return false;
        };
        (self.at, self.done, self.before) = (last + 1, last + 1, last + 1);
        let span = times.last().zip(times.first()).map(|(last, first)| last.saturating_sub(*first));
        self.original = CountedRate::over(pairs as u64, span.unwrap_or_default());
        self.began.0 = last + 1;
        self.depth = tuning::FIRST_DEPTH_FILES.max(begun.len() as u64);
        next as f64 >= tuning::MIN_NEIGHBOR_SHARE * pairs as f64
    }

    /// A reader began this file; whether the order still holds.
    fn reader_at(&mut self, file: FileKey, at: Nanos) -> bool {
        let Some(place) = self.places.get(&file).copied() else {
            self.elsewhere += 1;
            return true;
        };
        self.elsewhere = 0;
        if place < self.at || place > self.done + tuning::MIN_ROOM_FILES {
            self.astray += 1;
            return self.astray < tuning::MAX_STRAY_FILES;
        }
        self.astray = 0;
        let overtakes = place >= self.done;
        match &mut self.pause {
            None => self.late |= overtakes,
            Some(pause) if overtakes => {
                pause.from.get_or_insert((place + 1, at));
            }
            Some(_) => {}
        }
        (self.at, self.moved) = (place + 1, at);
        // What it overtook need not be read any more.
        self.done = self.done.max(self.at);
        true
    }

    /// Whether all that was begun of late is elsewhere.
    fn is_left(&self) -> bool {
        self.elsewhere >= tuning::MIN_FILES
    }

    /// An interval is over: whether reading ahead stays, once that is known.
    fn wins(&mut self) -> Option<bool> {
        let result = if self.judged {
            None
        } else if let Some(pause) = self.pause {
            let without = self.since(pause.from?);
            let is_known = without.count >= tuning::PAUSE_FILES;
            is_known.then_some(!pause.with.is_below(&without))
        } else {
            self.wins_over_before()
        };
        if result.is_some() {
            (self.judged, self.pause) = (true, None);
        }
        result
    }

    /// The rate since the reader was there, up to where it was seen last.
    fn since(&self, (at, moved): (u64, Nanos)) -> CountedRate {
        CountedRate::over(self.at.saturating_sub(at), self.moved.saturating_sub(moved))
    }

    /// Whether it is slower than before, or not faster after a while. Otherwise a pause shows
    /// whether it is slower than without.
    fn wins_over_before(&mut self) -> Option<bool> {
        self.intervals = self.intervals.saturating_add(1);
        if self.intervals == tuning::SETTLING_INTERVALS {
            self.settled = (self.at, self.moved);
        }
        let early = self.since(self.began);
        if early.count >= self.original.count && early.is_below(&self.original) {
            return Some(false);
        }
        let span = self.moved.saturating_sub(self.settled.1);
        if self.intervals < tuning::JUDGE_INTERVALS || span < tuning::MIN_JUDGE_TIME {
            return None;
        }
        let with = self.since(self.settled);
        if with.per_second < tuning::MIN_GAIN_RATIO * self.original.per_second {
            return Some(false);
        }
        if (self.files.len() as u64).saturating_sub(self.done) < tuning::PAUSE_FILES {
            // Too few are left to compare.
            return Some(true);
        }
        self.pause = Some(Pause { with, from: None });
        None
    }

    fn due(&mut self, typical: Pages, share: &WindowShare) -> Vec<NextFile> {
        if self.pause.is_some() {
            return Vec::new();
        }
        let fits = (share.memory.get() / typical.get().max(1)).max(1);
        let room = (tuning::LOOKAHEAD_INTERVALS * self.pace).max(tuning::MIN_ROOM_FILES).min(fits);
        if std::mem::take(&mut self.late) {
            self.depth = self
                .depth
                .saturating_mul(tuning::DEPTH_GROWTH)
                .min(room.max(tuning::FIRST_DEPTH_FILES));
        }
        let depth = self.depth.min(room);
        let until = self.at.saturating_add(depth).min(self.files.len() as u64);
        let seen = (depth / tuning::MARKERS_PER_DEPTH).clamp(1, tuning::MAX_MARKER_FILES);
        let mut due = Vec::new();
        while self.done < until && due.len() < tuning::MAX_FILES_AT_ONCE {
            let from = Pages::new(u64::from(self.done.is_multiple_of(seen)));
            if let Some(file) = self.files.get(self.done as usize) {
                due.push(NextFile { file: *file, from });
            }
            self.done += 1;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: WindowShare = WindowShare {
        most: Pages::new(2048),
        memory: Pages::new(1 << 16),
        is_tight: false,
        is_squeezed: false,
    };
    const TICK: Nanos = Nanos::from_millis(100);

    fn key(number: u64) -> FileKey {
        FileKey(1, number)
    }

    fn facts(pages: u64, unmanaged: bool) -> FileState {
        FileState {
            file_pages: Pages::new(pages),
            window: Pages::new(32),
            position: None,
            unmanaged,
            keeps_window: false,
            prime: false,
            domain: 0,
            page: units::Bytes::from_kib(4),
        }
    }

    /// Files that are begun one each ten milliseconds.
    fn begun(numbers: impl IntoIterator<Item = u64>) -> Sequences {
        let mut sequences = Sequences::default();
        sequences.met(OpenFileId::new(0), facts(4, false));
        for (count, number) in numbers.into_iter().enumerate() {
            let at = Nanos::from_millis(10 * count as u64);
            sequences.begun(key(number), OpenFileId::new(number), at);
        }
        sequences
    }

    fn files(numbers: impl IntoIterator<Item = u64>) -> Vec<FileKey> {
        numbers.into_iter().map(key).collect()
    }

    fn due(sequences: &mut Sequences) -> Vec<u64> {
        let due = sequences.due(&SHARE).map(|(_, files, _)| files).unwrap_or_default();
        due.iter().map(|next| next.file.1).collect()
    }

    #[test]
    fn the_next_files_of_the_order_that_fits_are_read() {
        let mut sequences = begun([50, 40, 30, 20, 10, 9, 8, 7]);
        assert_eq!(sequences.wants(TICK).first(), Some(&OpenFileId::new(7)));
        let (up, down) = (files(0..=50), files([50, 40, 30, 20, 10, 9, 8, 7, 5, 3]));
        sequences.list(OpenFileId::new(7), vec![up, down], TICK);
        assert_eq!((due(&mut sequences), due(&mut sequences)), (vec![5, 3], vec![]));
        assert_eq!(sequences.wants(TICK), [], "it is followed already");
    }

    #[test]
    fn who_goes_on_in_another_directory_is_followed_there() {
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..12)], TICK);
        assert!(sequences.is_at_work());
        let begin = |sequences: &mut Sequences, number| {
            sequences.begun(key(number), OpenFileId::new(number), TICK * 2);
        };
        (100..107).for_each(|number| begin(&mut sequences, number));
        assert!(sequences.is_at_work(), "perhaps somebody else reads there");
        begin(&mut sequences, 107);
        assert_eq!(sequences.wants(TICK * 2).first(), Some(&OpenFileId::new(107)), "at once");
    }

    #[test]
    fn files_at_random_are_left_alone_and_so_are_large_ones() {
        let mut sequences = begun((0..16).map(|n| n * 7 % 100));
        sequences.list(OpenFileId::new(0), vec![files(0..100)], TICK);
        assert!(!sequences.is_at_work() && sequences.wants(TICK * 2).is_empty());
        let mut sequences = begun(0..16);
        (0..100).for_each(|_| sequences.met(OpenFileId::new(99), facts(100_000, false)));
        assert_eq!(sequences.wants(TICK), []);
        assert_eq!(begun(0..7).wants(TICK), [], "too few to tell");
        let mut sequences = begun(0..8);
        sequences.met(OpenFileId::new(3), facts(4, true));
        assert_eq!(sequences.wants(TICK), [], "one is read by who knows better");
    }

    #[test]
    fn some_files_are_left_for_the_reader_to_be_seen_at() {
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..1000)], TICK);
        let next = sequences.due(&SHARE).expect("files").1;
        let left: Vec<u64> =
            next.iter().filter(|it| !it.from.is_zero()).map(|it| it.file.1).collect();
        assert_eq!((next.len(), left), (16, vec![8, 12, 16, 20]));
        // At the third of those it is seen, and at the end it has overtaken.
        sequences.begun(key(16), OpenFileId::new(16), TICK * 2);
        sequences.interval(TICK * 2);
        assert_eq!(due(&mut sequences), Vec::from_iter(24..33));
        sequences.begun(key(33), OpenFileId::new(33), TICK * 3);
        sequences.interval(TICK * 3);
        assert_eq!(due(&mut sequences).len(), 64, "further, as it was late");
    }

    #[test]
    fn who_goes_elsewhere_or_rests_is_not_followed() {
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..1000)], TICK);
        for number in 0..u64::from(tuning::MAX_STRAY_FILES) {
            assert!(sequences.is_at_work());
            sequences.begun(key(900 - 2 * number), OpenFileId::new(1), TICK);
        }
        assert!(!sequences.is_at_work());
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..1000)], TICK);
        sequences.interval(TICK + tuning::IDLE_TIMEOUT * 2);
        assert!(!sequences.is_at_work());
    }

    /// What is followed when readers have begun so many files in each interval; they began ten
    /// before.
    fn followed(files_each: u64) -> Sequences {
        let mut sequences = begun(0..16);
        sequences.list(OpenFileId::new(15), vec![files(0..10_000)], TICK);
        let intervals = 1..=u64::from(tuning::JUDGE_INTERVALS);
        go_on(&mut sequences, intervals.map(|interval| (interval, 16 + files_each * interval)));
        sequences
    }

    /// A reader begins these files, one in each of these intervals.
    fn go_on(sequences: &mut Sequences, files: impl Iterator<Item = (u64, u64)>) {
        for (interval, place) in files {
            sequences.begun(key(place), OpenFileId::new(place), TICK * (interval + 1));
            sequences.interval(TICK * (interval + 1));
            due(sequences);
        }
    }

    #[test]
    fn what_wins_nothing_is_given_up() {
        assert!(followed(12).is_at_work() && !followed(10).is_at_work());
        assert!(!followed(4).is_at_work(), "it is much slower");
    }

    #[test]
    fn a_pause_ends_reading_ahead_that_is_slower() {
        let after_pause = |files_each: u64| {
            let mut sequences = followed(20);
            let judged = u64::from(tuning::JUDGE_INTERVALS);
            let place = |interval| 16 + 20 * judged + files_each * (interval - judged);
            let intervals = judged + 1..40;
            go_on(&mut sequences, intervals.map(|interval| (interval, place(interval))));
            sequences.is_at_work()
        };
        assert!(after_pause(20) && !after_pause(30));
    }
}
