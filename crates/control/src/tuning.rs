//! Every threshold of the controller, by the module that uses it.
//!
//! Unless its comment names another source, a value was chosen by hand and tuned on the synthetic
//! matrix (`examples/matrix`). The threshold that starts priming was chosen for real programs.

/// Time to wake a thread: the reader after each wait, and the thread that prefetches after a miss.
pub(crate) const WAKE_TIME: units::Nanos = units::Nanos::from_micros(50);

/// Values that several modules share. A module re-exports a value under the name of its use; a
/// multiple of a shared value is not an independent threshold.
pub(crate) mod shared {
    use units::{Nanos, Pages};

    /// An action has done harm if the rate falls below this fraction of the previous rate.
    pub const REVERT_BELOW_RATIO: f64 = 1.0 - MIN_EFFECT;
    /// Pause of an action after its first failure, and time for which a result holds; doubles with
    /// each failure.
    pub const BACKOFF_TIME: Nanos = Nanos::from_secs(20);
    /// A pause stops growing after this many doublings.
    pub const MAX_BACKOFF_DOUBLINGS: u32 = 5;
    /// A reader without an event for this long has stopped, or reads something else.
    pub const IDLE_TIMEOUT: Nanos = Nanos::from_secs(2);
    /// Prefetch distance, in intervals of reading at the reader's pace.
    pub const LOOKAHEAD_INTERVALS: u64 = 3;
    /// Pieces or files that may be prefetched for a reader of unknown pace.
    pub const MIN_ROOM: u64 = 64;
    /// Smallest sample that justifies an action: harmful actions are reverted.
    pub const FEW_SAMPLES: u64 = 8;
    /// Smallest sample whose mean decides: its standard error is a quarter of the standard
    /// deviation, and about a tenth of the mean for waits for a disk that seeks.
    pub const MIN_SAMPLES: u64 = 16;
    /// How long readers are observed before their rate counts.
    pub const OBSERVATION_TIME: Nanos = Nanos::from_millis(500);
    /// How long the effect of a change is observed.
    pub const TRIAL_TIME: Nanos = Nanos::new(2 * OBSERVATION_TIME.get());
    /// Minimum time before the same request or action is repeated.
    pub const RETRY_INTERVAL: Nanos = Nanos::from_secs(5);
    /// How long an observation counts; the span of PSI `avg10`.
    pub const FADE_TIME: Nanos = Nanos::from_secs(10);
    /// State without an event for this long is discarded.
    pub const FORGET_TIMEOUT: Nanos = Nanos::from_secs(60);
    /// A smaller relative effect neither justifies an action nor counts as harm.
    pub const MIN_EFFECT: f64 = 0.05;
    /// Factor by which windows and prefetch depths grow in one step.
    pub const GROWTH_FACTOR: u64 = 4;
    /// Accesses of an open file that are remembered and replayed. Bounds memory and processor time.
    pub const MAX_HISTORY: u64 = 1024;
    /// Items of one kind that are remembered or sampled. Bounds memory and processor time.
    pub const MAX_REMEMBERED: usize = 64;
    /// Windows and files that are tracked. Bounds memory.
    pub const MAX_FOLLOWED: usize = 4 * MAX_REMEMBERED;
    /// Runs of an open file that are tracked. Bounds processor time.
    pub const MAX_RUNS: usize = 16;
    /// Window with which every page that a reader touches causes an event.
    pub const SINGLE_PAGE: Pages = Pages::new(1);
    /// Smallest piece if all pages are read: 64 KiB in pages of 4 KiB.
    pub const MIN_PIECE_PAGES: u64 = 16;
    /// Interval between decisions after readers start, when most of the gain is possible.
    pub const EAGER_INTERVAL: Nanos = Nanos::from_millis(25);
    /// Smallest number of repetitions that is not taken for chance.
    pub const MIN_REPEATS: u64 = FEW_SAMPLES / 2;
    /// Intervals before the pace with prefetching counts, as readers first catch up on misses.
    pub const SETTLING_INTERVALS: u64 = LOOKAHEAD_INTERVALS;
    /// Intervals after which prefetching is judged.
    pub const JUDGE_INTERVALS: u64 = FEW_SAMPLES;
    /// A smaller share is negligible.
    pub const MIN_SHARE: f64 = 0.1;
    /// A larger share is no exception.
    pub const MINORITY_SHARE: f64 = 0.2;
    /// A larger share is a majority.
    pub const MAJORITY_SHARE: f64 = 0.5;
    /// A rate or time below this fraction of its previous value has plainly changed and needs no
    /// long observation.
    pub const PLAINLY_BELOW_RATIO: f64 = 0.7;
    /// Weight of the latest observation in a moving average.
    pub const LATEST_WEIGHT: f64 = 1.0 / MIN_REPEATS as f64;
}

