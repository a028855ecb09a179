//! What a workload is, and which combinations make none.

use units::{Bytes, Nanos};

use crate::WorkloadError;
use crate::outside::Outside;
use crate::trace::Replay;
use crate::zone::Zone;

/// The most readers that a workload may have.
const READERS_MAX: u32 = 1024;
/// The most files that each reader may have.
const FILES_MAX: u32 = 65_536;
/// The largest block: the kernel reads at most 2 GiB at once, and no program asks for so much.
pub(crate) const BLOCK_MAX: Bytes = Bytes::from_mib(256);
/// The most streams that one open file may have, and the widest disorder.
const STREAMS_MAX: u32 = 4096;

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
    Interleaved {
        /// How many streams.
        streams: u32,
    },
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
    /// One after another.
    Contiguous,
    /// In alternating pieces, as when all are written at the same time.
    Interleaved,
}

/// A load: who reads what, how, and in which order.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The name that tables and records have for it.
    pub name: String,
    /// The order in which each reader goes through its blocks.
    pub pattern: Pattern,
    /// How much is read at once.
    pub block: Bytes,
    /// The smallest request, where the size of each is drawn between it and [`Self::block`] as fio
    /// draws it (`bsrange`); all are of one size if nothing is said.
    pub block_min: Option<Bytes>,
    /// How many readers are at work at the same time.
    pub readers: u32,
    /// What the readers have in common.
    pub sharing: Sharing,
    /// How many files each reader has (or all share); it reads one after another, or at random
    /// from all.
    pub files_per_reader: u32,
    /// How long a reader rests after each request.
    pub think: Nanos,
    /// How data gets to the reader.
    pub access: AccessMethod,
    /// What the kernel is told.
    pub hint: Hint,
    /// How files of its own lie on the disk.
    pub layout: Layout,
    /// The size of each file; if not given, whoever lays out the files chooses.
    pub file_size: Option<Bytes>,
    /// The part of each file that is read; all of it if nothing is said.
    pub zone: Option<Zone>,
    /// How many requests each reader makes at most (fio's `number_ios`); until its data are used up
    /// if nothing is said.
    pub requests: Option<u64>,
    /// The trace, of the pattern [`Pattern::Trace`] and of no other.
    pub replay: Option<Replay>,
    /// The program, of the pattern [`Pattern::Outside`] and of no other.
    pub outside: Option<Outside>,
}

impl Workload {
    /// One reader of one file without think time or hint, to be refined.
    pub fn new(name: impl Into<String>, pattern: Pattern, block: Bytes) -> Self {
        Self {
            name: name.into(),
            pattern,
            block,
            block_min: None,
            readers: 1,
            sharing: Sharing::OwnFile,
            files_per_reader: 1,
            think: Nanos::ZERO,
            access: AccessMethod::Read,
            hint: Hint::None,
            layout: Layout::Contiguous,
            file_size: None,
            zone: None,
            requests: None,
            replay: None,
            outside: None,
        }
    }

    /// How many files it reads in all.
    pub fn files(&self) -> u32 {
        match self.sharing {
            Sharing::OwnFile => self.readers * self.files_per_reader,
            Sharing::SharedOpenFile | Sharing::SharedFile => self.files_per_reader,
        }
    }

    /// The place among all its files of the file that `reader` calls `file`.
    pub fn file_of(&self, reader: u32, file: u32) -> u32 {
        match self.sharing {
            Sharing::OwnFile => reader * self.files_per_reader + file,
            Sharing::SharedOpenFile | Sharing::SharedFile => file,
        }
    }

    /// The sizes of the files that hold its data; `chosen` is that of files whose size it leaves
    /// open.
    pub fn data_files(&self, chosen: Bytes) -> Vec<Bytes> {
        let size = self.file_size.unwrap_or(chosen);
        match (&self.replay, &self.outside) {
            (Some(replay), _) => replay.sizes().to_vec(),
            (None, Some(outside)) => outside.data_files(size),
            // What it writes is new each time.
            (None, None) if self.pattern == Pattern::Write => Vec::new(),
            (None, None) => vec![size; self.files() as usize],
        }
    }

