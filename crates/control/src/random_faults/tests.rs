use std::ops::Range;

use super::*;

const ORIGINAL: Pages = Pages::new(32);

fn window(start: u64, size: u64) -> Window {
    Window { start, size: Pages::new(size), async_size: Pages::ZERO }
}

fn view(cache: u64) -> FileView {
    let (pages, max_request) = (Pages::new(1 << 24), Pages::new(320));
    FileView { pages, folio_limit: None, max_request, cache: Pages::new(cache) }
}

/// A mapping whose faults take `fault` µs, and `page` µs for each page that they read.
struct Reader {
    faults: RandomFaults,
    waits: FaultWaits,
    scores: GainScores,
    now: Nanos,
    windows: Vec<u64>,
    fault: u64,
    page: u64,
    primed: bool,
    cache: u64,
    /// The size of all mapped files, in pages.
    files: u64,
    /// Whether the window of a stream is being tried.
    tries: bool,
    /// The measured gain of another mapping on the device, which has a smaller window.
    other_gain: Option<f64>,
    /// The pages that streams of the device have passed.
    passed: u64,
}

impl Reader {
    fn new(fault: u64, page: u64) -> Self {
        Self {
            faults: RandomFaults::default(),
            waits: FaultWaits::default(),
            scores: GainScores::default(),
            now: Nanos::ZERO,
            windows: vec![ORIGINAL.get()],
            fault,
            page,
            primed: false,
            cache: 1 << 20,
            files: 1 << 24,
            tries: false,
            other_gain: None,
            passed: 0,
        }
    }

    fn window(&self) -> u64 {
        self.windows.last().copied().unwrap_or_default()
    }

    /// Simulates one fault. Returns the page after those that it read.
    fn fault(&mut self, at: u64, more: u64) -> u64 {
        let size = self.window();
        let read = window(at.saturating_sub(size / 2), size);
        self.faults.fault(self.now, at, read, ORIGINAL);
        let wait = Nanos::from_micros(self.fault + self.page * size + more);
        self.now += wait;
        self.faults.waited(wait, Some(ORIGINAL));
        read.end().max(at + 1)
    }

    fn piece(&mut self, start: u64, pages: u64, more: u64) {
        let mut at = start;
        while at < start + pages {
            at = self.fault(at, more);
        }
    }

    fn interval(&mut self) {
        let Self { faults, waits, scores, .. } = self;
        faults.take_waits().into_iter().for_each(|one| waits.add(one, 64));
        let measured = faults.measured().into_iter().chain(self.other_gain);
        let gains = measured.fold(MeanGain::default(), MeanGain::with);
        let file = view(self.cache);
        let window_time = self.fault + self.page * ORIGINAL.get();
        let pass_time = Nanos::from_micros(window_time * self.files / ORIGINAL.get());
        let (original, parallel) = (ORIGINAL, 1);
        let others_are_unchanged = self.other_gain.is_none();
        let (may_inspect, passed) = (!self.tries, self.passed);
        let mapping = MappingView {
            original,
            waits,
            gains,
            file,
            pass_time: Some(pass_time),
            parallel,
            scores,
            may_inspect,
            others_are_unchanged,
            passed,
        };
        faults.step(self.now, &mapping, true);
        let next = self.faults.window(ORIGINAL, self.primed).get();
        if next != self.window() {
            self.windows.push(next);
        }
    }

    /// Reads pieces of `pages` pages with these numbers, ten in each interval. Every fault of a
    /// piece takes `more` µs longer.
    fn pieces(&mut self, numbers: Range<u64>, pages: u64, mut more: impl FnMut(&Self, u64) -> u64) {
        for piece in numbers {
            let more = more(self, piece);
            self.piece(piece * 7919 % 1000 * 1000, pages, more);
            if piece % 10 == 9 {
                self.interval();
            }
        }
    }

    /// Reads 1000 pieces. Returns all windows that the mapping had.
    fn settled(mut self, pages: u64) -> Vec<u64> {
        self.pieces(0..1000, pages, |_, _| 0);
        self.windows
    }
}

/// Single pages take `more` µs longer after this number of pieces.
fn single_pages_after(number: u64, more: u64) -> impl Fn(&Reader, u64) -> u64 {
    move |reader, piece| if reader.window() == 1 && piece > number { more } else { 0 }
}