pub(crate) mod control_loop {
    use units::Nanos;

    /// Memory pressure must last this long before everything is restored, and be over for as long
    /// before control resumes: the span of PSI `avg10`.
    pub use super::shared::FADE_TIME as PRESSURE_DELAY;
    /// Without a read from a disk for this long, the loop is idle.
    pub const IDLE_TIMEOUT: Nanos = Nanos::new(2 * super::shared::IDLE_TIMEOUT.get());
    /// Interval between samples while the loop is idle.
    pub const IDLE_SAMPLE_INTERVAL: Nanos = Nanos::new(super::shared::IDLE_TIMEOUT.get() / 2);
    /// A pause is at least this many times as long as the step before it, unless the interval is
    /// shorter: sampling then takes at most about 3 % of one processor.
    pub const MIN_PAUSE_STEPS: u64 = 30;
}

/// A/B tests.
pub(crate) mod ab_test {
    /// Pairs of slots before an effect is reported: the minimum for a 95 % CI of the median.
    pub const MIN_PAIRS: usize = stats::INTERVAL_FROM;
    /// Fraction of a slot that is discarded at its start, because readers take a while to react.
    pub const SETTLING_SHARE: f64 = 0.25;
}

pub(crate) mod controller {
    use units::Nanos;

    /// An open file without an event for this long is idle: nothing is decided about it.
    pub const IDLE_TIMEOUT: Nanos = Nanos::from_secs(3);
    /// Windows and prefetch depths grow only if readers wait for more than this share of the time.
    pub use super::shared::MIN_EFFECT as MIN_WAIT_SHARE;
    /// Open files that are tracked; above this, the one idle longest is forgotten. Bounds memory.
    pub const MAX_OPEN_FILES: usize = 256 * super::shared::MAX_REMEMBERED;
    pub use super::shared::EAGER_INTERVAL;
    /// An open file without an event for this long is forgotten.
    pub use super::shared::FORGET_TIMEOUT;
    /// For this long after readers start, decisions are more frequent: most of the gain is possible
    /// then.
    pub use super::shared::IDLE_TIMEOUT as EAGER_TIME;
    /// Files whose priming is considered. Bounds memory.
    pub use super::shared::MAX_FOLLOWED as MAX_PRIMED_FILES;
}

pub(crate) mod windows {
    /// Minimum time before the same window is requested again.
    pub use super::shared::RETRY_INTERVAL as REPEAT_INTERVAL;
    /// Until this long after the first event, most readers may not have been seen yet.
    pub const STARTUP_TIME: units::Nanos = units::Nanos::from_millis(600);
}

/// The search for the window of streams: hill climbing by trials.
pub(crate) mod window_search {
    pub use super::shared::BACKOFF_TIME as CONVERGED_TIME;
    pub use super::shared::REVERT_BELOW_RATIO;
    use units::Nanos;