    /// The place in [`Workload::data_files`] of the file that is called `file` among all its files
    /// (see [`Workload::file_of`]): of a trace those are open files, and several may be of one.
    pub fn data_file_of(&self, file: u32) -> u32 {
        let open = self.replay.as_ref().and_then(|replay| replay.open_file(file));
        open.map_or(file, |open| open.file)
    }

    /// How data of this file (among all its files) get to a reader, and what the kernel is told.
    pub fn access_of(&self, file: u32) -> (AccessMethod, Hint) {
        let open = self.replay.as_ref().and_then(|replay| replay.open_file(file));
        open.map_or((self.access, self.hint), |open| (open.access, open.hint))
    }

    /// How many streams are under way at once: each may hold a read-ahead window in memory.
    pub fn streams(&self) -> u32 {
        match self.pattern {
            Pattern::Interleaved { streams } => self.readers * streams,
            _ => self.readers,
        }
    }

    /// Whether no block is read twice, so that every byte must have come from the device.
    pub fn reads_each_block_once(&self) -> bool {
        !matches!(self.pattern, Pattern::Zipf { .. } | Pattern::Trace | Pattern::Outside)
    }

    /// Whether our own engine writes in it, and so needs a directory.
    pub fn writes(&self) -> bool {
        matches!(self.pattern, Pattern::Write | Pattern::Rewrite)
    }

    /// Whether the pattern has a random part, whose latency stands for itself.
    pub fn has_random_part(&self) -> bool {
        matches!(
            self.pattern,
            Pattern::Uniform
                | Pattern::Zipf { .. }
                | Pattern::SeekAndRead { .. }
                | Pattern::Mixed { .. }
                | Pattern::Trace
        )
    }

