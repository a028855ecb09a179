//! Every threshold of the controller, by the module that uses it.
//!
//! Where the comment names no other source, a value was chosen by hand and tuned on the synthetic
//! matrix (`examples/matrix`). The start of priming was chosen because of real programs.

/// How long it takes to wake a thread: the reader after each wait, and the thread that prefetches
/// after a miss.
pub(crate) const WAKE_TIME: units::Nanos = units::Nanos::from_micros(50);

/// Values that several modules share. A module names what it uses one for; a multiple of one is no
/// number of its own.
pub(crate) mod shared {
    use units::{Nanos, Pages};

    /// Below this part of the rate before, an action has done harm.
    pub const REVERT_BELOW_RATIO: f64 = 1.0 - MIN_EFFECT;
    /// How long an action pauses after a failure, and how long a result holds; the time doubles
    /// with each failure.
    pub const BACKOFF_TIME: Nanos = Nanos::from_secs(20);
    /// After this many doublings, a pause does not grow any more.
    pub const MAX_BACKOFF_DOUBLINGS: u32 = 5;
    /// A reader that was not seen for this long has stopped, or reads something else.
    pub const IDLE_TIMEOUT: Nanos = Nanos::from_secs(2);
    /// How much of what is expected next is prefetched, in intervals of the reader at its pace.
    pub const LOOKAHEAD_INTERVALS: u64 = 3;
    /// What may be prefetched for a reader of unknown pace, in pieces or files.
    pub const MIN_ROOM: u64 = 64;
    /// The fewest things of a kind that show how they are: enough to act, as harm is reverted.
    pub const FEW_SAMPLES: u64 = 8;
    /// Things of a kind whose mean decides: its standard error is a quarter of the deviation of
    /// one, and about a tenth for waits for a disk that seeks.
    pub const MIN_SAMPLES: u64 = 16;
    /// How long readers are observed before their rate counts.
    pub const OBSERVATION_TIME: Nanos = Nanos::from_millis(500);
    /// How long the effect of a change is observed.
    pub const TRIAL_TIME: Nanos = Nanos::from_secs(1);
    /// Nothing is asked for or ordered again before this time.
    pub const RETRY_INTERVAL: Nanos = Nanos::from_secs(5);
    /// How long what was seen counts; the span of PSI `avg10`.
    pub const FADE_TIME: Nanos = Nanos::from_secs(10);
    /// What was not seen for this long is forgotten.
    pub const FORGET_TIMEOUT: Nanos = Nanos::from_secs(60);
    /// A smaller effect than this is neither worth an action nor harm.
    pub const MIN_EFFECT: f64 = 0.05;
    /// Windows, and how far ahead is prefetched, grow by this factor in a step.
    pub const GROWTH_FACTOR: u64 = 4;
    /// Accesses of an open file that are remembered and replayed. Bounds memory and processor time.
    pub const MAX_HISTORY: u64 = 1024;
    /// Things of one kind that are remembered or sampled. Bounds memory and processor time.
    pub const MAX_REMEMBERED: usize = 64;
    /// Windows and files that are followed. Bounds memory.
    pub const MAX_FOLLOWED: usize = 256;
    /// Runs of an open file that are followed. Bounds processor time.
    pub const MAX_RUNS: usize = 16;
    /// The window with which a reader is seen at each page.
    pub const SINGLE_PAGE: Pages = Pages::new(1);
    /// The smallest piece where all pages are read: 64 KiB.
    pub const MIN_PIECE_PAGES: u64 = 16;
    /// The interval between decisions when readers begin: most of the gain is in the beginning.
    pub const EAGER_INTERVAL: Nanos = Nanos::from_millis(25);
    /// The fewest repetitions that are no accident.
    pub const MIN_REPEATS: u64 = 4;
    /// Intervals before the pace with prefetching counts: what was missed before is read then.
    pub const SETTLING_INTERVALS: u64 = LOOKAHEAD_INTERVALS;
    /// Intervals after which it is judged.
    pub const JUDGE_INTERVALS: u64 = FEW_SAMPLES;
    /// A smaller share than this does not count.
    pub const MIN_SHARE: f64 = 0.1;
    /// More than this share are most of them.
    pub const MAJORITY_SHARE: f64 = 0.5;
    /// Below this part of what it was, a rate or a time has changed plainly: it need not be
    /// observed for long.
    pub const PLAINLY_BELOW_RATIO: f64 = 0.7;
    /// How much the latest observation counts in a mean.
    pub const LATEST_WEIGHT: f64 = 0.25;
}

