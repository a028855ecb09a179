//! Prefetches the next of many small files before they are opened.
//!
//! A reader of many small files waits for the disk at each file, and a larger window does not help
//! if a file is no larger than the window. If files are started in an order of their directory (as
//! listed, by name, or by inode), the next ones are prefetched.
//!
//! Access samples of some files, the markers, show the reader's progress. If accesses cannot be
//! sampled, reads of cached pages are invisible. Then the first page of each marker is not
//! prefetched, so that the reader misses it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use units::{Nanos, Pages};

use super::action::NextFile;
use super::inputs::{FileKey, FileState};
use super::memory::WindowShare;
use super::rates::CountedRate;
use crate::tuning::Tuning;
use policy::OpenFileId;

#[derive(Clone, Copy, Debug)]
struct Begun {
    file: FileKey,
    key: OpenFileId,
    at: Nanos,
}

/// A directory whose files are read in one of its orders.
#[derive(Clone, Debug)]
struct Sequence {
    /// Open file through which the directory was found.
    key: OpenFileId,
    files: Vec<FileKey>,
    places: BTreeMap<FileKey, u64>,
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
    /// Rate of files before prefetching.
    original: CountedRate,
    /// Intervals since prefetching started; position and time at which its rate had settled.
    intervals: u64,
    settled: (u64, Nanos),
    judged: bool,
    tuning: Arc<Tuning>,
}

/// Tracks the files that readers start on a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequences {
    begun: VecDeque<Begun>,
    /// Files started so far, and the count below which no directory is listed again.
    count: u64,
    list_after: u64,
    /// Consecutive listings without a fitting order.
    unfit: u32,
    current: Option<Sequence>,
    /// Time before which nothing is tried; number of consecutive attempts without a gain.
    not_before: Nanos,
    failed_attempts: u32,
    /// Moving average of file sizes in pages; 0 before the first file.
    typical: f64,
    /// State of the file that was examined last.
    facts: Option<FileState>,
    tuning: Arc<Tuning>,
}

impl Sequences {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Records that a reader missed the first page of a file: it starts to read the file.
    pub fn on_first_miss(&mut self, file: FileKey, key: OpenFileId, at: Nanos) {
        if self.begun.back().is_some_and(|last| last.file == file) {
            return;
        }
        if self.begun.len() == self.tuning.max_remembered {
            self.begun.pop_front();
        }
        self.begun.push_back(Begun { file, key, at });
        self.count += 1;
        if let Some(current) = &mut self.current {
            current.reader_at(file, at);
        }
        // The reader of a directory tree has moved on to another directory.
        if self.current.as_ref().is_some_and(Sequence::has_moved_on) {
            self.current = None;
        }
    }

    /// Records an access sample of the first page of a file.
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
        self.current = None;
    }

    /// Records the state of a new open file. A file that is unmanaged, or whose program advised
    /// random reads, is not part of a sequence.
    pub fn on_open_file(&mut self, key: OpenFileId, facts: FileState) {
        if !facts.has_read_ahead() {
            self.begun.retain(|one| one.key != key);
            return;
        }
        let pages = facts.file_pages.get() as f64;
        let known = if self.typical == 0.0 { pages } else { self.typical };
        self.typical = known + 0.1 * (pages - known);
        self.facts = Some(facts);
    }

    /// Returns the state of the file examined last, whose cache limits the prefetches.
    pub fn facts(&self) -> Option<FileState> {
        self.facts
    }

    /// Returns open files, the latest first; the directory of one of them should be listed.
    pub fn wants(&self, now: Nanos) -> Vec<OpenFileId> {
        let lately = self
            .begun
            .iter()
            .filter(|one| now.saturating_sub(one.at) < self.tuning.idle_timeout)
            .count();
        let is_paused = self.count < self.list_after || now < self.not_before;
        let page = self.facts.map_or(1, |facts| facts.page.get().max(1));
        let most = (self.tuning.max_prefetched_bytes.get() / page) as f64;
        let small = 0.0 < self.typical && self.typical <= most;
        if self.current.is_some()
            || is_paused
            || !small
            || (lately as u64) < self.tuning.few_samples
        {
            return Vec::new();
        }
        self.begun.iter().rev().take(self.tuning.few_samples as usize).map(|one| one.key).collect()
    }

    /// Takes the files of the directory of an open file, in the orders in which they may be read,
    /// and follows the order that fits best.
    pub fn list(&mut self, key: OpenFileId, orders: Vec<Vec<FileKey>>, now: Nanos, rotates: bool) {
        let mut best = 0;
        for files in orders {
            let mut sequence = Sequence::new(key, files, now, Arc::clone(&self.tuning));
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
        if rotates && self.current.as_ref().is_some_and(Sequence::is_left_to_the_disk) {
            self.current = None;
            self.not_before = now + self.tuning.backoff_time;
        }
    }

    /// Ends an interval; returns the number of files that the reader passed in it.
    pub fn interval(&mut self, now: Nanos) -> u64 {
        let Some(current) = &mut self.current else { return 0 };
        if now.saturating_sub(current.moved) > self.tuning.idle_timeout {
            self.current = None;
            return 0;
        }
        let came = current.at.saturating_sub(current.before);
        (current.before, current.pace) = (current.at, came.max(current.pace - current.pace / 4));
        match current.judge() {
            Some(true) => self.failed_attempts = 0,
            Some(false) => {
                let doublings = self.failed_attempts.min(self.tuning.max_backoff_doublings);
                self.not_before = now + self.tuning.backoff_time * (1 << doublings);
                self.failed_attempts += 1;
                self.current = None;
            }
            None => {}
        }
        came
    }

    /// Returns the moving average of file sizes, at least 1 page.
    pub fn typical(&self) -> Pages {
        Pages::new((self.typical as u64).max(1))
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
        let typical = self.typical();
        let current = self.current.as_mut()?;
        let due = current.due(typical, share, samples);
        if due.is_empty() {
            return None;
        }
        let first = !std::mem::replace(&mut current.is_reported, true);
        let why = "the files of its directory are read one after another, and each is waited for";
        Some((current.key, due, if first { why.to_owned() } else { String::new() }))
    }
}

