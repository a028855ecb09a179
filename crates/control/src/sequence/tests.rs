use super::*;

const SHARE: WindowShare = WindowShare {
    most: Pages::new(2048),
    memory: Pages::new(1 << 16),
    is_tight: false,
    is_squeezed: false,
};
const TICK: Nanos = Nanos::from_millis(100);

const FLASH: DeviceRate = DeviceRate { pages_per_second: 1e5, rotates: false };
const DISK: DeviceRate = DeviceRate { rotates: true, ..FLASH };

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
        sequences.on_file_begun(key(number), OpenFileId::new(number), at);
    }
    sequences
}

fn files(numbers: impl IntoIterator<Item = u64>) -> Vec<FileKey> {
    numbers.into_iter().map(key).collect()
}

/// Returns the files of which the directory of one is wanted.
fn wanted(sequences: &Sequences, now: Nanos) -> Vec<OpenFileId> {
    sequences.wants(now, FLASH).files
}

fn due(sequences: &mut Sequences) -> Vec<u64> {
    let due = sequences.due(&SHARE, false).map(|(_, files, _)| files).unwrap_or_default();
    due.iter().map(|next| next.file.1).collect()
}

#[test]
fn the_next_files_of_the_order_that_fits_are_read() {
    let mut sequences = begun([50, 40, 30, 20, 10, 9, 8, 7]);
    assert_eq!(wanted(&sequences, TICK).first(), Some(&OpenFileId::new(7)));
    let (up, down) = (files(0..=50), files([50, 40, 30, 20, 10, 9, 8, 7, 5, 3]));
    sequences.list(OpenFileId::new(7), vec![up, down], |_| None, TICK, FLASH);
    assert_eq!((due(&mut sequences), due(&mut sequences)), (vec![5, 3], vec![]));
    assert_eq!(wanted(&sequences, TICK), [], "it is followed already");
}

#[test]
fn who_goes_on_in_another_directory_is_followed_there() {
    let mut sequences = begun(0..8);
    sequences.list(OpenFileId::new(7), vec![files(0..12)], |_| None, TICK, FLASH);
    assert!(sequences.is_at_work());
    let begin = |sequences: &mut Sequences, number| {
        sequences.on_file_begun(key(number), OpenFileId::new(number), TICK * 2);
    };
    (100..107).for_each(|number| begin(&mut sequences, number));
    assert!(sequences.is_at_work(), "perhaps somebody else reads there");
    begin(&mut sequences, 107);
    assert_eq!(wanted(&sequences, TICK * 2).first(), Some(&OpenFileId::new(107)), "at once");
}

#[test]
fn a_directory_that_did_not_fit_is_listed_again_after_more_of_its_files() {
    let list = |sequences: &mut Sequences| {
        sequences.list(OpenFileId::new(1), vec![files(0..100)], |_| None, TICK, FLASH);
    };
    let begin = |sequences: &mut Sequences, numbers: std::ops::Range<u64>| {
        numbers.for_each(|one| sequences.on_file_begun(key(one), OpenFileId::new(one), TICK));
    };
    let mut sequences = begun((500..506).chain(0..2));
    list(&mut sequences);
    assert!(!sequences.is_at_work() && wanted(&sequences, TICK).is_empty());
    begin(&mut sequences, 2..10);
    assert!(!wanted(&sequences, TICK).is_empty());
    list(&mut sequences);
    assert!(sequences.is_at_work());
    // If no order fits, the next listing comes later each time.
    let mut sequences = begun(500..516);
    for (round, more) in [(1, 8), (2, 16), (3, 32)] {
        list(&mut sequences);
        begin(&mut sequences, round * 1000..round * 1000 + more - 1);
        assert!(wanted(&sequences, TICK).is_empty(), "{round}");
        begin(&mut sequences, round * 1000 + more..round * 1000 + more + 1);
        assert!(!wanted(&sequences, TICK).is_empty(), "{round}");
    }
    // After several listings, time must pass as well.
    (0..4).for_each(|_| list(&mut sequences));
    begin(&mut sequences, 5000..6000);
    assert!(wanted(&sequences, TICK).is_empty());
    let later = TICK + Tuning::DEFAULT.retry_interval;
    (6000..6008).for_each(|one| sequences.on_file_begun(key(one), OpenFileId::new(one), later));
    assert!(!wanted(&sequences, later).is_empty());
}

#[test]
fn files_at_random_are_left_alone() {
    let mut sequences = begun((0..16).map(|n| n * 7 % 100));
    sequences.list(OpenFileId::new(0), vec![files(0..100)], |_| None, TICK, FLASH);
    assert!(!sequences.is_at_work() && wanted(&sequences, TICK * 2).is_empty());
    assert_eq!(wanted(&begun(0..7), TICK), [], "too few to tell");
    let mut sequences = begun(0..8);
    sequences.on_open_file(OpenFileId::new(3), facts(4, true));
    assert_eq!(wanted(&sequences, TICK), [], "one is read by who knows better");
}