    /// A window holds this many times the bytes in flight during one read: a seek then takes a
    /// ninth of the time.
    pub const SEEK_AMORTIZATION: u64 = 8;
    pub use super::shared::GROWTH_FACTOR as STEP_GROWTH;
    /// Smallest growth factor that is worth a step.
    pub const MIN_GROWTH: u64 = 2;
    /// Largest growth factor while other reads compete with the streams. For faults of mappings,
    /// which wait for each page, it is [`MIN_GROWTH`].
    pub const MAX_GROWTH_WITH_OTHERS: u64 = STEP_GROWTH * STEP_GROWTH;
    /// Time in which all streams should use up their windows at the previous rate.
    pub use super::shared::IDLE_TIMEOUT as MAX_ROUND_TIME;
    /// Up to this many streams, [`MAX_ROUND_TIME`] limits windows. More streams would fill memory
    /// with unused pages.
    pub const MAX_LEAPING_STREAMS: u64 = 16;
    /// [`MAX_ROUND_TIME`] for more streams, in seconds.
    pub const MAX_CROWDED_ROUND_SECONDS: f64 = 0.4;
    /// Number of times that each stream should use up its window during a trial.
    pub const TRIAL_ROUNDS: f64 = super::stream::MIN_WINDOWS as f64;
    /// Shortest and longest trial. A trial without a clear result, or with reads besides the
    /// streams, may take longer.
    pub const TRIAL_TIME: (Nanos, Nanos) = (
        Nanos::new(8 * super::shared::EAGER_INTERVAL.get()),
        Nanos::new(3 * super::shared::OBSERVATION_TIME.get()),
    );
    /// A smaller gain or loss than this may be chance, so the trial is extended once.
    pub const CLEAR_RATIO: f64 = 1.0 + super::shared::MIN_SHARE;
    /// Shortest trial if several readers share a file: they first use up the pages that were read
    /// ahead for one of them.
    pub const MIN_SHARED_TRIAL_TIME: Nanos = Nanos::new(3 * TRIAL_TIME.0.get());
    /// Length of the extension of a trial.
    pub use super::shared::TRIAL_TIME as TRIAL_EXTENSION;
    /// Observation of readers before the first trial: the minimum if [`MIN_PLACES`] were seen, and
    /// the time that always suffices.
    pub const FIRST_TRIAL_TIME: (Nanos, Nanos) =
        (Nanos::new(4 * super::shared::EAGER_INTERVAL.get()), super::shared::OBSERVATION_TIME);
    /// Places where readers must have been seen before the first trial.
    pub const MIN_PLACES: u64 = 2 * super::shared::MIN_SAMPLES;
    /// Places where a single reader must have been seen before an early first trial.
    pub const MIN_PLACES_ALONE: u64 = 2 * MIN_PLACES;
    /// If other reads compete with the streams, the number of them that must be seen without any
    /// other change before a trial.
    pub const MIN_OTHER_READS: u64 = 40;
    /// Longest wait of a trial for [`MIN_OTHER_READS`].
    pub const MAX_CALM_TIME: Nanos = Nanos::new(3 * super::shared::TRIAL_TIME.get());
    /// Other readers have stopped if none of their reads was seen for the time that this many reads
    /// took.
    pub const MAX_SILENT_READS: f64 = super::shared::FEW_SAMPLES as f64;
    pub use super::shared::MAX_BACKOFF_DOUBLINGS as MAX_CONVERGED_DOUBLINGS;
    /// Streams compete if they reach more than this share of places after another stream.
    pub use super::shared::MINORITY_SHARE as COMPETING_SWITCH_SHARE;
    /// Time without any other change before a trial, if other reads compete with the streams.
    pub use super::shared::OBSERVATION_TIME as MIN_CALM_TIME;
    /// The search restarts if readers wait and their rate is below this fraction of the rate that
    /// it found.
    pub use super::shared::PLAINLY_BELOW_RATIO as RESTART_BELOW_RATIO;
    /// Bounds of the gain for which a larger window is kept and followed by another step; lower if
    /// more places were seen. With a constant 5 %, scans of real databases on an SSD are 10 %
    /// slower.
    pub const MIN_GAIN_RATIOS: (f64, f64) =
        (1.0 + super::pace::MAX_LOSS_SHARE, 1.0 + super::shared::MIN_EFFECT);
}

pub(crate) mod stream {
    use units::Nanos;

