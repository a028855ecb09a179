//! The declaration of a workload, and its validation.

use units::{Bytes, Nanos};

use crate::error::WorkloadError;
use crate::fio::FioGroup;
use crate::outside::{Figure, Outside};
use crate::parameters::{AccessMethod, BLOCK_MAX, Hint, Layout, Pattern, Sharing};
use crate::replay::{ReplayPace, TraceReplay};
use crate::zone::Zone;

/// Maximum number of readers of a workload.
const READERS_MAX: u32 = 1024;
/// Maximum number of files of each reader.
const FILES_MAX: u32 = 65_536;
/// Maximum number of streams on one open file, and maximum span of disorder.
const STREAMS_MAX: u32 = 4096;

/// A workload: readers, files, pattern and limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The name in tables and records.
    pub name: String,
    /// The order in which each reader reads its blocks.
    pub pattern: Pattern,
    /// Size of a request; the largest if [`Self::block_min`] is set.
    pub block: Bytes,
    /// The smallest request, if the size of each is drawn between it and [`Self::block`] as in fio
    /// (`bsrange`); `None` for a fixed size.
    pub block_min: Option<Bytes>,
    /// Number of concurrent readers.
    pub readers: u32,
    /// Whether readers share files or open files.
    pub sharing: Sharing,
    /// Number of files of each reader (or shared by all), read one after another or at random.
    pub files_per_reader: u32,
    /// Pause of a reader after each request.
    pub think: Nanos,
    /// How the data is accessed.
    pub access: AccessMethod,
    pub hint: Hint,
    /// The layout of created files on the disk.
    pub layout: Layout,
    /// The size of each file; if not given, it is chosen when files are created.
    pub file_size: Option<Bytes>,
    /// The part of each file that is read; `None` for all of it.
    pub zone: Option<Zone>,
    /// Maximum number of requests of each reader (fio's `number_ios`); `None` for all of its data.
    pub requests: Option<u64>,
    /// The trace; only for [`Pattern::Trace`].
    pub replay: Option<TraceReplay>,
    /// The program; only for [`Pattern::Outside`].
    pub outside: Option<Outside>,
}

impl Workload {
    /// Returns a workload of one reader of one file without think time or hint.
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

    /// Total number of files.
    pub fn files(&self) -> u32 {
        match self.sharing {
            Sharing::OwnFile => self.readers * self.files_per_reader,
            Sharing::SharedOpenFile | Sharing::SharedFile => self.files_per_reader,
        }
    }

    /// Returns the index among all files of the file that is `file` for `reader`.
    pub fn file_of(&self, reader: u32, file: u32) -> u32 {
        match self.sharing {
            Sharing::OwnFile => reader * self.files_per_reader + file,
            Sharing::SharedOpenFile | Sharing::SharedFile => file,
        }
    }

    /// Returns the sizes of the data files; `chosen` is used for files without a stated size.
    pub fn data_files(&self, chosen: Bytes) -> Vec<Bytes> {
        let size = self.file_size.unwrap_or(chosen);
        match (&self.replay, &self.outside) {
            (Some(replay), _) => replay.file_sizes().to_vec(),
            (None, Some(outside)) => outside.data_files(size),
            // Writers create new data each time.
            (None, None) if self.pattern == Pattern::Write => Vec::new(),
            (None, None) => vec![size; self.files() as usize],
        }
    }

    /// The index in [`Workload::data_files`] of `file` among all files (see [`Workload::file_of`]).
    /// For a trace, these are open files, several of which may refer to one data file.
    pub fn data_file_of(&self, file: u32) -> u32 {
        let open = self.replay.as_ref().and_then(|replay| replay.open_file(file));
        open.map_or(file, |open| open.file)
    }

    /// Returns how the data of this file (among all files) is accessed, and the hint to the kernel.
    pub fn access_of(&self, file: u32) -> (AccessMethod, Hint) {
        let open = self.replay.as_ref().and_then(|replay| replay.open_file(file));
        open.map_or((self.access, self.hint), |open| (open.access, open.hint))
    }

    /// Number of concurrent streams: each may have a read-ahead window in memory.
    pub fn streams(&self) -> u32 {
        match self.pattern {
            Pattern::Interleaved { streams } => self.readers * streams,
            _ => self.readers,
        }
    }

    /// Returns whether no block is read twice, so that all data must come from the device.
    pub fn reads_each_block_once(&self) -> bool {
        !matches!(self.pattern, Pattern::Zipf { .. } | Pattern::Trace | Pattern::Outside)
    }

    /// Returns whether our own engine writes, and therefore needs a directory.
    pub fn writes(&self) -> bool {
        matches!(self.pattern, Pattern::Write | Pattern::Rewrite)
    }

    /// Returns whether the pattern has a random part, with its own latency statistics.
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

    /// Checks the declaration.
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

    /// Checks that writers have their own files and only plain writes.
    fn validate_writing(&self) -> Result<(), WorkloadError> {
        let conflict = |first: &str| {
            let second = format!("pattern = {:?}", self.pattern.name());
            let why = "writers write their own files entirely by pwrite(2), without pauses or \
                       hints";
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

impl Workload {
    /// A workload that replays a trace. All readers share its open files.
    ///
    /// # Errors
    ///
    /// If the trace has no reads, or its sizes exceed the limits of workloads.
    pub fn from_replay(
        name: impl Into<String>,
        replay: TraceReplay,
    ) -> Result<Self, WorkloadError> {
        let script = replay.script().filter(|script| !script.readers.is_empty());
        let Some(script) = script else {
            return Err(WorkloadError::TraceWithoutReads { trace: replay.trace });
        };
        let block = script.largest.max(Bytes::new(1));
        let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let workload = Self {
            readers: count(script.readers.len()),
            sharing: Sharing::SharedOpenFile,
            files_per_reader: count(script.open_files.len()),
            replay: Some(replay),
            ..Self::new(name, Pattern::Trace, block)
        };
        workload.validate()?;
        Ok(workload)
    }

    /// Returns whether [`crate::Access::not_before`] counts from the end of the previous request.
    pub fn has_think_times(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.pace == ReplayPace::Think)
    }

    /// Takes the reads of `other` if both replay the same trace.
    pub fn adopt_trace(&mut self, other: &Self) {
        if let (Some(own), Some(theirs)) = (&mut self.replay, &other.replay)
            && own == theirs
        {
            own.clone_from(theirs);
        }
    }

    /// Returns the figure that a command prints; `None` if the result is data per time.
    pub fn figure(&self) -> Option<Figure> {
        match self.outside.as_ref()? {
            Outside::Command { metric, .. } => metric.figure(),
            _ => None,
        }
    }

    /// Returns a workload that another program runs.
    ///
    /// # Errors
    ///
    /// If the declaration of the program is invalid.
    pub fn from_program(name: impl Into<String>, outside: Outside) -> Result<Self, WorkloadError> {
        let group = outside.group().and_then(Result::ok);
        let files = outside.data_files(Bytes::new(1)).len();
        let readers = group.as_ref().map_or(1, FioGroup::readers);
        let block = group.as_ref().map(FioGroup::block).unwrap_or(Bytes::from_kib(4));
        let workload = Self {
            readers,
            sharing: Sharing::SharedFile,
            files_per_reader: u32::try_from(files).unwrap_or(u32::MAX).max(1),
            outside: Some(outside),
            ..Self::new(name, Pattern::Outside, block)
        };
        workload.validate()?;
        Ok(workload)
    }
}
