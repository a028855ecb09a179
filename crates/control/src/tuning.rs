//! Every threshold of the controller.
//!
//! [`Tuning`] has the independent ones. A multiple of another threshold is a method named after its
//! use, in `derived`. Unless its comment names another source, a value was chosen by hand and tuned
//! on the synthetic matrix (`examples/matrix`).

mod derived;

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
    /// priming starts only if random reads take this many times as long as reading in order
    ///
    /// It may then save twice the time that it may lose. With 2 instead, random gets from LevelDB
    /// on a cloud volume are 4 % slower than without `auto`.
    min_random_cost: f64 = 3.0, 1.0..=1000.0;

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
    /// no window of a mapping shrinks, nor does miss prefetching start, if files are read sooner
    ///
    /// LMDB with a file of 1 GiB (2.7 s) gains; an Annoy index of 118 MiB (1.2 s) and GDBM with
    /// 136 MiB (1.4 s) lose, on virtual SSDs; on a hard disk, GDBM with 74 MiB (1.9 s).
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
    /// reads that a device is assumed to serve at once before this is measured
    ///
    /// A wrong guess lowers the weight of predictions.
    assumed_parallel: usize = 8, 1..=1024;
    /// smallest piece if all pages are read, and longest gap of cached pages, in pages
    ///
    /// 64 KiB in pages of 4 KiB.
    min_piece_pages: u64 = 16, 1..=65536;
    /// size of one piece of a priming prefetch, in pages; files of this size are always prefetched
    /// whole
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
    /// a device may be this many times as fast as its highest rate so far
    ///
    /// The gaps of a stride are tried if that would help. What a reader skips along a trend is
    /// prefetched if it costs less than another request at that rate.
    max_rate_growth: f64 = 2.0, 1.0..=100.0;
    /// largest number of pages that may be read for each that is needed, with the gaps of a stride
    ///
    /// As many as the kernel reads around a fault with its default window of 128 KiB.
    max_amplification: u64 = 32, 1..=65536;
    /// lowest sequential rate that a device is assumed to have
    min_stream_rate: BytesPerSecond = 40 MB, 1 MB..=1000 MB;
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

#[cfg(test)]
mod tests;