    /// Access samples after which an open file without a trend is not sampled for a while: many
    /// times what a trend needs.
    pub const BURST_SAMPLES: u64 = super::shared::MAX_HISTORY / 2;
    /// Windows that a reader must have triggered before any action.
    pub const MIN_WINDOWS: u64 = 3;
    /// A larger window may help if more than this share of the places where readers are seen
    /// continue a run.
    pub use super::shared::MIN_SHARE as MIN_FORWARD_SHARE;
    /// Without a sample for this long, misses show how a file is read.
    pub const SAMPLE_TIMEOUT: Nanos = Nanos::new(super::shared::OBSERVATION_TIME.get() / 2);
    pub use super::shared::RETRY_INTERVAL as BURST_PAUSE;
    /// An open file without a miss, mark or wait for this long is sampled only if it is prefetched.
    pub const MAX_UNSEEN_TIME: Nanos = Nanos::new(super::shared::IDLE_TIMEOUT.get() / 2);
    /// [`MIN_FORWARD_SHARE`] for faults of a mapping: only whole passes get a larger window.
    pub const MIN_FORWARD_SHARE_MAPPED: f64 = 1.0 - super::shared::MINORITY_SHARE;
}

pub(crate) mod shrink {
    /// A reader that has not missed within this time is idle, or reads cached pages.
    pub use super::shared::OBSERVATION_TIME as MAX_MISS_WAIT;
}

/// Short runs, whose misses trigger a prefetch.
pub(crate) mod runs {
    pub use super::shared::REVERT_BELOW_RATIO;

    pub use super::shared::MAX_REMEMBERED as MAX_RUNS_REMEMBERED;
    pub const MIN_RUNS: u64 = 2 * super::shared::MIN_SAMPLES;
    /// A longer run is a stream.
    pub const MAX_RUN_PAGES: u64 = 4 * super::priming::PIECE_PAGES;
    /// Marks that a reader must have reached in its current run before the run counts as a stream.
    pub use super::shared::MIN_REPEATS as MIN_MARKS_OF_STREAM;
    /// How long a reader is observed before any action.
    pub use super::shared::OBSERVATION_TIME as MIN_OBSERVATION_TIME;
    /// Runs after which the rate of a reader is compared for the first and for the last time.
    pub const COMPARISON_RUNS: (u64, u64) =
        (super::shared::MIN_SAMPLES, super::shared::MAX_HISTORY);
    /// Number of runs at the comparison that is reported as the gain.
    pub const REPORTED_RUNS: u64 = 8 * super::shared::MIN_SAMPLES;
    /// Prefetches come too late if more than this share of runs has an additional miss.
    pub use super::shared::MAJORITY_SHARE as MAX_LATE_SHARE;
    /// Factor by which runs must be longer or shorter to justify a change.
    pub const MIN_CHANGE_RATIO: f64 = 1.25;
}

/// Faults of mappings that are read at random.
pub(crate) mod random_faults {
    pub use super::shared::REVERT_BELOW_RATIO;

    /// Pieces before a window is judged: on a disk that seeks, the mean wait for this many has a
    /// standard error of about a tenth.
    pub use super::shared::MIN_SAMPLES as MIN_PIECES;
    /// Faults after which a window is judged, however few pieces there were.
    pub const MAX_FAULTS: u64 = 16 * MIN_PIECES;
    /// Complete pieces that a probe needs. It ends earlier after [`PROBE_FAULTS`], or after this
    /// many faults if it takes longer than [`MIN_PIECES`] with the original window.
    pub use super::shared::FEW_SAMPLES as PROBE_PIECES;
    /// The window of a probe: every touched page causes a fault.
    pub use super::shared::SINGLE_PAGE as PROBE_WINDOW_PAGES;
    pub const PROBE_FAULTS: u64 = 16 * PROBE_PIECES;
    /// Faults since the probe that are replayed: readers may return much later to pages next to a
    /// piece. Bounds memory.
    pub const MAX_HISTORY: usize = 4 * super::shared::MAX_HISTORY as usize;
    /// Waits of all mappings of a device that are remembered for each window.
    pub use super::shared::MAX_REMEMBERED as MAX_WAITS_REMEMBERED;
    /// A longer time between two faults belongs to another reader, or is idle time.
    pub const MAX_THINK_TIME: units::Nanos = units::Nanos::from_millis(1);
    /// Windows with at most this many times the lowest cost are equal; the one that reads least is
    /// chosen.
    pub const EQUAL_WAIT_RATIO: f64 = 1.0 + super::shared::MIN_EFFECT;
    /// While the file is primed, a smaller window is chosen only if a piece takes less than this
    /// fraction of the time: with the original window, pages around a fault help to prime the file.
    pub use super::shared::PLAINLY_BELOW_RATIO as MAX_WAIT_RATIO_PRIMED;
    /// No window is reduced if faults with the original windows read all mapped files in less time.
    /// Source: LMDB with a file of 1 GiB (2.7 s) gains, an Annoy index of 118 MiB (1.2 s) and GDBM
    /// with 136 MiB (1.4 s) lose, on virtual SSDs.
    pub const MIN_PASS_TIME: units::Nanos = units::Nanos::from_secs(2);
    /// Pieces of one mapping that are tracked at once.
    pub const MAX_CURRENT_PIECES: usize = super::shared::MAX_RUNS / 2;
}