impl Sequence {
    fn new(key: OpenFileId, files: Vec<FileKey>, now: Nanos, tuning: Arc<Tuning>) -> Self {
        let places = files.iter().zip(0..).map(|(file, place)| (*file, place)).collect();
        Self {
            key,
            files,
            places,
            at: 0,
            done: 0,
            depth: tuning.min_room,
            spacing: 1,
            late: false,
            moved: now,
            elsewhere: 0,
            before: 0,
            pace: 0,
            is_reported: false,
            original: CountedRate::default(),
            intervals: 0,
            settled: (0, now),
            judged: false,
            tuning,
        }
    }

    /// Returns how many files were started one directly after another in this order, or 0 if the
    /// last files do not fit. The sequence continues after the last of them.
    fn fit(&mut self, begun: &VecDeque<Begun>) -> usize {
        let lately = begun.iter().rev().take(2 * self.tuning.few_samples as usize).rev();
        let placed = lately.filter_map(|one| Some((*self.places.get(&one.file)?, one.at)));
        let (places, times): (Vec<u64>, Vec<Nanos>) = placed.unzip();
        let pairs = places.len().saturating_sub(1);
        let neighbors =
            |places: &[u64]| places.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        let Some(last) = places.last().filter(|_| pairs as u64 + 1 >= self.tuning.few_samples)
        else {
            return 0;
        };
        (self.at, self.done, self.before) = (last + 1, last + 1, last + 1);
        let span = times.last().zip(times.first()).map(|(last, first)| last.saturating_sub(*first));
        self.original = CountedRate::over(pairs as u64, span.unwrap_or_default());
        if (neighbors(&places) as f64) < self.tuning.min_neighbor_share() * pairs as f64 {
            return 0;
        }
        let all: Vec<u64> =
            begun.iter().filter_map(|one| self.places.get(&one.file).copied()).collect();
        neighbors(&all)
    }

    /// Returns whether a rotating disk reads these files ahead itself, and few are left.
    fn is_left_to_the_disk(&self) -> bool {
        let left = (self.files.len() as u64).saturating_sub(self.at);
        let is_fast =
            self.original.per_second * self.tuning.min_rotating_file_time.as_secs_f64() > 1.0;
        is_fast && left < self.tuning.min_rotating_files()
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

    /// Records a read of a file's first page. Other readers may read files outside `at..done`.
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

    /// Ends an interval. Returns once, when decided, whether to keep prefetching; else `None`.
    fn judge(&mut self) -> Option<bool> {
        if self.judged {
            return None;
        }
        let result = self.wins_over_before();
        self.judged = result.is_some();
        result
    }

    /// Returns whether the reader is faster than before prefetching; `None` if still unknown.
    fn wins_over_before(&mut self) -> Option<bool> {
        self.intervals = self.intervals.saturating_add(1);
        if self.intervals == self.tuning.settling_intervals() {
            self.settled = (self.at, self.moved);
        }
        let span = self.moved.saturating_sub(self.settled.1);
        if self.intervals < self.tuning.judge_intervals() || span < self.tuning.observation_time {
            return None;
        }
        let with = CountedRate::over(self.at.saturating_sub(self.settled.0), span);
        Some(with.per_second >= self.tuning.min_gain_ratio() * self.original.per_second)
    }

    fn due(&mut self, typical: Pages, share: &WindowShare, samples: bool) -> Vec<NextFile> {
        let fits = (share.memory.get() / typical.get().max(1)).max(1);
        let room =
            (self.tuning.lookahead_intervals * self.pace).max(self.tuning.min_room).min(fits);
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
            random: false,
            only_mapped: false,
            prime: false,
            domain: 0,
            page: units::Bytes::from_kib(4),
        }
    }

