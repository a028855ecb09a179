//! Converts a trace in memory to blocks and back.

use std::io::{self, Write};
use std::sync::Arc;

use super::SAVE_HINT;
use super::source::TraceBytes;
use super::stream::{TraceDamage, TraceStream};
use super::writer::TraceWriter;
use crate::builder::RECORDS_MAX;
use crate::error::TraceError;
use crate::model::Trace;

impl Trace {
    /// Writes the trace in foreread's own format. Returns its digest.
    ///
    /// # Errors
    ///
    /// If writing to `out` fails.
    pub fn write_to(&self, out: impl Write) -> io::Result<u64> {
        self.write_with(TraceWriter::new(out, self.timed)?)
    }

    /// Writes the trace to a new writer and finishes the writer. Returns the trace's digest.
    ///
    /// # Errors
    ///
    /// If the trace cannot be written.
    pub fn write_with(&self, mut writer: TraceWriter<impl Write>) -> io::Result<u64> {
        writer.tables(&self.files, (&self.open_files, &self.open_flags), &self.threads)?;
        self.records.iter().try_for_each(|record| writer.push(*record))?;
        writer.finish().map(|(_, digest)| digest)
    }

    /// Encodes the trace in foreread's own format (docs/trace-format.md).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory cannot fail, and the records of a built trace are in order.
        let written = self.write_to(&mut out);
        debug_assert!(written.is_ok(), "{written:?}");
        out
    }

    /// Returns a 64-bit hash of the unpacked content, which identifies the trace.
    pub fn digest(&self) -> u64 {
        let writer = TraceWriter::unpacked(io::sink(), self.timed);
        writer.and_then(|writer| self.write_with(writer)).unwrap_or_default()
    }

    /// Reads the records of a stream into memory, up to its damage, which is also returned.
    ///
    /// # Errors
    ///
    /// If the stream has no request, or more than the maximum for traces in memory.
    pub fn from_stream(stream: &TraceStream) -> Result<(Self, Option<TraceDamage>), TraceError> {
        let count = stream.len();
        if count > RECORDS_MAX as u64 {
            let problem = format!(
                "it has {count} requests, and {RECORDS_MAX} are the most that are kept in memory"
            );
            return Err(TraceError::whole(problem));
        }
        let mut trace = Self {
            timed: stream.is_timed(),
            files: stream.files().to_vec(),
            open_files: stream.open_files().to_vec(),
            open_flags: stream.open_flags().to_vec(),
            threads: stream.threads().to_vec(),
            records: Vec::new(),
        };
        let mut damage = stream.damage().cloned();
        for record in stream.records() {
            match record {
                Ok(record) => trace.records.push(record),
                Err(found) => damage = Some(found),
            }
        }
        if !trace.records.is_sorted_by_key(|record| record.time) {
            return Err(TraceError::whole("its requests are not in order of time"));
        }
        match (trace.records.is_empty(), &damage) {
            (false, _) => Ok((trace, damage)),
            (true, None) => Err(TraceError::whole("no request is in it")),
            (true, Some(damage)) => Err(TraceError::whole(damage.to_string())),
        }
    }

    /// Decodes foreread's own format.
    ///
    /// # Errors
    ///
    /// If the bytes are damaged, cut short, or no trace in this format.
    pub fn decode_blocks(bytes: &[u8]) -> Result<Self, TraceError> {
        let source: Arc<dyn TraceBytes> = Arc::new(bytes.to_vec());
        match Self::from_stream(&TraceStream::open(source)?)? {
            (trace, None) => Ok(trace),
            (_, Some(damage)) => Err(TraceError::whole(format!("{damage}: {SAVE_HINT}"))),
        }
    }
}