/// The choice for open files that are read in runs.
pub(crate) mod choice {
    pub use super::shared::FEW_SAMPLES as MIN_RUNS;
    /// Accesses for which the gain of a trend is predicted: the last ones, extended along the trend
    /// up to this number.
    pub const TREND_ACCESSES: usize = super::shared::MAX_HISTORY as usize / 4;
    /// Accesses that are replayed for one candidate: the history of the last seconds, mostly.
    pub use super::shared::MAX_HISTORY as MAX_ACCESSES;
    /// A longer time between two accesses is idle time.
    pub const MAX_THINK_TIME: units::Nanos = units::Nanos::from_millis(10);
    /// Minimum number of decisions during a replay, because a history may be shorter than an
    /// interval.
    pub use super::shared::MIN_SAMPLES as MIN_REPLAY_INTERVALS;
    /// Runs after which the choice is made again.
    pub use super::shared::MIN_SAMPLES as RUNS_BETWEEN_CHOICES;
    /// The window of an open file whose misses trigger a prefetch.
    pub use super::shared::SINGLE_PAGE as MISS_PREFETCH_WINDOW_PAGES;
    /// Pause of predictions for each replayed access: they use 1 % of a processor if an access
    /// takes 1 µs, which is assumed and not measured.
    pub const REPLAY_PAUSE: units::Nanos = units::Nanos::from_micros(100);
}

/// Assumptions of predictions about every machine.
pub(crate) mod what_if {
    use units::Pages;

    /// Largest folio order: XFS, and ext4 since Linux 6.16, have large folios.
    pub const MAX_FOLIO_ORDER: u8 = 9;
    /// The largest request to a device: the usual `max_sectors_kb` (1280 KiB).
    pub const MAX_REQUEST_PAGES: Pages = Pages::new(320);
    /// Reads that a device is assumed to serve at once before this is measured. A wrong guess
    /// lowers the weight of predictions.
    pub const ASSUMED_PARALLEL: usize = 8;
    /// Most reads that a device is assumed to serve at once.
    pub const MAX_PARALLEL: f64 = 4.0 * ASSUMED_PARALLEL as f64;
    pub use super::shared::EAGER_INTERVAL as DECISION_INTERVAL;
}

/// Predicted compared with measured gains.
pub(crate) mod gain {
    /// Weight of the last measured gain.
    pub use super::shared::LATEST_WEIGHT;
    /// Assumed error of predictions before the first measurement, as a natural logarithm: 5 %.
    pub use super::shared::MIN_EFFECT as FIRST_ERROR;
    /// Larger gains are reported as this one, for example that of a reader that no longer waits.
    /// The accesses that are remembered cannot show more.
    pub const MAX_GAIN: f64 = super::shared::MAX_HISTORY as f64;
}