    /// Starts one of these files each 10 ms.
    fn begun(numbers: impl IntoIterator<Item = u64>) -> Sequences {
        let mut sequences = Sequences::default();
        sequences.on_open_file(OpenFileId::new(0), facts(4, false));
        for (count, number) in numbers.into_iter().enumerate() {
            let at = Nanos::from_millis(10 * count as u64);
            sequences.on_first_miss(key(number), OpenFileId::new(number), at);
        }
        sequences
    }

    fn files(numbers: impl IntoIterator<Item = u64>) -> Vec<FileKey> {
        numbers.into_iter().map(key).collect()
    }

    fn due(sequences: &mut Sequences) -> Vec<u64> {
        let due = sequences.due(&SHARE, false).map(|(_, files, _)| files).unwrap_or_default();
        due.iter().map(|next| next.file.1).collect()
    }

    #[test]
    fn the_next_files_of_the_order_that_fits_are_read() {
        let mut sequences = begun([50, 40, 30, 20, 10, 9, 8, 7]);
        assert_eq!(sequences.wants(TICK).first(), Some(&OpenFileId::new(7)));
        let (up, down) = (files(0..=50), files([50, 40, 30, 20, 10, 9, 8, 7, 5, 3]));
        sequences.list(OpenFileId::new(7), vec![up, down], TICK, false);
        assert_eq!((due(&mut sequences), due(&mut sequences)), (vec![5, 3], vec![]));
        assert_eq!(sequences.wants(TICK), [], "it is followed already");
    }