pub(crate) mod control_loop {
    use units::Nanos;

    /// Memory pressure must last this long before everything is restored, and be over as long
    /// before control resumes: the span of PSI `avg10`.
    pub use super::shared::FADE_TIME as PRESSURE_DELAY;
    /// Without a read from a disk for this long, the loop is idle.
    pub const IDLE_TIMEOUT: Nanos = Nanos::new(2 * super::shared::IDLE_TIMEOUT.get());
    /// How often the state is sampled while the loop is idle.
    pub const IDLE_SAMPLE_INTERVAL: Nanos = Nanos::from_secs(1);
    /// A pause is at least this many times as long as the step before it, unless the interval is
    /// shorter: sampling then takes at most about 3 % of one processor.
    pub const MIN_PAUSE_STEPS: u64 = 30;
}

/// A/B tests.
pub(crate) mod ab_test {
    /// Pairs of slots before an effect is reported: the fewest with a 95 % interval of the median.
    pub const MIN_PAIRS: usize = stats::INTERVAL_FROM;
    /// The part of a slot that is left out at its beginning, as readers take a while to react.
    pub const SETTLING_SHARE: f64 = 0.25;
}

pub(crate) mod controller {
    use units::Nanos;

    /// An open file without an event for this long is idle: nothing is decided about it.
    pub const IDLE_TIMEOUT: Nanos = Nanos::from_secs(3);
    /// Readers that wait more than this share of the time may be helped.
    pub use super::shared::MIN_EFFECT as MIN_WAIT_SHARE;
    /// Open files that are followed; of more, the one idle longest is forgotten. Bounds memory.
    pub const MAX_OPEN_FILES: usize = 16_384;
    pub use super::shared::EAGER_INTERVAL;
    /// An open file without an event for this long is forgotten.
    pub use super::shared::FORGET_TIMEOUT;
    /// For this long after readers begin, decisions are made more often: most of the gain is in the
    /// beginning.
    pub use super::shared::IDLE_TIMEOUT as EAGER_TIME;
    /// Files whose priming is considered. Bounds memory.
    pub use super::shared::MAX_FOLLOWED as MAX_PRIMED_FILES;
}

pub(crate) mod windows {
    /// The same window is not ordered again before this time.
    pub use super::shared::RETRY_INTERVAL as REPEAT_INTERVAL;
    /// So long after the first event, most readers may not have been seen yet.
    pub const STARTUP_TIME: units::Nanos = units::Nanos::from_millis(600);
}

/// The search for the window of streams: hill climbing by trials.
pub(crate) mod window_search {
    pub use super::shared::BACKOFF_TIME as CONVERGED_TIME;
    pub use super::shared::REVERT_BELOW_RATIO;
    use units::Nanos;