/// Trends of reads, and prefetching along them.
pub(crate) mod trend {
    pub use super::shared::GROWTH_FACTOR as DEPTH_GROWTH;
    pub use super::shared::IDLE_TIMEOUT;
    pub use super::shared::LOOKAHEAD_INTERVALS;
    /// Moves from read to read that are remembered: the history size of Leap (ATC'20).
    pub const MAX_MOVES: usize = 2 * super::shared::MIN_SAMPLES as usize;
    pub use super::shared::MIN_ROOM as MIN_ROOM_PIECES;
    pub use super::shared::REVERT_BELOW_RATIO;
    /// The fewest moves that show a trend: all of them must agree.
    pub const MIN_MOVES: usize = super::shared::MIN_REPEATS as usize + 1;
    /// Pieces that are prefetched at first.
    pub use super::shared::FEW_SAMPLES as FIRST_DEPTH_PIECES;
    /// Weight of the last read in the score.
    pub const SCORE_WEIGHT: f64 = 1.0 / super::shared::FEW_SAMPLES as f64;
    /// Share of reads that a plan must foresee, and share of prefetched pages that must be used.
    pub use super::shared::MAJORITY_SHARE as MIN_SCORE;
    pub use super::shared::MAX_HISTORY as MAX_BACKOFF_MOVES;
    /// Smallest piece if all pages are read: 64 KiB in pages of 4 KiB.
    pub use super::shared::MIN_PIECE_PAGES;
    /// Consecutive equal gaps before they count: a read that starts with cached pages looks alike.
    pub use super::shared::MIN_SAMPLES as MIN_EQUAL_GAPS;
    /// Moves that must agree after a failed plan; doubles with each further one.
    pub use super::shared::MIN_SAMPLES as FIRST_BACKOFF_MOVES;
    /// Largest extent of joined adjacent pieces.
    pub const MAX_JOINED_PAGES: u64 = super::priming::PIECE_PAGES / 2;
    /// Intervals after which a plan is judged.
    pub use super::shared::JUDGE_INTERVALS;
    /// Intervals before the pace with prefetching counts.
    pub use super::shared::SETTLING_INTERVALS;
}

/// The next files of a directory.
pub(crate) mod next_files {
    pub use super::shared::BACKOFF_TIME;
    pub use super::shared::GROWTH_FACTOR as DEPTH_GROWTH;
    pub use super::shared::IDLE_TIMEOUT;
    pub use super::shared::LOOKAHEAD_INTERVALS;
    pub use super::shared::MIN_ROOM as MIN_ROOM_FILES;
    use units::Nanos;

    pub use super::shared::FEW_SAMPLES as MIN_FILES;
    /// [`MIN_FILES`] must have been started within this time.
    pub use super::shared::IDLE_TIMEOUT as ORDER_TIME;
    pub use super::shared::MAX_REMEMBERED as MAX_FILES_REMEMBERED;
    /// Largest prefetch of one file; the window serves the rest of a larger file.
    pub const MAX_PREFETCHED_BYTES: units::Bytes = units::Bytes::from_mib(1);
    /// On a rotating disk, files started at shorter intervals are adjacent, and the drive reads
    /// them ahead itself. Half a revolution.
    pub const MIN_ROTATING_FILE_TIME: Nanos = Nanos::from_millis(4);
    /// Files that must be left before prefetching is tried on such a disk: an array may gain. Fewer
    /// files may end before prefetching is judged.
    pub const MIN_ROTATING_FILES: u64 = JUDGE_INTERVALS * MIN_ROOM_FILES;
    /// Share of files started one after another that must be neighbors in the directory.
    pub const MIN_NEIGHBOR_SHARE: f64 = 0.75;
    /// Intervals after which prefetching is judged: on a saturated disk, it only adds seeks.
    pub use super::shared::JUDGE_INTERVALS;
    /// Most markers that are sampled at once, because other files are sampled, too.
    pub use super::shared::MAX_REMEMBERED as MAX_MARKERS;
    /// Markers within the prefetch depth. If accesses cannot be sampled, the first page of each
    /// marker is not prefetched.
    pub use super::shared::MIN_REPEATS as MARKERS_PER_DEPTH;
    /// Largest distance between two markers, in files.
    pub use super::shared::MIN_ROOM as MAX_MARKER_FILES;
    /// Minimum measured time before prefetching is judged.
    pub use super::shared::OBSERVATION_TIME as MIN_JUDGE_TIME;
    /// Minimum time between listings after many listings without a fitting order.
    pub use super::shared::RETRY_INTERVAL as LISTING_INTERVAL;
    /// Intervals before the rate of files with prefetching counts.
    pub use super::shared::SETTLING_INTERVALS;
    /// Prefetching stops unless files per second rise by this factor.
    pub const MIN_GAIN_RATIO: f64 = 1.0 + super::shared::MIN_EFFECT;
    pub use super::shared::MAX_BACKOFF_DOUBLINGS;
}

