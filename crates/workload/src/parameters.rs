//! The parameters of a workload.

use strum::{EnumString, IntoStaticStr, VariantNames};
use units::Bytes;

/// The largest block: the kernel reads at most 2 GiB at once, and programs use far smaller ones.
pub(crate) const BLOCK_MAX: Bytes = Bytes::from_mib(256);

/// The order in which a reader reads its blocks.
#[derive(Clone, Copy, Debug, PartialEq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Pattern {
    /// From the first block to the last.
    Sequential,
    /// Every block once, in random order.
    Uniform,
    /// Random blocks, some far more often than others: the block of rank k with a probability
    /// proportional to k^-theta. Blocks are read again from the cache; this pattern has no end.
    Zipf {
        /// Skew: 0.99 is customary, higher values are more uneven.
        theta: f64,
    },
    /// One block at each multiple of `step`.
    Stride {
        /// The distance between the starts of two consecutive blocks.
        step: Bytes,
    },
    /// From the last block to the first.
    Backward,
    /// Seeks to random places, each followed by a few blocks. No place is visited twice.
    SeekAndRead {
        /// Number of blocks after each seek.
        blocks: u32,
    },
    /// Several streams on one open file, one block from each in turn, each in its own part.
    Interleaved { streams: u32 },
    /// A stream through the first half of the data, with random reads of the second half.
    Mixed {
        /// The random share of the requests, between 0 and 1.
        random_fraction: f64,
        /// The size of the random requests.
        random_block: Bytes,
        /// Whether the random requests use the stream's open file, where they may disturb its
        /// read-ahead, or a second one.
        same_open_file: bool,
    },
    /// Sequential, but shuffled within groups of `span` blocks, as a network file server sees it.
    Disorder {
        /// Number of blocks that are shuffled together.
        span: u32,
    },
    /// New files, written from the first block to the last and flushed.
    Write,
    /// Files of our own: each block is read, changed and written back in order, then flushed.
    Rewrite,
    /// The reads of a trace: see [`Workload::replay`].
    Trace,
    /// An external program: see [`Workload::outside`].
    Outside,
}

impl Pattern {
    /// Its name in a declaration.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// What the readers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Sharing {
    /// Nothing: each reader has its own files.
    OwnFile,
    /// The open file: all read their own parts of one file through one open file description, and
    /// share its read-ahead window.
    SharedOpenFile,
    /// The file: all read their own parts of one file, each through its own open file.
    SharedFile,
}

/// How a reader accesses data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum AccessMethod {
    /// By `pread(2)`.
    Read,
    /// By copying from a mapping.
    Mmap,
}

/// The reader's advice to the kernel, by `posix_fadvise(2)` or `madvise(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Hint {
    /// No advice, as in most programs.
    None,
    /// The reader will read sequentially.
    Sequential,
    /// The reader will read at random.
    Random,
}

/// The layout of created files on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Layout {
    Contiguous,
    /// In alternating pieces, as if all were written at the same time.
    Interleaved,
}

/// Advice of a program on a range of a file: `posix_fadvise(2)` and `readahead(2)` for an open
/// file, `madvise(2)` for a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeAdvice {
    Normal,
    Sequential,
    Random,
    /// Read the range now; `readahead(2)` is the same.
    WillNeed,
    /// Drop the range from the cache, or from the mapping.
    DontNeed,
}