    /// A window holds this many times what flows during one read: a seek then takes a ninth of the
    /// time.
    pub const SEEK_AMORTIZATION: u64 = 8;
    pub use super::shared::GROWTH_FACTOR as STEP_GROWTH;
    /// A smaller factor is not worth a step.
    pub const MIN_GROWTH: u64 = 2;
    /// The largest factor while other reads compete with the streams, unless those are faults of
    /// mappings, which wait for each page.
    pub const MAX_GROWTH_WITH_OTHERS: u64 = STEP_GROWTH * STEP_GROWTH;
    /// How long all streams may take to use up their windows, at the rate before.
    pub use super::shared::IDLE_TIMEOUT as MAX_ROUND_TIME;
    /// With at most this many streams, windows grow that far. More streams fill the memory with
    /// what they have not used.
    pub const MAX_LEAPING_STREAMS: u64 = 16;
    /// The same as [`MAX_ROUND_TIME`] for more streams.
    pub const MAX_CROWDED_ROUND_SECONDS: f64 = 0.4;
    /// How often each stream is to use up its window during a trial.
    pub const TRIAL_ROUNDS: f64 = 3.0;
    /// The shortest and the longest trial. One without a clear result, or with other reads beside
    /// it, may go on.
    pub const TRIAL_TIME: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_millis(1500));
    /// A smaller gain or loss than this may be chance, so the trial is extended once.
    pub const CLEAR_RATIO: f64 = 1.0 + super::shared::MIN_SHARE;
    /// The shortest trial where several readers share a file: what was read ahead for one of them
    /// is used up first.
    pub const MIN_SHARED_TRIAL_TIME: Nanos = Nanos::new(3 * TRIAL_TIME.0.get());
    /// How long an extended trial goes on.
    pub use super::shared::TRIAL_TIME as TRIAL_EXTENSION;
    /// Readers are observed at least this long before the first trial, and need not be observed
    /// longer than this.
    pub const FIRST_TRIAL_TIME: (Nanos, Nanos) =
        (Nanos::from_millis(100), super::shared::OBSERVATION_TIME);
    /// Places where several readers must have been seen before the first trial.
    pub const MIN_PLACES: u64 = 2 * super::shared::MIN_SAMPLES;
    /// Places where a single reader must have been seen before an early first trial.
    pub const MIN_PLACES_ALONE: u64 = 2 * MIN_PLACES;
    /// Where other reads compete with the streams, this many of them must have been seen with
    /// nothing else changed before a trial.
    pub const MIN_OTHER_READS: u64 = 40;
    /// How long a trial waits for [`MIN_OTHER_READS`] at most.
    pub const MAX_CALM_TIME: Nanos = Nanos::new(3 * super::shared::TRIAL_TIME.get());
    /// Other readers have ended if none of their reads was seen for as long as this many of them
    /// took.
    pub const MAX_SILENT_READS: f64 = super::shared::FEW_SAMPLES as f64;
    pub use super::shared::MAX_BACKOFF_DOUBLINGS as MAX_CONVERGED_DOUBLINGS;
    /// How long nothing else must have changed before a trial then.
    pub use super::shared::OBSERVATION_TIME as MIN_CALM_TIME;
    /// The search starts again where readers wait and get less than this part of the rate that was
    /// found.
    pub use super::shared::PLAINLY_BELOW_RATIO as RESTART_BELOW_RATIO;
    /// The share of places that a stream came to from another stream from which on streams compete.
    pub const COMPETING_SWITCH_SHARE: f64 = 0.2;
    /// What a larger window must win to be worth another step, and to be kept: the less, the more
    /// was seen. With 5 % always, scans of real databases on an SSD are 10 % slower.
    pub const MIN_GAIN_RATIOS: (f64, f64) = (1.02, 1.0 + super::shared::MIN_EFFECT);
}

pub(crate) mod stream {
    use units::Nanos;

    /// Access samples after which an open file without a trend is not sampled for a while: many
    /// times what a trend takes.
    pub const BURST_SAMPLES: u64 = super::shared::MAX_HISTORY / 2;
    /// Windows that a reader must have asked for before anything is done.
    pub const MIN_WINDOWS: u64 = 3;
    /// The share of places of other reads that follow on another from which on a larger window may
    /// help.
    pub use super::shared::MIN_SHARE as MIN_FORWARD_SHARE;
    /// Without a sample for this long, misses show how a file is read.
    pub const SAMPLE_TIMEOUT: Nanos = Nanos::from_millis(250);
    pub use super::shared::RETRY_INTERVAL as BURST_PAUSE;
    /// An open file without a miss for this long is not sampled unless it is prefetched.
    pub const MAX_UNSEEN_TIME: Nanos = Nanos::from_secs(1);
    /// The same share of a mapping's faults: a larger window is tried for whole passes only.
    pub const MIN_FORWARD_SHARE_MAPPED: f64 = 0.8;
}

pub(crate) mod shrink {
    /// A reader that has not missed within this time is idle, or reads what is cached.
    pub use super::shared::OBSERVATION_TIME as MAX_MISS_WAIT;
}

/// Short runs, whose misses trigger a prefetch.
pub(crate) mod runs {
    pub use super::shared::REVERT_BELOW_RATIO;