/// Priming: reading the rest of a file that random reads will cover.
pub(crate) mod priming {
    pub use super::shared::IDLE_TIMEOUT;
    /// The largest file that is tracked, one bit for each page. Bounds memory.
    pub const MAX_FILE_PAGES: u64 = 1 << 22;
    /// Size of one prefetch: long compared with a seek, and too short to be noticed.
    pub const PIECE_PAGES: u64 = 1024;
    /// Waits after which a file counts as read at random.
    pub use super::shared::FEW_SAMPLES as MIN_WAITS;
    /// Priming starts when readers have waited for this fraction of the time to read the rest in
    /// order. This is the rent-or-buy rule; see the module `prime`.
    pub const START_COST_SHARE: f64 = 0.5;
    /// Half-life of the gain of priming a file: its readers would have read it in time themselves.
    pub use super::shared::FADE_TIME as GAIN_HALF_LIFE;
}

pub(crate) mod pace {
    /// Share of the readers' throughput that priming may cost.
    pub const MAX_LOSS_SHARE: f64 = 0.02;
    /// Share of the device's time that priming may take: no wait grows more than tenfold.
    pub const MAX_DEVICE_SHARE: f64 = 1.0 - super::shared::MIN_SHARE;
    /// Cost of a page in pieces interleaved with other reads ÷ its cost in one pass.
    pub const INTERLEAVE_COST_RATIO: f64 = 1.3;
    /// First burst, which measures the speed of the device and is too short to affect readers. If a
    /// burst is read within an interval, the next is twice as large, up to [`MAX_PROBE_PAGES`].
    pub const PROBE_PAGES: f64 = 2.0 * super::priming::PIECE_PAGES as f64;
    pub const MAX_PROBE_PAGES: f64 = 16.0 * PROBE_PAGES;
    /// The device's time for one burst. All bursts together take at most [`MAX_LOSS_SHARE`] of the
    /// time that readers have waited.
    pub use MAX_QUEUE_TIME as PROBE_TIME;
    /// Limit of the queue on the device, in time of a sequential pass: this does not slow down
    /// readers.
    pub const MAX_QUEUE_TIME: units::Nanos =
        units::Nanos::new(4 * super::shared::EAGER_INTERVAL.get());
    /// Half of the requested pages that have not arrived after this time were cached already, or
    /// will never arrive.
    pub use super::shared::OBSERVATION_TIME as LOST_HALF_LIFE;
    pub const MIN_PAGES_PER_SECOND: f64 = 256.0;
    /// The cost of a page is between these multiples of its cost in a pass. The lower bound is for
    /// devices that serve several requests at once.
    pub const COST_RATIOS: (f64, f64) = (super::shared::MINORITY_SHARE, 2.5);
    /// Waits before their mean length is known.
    pub use super::shared::FEW_SAMPLES as MIN_WAITS;
    /// Waits after which their mean length is known well.
    pub const MANY_WAITS: u64 = 4 * super::shared::MIN_SAMPLES;
    /// How long waits are collected before they are compared with those without priming.
    pub use super::shared::OBSERVATION_TIME as STRETCH_TIME;
    /// Factor by which the sums of earlier stretches decay with each stretch.
    pub const RETENTION_PER_STRETCH: f64 = 1.0 - super::shared::MIN_SHARE;
    /// Stretches after which waits without priming are measured again if windows have changed.
    pub const MAX_STALE_STRETCHES: u64 = super::shared::MIN_REPEATS;
    /// Consecutive costly stretches after which waits without priming are measured again: other
    /// readers may have started.
    pub const MAX_COSTLY_STRETCHES: u64 = super::shared::MIN_REPEATS;
    /// Stretches that such a measurement takes.
    pub const REFERENCE_STRETCHES: u64 = MAX_COSTLY_STRETCHES / 2;
}

/// The share of memory that windows may fill.
pub(crate) mod memory {
    pub use super::shared::REVERT_BELOW_RATIO;