#[test]
fn an_inspection_shows_which_window_serves() {
    assert_eq!(Reader::new(100, 8).settled(1), [32, 1, 32, 1], "single pages");
    assert_eq!(Reader::new(300, 32).settled(4), [32, 1, 16, 32, 16], "one fault for each");
    // With a window of 16 pages, pieces of 8 reach the mark, and the kernel reads 16 more.
    assert_eq!(Reader::new(300, 32).settled(8), [32, 1, 32]);
    let long = Reader::new(300, 32).settled(16);
    assert_eq!(long.last(), Some(&32), "no smaller window does: {long:?}");
    assert_eq!(Reader::new(20, 100).settled(8), [32, 1, 32, 1], "transfer takes most time");
    assert_eq!(Reader::new(8500, 1).settled(8), [32, 1, 32], "seeks take the time");
}

#[test]
fn an_inspection_costs_no_more_than_a_few_pieces_before() {
    // Each fault waits for the requests of another reader.
    let mut reader = Reader::new(90_000, 0);
    let mut inspected = 0;
    // Observed for long, as after an inspection that failed.
    for piece in 1000..1100_u64 {
        reader.piece(piece * 7919 % 1000 * 1000, 8, 0);
    }
    for piece in 0..100_u64 {
        let mut at = piece * 7919 % 1000 * 1000;
        let end = at + 8;
        while at < end {
            inspected += u64::from(reader.window() == 1);
            at = reader.fault(at, 0);
            reader.interval();
        }
    }
    assert_eq!(reader.windows, [32, 1, 32]);
    assert_eq!(inspected, Tuning::DEFAULT.few_samples);
}

#[test]
fn a_primed_file_keeps_its_original_window_where_seeks_take_the_time() {
    let primed = |fault, page| Reader { primed: true, ..Reader::new(fault, page) };
    assert_eq!(primed(8500, 45).settled(1), [32, 1, 32]);
    assert_eq!(primed(330, 32).settled(1), [32, 1, 32, 1]);
}

#[test]
fn first_reads_that_take_longer_do_not_decide() {
    let mut reader = Reader::new(8500, 8);
    // Metadata is read with some of the first pieces.
    reader.pieces(0..200, 8, |_, piece| if piece % 3 == 0 && piece < 20 { 80_000 } else { 0 });
    assert_eq!(reader.window(), ORIGINAL.get(), "{:?}", reader.windows);
}

#[test]
fn a_window_that_does_not_gain_what_was_predicted_is_reverted() {
    let mut reader = Reader::new(100, 8);
    // Some time after the inspection, small reads suddenly take longer than large ones.
    reader.pieces(0..200, 1, single_pages_after(60, 800));
    assert_eq!(reader.windows, [32, 1, 32, 1, 32], "{:?}", reader.faults.phase);
    let Some(Reversal::Slower(window, speed)) = reader.faults.reversal else { panic!("no reason") };
    assert!(window == SINGLE_PAGE && speed < 0.95, "{window:?} {speed}");
    let why = reader.faults.why(ORIGINAL, Bytes::from_kib(4), false);
    assert_eq!(
        why,
        format!("with a window of 4 KiB, its mapping was read {speed:.2} times as fast")
    );
}

#[test]
fn a_window_is_compared_with_the_original_one_as_it_is_later() {
    let mut reader = Reader::new(300, 8);
    // By chance, the first reads took longer.
    reader.pieces(0..400, 8, |reader, _| if reader.windows.len() == 1 { 1500 } else { 0 });
    let [32, 1, tried, 32] = reader.windows[..] else { panic!("{:?}", reader.windows) };
    let Some(Reversal::Slower(window, speed)) = reader.faults.reversal else { panic!("no reason") };
    assert!(window.get() == tried && speed < 0.95, "{window:?} {speed}");
}

#[test]
fn harm_must_show_twice_unless_several_mappings_show_it() {
    let read = |other_gain, pieces: u64| {
        let mut reader = Reader { other_gain, ..Reader::new(100, 8) };
        reader.pieces(0..pieces, 1, single_pages_after(30, 340));
        let is_reverted = reader.faults.reversal.is_some();
        (reader.windows, is_reverted, reader.faults.measured())
    };
    let (windows, is_reverted, measured) = read(Some(1.3), 80);
    assert_eq!((windows, is_reverted), (vec![32, 1], false), "the other mapping gains");
    assert!(measured.is_some_and(|gain| (0.7..0.95).contains(&gain)), "{measured:?}");
    assert_eq!(read(Some(0.9), 80).0, [32, 1, 32], "the other one loses, too");
    // Alone, it is compared with the original window before each of the two judgements.
    let is_reverted = [80, 120, 140].map(|pieces| read(None, pieces).1);
    assert_eq!(is_reverted, [false, false, true]);
    assert_eq!(read(None, 140).0, [32, 1, 32, 1, 32]);
}

