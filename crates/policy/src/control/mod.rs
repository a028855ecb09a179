//! The decisions of `foreread auto`: which window each open file should have, and what to read
//! ahead that the kernel does not foresee.
//!
//! It is not a read-ahead algorithm but sits above the kernel's. It is told what probes see of the
//! readers ([`Seen`]), and in intervals how things are ([`Situation`], [`Facts`]), and answers with
//! [`Order`]s that a stock kernel can be made to follow from outside: a window for an open file
//! (`POSIX_FADV_NORMAL` while the bdi has that window), and pages to be read (`readahead(2)`). The
//! same code runs above a real kernel, and above a simulated one as the policy `auto`.
//!
//! - `Climb` finds one window for the streams of a device: a guess from latency and rate,
//!   then trial; each stream that waits gets it, within its share of memory.
//! - `Shrink` makes the window of a stream that runs smaller, which the kernel does not by itself.
//! - `Trim` keeps an open file that is read in short runs from larger windows; `Runs` has the first
//!   miss of such a run answered with the rest of it ([`Answer`]).
//! - A mapping that is read at random gets a window of a page; while its file is primed it may have
//!   its own: `Around`.
//! - `Plan`s foresee steps and backward reads, and a `Priming` finishes the random reads of a file
//!   that fits into memory. `Sequences` foresee the next ones of many small files.

mod answer;
mod around;
mod climb;
mod controller;
mod device;
mod memory;
mod outstanding;
mod pace;
mod pattern;
mod plan;
mod prime;
mod rates;
mod reads;
mod runs;
mod sequence;
mod shrink;
pub mod sizes;
mod stream;
mod trim;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use units::{Bytes, Nanos, Pages};

use crate::page::{Extent, Page};

pub use answer::Answer;
pub use controller::Controller;
pub use device::{Completions, Device};
pub use outstanding::Outstanding;
pub use pace::PrimingPace;
pub use pattern::{Classifier, Pattern};

/// An open file, by any number that stays with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenKey(pub u64);

/// A file: the number of its device, and its inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey(pub u64, pub u64);

/// Where a read call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadEnd {
    /// The page that the next byte is in: where a kernel says that the call ended.
    pub at: Page,
    /// The page behind the last one that the call read anything of; the same one, if the call ended
    /// with a page.
    pub behind: Page,
}

impl ReadEnd {
    /// The end of a call, the next byte of which is this one, in pages of this size.
    pub fn of(next: Bytes, page: Bytes) -> Self {
        let page = page.get().max(1);
        Self { at: Page::new(next.get() / page), behind: Page::new(next.get().div_ceil(page)) }
    }
}

/// What a probe sees of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A read found a page missing.
    Miss {
        /// The page.
        index: Page,
        /// How many were asked for from there on.
        pages: Pages,
        /// Where the read call before ended, if there was one and it is known.
        previous: Option<ReadEnd>,
    },
    /// A read reached the mark.
    Mark {
        /// The page.
        index: Page,
        /// How many were asked for from there on.
        pages: Pages,
    },
    /// A window was submitted.
    Window {
        /// It.
        window: Extent,
        /// The page that was asked for.
        index: Page,
        /// Whether a fault of a mapping asked, with no miss or mark before.
        mapped: bool,
    },
    /// After a miss just what was asked for was submitted.
    Plain {
        /// How many pages.
        pages: Pages,
    },
    /// A reader has waited for the disk.
    Stall {
        /// For so long.
        wait: Nanos,
    },
}

/// How an open file is at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The size of the file.
    pub file_pages: Pages,
    /// The window that it may have.
    pub window: Pages,
    /// The byte after the last one read, where the kernel keeps it.
    pub position: Option<Bytes>,
    /// Whether its program said that it reads at random, or goes past the page cache: it knows
    /// better, and is left alone.
    pub hands_off: bool,
    /// Whose memory its pages are charged to: a place in [`Situation::memory`].
    pub domain: u64,
    /// The size of a page.
    pub page: Bytes,
}

/// How things are on a device at a tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// The time.
    pub now: Nanos,
    /// What the device has completed so far.
    pub completions: Completions,
    /// What the cache of each domain can hold: of the machine (0), and of cgroups with a limit.
    pub memory: BTreeMap<u64, Bytes>,
    /// What may be cached of what is read by request, if that is limited on its own: it is charged
    /// to who asks, not to who reads.
    pub asked: Option<Bytes>,
    /// The domains that have a limit of their own.
    pub limited: BTreeSet<u64>,
    /// Whether tasks stand still for want of memory (PSI).
    pub tight: bool,
}

/// What no order goes beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The largest window.
    pub most: Pages,
    /// The smallest window that a forward reader is left with.
    pub least: Pages,
    /// Whether to read ahead by itself, or to set windows only.
    pub prefetch: bool,
}

impl Default for Bounds {
    /// Windows of 64 KiB to 8 MiB (of pages of 4 KiB), and prefetching.
    fn default() -> Self {
        Self { most: Pages::new(2048), least: Pages::new(16), prefetch: true }
    }
}

/// What to do with an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Give it this window.
    Window(Pages),
    /// Have these pages read.
    Prefetch(Vec<Extent>),
    /// Have these files of its directory read, which nobody need have open.
    Files(Vec<NextFile>),
    /// From now on have the rest of a run of so many pages read as soon as a page of it is missed
    /// ([`Answer`]); no more if there is no number.
    Answer(Option<Pages>),
}

/// A file that will be wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextFile {
    /// The file.
    pub file: FileKey,
    /// How much of its beginning is left out, so that its reader is seen.
    pub from: Pages,
}

/// An order, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The open file.
    pub key: OpenKey,
    /// What to do.
    pub act: Act,
    /// One line for people; empty if it only goes on with what was said before.
    pub why: String,
    /// Whether it reads what nobody has asked for yet and random reads may want: bytes that are
    /// accounted for on their own.
    pub primes: bool,
}