    /// Windows may fill the machine's cache divided by this, counting each window twice: one is
    /// read while the next is in flight. They may fill a cache with its own limit completely,
    /// because the limit exists for that; thrashing shows if that is too much.
    pub const CACHE_SHARE_DIVISOR: u64 = 4;
    /// A window may exceed its share by the share divided by this.
    pub const SLACK_DIVISOR: u64 = 8;
    /// Files that should stay cached may fill a cache divided by this.
    pub const KEPT_FILES_DIVISOR: u64 = CACHE_SHARE_DIVISOR / 2;
    /// Time after thrashing in which the limit of windows doubles.
    pub use super::shared::FADE_TIME as RECOVERY_TIME;
    /// Thrashing: more than one in this many places missed pages that had been read ahead for it.
    pub const THRASHING_DIVISOR: u64 = 8;
    /// Places before thrashing is judged, unless [`MAX_JUDGE_TIME`] has passed.
    pub const MIN_PLACES: u64 = 2 * super::shared::MIN_SAMPLES;
    /// Pause before smaller windows are tried again if they were slower.
    pub use super::shared::FORGET_TIMEOUT as REVERT_HOLD_TIME;
    /// Time after the first read during which the rate of readers is not judged.
    pub use super::shared::OBSERVATION_TIME as WARMUP_TIME;
    /// Time after which thrashing is judged with fewer than [`MIN_PLACES`] places.
    pub use super::shared::TRIAL_TIME as MAX_JUDGE_TIME;
    /// Length of a trial of smaller windows.
    pub use super::shared::TRIAL_TIME;
}

/// Measurements of the device.
pub(crate) mod device {
    /// Lowest sequential rate that a device is assumed to have.
    pub const MIN_STREAM_BYTES_PER_SECOND: f64 = 40e6;
    /// At least this share of the time of a read does not depend on its size.
    pub use super::shared::MIN_SHARE as MIN_FIXED_SHARE;
    /// Factor by which the best measured values decay in one second: a shared device may get
    /// slower.
    pub const RETENTION_PER_SECOND: f64 = 0.995;
    /// Reads in an interval before their service time counts.
    pub use super::shared::MIN_SAMPLES as MIN_READS;
}

/// Pages that were read ahead and not used yet.
pub(crate) mod outstanding {
    /// A window that no reader has reached after this time is wasted.
    pub use super::shared::FADE_TIME as WASTE_TIMEOUT;
    /// Windows of one open file that are tracked. Bounds memory.
    pub use super::shared::MAX_REMEMBERED as MAX_WINDOWS;
    /// A reader that passes this many cached pages between two windows has used both.
    pub use super::shared::MIN_PIECE_PAGES as MAX_GAP_PAGES;
}

pub(crate) mod pattern {
    /// Runs that are tracked; above this, the one idle longest is forgotten. Bounds memory.
    pub use super::shared::MAX_RUNS;
    /// Runs that must have ended before their usual length is known.
    pub use super::shared::MIN_REPEATS as MIN_RUNS;
    /// Without a prediction, the largest window is this fraction of a run: about one window is
    /// wasted after the end of each run.
    pub const MAX_WASTE_SHARE: f64 = 0.2;
    /// Streams take turns if more than this share of places continues a run after another one.
    pub use super::shared::MIN_EFFECT as MAX_SWITCHED_SHARE;
}

pub(crate) mod rates {
    pub use super::shared::PLAINLY_BELOW_RATIO;
    pub use super::shared::REVERT_BELOW_RATIO;

    /// Increase in random places per page that shows different work of the readers.
    pub const OTHER_WORK_PLACES_PER_PAGE: f64 = 1.0 / (4 * super::shared::MIN_PIECE_PAGES) as f64;
    /// Reads are scattered above this many random places per place that continues a stream.
    pub use super::shared::MAJORITY_SHARE as SCATTERED_PLACES_RATIO;
    /// If other reads were faster than this, a trial without any shows that they have stopped.
    pub const MIN_OTHER_READS_PER_SECOND: f64 = 20.0;
    /// Fraction of their rate that other readers must keep during a trial.
    pub const MIN_OTHERS_RATIO: f64 = 1.0 - super::shared::MIN_SHARE;
}
