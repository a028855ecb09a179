//! The index of a trace: the location of its blocks, and the totals that a replay needs in advance.

use units::{Bytes, Nanos};
use workload::TraceOpenFile;

use super::{HEADER_BYTES, TraceBlockKind};
use crate::error::TraceError;
use crate::model::{TraceRecord, TraceRecordKind};
use crate::varint::{ByteReader, put};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) kind: TraceBlockKind,
    /// Offset in the file.
    pub(super) offset: u64,
    /// Length in the file, including the header.
    pub(super) bytes: u32,
    pub(super) records: u32,
}

/// The records of a thread that a replay executes (reads and advice): their number, and the
/// positions of the first and last one in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadUse {
    pub(crate) count: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// Totals that are counted while records are read or written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceUsage {
    pub(super) records: u64,
    pub(super) span: Nanos,
    /// Length of the largest read.
    pub(super) largest: Bytes,
    pub(super) sizes: Vec<Bytes>,
    /// Number of reads through each open file.
    pub(super) open_files: Vec<u64>,
    pub(super) threads: Vec<ThreadUse>,
}

/// Returns the element at `at` of a table, which grows as needed.
fn slot<T: Clone + Default>(table: &mut Vec<T>, at: usize) -> &mut T {
    if table.len() <= at {
        table.resize(at + 1, T::default());
    }
    &mut table[at]
}

impl TraceUsage {
    pub(super) fn size(&mut self, file: u32, size: Bytes) {
        let known = slot(&mut self.sizes, file as usize);
        *known = size.max(*known);
    }

    pub(super) fn note(&mut self, record: &TraceRecord, open: TraceOpenFile) {
        if record.kind.transfers() {
            self.size(open.file, record.end());
        }
        if record.kind == TraceRecordKind::Read {
            *slot(&mut self.open_files, record.open_file as usize) += 1;
            self.largest = self.largest.max(record.length);
        }
        if record.kind.is_replayed() {
            let thread = slot(&mut self.threads, record.process as usize);
            if thread.count == 0 {
                thread.first = self.records;
            }
            thread.count += 1;
            thread.last = self.records;
        }
        self.records += 1;
        self.span = self.span.max(record.time);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceIndex {
    pub(super) blocks: Vec<BlockEntry>,
    pub(super) usage: TraceUsage,
    pub(super) digest: u64,
}

impl TraceIndex {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.digest.to_le_bytes().to_vec();
        put(&mut out, self.usage.span.get());
        put(&mut out, self.usage.largest.get());
        put(&mut out, self.blocks.len() as u64);
        for block in &self.blocks {
            let is_records = block.kind == TraceBlockKind::Records;
            put(&mut out, u64::from(block.bytes) << 1 | u64::from(is_records));
            if is_records {
                put(&mut out, u64::from(block.records));
            }
        }
        put(&mut out, self.usage.sizes.len() as u64);
        self.usage.sizes.iter().for_each(|size| put(&mut out, size.get()));
        put(&mut out, self.usage.open_files.len() as u64);
        self.usage.open_files.iter().for_each(|reads| put(&mut out, *reads));
        put(&mut out, self.usage.threads.len() as u64);
        for thread in &self.usage.threads {
            put(&mut out, thread.count);
            if thread.count > 0 {
                put(&mut out, thread.first);
                put(&mut out, thread.last.wrapping_sub(thread.first));
            }
        }
        out
    }

    /// Decodes an index at file offset `origin`; the first block is at `start`.
    pub(super) fn decode(payload: &[u8], origin: u64, start: u64) -> Result<Self, TraceError> {
        let mut bytes = ByteReader::new(payload, origin);
        let digest = bytes.take(8)?.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let mut index = Self { digest, ..Self::default() };
        index.usage.span = Nanos::new(bytes.number()?);
        index.usage.largest = Bytes::new(bytes.number()?);
        let mut offset = start;
        for _ in 0..bytes.count()? {
            let word = bytes.number()?;
            let length = u32::try_from(word >> 1).ok().filter(|it| *it as usize >= HEADER_BYTES);
            let length = length.ok_or_else(|| bytes.wrong("a block has an impossible length"))?;
            let is_records = word & 1 == 1;
            let kind = if is_records { TraceBlockKind::Records } else { TraceBlockKind::Tables };
            let records = if is_records { bytes.small()? } else { 0 };
            index.usage.records += u64::from(records);
            index.blocks.push(BlockEntry { kind, offset, bytes: length, records });
            offset += u64::from(length);
        }
        if offset != origin {
            return Err(bytes.wrong("the blocks of the index are not those before it"));
        }
        for _ in 0..bytes.count()? {
            index.usage.sizes.push(Bytes::new(bytes.number()?));
        }
        for _ in 0..bytes.count()? {
            index.usage.open_files.push(bytes.number()?);
        }
        for _ in 0..bytes.count()? {
            let count = bytes.number()?;
            let (first, span) = if count > 0 { (bytes.number()?, bytes.number()?) } else { (0, 0) };
            let last = first.saturating_add(span);
            index.usage.threads.push(ThreadUse { count, first, last });
        }
        Ok(index)
    }
}
