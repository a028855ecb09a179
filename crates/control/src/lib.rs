//! The decisions of `foreread auto`: the window of each open file, and the pages to prefetch that
//! the kernel does not foresee.
//!
//! The controller does not replace the read-ahead algorithm of the kernel but works on top of it. A
//! [`BdiController`] takes the events that probes report ([`AccessEvent`](policy::AccessEvent))
//! and, once per interval, the state of the system ([`Inputs`], [`FileState`]). It returns
//! [`FileAction`]s that an unmodified kernel supports: setting the window of an open file
//! (`POSIX_FADV_NORMAL` while the bdi has that window) and prefetching pages (`readahead(2)`).
//!
//! [`ControlLoop`] runs one controller per bdi. Two traits connect it to its environment:
//! [`EventSource`] provides events, [`ActionSink`] carries out actions. A live kernel and a
//! simulated one (the policy `auto`) differ only in their implementations of these traits.
//!
//! - `WindowSearch` finds one window for the streams of a device: it tries the largest that each
//!   stream can use in turn, then smaller ones. Each stream that waits gets this window, within its
//!   share of memory.
//! - `Shrink` reduces the window of a running stream, which the kernel does not do by itself.
//! - [`what_if`] predicts how a window or a prefetch would have affected the recent accesses of an
//!   open file. `GainScores` compares predicted with measured gains.
//! - `choice` predicts the best action for a file that is read in runs. `ShortRuns` prefetches the
//!   rest of a short run after its first miss ([`MissPrefetch`](policy::MissPrefetch)). The rest of
//!   a large call is prefetched in the same way.
//! - `RandomFaults` chooses the window of a mapping that is read at random. While its file is
//!   primed, it may keep the original window.
//! - A `Trend` is a regularity of the last reads of an open file, such as a step or backward order;
//!   a `TrendPlan` prefetches along it. `FilePriming` reads the rest of a file that random reads
//!   will cover, if it fits into memory. `Sequences` prefetches the next of many files in the order
//!   of their directory, and `Siblings` small files whose directory is read in no order.

mod ab_test;
mod action;
mod backoff;
mod busy_clock;
mod choice;
mod climb;
mod closed_runs;
mod control_loop;
mod controller;
mod device;
mod fault_waits;
mod gain;
mod gaps;
mod history;
mod inputs;
mod limited_window;
mod mappings;
mod memory;
mod outstanding;
mod pace;
mod pattern;
mod prime;
mod probed;
mod random_faults;
mod rates;
mod reads;
mod runs;
mod sequence;
mod shrink;
mod siblings;
mod simulated;
pub mod sizes;
mod stream;
mod totals;
mod trend;
mod tuning;
pub mod what_if;
mod windows;

use policy::{Catalogue, Entry};

pub use ab_test::{AbTest, TreatmentEffect};
pub use action::{ActionKind, DirectoryQuery, FileAction, NextFile};
pub use control_loop::{
    ActionSink, BdiKey, BdiSample, ControlLoop, EventSource, ExternalChange, Listing, LoopConfig,
    LoopNote, LoopSample, LoopState, Released,
};
pub use controller::BdiController;
pub use device::LearnedDevice;
pub use gain::{GainScores, GainSource, MeasuredGain};
pub use inputs::{Bounds, Features, FileKey, FileState, Inputs, MemoryInputs, SampledFiles};
pub use outstanding::Outstanding;
pub use pace::PrimingStats;
pub use pattern::{AccessPattern, Classifier};
pub use policy::DeviceCompletions;
pub use simulated::SimulatedAuto;
pub use totals::ReaderTotals;
pub use tuning::Tuning;

/// The read-ahead algorithms of this crate: `auto`, which is this controller on top of Linux 6.18.
pub static REGISTRY: &[Entry] = &[simulated::ENTRY];

/// All read-ahead algorithms that a simulation accepts by name.
pub const POLICIES: Catalogue = Catalogue(&[policy::REGISTRY, REGISTRY]);
