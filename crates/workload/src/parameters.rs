//! The parameters of a workload.

use units::Bytes;

/// The largest block: the kernel reads at most 2 GiB at once, and no program asks for so much.
pub(crate) const BLOCK_MAX: Bytes = Bytes::from_mib(256);

/// The order in which a reader goes through its blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// From the first block to the last.
    Sequential,
    /// Every block once, in random order.
    Uniform,
    /// Random blocks, some far more often than others: the block of rank k is chosen with a
    /// probability in proportion to k^-theta. Blocks are read again, from the cache; this
    /// pattern has no end.
    Zipf {
        /// How uneven: 0.99 is customary, more is more uneven.
        theta: f64,
    },
    /// One block at each multiple of `step`.
    Stride {
        /// The distance from one block's start to the next one's.
        step: Bytes,
    },
    /// From the last block to the first.
    Backward,
    /// A seek to a random place, a few blocks read from there, the next seek. No place is visited
    /// twice.
    SeekAndRead {
        /// How many blocks follow each seek.
        blocks: u32,
    },
    /// Several streams on one open file, a block from each in turn, each in its own part of it.
    Interleaved { streams: u32 },
    /// A stream through the first half of the data, with random reads of the second half beside
    /// it.
    Mixed {
        /// Which share of the requests is random, between 0 and 1.
        random_fraction: f64,
        /// The size of the random requests.
        random_block: Bytes,
        /// Whether the random requests go through the stream's own open file, where they can
        /// disturb its read-ahead, or through a second open file.
        same_open_file: bool,
    },
    /// Sequential, but shuffled within groups of `span` blocks, as a network file server sees it.
    Disorder {
        /// How many blocks are shuffled together.
        span: u32,
    },
    /// New files, written from the first block to the last and flushed; what was there before is
    /// left alone.
    Write,
    /// Files of our own: each block is read, changed and written back in its place, from the first
    /// to the last, and flushed.
    Rewrite,
    /// What a trace has recorded: see [`Workload::replay`].
    Trace,
    /// What a program of somebody else's does: see [`Workload::outside`].
    Outside,
}

impl Pattern {
    /// The word for it in a declaration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Uniform => "uniform",
            Self::Zipf { .. } => "zipf",
            Self::Stride { .. } => "stride",
            Self::Backward => "backward",
            Self::SeekAndRead { .. } => "seek-and-read",
            Self::Interleaved { .. } => "interleaved",
            Self::Mixed { .. } => "mixed",
            Self::Disorder { .. } => "disorder",
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Trace => "trace",
            Self::Outside => "outside",
        }
    }
}

/// What the readers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nothing: each reader has files of its own.
    OwnFile,
    /// The open file: all read their own part of one file through one open file description, and
    /// so share its read-ahead window.
    SharedOpenFile,
    /// The file: all read their own part of one file, each through an open file of its own.
    SharedFile,
}

/// How data gets to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMethod {
    /// By `pread(2)`.
    Read,
    /// By copying from a mapping.
    Mmap,
}

/// What the reader tells the kernel of its intentions, by `posix_fadvise(2)` or `madvise(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing, as most programs.
    None,
    /// That it will read in order.
    Sequential,
    /// That it will read in no order.
    Random,
}

/// How files of its own lie on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Contiguous,
    /// In alternating pieces, as when all are written at the same time.
    Interleaved,
}