    pub use super::shared::MAX_REMEMBERED as MAX_RUNS_REMEMBERED;
    pub const MIN_RUNS: u64 = 2 * super::shared::MIN_SAMPLES;
    /// A longer run is a stream.
    pub const MAX_RUN_PAGES: u64 = 4096;
    /// Marks that a reader must have met in its current run before that counts as a stream.
    pub use super::shared::MIN_REPEATS as MIN_MARKS_OF_STREAM;
    /// How long a reader is observed before anything is done.
    pub use super::shared::OBSERVATION_TIME as MIN_OBSERVATION_TIME;
    /// Runs after which the rate of a reader is compared for the first and for the last time.
    pub const COMPARISON_RUNS: (u64, u64) =
        (super::shared::MIN_SAMPLES, super::shared::MAX_HISTORY);
    /// The comparison that is reported as the gain.
    pub const REPORTED_RUNS: u64 = 8 * super::shared::MIN_SAMPLES;
    /// The share of runs with a second miss from which on prefetches come too late.
    pub use super::shared::MAJORITY_SHARE as MAX_LATE_SHARE;
    /// Runs must be longer by this factor to be worth a change.
    pub const MIN_CHANGE_RATIO: f64 = 1.25;
}

/// Faults of mappings that are read at random.
pub(crate) mod random_faults {
    pub use super::shared::REVERT_BELOW_RATIO;

    /// Pieces before a window is judged: on a disk that seeks, the mean wait for so many has a
    /// standard error of about a tenth.
    pub use super::shared::MIN_SAMPLES as MIN_PIECES;
    /// Faults after which a window is judged however few pieces began.
    pub const MAX_FAULTS: u64 = 16 * MIN_PIECES;
    /// Whole pieces that a probe needs, or faults if pieces are long.
    pub use super::shared::FEW_SAMPLES as PROBE_PIECES;
    /// The window of a probe: every page that is touched is a fault.
    pub use super::shared::SINGLE_PAGE as PROBE_WINDOW_PAGES;
    pub const PROBE_FAULTS: u64 = 16 * PROBE_PIECES;
    /// Faults since the probe that are replayed: readers may come back for the pages beside a piece
    /// much later. Bounds memory.
    pub const MAX_HISTORY: usize = 4 * super::shared::MAX_HISTORY as usize;
    /// Of all mappings of a device for each window.
    pub use super::shared::MAX_REMEMBERED as MAX_WAITS_REMEMBERED;
    /// A longer time between two faults is another reader's, or idle time.
    pub const MAX_THINK_TIME: units::Nanos = units::Nanos::from_millis(1);
    /// Of the windows with which readers wait no more than this many times as long as with the
    /// best, the one that reads least is chosen.
    pub const EQUAL_WAIT_RATIO: f64 = 1.0 + super::shared::MIN_EFFECT;
    /// While the file is primed, a smaller window is chosen only if a piece takes less than this
    /// part of the time: what is read around a fault is then part of that work.
    pub use super::shared::PLAINLY_BELOW_RATIO as MAX_WAIT_RATIO_PRIMED;
    /// Pieces of one mapping that are followed at once.
    pub const MAX_CURRENT_PIECES: usize = 8;
}

/// The choice for open files that are read in runs.
pub(crate) mod choice {
    pub use super::shared::FEW_SAMPLES as MIN_RUNS;
    /// Accesses for which the gain of a trend is predicted: the last ones, and as many more along
    /// the trend as are missing.
    pub const TREND_ACCESSES: usize = 256;
    /// Accesses that are replayed for one candidate: the history of the last seconds, mostly.
    pub use super::shared::MAX_HISTORY as MAX_ACCESSES;
    /// A longer time between two accesses is idle time.
    pub const MAX_THINK_TIME: units::Nanos = units::Nanos::from_millis(10);
    /// The replayed time is decided on at least so often: a history may be shorter than an
    /// interval.
    pub use super::shared::MIN_SAMPLES as MIN_REPLAY_INTERVALS;
    /// Runs after which the choice is made again.
    pub use super::shared::MIN_SAMPLES as RUNS_BETWEEN_CHOICES;
    /// The window of an open file whose misses trigger a prefetch.
    pub use super::shared::SINGLE_PAGE as MISS_PREFETCH_WINDOW_PAGES;
    /// Processor time of one replayed access, assumed and not measured; and the share of one
    /// processor that predictions may take.
    pub const ACCESS_COST: units::Nanos = units::Nanos::from_micros(1);
    pub const MAX_PROCESSOR_SHARE: f64 = 0.01;
}