#[test]
fn slow_reads_for_a_while_do_not_decide() {
    let mut reader = Reader::new(100, 8);
    let mut small = 0_u64;
    // For 60 of 120 pieces, single pages take longer than a window.
    reader.pieces(0..1000, 1, |reader, _| {
        let is_slow = small >= 200 && ((small - 200) / 60).is_multiple_of(2);
        small += u64::from(reader.window() == 1);
        if reader.window() == 1 && is_slow { 280 } else { 0 }
    });
    assert_eq!(reader.windows, [32, 1, 32, 1]);
}

#[test]
fn a_window_is_measured_anew_after_the_trial_of_a_stream() {
    let mut reader = Reader::new(100, 8);
    reader.pieces(0..101, 1, |_, _| 0);
    reader.faults.disturb();
    reader.pieces(101..300, 1, single_pages_after(100, 800));
    assert_eq!(reader.windows[..5], [32, 1, 32, 1, 32]);
    assert!(matches!(reader.faults.reversal, Some(Reversal::Slower(..))), "{:?}", reader.windows);
}

#[test]
fn a_window_is_not_compared_again_while_other_mappings_have_smaller_ones() {
    let with_others = Reader { other_gain: Some(1.0), ..Reader::new(300, 32) };
    assert_eq!(with_others.settled(4), [32, 1, 16]);
}

#[test]
fn a_window_that_slows_down_streams_is_reverted() {
    let windows = |with_small: u64| {
        let mut reader = Reader::new(300, 32);
        for piece in 0..200_u64 {
            reader.piece(piece * 7919 % 1000 * 1000, 4, 0);
            if piece % 10 == 9 {
                let is_smaller = reader.window() == 16;
                reader.passed += if is_smaller { with_small } else { 640 };
                reader.interval();
            }
        }
        (reader.windows, reader.faults.reversal == Some(Reversal::SlowedStreams))
    };
    // The mapping itself takes the same time in both cases.
    assert_eq!(windows(600), (vec![32, 1, 16, 32, 16], false));
    assert_eq!(windows(200), (vec![32, 1, 16, 32, 16, 32], true));
    assert_eq!(
        windows(0),
        (vec![32, 1, 16, 32, 16], false),
        "streams that ended were not slowed down"
    );
}

#[test]
fn a_reader_of_columns_gets_what_the_cache_brings_for_several_at_once() {
    let windows = |columns: u64, cache: u64| {
        let mut reader = Reader { cache, ..Reader::new(100, 8) };
        let mut cached = std::collections::BTreeSet::new();
        for row in 0..columns * 200 {
            let at = 10_000 + row % 200 * 96 + row / 200;
            if !cached.contains(&at) {
                let size = reader.window();
                let from = at.saturating_sub(size / 2);
                cached.extend(from..from + size);
                reader.fault(at, 0);
            }
            if row % 10 == 9 {
                reader.interval();
            }
        }
        reader.window()
    };
    assert_eq!(windows(1, 1 << 20), 1);
    assert!(windows(12, 1 << 20) >= 16, "it brings several columns at once");
    assert_eq!(windows(12, 150), 1, "the cache does not hold them until the next column");
}

#[test]
fn backward_and_forward_faults_near_each_other_are_one_long_piece() {
    for step in [16, -16] {
        let mut faults = RandomFaults::default();
        let mut at = 100_000_u64;
        for _ in 0..20 {
            faults.fault(Nanos::ZERO, at, window(at - 16, 32), ORIGINAL);
            at = at.saturating_add_signed(2 * step);
        }
        assert!(!faults.is_random(ORIGINAL), "{step}");
    }
}

#[test]
fn files_that_are_soon_read_completely_keep_their_windows() {
    let windows = |files| Reader { files, ..Reader::new(100, 8) }.settled(1);
    // One fault takes 356 µs.
    assert_eq!(windows(32 * 5000), [32]);
    assert_eq!(windows(32 * 6000), [32, 1, 32, 1]);
}

#[test]
fn an_inspection_waits_for_the_trial_of_a_stream() {
    let mut reader = Reader { tries: true, ..Reader::new(100, 8) };
    reader.pieces(0..200, 1, |_, _| 0);
    assert_eq!(reader.windows, [32]);
    reader.tries = false;
    assert_eq!(reader.settled(1), [32, 1, 32, 1]);
}

#[test]
fn an_inspection_ends_even_if_its_observations_are_discarded() {
    let mut reader = Reader::new(300, 32);
    for piece in 0..200_u64 {
        reader.piece(piece * 7919 % 1000 * 1000, 4, 0);
        if piece % 10 == 9 {
            reader.interval();
            if reader.window() == 1 {
                reader.faults.disturb();
            }
        }
    }
    assert_eq!(reader.windows[..2], [32, 1]);
    assert!(reader.windows.len() > 2, "{:?}", reader.faults.phase);
}
