//! The content of a replay.

use std::fmt;
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantNames};
use units::Bytes;

use crate::access::Access;
use crate::parameters::{AccessMethod, Hint};

/// When a replayed request is issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ReplayPace {
    /// As soon as its reader's previous request is complete.
    #[default]
    Asap,
    /// At its recorded time, or as soon afterwards as its reader is free.
    Recorded,
    /// As long after the previous request of its thread returned as in the recording, that is, with
    /// the program's own think time.
    Think,
}

/// An open file (open file description) of a trace, which has its own read-ahead window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOpenFile {
    /// Index of the file in the trace's list of files.
    pub file: u32,
    /// Whether the program read it by calls or through a mapping.
    pub access: AccessMethod,
    /// The advice that the program gave the kernel before its first read.
    pub hint: Hint,
}

/// The reads of a trace for a replay. Writes are omitted: a replay never writes to existing files.
#[derive(Clone, Debug)]
pub struct TraceReplay {
    /// The source of the trace.
    pub trace: String,
    /// Checksum of the trace, which distinguishes replays of different traces.
    pub digest: u64,
    pub pace: ReplayPace,
    /// Whether parts of files that are never read were removed.
    pub compact: bool,
    /// The reads; absent in a declaration that was parsed from text.
    script: Option<Arc<ReplayScript>>,
}

impl PartialEq for TraceReplay {
    fn eq(&self, other: &Self) -> bool {
        let key = |replay: &Self| (replay.digest, replay.pace, replay.compact);
        self.trace == other.trace && key(self) == key(other)
    }
}

/// The requests of one reader, a piece at a time: a long trace is never in memory as a whole.
pub trait AccessSource: fmt::Debug + Send + Sync {
    /// Returns piece `number`, counted from 0, which may be empty; `None` after the last.
    fn piece(&self, number: usize) -> Option<Arc<[Access]>>;

    /// Returns the error if a piece could not be read; that piece is empty.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// Requests that are all in memory.
#[derive(Debug)]
pub struct LoadedAccesses(pub Arc<[Access]>);

impl AccessSource for LoadedAccesses {
    fn piece(&self, number: usize) -> Option<Arc<[Access]>> {
        (number == 0).then(|| Arc::clone(&self.0))
    }
}

/// The requests of a trace, by reader.
#[derive(Debug, Default)]
pub struct ReplayScript {
    /// The open files that are read; [`Access::file`] is an index into them.
    pub open_files: Vec<TraceOpenFile>,
    /// The sizes of the files, by [`TraceOpenFile::file`].
    pub file_sizes: Vec<Bytes>,
    /// The requests of each reader, in order.
    pub readers: Vec<Arc<dyn AccessSource>>,
    /// The length of the largest read.
    pub largest: Bytes,
    /// Whether the requests are read from a file as needed, because they are too many to keep in
    /// memory.
    pub is_streamed: bool,
}

impl TraceReplay {
    /// Creates a replay with its reads.
    pub fn new(
        trace: String,
        digest: u64,
        pace: ReplayPace,
        compact: bool,
        script: ReplayScript,
    ) -> Self {
        Self { trace, digest, pace, compact, script: Some(Arc::new(script)) }
    }

    /// Creates a replay as named in a declaration, without its reads.
    pub(crate) fn declared(trace: String, digest: u64, pace: ReplayPace, compact: bool) -> Self {
        Self { trace, digest, pace, compact, script: None }
    }

    pub fn is_loaded(&self) -> bool {
        self.script.is_some()
    }

    /// Returns whether the requests are too many to keep in memory.
    pub fn is_streamed(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.is_streamed)
    }

    /// Returns why not all requests could be read; results of the replay are then invalid.
    pub fn failure(&self) -> Option<String> {
        self.script.as_ref()?.readers.iter().find_map(|reader| reader.failure())
    }

    pub(crate) fn script(&self) -> Option<&ReplayScript> {
        self.script.as_deref()
    }

    pub(crate) fn reads(&self, reader: u32) -> Option<Arc<dyn AccessSource>> {
        self.script.as_ref()?.readers.get(reader as usize).cloned()
    }

    pub(crate) fn open_file(&self, open_file: u32) -> Option<&TraceOpenFile> {
        self.script.as_ref()?.open_files.get(open_file as usize)
    }

    pub(crate) fn file_sizes(&self) -> &[Bytes] {
        self.script.as_ref().map_or(&[], |script| &script.file_sizes)
    }
}