/// Returns whether a directory is wanted on a rotating disk, and otherwise, when so many files have
/// been started, one each `every` ms.
fn wanted_after(files: u64, every: u64) -> [bool; 2] {
    let mut sequences = Sequences::default();
    for number in 0..files {
        let at = Nanos::from_millis(every * number);
        sequences.on_file_begun(key(number), OpenFileId::new(number), at);
    }
    let now = Nanos::from_millis(every * files);
    [DISK, FLASH].map(|device| !sequences.wants(now, device).files.is_empty())
}

#[test]
fn on_a_rotating_disk_more_files_or_time_must_have_passed() {
    assert_eq!(wanted_after(60, 4), [false, true]);
    assert_eq!(wanted_after(64, 4), [true, true]);
    assert_eq!((wanted_after(8, 30), wanted_after(8, 40)), ([false, true], [true, true]));
    assert_eq!(wanted_after(7, 40), [false, false]);
}

#[test]
fn adjacent_files_are_left_to_a_rotating_disk_for_two_seconds() {
    assert_eq!((wanted_after(900, 2), wanted_after(1100, 2)), ([false, true], [true, true]));
}

#[test]
fn on_a_rotating_disk_further_directories_are_listed_for_a_reader_of_files_in_order_only() {
    let mut sequences = begun(0..64);
    let asks = |sequences: &Sequences, device| {
        let query = sequences.wants(TICK * 8, device);
        (!query.files.is_empty()).then_some(query.with_next)
    };
    assert_eq!([DISK, FLASH].map(|device| asks(&sequences, device)), [Some(false), Some(true)]);
    sequences.list(OpenFileId::new(63), vec![files(0..70)], |_| None, TICK * 8, DISK);
    for number in 70..80 {
        sequences.on_file_begun(key(number), OpenFileId::new(number), TICK * 8);
    }
    assert_eq!(asks(&sequences, DISK), Some(true));
}

#[test]
fn some_files_are_left_for_the_reader_to_be_seen_at() {
    let mut sequences = begun(0..8);
    sequences.list(OpenFileId::new(7), vec![files(0..1000)], |_| None, TICK, FLASH);
    let next = sequences.due(&SHARE, false).expect("files").1;
    let left: Vec<u64> = next.iter().filter(|it| !it.from.is_zero()).map(|it| it.file.1).collect();
    assert_eq!((next.len(), left), (64, vec![16, 32, 48, 64]));
    // The reader is seen at the third marker, and then overtakes the prefetched files.
    sequences.on_file_begun(key(48), OpenFileId::new(48), TICK * 2);
    sequences.interval(TICK * 2, 0);
    assert_eq!(due(&mut sequences), Vec::from_iter(72..113));
    sequences.on_file_begun(key(113), OpenFileId::new(113), TICK * 3);
    sequences.interval(TICK * 3, 0);
    assert_eq!(due(&mut sequences).len(), 195, "further, as it was late");
}

#[test]
fn of_large_files_only_a_few_are_read_for_a_reader_of_unknown_pace() {
    let first = |pages: u64| {
        let mut sequences = begun(0..8);
        (0..100).for_each(|_| sequences.on_open_file(OpenFileId::new(7), facts(pages, false)));
        sequences.list(OpenFileId::new(7), vec![files(0..1000)], |_| None, TICK, FLASH);
        due(&mut sequences).len()
    };
    assert_eq!([8, 64, 500, 1000].map(first), [64, 32, 4, 2]);
}

#[test]
fn of_a_large_file_the_start_is_read() {
    let wanted = |pages_per_second: f64| {
        let mut sequences = begun(0..8);
        (0..100).for_each(|_| sequences.on_open_file(OpenFileId::new(7), facts(100_000, false)));
        let device = DeviceRate { pages_per_second, rotates: false };
        sequences.list(OpenFileId::new(7), vec![files(0..1000)], |_| None, TICK, device);
        let next = sequences.due(&SHARE, true).expect("files").1;
        next.iter().map(|one| one.until.get()).collect::<Vec<_>>()
    };
    assert_eq!(wanted(1e5), [7500], "what the device reads in 75 ms");
    assert_eq!(wanted(1e3), [1024; 2]);
}

#[test]
fn a_single_large_file_among_small_ones_does_not_count() {
    let mut sequences = begun(0..8);
    for pages in [4, 1000, 5, 6, 1000, 4, 5] {
        sequences.on_open_file(OpenFileId::new(7), facts(pages, false));
    }
    sequences.list(OpenFileId::new(7), vec![files(0..1000)], |_| None, TICK, FLASH);
    due(&mut sequences);
    sequences.on_file_begun(key(10), OpenFileId::new(10), TICK);
    assert_eq!(sequences.interval(TICK, 0), 3 * 5, "three files of the median size");
}

