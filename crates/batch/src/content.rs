//! The records of a trace, in memory or in a file.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use trace::{Trace, TraceFile, TraceRecord, TraceRecordKind, TraceStream, TraceWriter};
use units::{Bytes, Nanos};
use workload::TraceOpenFile;

use crate::identity::hex;

/// Records per chunk of a trace in memory.
const CHUNK_RECORDS: usize = 1 << 16;

/// The records of a trace.
#[derive(Debug)]
pub enum TraceContent {
    Memory(Trace),
    /// In a file. Only the tables and the index are in memory.
    Stream(Arc<TraceStream>),
}

/// Properties of a trace that take a pass over all of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFacts {
    /// SHA-256 of the trace's content, independent of the format in which it is stored.
    pub digest: String,
    pub reads: u64,
    /// Bytes that the reads request.
    pub requested: Bytes,
}

impl From<Trace> for TraceContent {
    fn from(trace: Trace) -> Self {
        Self::Memory(trace)
    }
}

impl From<TraceStream> for TraceContent {
    fn from(stream: TraceStream) -> Self {
        Self::Stream(Arc::new(stream))
    }
}

impl TraceContent {
    /// Returns whether the records have recorded times.
    pub fn is_timed(&self) -> bool {
        match self {
            Self::Memory(trace) => trace.is_timed(),
            Self::Stream(stream) => stream.is_timed(),
        }
    }

    pub fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        match self {
            Self::Memory(trace) => trace.records().len() as u64,
            Self::Stream(stream) => stream.len(),
        }
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        match self {
            Self::Memory(trace) => trace.reads().count() as u64,
            Self::Stream(stream) => stream.reads(),
        }
    }

    pub fn files(&self) -> &[TraceFile] {
        match self {
            Self::Memory(trace) => trace.files(),
            Self::Stream(stream) => stream.files(),
        }
    }

    pub fn open_files(&self) -> &[TraceOpenFile] {
        match self {
            Self::Memory(trace) => trace.open_files(),
            Self::Stream(stream) => stream.open_files(),
        }
    }

    /// Returns the number that thread `process` had when it was recorded.
    pub fn thread(&self, process: u32) -> u64 {
        match self {
            Self::Memory(trace) => trace.threads()[process as usize].thread,
            Self::Stream(stream) => stream.threads()[process as usize].thread,
        }
    }

    /// Returns the time from the first to the last request.
    pub fn span(&self) -> Nanos {
        match self {
            Self::Memory(trace) => trace.span(),
            Self::Stream(stream) => stream.span(),
        }
    }

    /// Returns chunk number `at`, counted from 0, or `None` after the last. A chunk may be empty.
    ///
    /// # Errors
    ///
    /// If the chunk cannot be read or is damaged.
    pub fn chunk(&self, at: usize) -> Result<Option<Cow<'_, [TraceRecord]>>, String> {
        match self {
            Self::Memory(trace) => {
                Ok(trace.records().chunks(CHUNK_RECORDS).nth(at).map(Cow::Borrowed))
            }
            Self::Stream(stream) if at < stream.blocks() => {
                let block = stream.block(at).map_err(|damage| damage.to_string())?;
                Ok(Some(Cow::Owned(block)))
            }
            Self::Stream(_) => Ok(None),
        }
    }

    /// Writes the trace in foreread's own format.
    ///
    /// # Errors
    ///
    /// If writing to `out` fails, or the trace is damaged.
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        match self {
            Self::Memory(trace) => trace.write_to(out).map(drop),
            Self::Stream(stream) => copy(stream, TraceWriter::new(out, stream.is_timed())?, |_| ()),
        }
    }

    pub(crate) fn facts(&self) -> Result<TraceFacts, String> {
        let mut hash = Hashed(Sha256::new());
        let (mut reads, mut requested) = (0, Bytes::ZERO);
        let mut count = |record: &TraceRecord| {
            if record.kind == TraceRecordKind::Read {
                reads += 1;
                requested += record.length;
            }
        };
        // Hash the unpacked form: packed bytes depend on the compression library.
        let writer = TraceWriter::unpacked(&mut hash, self.is_timed());
        let written = writer.and_then(|writer| match self {
            Self::Memory(trace) => {
                trace.records().iter().for_each(&mut count);
                trace.write_with(writer).map(drop)
            }
            Self::Stream(stream) => copy(stream, writer, count),
        });
        written.map_err(|error| error.to_string())?;
        Ok(TraceFacts { digest: hex(&hash.0.finalize()), reads, requested })
    }
}

/// A writer that hashes its input.
struct Hashed(Sha256);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn copy(
    stream: &TraceStream,
    writer: TraceWriter<impl Write>,
    visit: impl FnMut(&TraceRecord),
) -> io::Result<()> {
    match stream.copy_to(writer, visit)?.damage {
        None => Ok(()),
        Some(damage) => Err(io::Error::new(io::ErrorKind::InvalidData, damage.to_string())),
    }
}