/// What predictions assume of every machine.
pub(crate) mod what_if {
    use units::Pages;

    /// XFS, and ext4 since Linux 6.16, have large folios.
    pub const MAX_FOLIO_ORDER: u8 = 9;
    /// The largest request to a device: the usual `max_sectors_kb` (1280 KiB).
    pub const MAX_REQUEST_PAGES: Pages = Pages::new(320);
    /// Reads that a device is taken to serve at once before it has shown it: a wrong guess costs
    /// the predictions weight.
    pub const ASSUMED_PARALLEL: usize = 8;
    /// The most reads that a device is taken to serve at once.
    pub const MAX_PARALLEL: f64 = 4.0 * ASSUMED_PARALLEL as f64;
    pub use super::shared::EAGER_INTERVAL as DECISION_INTERVAL;
}

/// Predicted against measured gains.
pub(crate) mod gain {
    /// How much the last measured gain counts.
    pub use super::shared::LATEST_WEIGHT;
    /// The error of predictions before one was measured, as a natural logarithm: 5 %.
    pub use super::shared::MIN_EFFECT as FIRST_ERROR;
    /// Larger gains are reported as this one: a reader that need not wait at all.
    pub const MAX_GAIN: f64 = 1024.0;
}

/// Trends of reads, and prefetching along them.
pub(crate) mod trend {
    pub use super::shared::GROWTH_FACTOR as DEPTH_GROWTH;
    pub use super::shared::IDLE_TIMEOUT;
    pub use super::shared::LOOKAHEAD_INTERVALS;
    /// Moves from read to read that are remembered: the history of Leap (ATC'20).
    pub const MAX_MOVES: usize = 32;
    pub use super::shared::MIN_ROOM as MIN_ROOM_PIECES;
    pub use super::shared::REVERT_BELOW_RATIO;
    /// The fewest moves that show a trend: all of them must agree.
    pub const MIN_MOVES: usize = 5;
    /// Pieces that are prefetched at first.
    pub use super::shared::FEW_SAMPLES as FIRST_DEPTH_PIECES;
    /// How much the last read counts in the score.
    pub const SCORE_WEIGHT: f64 = 0.125;
    /// The share of reads that a plan must foresee, and of prefetched pages that must be used.
    pub use super::shared::MAJORITY_SHARE as MIN_SCORE;
    pub use super::shared::MAX_HISTORY as MAX_BACKOFF_MOVES;
    /// The smallest piece where all pages are read: 64 KiB.
    pub use super::shared::MIN_PIECE_PAGES;
    /// Equal gaps in a row before they count: a read that begins with cached pages looks alike.
    pub use super::shared::MIN_SAMPLES as MIN_EQUAL_GAPS;
    /// Moves that must agree after a plan in vain; twice as many after each further one.
    pub use super::shared::MIN_SAMPLES as FIRST_BACKOFF_MOVES;
    /// The largest extent that adjacent pieces are joined to.
    pub const MAX_JOINED_PAGES: u64 = 512;
    /// Intervals after which it is judged.
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
    /// They must have been begun within this time.
    pub use super::shared::IDLE_TIMEOUT as ORDER_TIME;
    pub use super::shared::MAX_REMEMBERED as MAX_FILES_REMEMBERED;
    /// The most that is prefetched of one file: the rest of a large one is served by its window.
    pub const MAX_PREFETCHED_BYTES: units::Bytes = units::Bytes::from_mib(1);
    /// On a rotating disk, files that are begun faster than this lie one behind another: the drive
    /// reads them ahead itself. Half a revolution.
    pub const MIN_ROTATING_FILE_TIME: Nanos = Nanos::from_millis(4);
    /// Files that must be left before prefetching is tried there: an array may gain.
    pub const MIN_ROTATING_FILES: u64 = 512;
    /// The share of files begun one after another that must be neighbors in the directory.
    pub const MIN_NEIGHBOR_SHARE: f64 = 0.75;
    /// Intervals after which it is judged: where the disk is saturated, prefetching only adds
    /// seeks.
    pub use super::shared::JUDGE_INTERVALS;
    /// The most markers that are sampled at once: other files are sampled, too.
    pub use super::shared::MAX_REMEMBERED as MAX_MARKERS;
    /// Where no order of a directory fits again and again, none is listed before this time.
    pub use super::shared::RETRY_INTERVAL as LISTING_INTERVAL;
    /// How often the reader is to be seen within the depth. Where accesses cannot be sampled, the
    /// first page of each marker is left out.
    pub const MARKERS_PER_DEPTH: u64 = 4;
    /// The most files between two such files.
    pub const MAX_MARKER_FILES: u64 = 64;
    /// The time that must have passed then.
    pub use super::shared::OBSERVATION_TIME as MIN_JUDGE_TIME;
    /// Intervals before the rate of files with prefetching counts.
    pub use super::shared::SETTLING_INTERVALS;
    /// The gain in files per second without which prefetching stops.
    pub const MIN_GAIN_RATIO: f64 = 1.0 + super::shared::MIN_EFFECT;
    pub use super::shared::MAX_BACKOFF_DOUBLINGS;
}

