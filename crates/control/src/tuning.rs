//! Every threshold of the controller.
//!
//! [`Tuning`] has the independent ones. A multiple of another threshold is a method named after its
//! use. Unless its comment names another source, a value was chosen by hand and tuned on the
//! synthetic matrix (`examples/matrix`).

use policy::{Parameter, PolicyArgs, PolicyError};
use serde::{Deserialize, Serialize};
use units::text::{SettingError, parse_amount, parse_number};
use units::{BytesPerSecond, Nanos, Pages};

/// Window with which every page that a reader touches causes an event.
pub(crate) const SINGLE_PAGE: Pages = Pages::new(1);

/// A value with its unit.
macro_rules! value {
    (Nanos $count:literal us) => {
        Nanos::from_micros($count)
    };
    (Nanos $count:literal ms) => {
        Nanos::from_millis($count)
    };
    (Nanos $count:literal s) => {
        Nanos::from_secs($count)
    };
    (Nanos $count:literal h) => {
        Nanos::from_secs(3600 * $count)
    };
    (BytesPerSecond $count:literal MB) => {
        BytesPerSecond::from_mb($count)
    };
    (Pages $count:literal) => {
        Pages::new($count)
    };
    ($number:ident $count:literal) => {
        $count
    };
}

/// Declares [`Tuning`]. The first line of a comment is the help text of the parameter of the
/// simulated policy; then follow the name, the type, the default and the permitted range.
macro_rules! tuning {
    ($(
        #[doc = $summary:literal]
        $(#[doc = $more:literal])*
        $name:ident: $type:ident = $default:literal $($unit:ident)?,
        $least:literal $($least_unit:ident)? ..= $most:literal $($most_unit:ident)?;
    )+) => {
        /// The thresholds of the controller. Only simulations change any, to show the effect.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Tuning {
            $(
                #[doc = $summary]
                $(#[doc = $more])*
                pub $name: $type,
            )+
        }

        impl Tuning {
            /// The values of a live controller.
            pub const DEFAULT: Self = Self { $($name: value!($type $default $($unit)?),)+ };

            /// The parameters of a simulated policy, one for each field.
            pub(crate) const PARAMETERS: &[Parameter] = &[$(Parameter {
                name: stringify!($name),
                // A comment starts with a space.
                summary: $summary.split_at(1).1,
                default: concat!($default $(, stringify!($unit))?),
            },)+];

            /// Reads the values of these parameters.
            pub(crate) fn from_args(args: &PolicyArgs<'_>) -> Result<Self, PolicyError> {
                Ok(Self { $($name: args.parsed(stringify!($name), |key, text| {
                    let most = value!($type $most $($most_unit)?);
                    let range = concat!(
                        $least $(, stringify!($least_unit))?, " to ",
                        $most $(, stringify!($most_unit))?
                    );
                    let parsed = <$type as Threshold>::parse(key, text)?;
                    (value!($type $least $($least_unit)?)..=most).contains(&parsed)
                        .then_some(parsed)
                        .ok_or_else(|| SettingError::invalid(key, text, format!("must be {range}")))
                })?,)+ })
            }
        }
    };
}

tuning! {
    /// time to wake a thread: the reader after a wait, the one that prefetches after a miss
    wake_time: Nanos = 50 us, 1 us..=1 s;

    /// smallest relative effect that justifies an action or counts as harm
    min_effect: f64 = 0.05, 0.001..=0.5;
    /// a smaller share is negligible
    min_share: f64 = 0.1, 0.001..=0.5;
    /// a larger share is more than an exception
    minority_share: f64 = 0.2, 0.001..=0.9;
    /// a larger share is a majority
    majority_share: f64 = 0.5, 0.1..=0.9;
    /// largest window of a stream without a prediction, as a fraction of its usual run
    ///
    /// About one window is wasted after the end of each run.
    max_waste_share: f64 = 0.2, 0.001..=1.0;
    /// fraction of its previous value below which a rate or time has plainly changed
    ///
    /// Such a change needs no long observation.
    plainly_below_ratio: f64 = 0.7, 0.1..=1.0;
    /// share of the readers' throughput that priming may cost
    ///
    /// Also the gain for which a larger window of streams is kept if many places were seen. With
    /// 5 % instead, scans of real databases on an SSD are 10 % slower.
    max_loss_share: f64 = 0.02, 0.001..=0.5;
    /// priming starts after waits of this fraction of the time to read the rest in order
    ///
    /// The rent-or-buy rule; see the module `prime`. The value was chosen for real programs.
    start_cost_share: f64 = 0.5, 0.01..=100.0;

    /// smallest sample that justifies an action: harmful actions are reverted
    few_samples: u64 = 8, 2..=256;
    /// smallest sample whose mean decides
    ///
    /// Its standard error is a quarter of the standard deviation, and about a tenth of the mean for
    /// waits for a disk that seeks.
    min_samples: u64 = 16, 2..=256;
    /// windows that a reader must have triggered before any action, and must use up in a trial
    min_windows: u64 = 3, 1..=256;
    /// prefetch distance, in intervals of reading at the reader's pace
    lookahead_intervals: u64 = 3, 1..=256;
    /// factor by which windows and prefetch depths grow in one step
    growth_factor: u64 = 4, 2..=64;
    /// pieces or files that may be prefetched for a reader of unknown pace
    min_room: u64 = 64, 1..=4096;

    /// interval between decisions after readers start, when most of the gain is possible
    eager_interval: Nanos = 25 ms, 1 ms..=10 s;
    /// how long readers are observed before their rate counts
    observation_time: Nanos = 500 ms, 1 ms..=1 h;
    /// a reader without an event for this long has stopped, or reads something else
    idle_timeout: Nanos = 2 s, 1 ms..=1 h;
    /// minimum time before the same request or action is repeated
    retry_interval: Nanos = 5 s, 1 ms..=1 h;
    /// how long an observation counts
    ///
    /// The span of PSI `avg10`.
    fade_time: Nanos = 10 s, 1 ms..=1 h;
    /// pause of an action after its first failure, and time for which a result holds
    ///
    /// It doubles with each failure.
    backoff_time: Nanos = 20 s, 1 ms..=1 h;
    /// a pause stops growing after this many doublings
    max_backoff_doublings: u32 = 5, 0..=16;
    /// state without an event for this long is discarded
    forget_timeout: Nanos = 60 s, 1 ms..=1 h;
    /// a longer time between two accesses is idle time
    max_think_time: Nanos = 10 ms, 1 us..=1 h;
    /// no window of a mapping shrinks if faults read all mapped files in less time
    ///
    /// LMDB with a file of 1 GiB (2.7 s) gains; an Annoy index of 118 MiB (1.2 s) and GDBM with
    /// 136 MiB (1.4 s) lose, on virtual SSDs.
    min_pass_time: Nanos = 2 s, 1 ms..=1 h;

    /// accesses of an open file that are remembered and replayed
    ///
    /// Bounds memory and processor time.
    max_history: u64 = 1024, 256..=65536;
    /// items of one kind that are remembered or sampled
    ///
    /// Bounds memory and processor time.
    max_remembered: usize = 64, 8..=4096;
    /// runs tracked for an open file; streams of a device that may all get large windows
    ///
    /// Bounds processor time. Large windows of more streams would fill memory with unused pages.
    max_runs: usize = 16, 2..=4096;
    /// a pause is this many times as long as the step before it, unless the interval is shorter
    ///
    /// Sampling then takes at most about 3 % of one processor.
    min_pause_steps: u64 = 30, 0..=1000;
    /// pause of predictions for each replayed access
    ///
    /// Predictions use 1 % of a processor if an access takes 1 µs, which is assumed and not
    /// measured.
    replay_pause: Nanos = 100 us, 1 us..=1 s;

    /// largest folio order that predictions assume
    ///
    /// XFS, and ext4 since Linux 6.16, have large folios.
    max_folio_order: u8 = 9, 0..=9;
    /// largest request to a device that predictions assume, in pages
    ///
    /// The usual `max_sectors_kb` (1280 KiB).
    max_request_pages: Pages = 320, 1..=65536;
    /// reads that a device is assumed to serve at once before this is measured
    ///
    /// A wrong guess lowers the weight of predictions.
    assumed_parallel: usize = 8, 1..=1024;
    /// smallest piece if all pages are read, and longest gap of cached pages, in pages
    ///
    /// 64 KiB in pages of 4 KiB.
    min_piece_pages: u64 = 16, 1..=65536;
    /// size of one piece of a priming prefetch, and of the largest file that is prefetched before
    /// it is opened, in pages
    ///
    /// Long compared with a seek, and too short to be noticed.
    piece_pages: u64 = 1024, 2..=65536;
    /// on a rotating disk, files started at shorter intervals are adjacent
    ///
    /// The drive reads them ahead itself. Half a revolution.
    min_rotating_file_time: Nanos = 4 ms, 1 us..=1 s;
    /// windows may fill the machine's cache divided by this, counting each window twice
    ///
    /// One is read while the next is in flight. Windows may fill a cache with its own limit
    /// completely, because the limit exists for that; thrashing shows if that is too much.
    cache_share_divisor: u64 = 4, 2..=1024;
    /// lowest sequential rate that a device is assumed to have
    min_stream_rate: BytesPerSecond = 40 MB, 1 MB..=1000 MB;

    /// the window of a single stream holds this many times the bytes in flight during one read
    ///
    /// A seek then takes a ninth of the time. With 9, single streams on arrays are up to 26 %
    /// slower, because windows are powers of two.
    seek_amortization: u64 = 8, 1..=256;
}

impl Default for Tuning {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A type of threshold that can be given as text.
trait Threshold: Sized {
    fn parse(key: &str, text: &str) -> Result<Self, SettingError>;
}

macro_rules! threshold {
    ($($type:ty: $key:ident, $text:ident => $parse:expr;)+) => {
        $(impl Threshold for $type {
            fn parse($key: &str, $text: &str) -> Result<Self, SettingError> {
                $parse
            }
        })+
    };
}

threshold! {
    f64: key, text => parse_number(key, text, "a number");
    u8: key, text => parse_number(key, text, "a whole number");
    u32: key, text => parse_number(key, text, "a whole number");
    u64: key, text => parse_number(key, text, "a whole number");
    usize: key, text => parse_number(key, text, "a whole number");
    Pages: key, text => parse_number(key, text, "a whole number of pages").map(Pages::new);
    Nanos: key, text => parse_amount(key, text);
    BytesPerSecond: key, text => parse_amount(key, text);
}

/// Thresholds that several parts of the controller use.
impl Tuning {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }

    /// An action has done harm if the rate falls below this fraction of the previous rate.
    pub(crate) fn revert_below_ratio(&self) -> f64 {
        1.0 - self.min_effect
    }

    /// An action has a gain if the rate rises by this factor, or costs differ by more.
    pub(crate) fn min_gain_ratio(&self) -> f64 {
        1.0 + self.min_effect
    }

    /// How long the effect of a change is observed.
    pub(crate) fn trial_time(&self) -> Nanos {
        self.observation_time * 2
    }

    /// Smallest number of repetitions that is not taken for chance.
    pub(crate) fn min_repeats(&self) -> u64 {
        self.few_samples / 2
    }

    /// Weight of the latest observation in a moving average.
    pub(crate) fn latest_weight(&self) -> f64 {
        1.0 / self.min_repeats() as f64
    }

    /// Intervals after which prefetching is judged: on a saturated disk, it only adds seeks.
    pub(crate) fn judge_intervals(&self) -> u64 {
        self.few_samples
    }

    /// Intervals before the pace with prefetching counts, as readers first catch up on misses.
    pub(crate) fn settling_intervals(&self) -> u64 {
        self.lookahead_intervals.min(self.judge_intervals() - 1)
    }

    /// Places where readers must have been seen before their pattern is judged.
    pub(crate) fn min_places(&self) -> u64 {
        2 * self.min_samples
    }

    /// Windows and files that are tracked. Bounds memory.
    pub(crate) fn max_followed(&self) -> usize {
        4 * self.max_remembered
    }

    /// Open files that are tracked; above this, the one idle longest is forgotten. Bounds memory.
    pub(crate) fn max_open_files(&self) -> usize {
        256 * self.max_remembered
    }
}

/// Thresholds of the control loop.
impl Tuning {
    /// Without a read from a disk for this long, the loop is idle.
    pub(crate) fn loop_idle_timeout(&self) -> Nanos {
        self.idle_timeout * 2
    }

    /// Interval between samples while the loop is idle.
    pub(crate) fn idle_sample_interval(&self) -> Nanos {
        self.idle_timeout.scaled(0.5)
    }

    /// Access samples after which an open file without a trend is not sampled for a while: many
    /// times what a trend needs.
    pub(crate) fn burst_samples(&self) -> u64 {
        self.max_history / 2
    }

    /// Without a sample for this long, misses show how a file is read.
    pub(crate) fn sample_timeout(&self) -> Nanos {
        self.observation_time.scaled(0.5)
    }

    /// An open file without a miss, mark or wait for this long is sampled only if it is prefetched.
    pub(crate) fn max_unseen_time(&self) -> Nanos {
        self.idle_timeout.scaled(0.5)
    }
}

/// Thresholds of the search for the window of streams.
impl Tuning {
    /// Share of the places of a mapping that must continue a run for a larger window: only whole
    /// passes get one.
    pub(crate) fn min_forward_share_mapped(&self) -> f64 {
        1.0 - self.minority_share
    }

    /// Largest growth factor while other reads compete with the streams.
    pub(crate) fn max_growth_with_others(&self) -> u64 {
        self.growth_factor * self.growth_factor
    }

    /// Time in which more than `max_runs` streams should all use up their windows at the
    /// previous rate: twice the shortest trial.
    pub(crate) fn max_crowded_round_time(&self) -> Nanos {
        self.min_trial_time() * 2
    }

    /// Shortest trial. One without a clear result, or with reads besides the streams, may take
    /// longer.
    pub(crate) fn min_trial_time(&self) -> Nanos {
        self.eager_interval * 8
    }

    /// Longest trial with a clear result.
    pub(crate) fn max_trial_time(&self) -> Nanos {
        self.observation_time * 3
    }

    /// Shortest trial if several readers share a file: they first use up the pages that were read
    /// ahead for one of them.
    pub(crate) fn min_shared_trial_time(&self) -> Nanos {
        self.min_trial_time() * 3
    }

    /// A smaller gain or loss than this may be chance, so the trial is extended once.
    pub(crate) fn clear_ratio(&self) -> f64 {
        1.0 + self.min_share
    }

    /// Observation of readers before the first trial if `min_places` were seen.
    pub(crate) fn min_first_trial_time(&self) -> Nanos {
        self.eager_interval * 4
    }

    /// Places where a single reader must have been seen before an early first trial.
    pub(crate) fn min_places_alone(&self) -> u64 {
        2 * self.min_places()
    }

    /// If other reads compete with the streams, the number of them that must be seen without any
    /// other change before a trial.
    pub(crate) fn min_other_reads(&self) -> u64 {
        3 * self.min_samples
    }

    /// Longest wait of a trial for `min_other_reads`.
    pub(crate) fn max_calm_time(&self) -> Nanos {
        self.trial_time() * 3
    }

    /// If other reads were faster than this, a trial without any shows that they have stopped: they
    /// reach `min_other_reads` before a reader counts as idle.
    pub(crate) fn min_other_reads_per_second(&self) -> f64 {
        self.min_other_reads() as f64 / self.idle_timeout.as_secs_f64()
    }

    /// Bounds of the gain for which a larger window is kept and followed by another step; lower if
    /// more places were seen.
    pub(crate) fn min_gain_ratios(&self) -> (f64, f64) {
        (1.0 + self.max_loss_share.min(self.min_effect), self.min_gain_ratio())
    }

    /// Fraction of their rate that other readers must keep during a trial.
    pub(crate) fn min_others_ratio(&self) -> f64 {
        1.0 - self.min_share
    }

    /// Increase in random places per page that shows different work of the readers.
    pub(crate) fn other_work_places_per_page(&self) -> f64 {
        1.0 / (4 * self.min_piece_pages) as f64
    }

    /// Files that should stay cached may fill a cache divided by this.
    pub(crate) fn kept_files_divisor(&self) -> u64 {
        self.cache_share_divisor / 2
    }
}

/// Thresholds of short runs, mappings and predictions.
impl Tuning {
    /// A longer run is a stream.
    pub(crate) fn max_run_pages(&self) -> u64 {
        4 * self.piece_pages
    }

    /// Runs that must have been observed before misses trigger a prefetch.
    pub(crate) fn min_runs(&self) -> u64 {
        2 * self.min_samples
    }

    /// Number of runs at the comparison that is reported as the gain.
    pub(crate) fn reported_runs(&self) -> u64 {
        8 * self.min_samples
    }

    /// Factor by which runs must be longer or shorter to justify a change.
    pub(crate) fn min_change_ratio(&self) -> f64 {
        1.0 + self.minority_share
    }

    /// Faults after which a window is judged, however few pieces there were.
    pub(crate) fn max_faults(&self) -> u64 {
        16 * self.min_samples
    }

    /// Faults after which a probe ends, however few pieces there were.
    pub(crate) fn probe_faults(&self) -> u64 {
        16 * self.few_samples
    }

    /// Faults since the probe that are replayed: readers may return much later to pages next to a
    /// piece. Bounds memory.
    pub(crate) fn max_fault_history(&self) -> usize {
        4 * self.max_history as usize
    }

    /// Pieces of one mapping that are tracked at once.
    pub(crate) fn max_current_pieces(&self) -> usize {
        self.max_runs / 2
    }

    /// Accesses for which the gain of a trend is predicted: the last ones, extended along the trend
    /// up to this number.
    pub(crate) fn trend_accesses(&self) -> usize {
        self.max_history as usize / 4
    }

    /// Half-life of the best measured values of a device: a shared device may get slower.
    pub(crate) fn best_half_life(&self) -> Nanos {
        self.forget_timeout * 2
    }

    /// Most reads that a device is assumed to serve at once.
    pub(crate) fn max_parallel(&self) -> f64 {
        4.0 * self.assumed_parallel as f64
    }

    /// Larger gains are reported as this one, for example that of a reader that no longer waits:
    /// the accesses that are remembered cannot show more.
    pub(crate) fn max_gain(&self) -> f64 {
        self.max_history as f64
    }
}

/// Thresholds of prefetching along trends and of the next files.
impl Tuning {
    /// Moves from read to read that are remembered: the history size of Leap (ATC'20).
    pub(crate) fn max_moves(&self) -> usize {
        2 * self.min_samples as usize
    }

    /// The fewest moves that show a trend: all of them must agree.
    pub(crate) fn min_moves(&self) -> usize {
        self.min_repeats() as usize + 1
    }

    /// Weight of the last read in the score of a plan.
    pub(crate) fn score_weight(&self) -> f64 {
        1.0 / self.few_samples as f64
    }

    /// Share of files started one after another that must be neighbors in the directory.
    pub(crate) fn min_neighbor_share(&self) -> f64 {
        1.0 - self.minority_share
    }

    /// Largest extent of joined adjacent pieces.
    pub(crate) fn max_joined_pages(&self) -> u64 {
        self.piece_pages / 2
    }

    /// Like `min_room`, but in pages of files; the lower limit applies.
    pub(crate) fn min_room_pages(&self) -> u64 {
        2 * self.piece_pages
    }

    /// Share of its best rate at which a rotating disk counts as reading in order.
    pub(crate) fn full_rate_share(&self) -> f64 {
        1.0 - self.minority_share - self.min_share
    }

    /// Files that must be left on a rotating disk: fewer may end before prefetching is judged.
    pub(crate) fn min_rotating_files(&self) -> u64 {
        self.judge_intervals() * self.min_room
    }
}

/// Thresholds of priming.
impl Tuning {
    /// Share of the device's time that priming may take: no wait grows more than tenfold.
    pub(crate) fn max_device_share(&self) -> f64 {
        1.0 - self.min_share
    }

    /// First burst, which measures the speed of the device and is too short to affect readers. If a
    /// burst is read within an interval, the next is twice as large, up to `max_probe_pages`.
    pub(crate) fn probe_pages(&self) -> f64 {
        2.0 * self.piece_pages as f64
    }

    pub(crate) fn max_probe_pages(&self) -> f64 {
        16.0 * self.probe_pages()
    }

    /// Limit of the queue on the device, in time of a sequential pass: this does not slow down
    /// readers. Also the device's time for one burst: all bursts together take at most
    /// `max_loss_share` of the time that readers have waited.
    pub(crate) fn max_queue_time(&self) -> Nanos {
        self.eager_interval * 4
    }

    /// Cost of a page in pieces interleaved with other reads ÷ its cost in one pass.
    pub(crate) fn interleave_cost_ratio(&self) -> f64 {
        1.0 + self.minority_share
    }

    /// The cost of a page is between these multiples of its cost in a pass. The lower bound is for
    /// devices that serve several requests at once.
    pub(crate) fn cost_ratios(&self) -> (f64, f64) {
        (self.minority_share, 2.0 * self.interleave_cost_ratio())
    }

    /// Lowest rate of priming: one piece in `retry_interval`.
    pub(crate) fn min_pages_per_second(&self) -> f64 {
        self.piece_pages as f64 / self.retry_interval.as_secs_f64()
    }

    /// Waits after which their mean length is known well.
    pub(crate) fn many_waits(&self) -> u64 {
        4 * self.min_samples
    }

    /// Factor by which the sums of earlier stretches decay with each stretch.
    pub(crate) fn retention_per_stretch(&self) -> f64 {
        1.0 - self.min_share
    }

    /// Stretches that a new measurement of waits without priming takes.
    pub(crate) fn reference_stretches(&self) -> u64 {
        self.min_repeats() / 2
    }
}

#[cfg(test)]
mod tests;
