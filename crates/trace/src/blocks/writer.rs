//! Writes a trace record by record.

use std::io::{self, Write};

use units::{Bytes, Nanos};
use workload::TraceOpenFile;

use super::index::{BlockEntry, TraceIndex, TraceUsage};
use super::records::{LastTransfers, encode};
use super::tables::{put_file, put_open_file, put_thread};
use super::{
    BLOCK_MAGIC, BLOCK_RECORDS, EMPTY_DIGEST, END_MAGIC, START_BYTES, TraceBlockKind, encode_block,
    fold,
};
use crate::model::{TraceFile, TraceRecord, TraceThread};

/// Size of buffered table entries at which they are written, in bytes.
const TABLE_BYTES: usize = 1 << 18;

/// Writes a trace in constant memory, except for its tables and 24 bytes per block.
///
/// Files, open files and threads are numbered in the order in which they are added. A record may
/// refer only to those added before it. [`TraceWriter::finish`] writes the index; a file without
/// index counts as cut short.
pub struct TraceWriter<W> {
    out: W,
    packs: bool,
    offset: u64,
    files: u32,
    open_files: Vec<TraceOpenFile>,
    threads: u32,
    tables: Vec<u8>,
    records: Vec<TraceRecord>,
    index: TraceIndex,
    usage: TraceUsage,
    last: LastTransfers,
    time: Nanos,
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace. `timed` says whether its times are meaningful.
    ///
    /// # Errors
    ///
    /// If writing to `out` fails.
    pub fn new(mut out: W, timed: bool) -> io::Result<Self> {
        out.write_all(BLOCK_MAGIC)?;
        out.write_all(&[u8::from(timed)])?;
        Ok(Self {
            out,
            packs: true,
            offset: START_BYTES,
            files: 0,
            open_files: Vec::new(),
            threads: 0,
            tables: Vec::new(),
            records: Vec::with_capacity(BLOCK_RECORDS),
            index: TraceIndex {
                digest: fold(EMPTY_DIGEST, &[u8::from(timed)]),
                ..TraceIndex::default()
            },
            usage: TraceUsage::default(),
            last: LastTransfers::default(),
            time: Nanos::ZERO,
        })
    }

    /// Like [`Self::new`], but does not pack blocks. The output then depends on the trace alone,
    /// not on the compression library.
    ///
    /// # Errors
    ///
    /// Those of [`Self::new`].
    pub fn unpacked(out: W, timed: bool) -> io::Result<Self> {
        Self::new(out, timed).map(|writer| Self { packs: false, ..writer })
    }

    /// Adds a file with its minimum size. Transfers beyond `size` increase the recorded size.
    pub fn file(&mut self, name: &str, size: Bytes) -> u32 {
        put_file(&mut self.tables, name);
        self.usage.size(self.files, size);
        self.files += 1;
        self.files - 1
    }

    /// Adds an open file with the flags of `open(2)`, which are 0 if unknown.
    ///
    /// # Errors
    ///
    /// If the file of the open file has not been added.
    pub fn open_file(&mut self, open: TraceOpenFile, flags: u32) -> io::Result<u32> {
        if open.file >= self.files {
            return Err(invalid("an open file is of a file that was not added"));
        }
        put_open_file(&mut self.tables, open, flags);
        self.open_files.push(open);
        Ok(self.open_files.len() as u32 - 1)
    }

    pub fn thread(&mut self, thread: TraceThread) -> u32 {
        put_thread(&mut self.tables, thread);
        self.threads += 1;
        self.threads - 1
    }

    /// Adds the tables of another trace.
    pub(super) fn tables(
        &mut self,
        files: &[TraceFile],
        (open_files, open_flags): (&[TraceOpenFile], &[u32]),
        threads: &[TraceThread],
    ) -> io::Result<()> {
        for file in files {
            self.file(&file.name, file.size);
        }
        for (open, flags) in open_files.iter().zip(open_flags) {
            self.open_file(*open, *flags)?;
        }
        for thread in threads {
            self.thread(*thread);
        }
        Ok(())
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// If the record is earlier than the previous one, transfers no bytes, or refers to an open
    /// file or thread that has not been added, or if it cannot be written.
    pub fn push(&mut self, record: TraceRecord) -> io::Result<()> {
        let open = self.open_files.get(record.open_file as usize).copied();
        let (Some(open), true) = (open, record.process < self.threads) else {
            return Err(invalid("a record is of an open file or a thread that was not added"));
        };
        if record.time < self.time {
            return Err(invalid("a record is earlier than the one before"));
        }
        if record.kind.transfers() && record.length.is_zero() {
            return Err(invalid("a read or write is of no bytes"));
        }
        self.time = record.time;
        self.usage.note(&record, open);
        self.records.push(record);
        match self.records.len() {
            BLOCK_RECORDS => self.write_records(),
            _ if self.tables.len() >= TABLE_BYTES => self.write_tables(),
            _ => Ok(()),
        }
    }

    fn block(&mut self, kind: TraceBlockKind, payload: &[u8], records: u32) -> io::Result<()> {
        let block = encode_block(kind, payload, self.packs);
        self.out.write_all(&block)?;
        let bytes = block.len() as u32;
        self.index.blocks.push(BlockEntry { kind, offset: self.offset, bytes, records });
        self.index.digest = fold(self.index.digest, payload);
        self.offset += u64::from(bytes);
        Ok(())
    }

    fn write_tables(&mut self) -> io::Result<()> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let tables = std::mem::take(&mut self.tables);
        self.block(TraceBlockKind::Tables, &tables, 0)
    }

    fn write_records(&mut self) -> io::Result<()> {
        self.write_tables()?;
        if self.records.is_empty() {
            return Ok(());
        }
        let payload = encode(&self.records, &mut self.last);
        let count = self.records.len() as u32;
        self.records.clear();
        self.block(TraceBlockKind::Records, &payload, count)
    }

    /// Writes the buffered records and the index. Returns the output and the trace's digest.
    ///
    /// # Errors
    ///
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.write_records()?;
        self.index.usage = self.usage;
        let place = self.offset.to_le_bytes();
        let index = encode_block(TraceBlockKind::Index, &self.index.encode(), self.packs);
        self.out.write_all(&index)?;
        self.out.write_all(&place)?;
        self.out.write_all(END_MAGIC)?;
        self.out.flush()?;
        Ok((self.out, self.index.digest))
    }
}