/// Priming: reading the rest of a file that random reads will cover.
pub(crate) mod priming {
    pub use super::shared::IDLE_TIMEOUT;
    /// The largest file that is tracked, one bit for each page. Bounds memory.
    pub const MAX_FILE_PAGES: u64 = 1 << 22;
    /// What is ordered at once: long compared with a seek, too short to be noticed.
    pub const PIECE_PAGES: u64 = 1024;
    /// Waits after which a file is taken to be read at random.
    pub use super::shared::FEW_SAMPLES as MIN_WAITS;
    /// Priming begins when readers have waited for this part of what reading the rest in order
    /// takes. The rule of renting or buying; see the module `prime`.
    pub const START_COST_SHARE: f64 = 0.5;
    /// The half-life of what priming a file has won: its readers would have read it in time.
    pub use super::shared::FADE_TIME as GAIN_HALF_LIFE;
}

pub(crate) mod pace {
    /// The share of what readers get that priming may cost.
    pub const MAX_LOSS_SHARE: f64 = 0.02;
    /// The share of the device's time that priming may take: no wait grows more than tenfold.
    pub const MAX_DEVICE_SHARE: f64 = 1.0 - super::shared::MIN_SHARE;
    /// What a page costs in pieces between which readers come, over what it costs in one pass.
    pub const INTERLEAVE_COST_RATIO: f64 = 1.3;
    /// What is read first, to learn how fast the device is. It is too short to matter to readers. A
    /// device that has read it within an interval gets twice as much, up to [`MAX_PROBE_PAGES`].
    pub const PROBE_PAGES: f64 = 2.0 * super::priming::PIECE_PAGES as f64;
    pub const MAX_PROBE_PAGES: f64 = 16.0 * PROBE_PAGES;
    /// The device's time for one probe. All probes take [`MAX_LOSS_SHARE`] of the time that readers
    /// have waited at most.
    pub const PROBE_SECONDS: f64 = MAX_QUEUE_SECONDS;
    /// What may be queued on the device, in seconds of a pass in order: readers do not get slower
    /// by that.
    pub const MAX_QUEUE_SECONDS: f64 = 0.1;
    /// Half of what was ordered and has not come within this time was cached already, or will not
    /// come.
    pub use super::shared::OBSERVATION_TIME as LOST_HALF_LIFE;
    pub const MIN_PAGES_PER_SECOND: f64 = 256.0;
    /// The cost of a page is between these multiples of its cost in a pass; the lower one is for
    /// devices that serve several requests at once.
    pub const COST_RATIOS: (f64, f64) = (0.2, 2.5);
    /// Waits before their length is known.
    pub use super::shared::FEW_SAMPLES as MIN_WAITS;
    /// Waits after which their length is known well.
    pub const MANY_WAITS: u64 = 4 * super::shared::MIN_SAMPLES;
    /// How long waits are collected before they are compared with those without priming.
    pub use super::shared::OBSERVATION_TIME as STRETCH_TIME;
    /// How much of what was learnt in a stretch counts in the next.
    pub const RETENTION_PER_STRETCH: f64 = 0.9;
    /// Stretches after which waits without priming are measured again if windows have changed.
    pub const MAX_STALE_STRETCHES: u64 = super::shared::MIN_REPEATS;
    /// Costly stretches in a row after which waits without priming are measured again: other
    /// readers may have begun.
    pub const MAX_COSTLY_STRETCHES: u64 = super::shared::MIN_REPEATS;
    /// Stretches that such a measurement takes.
    pub const REFERENCE_STRETCHES: u64 = MAX_COSTLY_STRETCHES / 2;
}