#[test]
fn as_much_is_read_as_of_the_last_files() {
    let wanted = |read: u64| {
        let mut sequences = begun(0..8);
        (0..100).for_each(|_| sequences.on_open_file(OpenFileId::new(7), facts(100, false)));
        sequences.list(OpenFileId::new(7), vec![files(0..20)], |_| Some(read), TICK, FLASH);
        let next = sequences.due(&SHARE, true).map(|(_, files, _)| files).unwrap_or_default();
        next.first().map(|one| one.until.get())
    };
    assert_eq!([10, 60].map(wanted), [Some(10), Some(7500)]);
    assert_eq!(wanted(0), None, "their ends were read, for example");
}

#[test]
fn who_goes_elsewhere_or_rests_is_not_followed() {
    let mut sequences = begun(0..8);
    sequences.list(OpenFileId::new(7), vec![files(0..1000)], |_| None, TICK, FLASH);
    due(&mut sequences);
    for number in 0..20 {
        sequences.on_file_begun(key(900 - 2 * number), OpenFileId::new(1), TICK);
    }
    assert!(due(&mut sequences).is_empty());
    sequences.interval(TICK + Tuning::DEFAULT.idle_timeout * 2, 0);
    assert!(!sequences.is_at_work());
}

/// Returns the sequences after a reader has started `files_each` files in each interval,
/// compared with ten before.
fn followed(files_each: u64) -> Sequences {
    let mut sequences = begun(0..16);
    sequences.list(OpenFileId::new(15), vec![files(0..10_000)], |_| None, TICK, FLASH);
    let intervals = 1..=Tuning::DEFAULT.judge_intervals();
    go_on(&mut sequences, intervals.map(|interval| (interval, 16 + files_each * interval)));
    sequences
}

/// Starts each of these files in its interval.
fn go_on(sequences: &mut Sequences, files: impl Iterator<Item = (u64, u64)>) {
    for (interval, place) in files {
        sequences.on_file_begun(key(place), OpenFileId::new(place), TICK * (interval + 1));
        sequences.interval(TICK * (interval + 1), 0);
        due(sequences);
    }
}

#[test]
fn what_wins_nothing_is_given_up() {
    assert!(followed(12).is_at_work() && !followed(10).is_at_work());
    assert!(!followed(4).is_at_work(), "it is much slower");
}

#[test]
fn of_two_orders_that_fit_the_better_one_is_followed() {
    let by_name = [10, 11, 12, 1, 13, 14, 15, 16, 17, 18, 19, 2, 20, 21, 22, 23, 24, 3];
    let mut sequences = begun(by_name.into_iter().take(16));
    let listed = vec![files(0..40), files(by_name)];
    sequences.list(OpenFileId::new(7), listed, |_| None, TICK, FLASH);
    assert_eq!(due(&mut sequences), [24, 3]);
}

#[test]
fn markers_lie_ahead_of_the_reader_and_samples_show_that_he_passed_them() {
    let mut sequences = begun(0..8);
    sequences.list(OpenFileId::new(7), vec![files(0..60)], |_| None, TICK, FLASH);
    let due = sequences.due(&SHARE, true).map(|(_, files, _)| files).unwrap_or_default();
    assert!(!due.is_empty() && due.iter().all(|next| next.from == Pages::ZERO));
    let markers = sequences.markers();
    assert_eq!(markers, files([16, 32, 48]));
    sequences.on_sample(key(3), TICK);
    assert_eq!(sequences.markers(), markers, "one read before may be read again");
    sequences.on_sample(markers[1], TICK);
    assert_eq!(sequences.markers(), files([48]));
}

#[test]
fn after_a_gain_too_a_reader_at_the_rate_of_a_rotating_disk_is_left_alone() {
    let mut sequences = begun(0..64);
    sequences.list(OpenFileId::new(63), vec![files(0..70)], |_| None, TICK * 7, DISK);
    for number in 70..90 {
        let at = TICK * 7 + Nanos::from_millis(10) * (number - 69);
        sequences.on_file_begun(key(number), OpenFileId::new(number), at);
        sequences.interval(at, 40);
    }
    let wanted = |pages_per_second: f64| {
        let device = DeviceRate { pages_per_second, rotates: true };
        !sequences.wants(TICK * 9, device).files.is_empty()
    };
    assert!(wanted(10_000.0) && !wanted(5_000.0), "it reads 4,000 pages per second");
}

#[test]
fn a_reader_that_gets_what_a_rotating_disk_can_read_is_left_alone() {
    let wanted = |pages_per_tick: u64| {
        let mut sequences = Sequences::default();
        sequences.on_open_file(OpenFileId::new(0), facts(500, false));
        for number in 0..16 {
            let at = TICK * number;
            sequences.on_file_begun(key(number), OpenFileId::new(number), at);
            sequences.interval(at, pages_per_tick);
        }
        let device = DeviceRate { pages_per_second: 5000.0, rotates: true };
        !sequences.wants(TICK * 16, device).files.is_empty()
    };
    assert!(wanted(300) && !wanted(400), "of 500 pages per tick");
}