    #[test]
    fn who_goes_on_in_another_directory_is_followed_there() {
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..12)], TICK, false);
        assert!(sequences.is_at_work());
        let begin = |sequences: &mut Sequences, number| {
            sequences.on_first_miss(key(number), OpenFileId::new(number), TICK * 2);
        };
        (100..107).for_each(|number| begin(&mut sequences, number));
        assert!(sequences.is_at_work(), "perhaps somebody else reads there");
        begin(&mut sequences, 107);
        assert_eq!(sequences.wants(TICK * 2).first(), Some(&OpenFileId::new(107)), "at once");
    }

    #[test]
    fn a_directory_that_did_not_fit_is_listed_again_after_more_of_its_files() {
        let list = |sequences: &mut Sequences| {
            sequences.list(OpenFileId::new(1), vec![files(0..100)], TICK, false);
        };
        let begin = |sequences: &mut Sequences, numbers: std::ops::Range<u64>| {
            numbers.for_each(|one| sequences.on_first_miss(key(one), OpenFileId::new(one), TICK));
        };
        let mut sequences = begun((500..506).chain(0..2));
        list(&mut sequences);
        assert!(!sequences.is_at_work() && sequences.wants(TICK).is_empty());
        begin(&mut sequences, 2..10);
        assert!(!sequences.wants(TICK).is_empty());
        list(&mut sequences);
        assert!(sequences.is_at_work());
        // If no order fits, the next listing comes later each time.
        let mut sequences = begun(500..516);
        for (round, more) in [(1, 8), (2, 16), (3, 32)] {
            list(&mut sequences);
            begin(&mut sequences, round * 1000..round * 1000 + more - 1);
            assert!(sequences.wants(TICK).is_empty(), "{round}");
            begin(&mut sequences, round * 1000 + more..round * 1000 + more + 1);
            assert!(!sequences.wants(TICK).is_empty(), "{round}");
        }
        // After several listings, time must pass as well.
        (0..4).for_each(|_| list(&mut sequences));
        begin(&mut sequences, 5000..6000);
        assert!(sequences.wants(TICK).is_empty());
        let later = TICK + Tuning::DEFAULT.retry_interval;
        (6000..6008).for_each(|one| sequences.on_first_miss(key(one), OpenFileId::new(one), later));
        assert!(!sequences.wants(later).is_empty());
    }

    #[test]
    fn files_at_random_are_left_alone_and_so_are_large_ones() {
        let mut sequences = begun((0..16).map(|n| n * 7 % 100));
        sequences.list(OpenFileId::new(0), vec![files(0..100)], TICK, false);
        assert!(!sequences.is_at_work() && sequences.wants(TICK * 2).is_empty());
        let mut sequences = begun(0..16);
        (0..100).for_each(|_| sequences.on_open_file(OpenFileId::new(99), facts(100_000, false)));
        assert_eq!(sequences.wants(TICK), []);
        assert_eq!(begun(0..7).wants(TICK), [], "too few to tell");
        let mut sequences = begun(0..8);
        sequences.on_open_file(OpenFileId::new(3), facts(4, true));
        assert_eq!(sequences.wants(TICK), [], "one is read by who knows better");
    }

    #[test]
    fn some_files_are_left_for_the_reader_to_be_seen_at() {
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..1000)], TICK, false);
        let next = sequences.due(&SHARE, false).expect("files").1;
        let left: Vec<u64> =
            next.iter().filter(|it| !it.from.is_zero()).map(|it| it.file.1).collect();
        assert_eq!((next.len(), left), (64, vec![16, 32, 48, 64]));
        // The reader is seen at the third marker, and then overtakes the prefetched files.
        sequences.on_first_miss(key(48), OpenFileId::new(48), TICK * 2);
        sequences.interval(TICK * 2);
        assert_eq!(due(&mut sequences), Vec::from_iter(72..113));
        sequences.on_first_miss(key(113), OpenFileId::new(113), TICK * 3);
        sequences.interval(TICK * 3);
        assert_eq!(due(&mut sequences).len(), 195, "further, as it was late");
    }

    #[test]
    fn who_goes_elsewhere_or_rests_is_not_followed() {
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..1000)], TICK, false);
        due(&mut sequences);
        for number in 0..20 {
            sequences.on_first_miss(key(900 - 2 * number), OpenFileId::new(1), TICK);
        }
        assert!(due(&mut sequences).is_empty());
        sequences.interval(TICK + Tuning::DEFAULT.idle_timeout * 2);
        assert!(!sequences.is_at_work());
    }

    /// Returns the sequences after a reader has started `files_each` files in each interval,
    /// compared with ten before.
    fn followed(files_each: u64) -> Sequences {
        let mut sequences = begun(0..16);
        sequences.list(OpenFileId::new(15), vec![files(0..10_000)], TICK, false);
        let intervals = 1..=Tuning::DEFAULT.judge_intervals();
        go_on(&mut sequences, intervals.map(|interval| (interval, 16 + files_each * interval)));
        sequences
    }

    /// Starts each of these files in its interval.
    fn go_on(sequences: &mut Sequences, files: impl Iterator<Item = (u64, u64)>) {
        for (interval, place) in files {
            sequences.on_first_miss(key(place), OpenFileId::new(place), TICK * (interval + 1));
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
    fn small_directories_are_left_to_a_rotating_disk_that_reads_ahead_itself() {
        let follows = |every: Nanos, count: u64, rotates: bool| {
            let mut sequences = Sequences::default();
            sequences.on_open_file(OpenFileId::new(0), facts(4, false));
            for number in 0..20 {
                let at = Nanos::new(every.get() * number);
                sequences.on_first_miss(key(number), OpenFileId::new(number), at);
            }
            sequences.list(OpenFileId::new(19), vec![files(0..count)], TICK, rotates);
            assert!(sequences.wants(TICK * 2).is_empty(), "followed, or left alone for a while");
            sequences.is_at_work()
        };
        let (adjacent, scattered) = (Nanos::from_millis(1), Nanos::from_millis(9));
        assert!(!follows(adjacent, 100, true) && follows(adjacent, 1000, true));
        assert!(follows(scattered, 100, true) && follows(adjacent, 100, false));
    }

    #[test]
    fn of_two_orders_that_fit_the_better_one_is_followed() {
        let by_name = [10, 11, 12, 1, 13, 14, 15, 16, 17, 18, 19, 2, 20, 21, 22, 23, 24, 3];
        let mut sequences = begun(by_name.into_iter().take(16));
        let listed = vec![files(0..40), files(by_name)];
        sequences.list(OpenFileId::new(7), listed, TICK, false);
        assert_eq!(due(&mut sequences), [24, 3]);
    }

    #[test]
    fn markers_lie_ahead_of_the_reader_and_samples_show_that_he_passed_them() {
        let mut sequences = begun(0..8);
        sequences.list(OpenFileId::new(7), vec![files(0..60)], TICK, false);
        let due = sequences.due(&SHARE, true).map(|(_, files, _)| files).unwrap_or_default();
        assert!(!due.is_empty() && due.iter().all(|next| next.from == Pages::ZERO));
        let markers = sequences.markers();
        assert_eq!(markers, files([16, 32, 48]));
        sequences.on_sample(key(3), TICK);
        assert_eq!(sequences.markers(), markers, "one read before may be read again");
        sequences.on_sample(markers[1], TICK);
        assert_eq!(sequences.markers(), files([48]));
    }
}