/// The share of memory that windows may fill.
pub(crate) mod memory {
    pub use super::shared::REVERT_BELOW_RATIO;

    /// Windows may fill this part of the machine's cache, twice each: one is read while the next
    /// one comes. They may fill a cache with a limit of its own, as its limit is there for that; if
    /// that is too much, thrashing shows it.
    pub const CACHE_SHARE_DIVISOR: u64 = 4;
    /// A window may exceed its share by this part.
    pub const SLACK_DIVISOR: u64 = 8;
    /// Files that are to stay cached may fill this part of a cache.
    pub const KEPT_FILES_DIVISOR: u64 = 2;
    /// How long it takes after thrashing until windows may be twice as large again.
    pub use super::shared::FADE_TIME as RECOVERY_TIME;
    /// Thrashing: one of this many places missed what had been read ahead for it.
    pub const THRASHING_DIVISOR: u64 = 8;
    /// Places before thrashing is judged ...
    pub const MIN_PLACES: u64 = 2 * super::shared::MIN_SAMPLES;
    /// How long smaller windows are not tried again then.
    pub use super::shared::FORGET_TIMEOUT as REVERT_HOLD_TIME;
    /// The rate of readers is not judged in their first moments.
    pub use super::shared::OBSERVATION_TIME as WARMUP_TIME;
    /// ... unless this much time has passed.
    pub use super::shared::TRIAL_TIME as MAX_JUDGE_TIME;
    /// How long smaller windows are tried.
    pub use super::shared::TRIAL_TIME;
}

/// What is learnt of the device.
pub(crate) mod device {
    /// A device is taken to stream at least at this rate.
    pub const MIN_STREAM_BYTES_PER_SECOND: f64 = 40e6;
    /// At least this part of the time of a read does not depend on its size.
    pub use super::shared::MIN_SHARE as MIN_FIXED_SHARE;
    /// How much of what was learnt still counts a second later: a device may be shared, and get
    /// slower.
    pub const RETENTION_PER_SECOND: f64 = 0.995;
}

/// Pages that were read ahead and not used yet.
pub(crate) mod outstanding {
    /// A window that no reader has reached after this time is wasted.
    pub use super::shared::FADE_TIME as WASTE_TIMEOUT;
    /// Windows of one open file that are followed. Bounds memory.
    pub use super::shared::MAX_REMEMBERED as MAX_WINDOWS;
    /// A reader that passes this many cached pages between two windows has used both.
    pub const MAX_GAP_PAGES: u64 = 16;
}

pub(crate) mod pattern {
    /// Runs that are followed; of more, the one idle longest is forgotten. Bounds memory.
    pub use super::shared::MAX_RUNS;
    /// Runs from which on it is known how long they are.
    pub use super::shared::MIN_REPEATS as MIN_RUNS;
    /// Where nothing is predicted, the largest window is this part of a run: about one window is
    /// wasted behind the end of each.
    pub const MAX_WASTE_SHARE: f64 = 0.2;
    /// The share of places where a run went on after another from which on streams take turns.
    pub use super::shared::MIN_EFFECT as MAX_SWITCHED_SHARE;
    /// The share of a file that random reads have touched from which on they are dense.
    pub const DENSE_SHARE: f64 = 0.25;
}

pub(crate) mod rates {
    pub use super::shared::PLAINLY_BELOW_RATIO;
    pub use super::shared::REVERT_BELOW_RATIO;

    /// Additional random places for each page from which on it is other work.
    pub const OTHER_WORK_PLACES_PER_PAGE: f64 = 1.0 / 64.0;
    /// Random places for each place where a stream went on from which on reads are scattered.
    pub const SCATTERED_PLACES_RATIO: f64 = 0.5;
    /// At this rate of other reads, a trial without any shows that they have ended.
    pub const MIN_OTHER_READS_PER_SECOND: f64 = 20.0;
    /// The part of their rate that other readers must be left with during a trial.
    pub const MIN_OTHERS_RATIO: f64 = 1.0 - super::shared::MIN_SHARE;
}