    /// Says what is wrong with the declaration, if anything is.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        self.validate_name()?;
        within("readers", self.readers, 1, READERS_MAX)?;
        within("files_per_reader", self.files_per_reader, 1, FILES_MAX)?;
        let files = match self.pattern {
            Pattern::Trace | Pattern::Outside => Some(self.files_per_reader),
            _ => self.readers.checked_mul(self.files_per_reader),
        };
        if files.is_none_or(|files| files > FILES_MAX) {
            return Err(WorkloadError::out_of_range(
                "files_per_reader",
                self.files_per_reader,
                format!("at most {FILES_MAX} files for all readers together"),
            ));
        }
        block_within("block", self.block)?;
        self.validate_block_min()?;
        if let Some(size) = self.file_size
            && size < self.block
        {
            return Err(WorkloadError::out_of_range(
                "file_size",
                size,
                format!("at least one block ({})", self.block),
            ));
        }
        let given = matches!(self.pattern, Pattern::Trace | Pattern::Outside);
        if given && self.zone.is_some() {
            return Err(WorkloadError::ForeignKey { key: "zone", pattern: self.pattern.name() });
        }
        if self.requests.is_some() && (given || self.writes()) {
            return Err(WorkloadError::ForeignKey {
                key: "requests",
                pattern: self.pattern.name(),
            });
        }
        if self.requests == Some(0) {
            return Err(WorkloadError::out_of_range("requests", 0, "at least 1".to_owned()));
        }
        if self.outside.is_some() && self.pattern != Pattern::Outside {
            let pattern = self.pattern.name();
            return Err(WorkloadError::ForeignKey { key: "outside", pattern });
        }
        self.validate_pattern()
    }

    fn validate_block_min(&self) -> Result<(), WorkloadError> {
        let Some(least) = self.block_min else { return Ok(()) };
        let drawn =
            matches!(self.pattern, Pattern::Sequential | Pattern::Uniform | Pattern::Zipf { .. });
        if !drawn {
            let pattern = self.pattern.name();
            return Err(WorkloadError::ForeignKey { key: "block_min", pattern });
        }
        block_within("block_min", least)?;
        if least >= self.block || !self.block.get().is_multiple_of(least.get()) {
            let wanted = format!("less than the block ({}), which is a multiple of it", self.block);
            return Err(WorkloadError::out_of_range("block_min", least, wanted));
        }
        Ok(())
    }

    fn validate_name(&self) -> Result<(), WorkloadError> {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(known) {
            return Err(WorkloadError::out_of_range(
                "name",
                format!("{:?}", self.name),
                "1 to 64 letters, digits, '-', '_' or '.'".to_owned(),
            ));
        }
        Ok(())
    }

    fn validate_pattern(&self) -> Result<(), WorkloadError> {
        match self.pattern {
            Pattern::Sequential | Pattern::Uniform | Pattern::Backward => Ok(()),
            Pattern::Write | Pattern::Rewrite => self.validate_writing(),
            Pattern::Zipf { theta } => {
                number_within("theta", theta, theta > 0.0 && theta <= 10.0, "above 0, at most 10")
            }
            Pattern::Stride { step } if step <= self.block => Err(WorkloadError::out_of_range(
                "step",
                step,
                format!("more than the block ({}); less is sequential", self.block),
            )),
            Pattern::Stride { .. } => Ok(()),
            Pattern::SeekAndRead { blocks } => within("blocks", blocks, 1, u32::MAX),
            Pattern::Interleaved { streams } => {
                within("streams", streams, 2, STREAMS_MAX)?;
                self.refuse_many_files("interleaved streams are on one open file")
            }
            Pattern::Mixed { random_fraction, random_block, .. } => {
                let inside = random_fraction > 0.0 && random_fraction < 1.0;
                number_within("random_fraction", random_fraction, inside, "between 0 and 1")?;
                block_within("random_block", random_block)
            }
            Pattern::Disorder { span } => within("span", span, 2, STREAMS_MAX),
            Pattern::Trace if self.replay.is_none() => Err(WorkloadError::MissingKey {
                key: "trace",
                pattern: "trace",
                example: "trace = \"mine.trace\"",
            }),
            Pattern::Trace => Ok(()),
            Pattern::Outside => match &self.outside {
                Some(outside) => outside.validate(),
                None => Err(WorkloadError::MissingKey {
                    key: "outside",
                    pattern: "outside",
                    example: "[outside]",
                }),
            },
        }
    }

    /// Writers have files of their own, and nothing but calls.
    fn validate_writing(&self) -> Result<(), WorkloadError> {
        let conflict = |first: &str| {
            let second = format!("pattern = {:?}", self.pattern.name());
            let why = "writers write all of files of their own by pwrite(2), without rest or hint";
            Err(WorkloadError::Conflict { first: first.to_owned(), second, why })
        };
        match self {
            Self { sharing: Sharing::SharedFile | Sharing::SharedOpenFile, .. } => {
                conflict("sharing")
            }
            Self { access: AccessMethod::Mmap, .. } => conflict("access = \"mmap\""),
            Self { zone: Some(_), .. } => conflict("zone"),
            _ if self.hint != Hint::None => conflict("hint"),
            _ if self.think > Nanos::ZERO => conflict("think"),
            _ => self.refuse_many_files("each writer has one file"),
        }
    }

    fn refuse_many_files(&self, why: &'static str) -> Result<(), WorkloadError> {
        if self.files_per_reader == 1 {
            return Ok(());
        }
        let first = format!("files_per_reader = {}", self.files_per_reader);
        let second = format!("pattern = {:?}", self.pattern.name());
        Err(WorkloadError::Conflict { first, second, why })
    }
}

fn within(key: &'static str, value: u32, low: u32, high: u32) -> Result<(), WorkloadError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(WorkloadError::out_of_range(key, value, format!("{low} to {high}")))
}

fn block_within(key: &'static str, block: Bytes) -> Result<(), WorkloadError> {
    if !block.is_zero() && block <= BLOCK_MAX {
        return Ok(());
    }
    Err(WorkloadError::out_of_range(key, block, format!("1 B to {BLOCK_MAX}")))
}

fn number_within(
    key: &'static str,
    value: f64,
    inside: bool,
    wanted: &str,
) -> Result<(), WorkloadError> {
    if inside { Ok(()) } else { Err(WorkloadError::out_of_range(key, value, wanted.to_owned())) }
}
