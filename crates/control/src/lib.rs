//! The decisions of `foreread auto`: which window each open file should have, and what to read
//! ahead that the kernel does not foresee.
//!
//! It is not a read-ahead algorithm but sits above the kernel's. A [`BdiController`] takes what
//! probes report of readers ([`AccessEvent`](policy::AccessEvent)) and, in intervals, the state of
//! things ([`Inputs`], [`FileState`]); it answers with [`FileAction`]s that a stock kernel can be
//! made to carry out from outside: a window for an open file (`POSIX_FADV_NORMAL` while the bdi has
//! that window), and pages to be read (`readahead(2)`).
//!
//! [`ControlLoop`] is the loop around controllers, one for each bdi. It knows its surroundings by
//! two traits: [`EventSource`] is where events come from, [`ActionSink`] carries actions out. A
//! live kernel and a simulated one (the policy `auto`) differ in nothing but their implementations.
//!
//! - `WindowSearch` finds one window for the streams of a device: a guess from latency and rate,
//!   then trial; each stream that waits gets it, within its share of memory.
//! - `Shrink` makes the window of a stream that runs smaller, which the kernel does not by itself.
//! - [`what_if`] predicts what a window or a prefetch would have done to the recent accesses of an
//!   open file. `GainScores` compares predicted with measured gains.
//! - `choice` predicts the best action for a file that is read in runs. `ShortRuns` prefetches the
//!   rest of a short run after its first miss ([`MissPrefetch`](policy::MissPrefetch)).
//! - `RandomFaults` chooses the window of a mapping that is read at random. While its file is
//!   primed, it may keep the original window.
//! - A `Trend` is what the last reads of an open file have in common, such as a step or the way
//!   backward, and a `TrendPlan` prefetches along it. A `FilePriming` finishes the random reads of
//!   a file that fits into memory. `Sequences` foresee the next ones of many small files.

mod ab_test;
mod action;
mod backoff;
mod choice;
mod climb;
mod closed_runs;
mod control_loop;
mod controller;
mod device;
mod fault_waits;
mod gain;
mod history;
mod inputs;
mod limited_window;
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
pub use action::{ActionKind, FileAction, NextFile};
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

/// The read-ahead algorithms of this crate: `auto`, which is this controller above Linux 6.18.
pub static REGISTRY: &[Entry] = &[simulated::ENTRY];

/// All read-ahead algorithms that a simulation can be given by name.
pub const POLICIES: Catalogue = Catalogue(&[policy::REGISTRY, REGISTRY]);
