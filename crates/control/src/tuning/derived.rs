//! Thresholds that are multiples of others.

use units::Nanos;

use super::Tuning;

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

    /// How long the effect of a change is observed. Also the longest trial with a clear result.
    pub(crate) fn trial_time(&self) -> Nanos {
        self.observation_time * 2
    }

    /// More seconds of waits per second are those of several readers at once.
    pub(crate) fn several_readers(&self) -> f64 {
        1.0 + self.majority_share
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

    /// Largest growth factor of one step.
    pub(crate) fn max_growth(&self) -> u64 {
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

    /// Faults after which an inspection ends, however few pieces there were.
    pub(crate) fn inspection_faults(&self) -> u64 {
        16 * self.few_samples
    }

    /// Faults since the inspection that are replayed: readers may return much later to pages next
    /// to a piece. Bounds memory.
    pub(crate) fn max_fault_history(&self) -> usize {
        4 * self.max_history as usize
    }

    /// Pieces of one mapping that are tracked at once.
    pub(crate) fn max_current_pieces(&self) -> usize {
        self.max_runs / 2
    }

    /// Reads that must have been sampled before and during a plan to measure its gain: fewer, as of
    /// a small file among others, show mostly chance.
    pub(crate) fn min_trend_reads(&self) -> u64 {
        4 * self.min_samples
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

    /// Weight of the last read in the score of a plan, and in the usual size of a call.
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

    /// Pages of files that may be prefetched for a reader of unknown pace, if that is less than
    /// `min_room` files.
    pub(crate) fn min_room_pages(&self) -> u64 {
        2 * self.piece_pages
    }

    /// Time in which the device reads what is prefetched of a large file before it is opened: the
    /// window of the open file is large by then.
    pub(crate) fn max_head_time(&self) -> Nanos {
        self.eager_interval * self.lookahead_intervals
    }

    /// Share of the best rate so far at which a rotating disk counts as reading in order. The best
    /// rate is that of one interval, so a mean stays below it.
    ///
    /// On hdd-2008, readers at a share of 0.79 and more lost with prefetching, those at 0.54 and
    /// less gained.
    pub(crate) fn full_rate_share(&self) -> f64 {
        1.0 - self.minority_share - self.min_share
    }

    /// On a rotating disk, time in which files are started before the next ones are prefetched, if
    /// they are fewer than `max_remembered`. A trial of that fails after it at the earliest.
    ///
    /// ExifTool reached 0.55 of the rate of hdd-2008 with its first 16 files, in 75 ms, and 0.85
    /// with 64.
    pub(crate) fn min_rotating_span(&self) -> Nanos {
        self.observation_time.scaled(0.5)
    }
}

/// Thresholds of priming.
impl Tuning {
    /// Share of the device's time that priming may take: no wait grows more than tenfold.
    pub(crate) fn max_device_share(&self) -> f64 {
        1.0 - self.min_share
    }

    /// First burst, which measures the speed of the device and is too short to affect readers. If a
    /// burst is read within an interval, the next is twice as large, up to `max_burst_pages`.
    pub(crate) fn first_burst_pages(&self) -> f64 {
        2.0 * self.piece_pages as f64
    }

    pub(crate) fn max_burst_pages(&self) -> f64 {
        16.0 * self.first_burst_pages()
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
