//! Reads a trace block by block.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use units::{Bytes, Nanos};
use workload::TraceOpenFile;

use super::index::{BlockEntry, ThreadUse, TraceIndex, TraceUsage};
use super::records::{LastTransfers, TableSizes, decode};
use super::source::TraceBytes;
use super::tables::TraceTables;
use super::{
    BLOCK_MAGIC, BlockHeader, EMPTY_DIGEST, END_BYTES, END_MAGIC, HEADER_BYTES, SAVE_HINT,
    START_BYTES, TraceBlockKind, check_block, decode_block, fold,
};
use crate::error::{TraceError, TraceFileError, TraceLocation};
use crate::model::{TraceFile, TraceRecord, TraceThread};

/// The location of damage in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceDamage {
    /// Number of the block, from 1.
    pub block: usize,
    /// Offset of the block in the file.
    pub offset: u64,
    pub problem: String,
    /// Number of records in the blocks before it.
    pub records_before: u64,
}

impl fmt::Display for TraceDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, offset, problem, records_before } = self;
        write!(f, "block {block} at byte {offset}: {problem}; {records_before} requests precede it")
    }
}

impl TraceDamage {
    /// Returns the error for the file with this damage.
    pub fn in_file(&self, path: impl Into<PathBuf>) -> TraceFileError {
        let error = TraceError::whole(format!("{self}: {SAVE_HINT}"));
        TraceFileError::Broken { path: path.into(), error }
    }
}

/// A trace in blocks. Only its tables and its index are in memory.
pub struct TraceStream {
    source: Arc<dyn TraceBytes>,
    timed: bool,
    tables: TraceTables,
    index: TraceIndex,
    damage: Option<TraceDamage>,
}

impl fmt::Debug for TraceStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, damage) = (self.len(), &self.damage);
        f.debug_struct("TraceStream")
            .field("records", &records)
            .field("damage", damage)
            .finish_non_exhaustive()
    }
}

/// Reads bytes of the source; the error says why that failed.
pub(super) fn bytes_of(
    source: &dyn TraceBytes,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, TraceError> {
    let at = TraceLocation::Byte(offset);
    let size = source.size().map_err(|error| TraceError::at(at, error.to_string()))?;
    if offset.checked_add(length as u64).is_none_or(|end| end > size) {
        return Err(TraceError::at(at, "the file is cut short"));
    }
    let mut bytes = vec![0; length];
    let read = source.read_at(offset, &mut bytes);
    read.map_err(|error| TraceError::at(at, error.to_string()))?;
    Ok(bytes)
}

impl TraceStream {
    /// Opens a trace. If its index is missing or damaged, scans the blocks up to the damage, which
    /// [`Self::damage`] then returns.
    ///
    /// # Errors
    ///
    /// If the source is no trace in this format.
    pub fn open(source: Arc<dyn TraceBytes>) -> Result<Self, TraceError> {
        let start = bytes_of(source.as_ref(), 0, START_BYTES as usize)?;
        let timed = match start.strip_prefix(BLOCK_MAGIC) {
            Some([flags]) if *flags <= 1 => *flags == 1,
            _ => {
                let problem = "this is no foreread trace in blocks";
                return Err(TraceError::at(TraceLocation::Byte(0), problem));
            }
        };
        let (tables, index, damage) = (TraceTables::default(), TraceIndex::default(), None);
        let mut stream = Self { source, timed, tables, index, damage };
        if !stream.use_index() {
            stream.scan();
        }
        let sizes = &stream.index.usage.sizes;
        for (file, size) in stream.tables.files.iter_mut().zip(sizes) {
            file.size = *size;
        }
        Ok(stream)
    }

    /// Reads the index and the tables; returns false if there is no index that matches them.
    fn use_index(&mut self) -> bool {
        let Some(index) = self.read_index() else { return false };
        self.index = index;
        for at in 0..self.index.blocks.len() {
            let entry = self.index.blocks[at];
            if entry.kind != TraceBlockKind::Tables {
                continue;
            }
            if let Err(error) = self.read_tables(entry) {
                self.cut(at, error);
                break;
            }
        }
        let usage = &self.index.usage;
        let fits = usage.sizes.len() <= self.tables.files.len()
            && usage.open_files.len() <= self.tables.open_files.len()
            && usage.threads.len() <= self.tables.threads.len();
        let is_cut = self.damage.is_some();
        fits || is_cut
    }

    fn read_tables(&mut self, entry: BlockEntry) -> Result<(), TraceError> {
        let bytes = bytes_of(self.source.as_ref(), entry.offset, entry.bytes as usize)?;
        match decode_block(&bytes, entry.offset)? {
            (TraceBlockKind::Tables, payload) => self.tables.extend(&payload, entry.offset),
            _ => Err(TraceError::at(TraceLocation::Byte(entry.offset), "it is no block of tables")),
        }
    }

    fn read_index(&self) -> Option<TraceIndex> {
        let source = self.source.as_ref();
        let size = source.size().ok()?;
        let end = size.checked_sub(END_BYTES)?;
        let tail = bytes_of(source, end, END_BYTES as usize).ok()?;
        let (place, magic) = tail.split_first_chunk::<8>()?;
        let place = u64::from_le_bytes(*place);
        let length = usize::try_from(end.checked_sub(place)?).ok()?;
        if magic != END_MAGIC || place < START_BYTES {
            return None;
        }
        let bytes = bytes_of(source, place, length).ok()?;
        let (kind, payload) = decode_block(&bytes, place).ok()?;
        let index = TraceIndex::decode(&payload, place, START_BYTES).ok()?;
        (kind == TraceBlockKind::Index).then_some(index)
    }

    /// Drops the block at `at` and all later ones.
    fn cut(&mut self, at: usize, error: TraceError) {
        let offset = self.index.blocks.get(at).map_or(START_BYTES, |entry| entry.offset);
        self.index.blocks.truncate(at);
        let records = self.index.blocks.iter().map(|entry| u64::from(entry.records)).sum();
        self.index.usage.records = records;
        let problem = error.problem;
        self.damage = Some(TraceDamage { block: at + 1, offset, problem, records_before: records });
    }

    /// Scans the blocks one after another up to the first damaged one.
    fn scan(&mut self) {
        self.tables = TraceTables::default();
        self.index = TraceIndex::default();
        self.index.digest = fold(EMPTY_DIGEST, &[u8::from(self.timed)]);
        let mut usage = TraceUsage::default();
        let (mut offset, mut last) = (START_BYTES, LastTransfers::default());
        let error = loop {
            match self.scan_block(offset, &mut usage, &mut last) {
                Ok(Some(entry)) => {
                    offset += u64::from(entry.bytes);
                    self.index.blocks.push(entry);
                }
                Ok(None) => {
                    let problem = "the end of the file is missing or damaged";
                    break TraceError::at(TraceLocation::Byte(offset), problem);
                }
                Err(error) => break error,
            }
        };
        self.index.usage = usage;
        let records_before = self.index.usage.records;
        let (block, problem) = (self.index.blocks.len() + 1, error.problem);
        self.damage = Some(TraceDamage { block, offset, problem, records_before });
    }

    /// Reads the block at `offset` and adds it to the tables or totals; `None` if it is the index.
    fn scan_block(
        &mut self,
        offset: u64,
        usage: &mut TraceUsage,
        last: &mut LastTransfers,
    ) -> Result<Option<BlockEntry>, TraceError> {
        let head = bytes_of(self.source.as_ref(), offset, HEADER_BYTES)?;
        let wrong = || TraceError::at(TraceLocation::Byte(offset), "no block begins here");
        let header = head.first_chunk().and_then(BlockHeader::from_bytes).ok_or_else(wrong)?;
        let length = HEADER_BYTES + header.stored as usize;
        let bytes = bytes_of(self.source.as_ref(), offset, length)?;
        let (kind, payload) = decode_block(&bytes, offset)?;
        let mut entry = BlockEntry { kind, offset, bytes: length as u32, records: 0 };
        match kind {
            TraceBlockKind::Index => return Ok(None),
            TraceBlockKind::Tables => self.tables.extend(&payload, offset)?,
            TraceBlockKind::Records => {
                let records = decode(&payload, offset, self.table_sizes(), last)?;
                entry.records = records.len() as u32;
                for record in &records {
                    let open = self.tables.open_files[record.open_file as usize];
                    usage.note(record, open);
                }
            }
        }
        self.index.digest = fold(self.index.digest, &payload);
        Ok(Some(entry))
    }

    fn table_sizes(&self) -> TableSizes {
        let (open_files, threads) = (self.tables.open_files.len(), self.tables.threads.len());
        TableSizes { open_files, threads }
    }

    /// Returns whether the recorded times are meaningful.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    pub fn files(&self) -> &[TraceFile] {
        &self.tables.files
    }

    pub fn open_files(&self) -> &[TraceOpenFile] {
        &self.tables.open_files
    }

    /// Returns the flags of `open(2)` of each open file; 0 where unknown.
    pub fn open_flags(&self) -> &[u32] {
        &self.tables.open_flags
    }

    pub fn threads(&self) -> &[TraceThread] {
        &self.tables.threads
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.index.usage.records
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time of the last record since the start of the trace.
    pub fn span(&self) -> Nanos {
        self.index.usage.span
    }

    /// Returns the same digest as [`crate::Trace::digest`], which identifies the trace.
    pub fn digest(&self) -> u64 {
        self.index.digest
    }

    /// Returns the damage that opening the trace has found. Opening checks the index and the
    /// tables, and all blocks if the index is missing.
    pub fn damage(&self) -> Option<&TraceDamage> {
        self.damage.as_ref()
    }

    pub(super) fn entries(&self) -> &[BlockEntry] {
        &self.index.blocks
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        self.index.usage.open_files.iter().sum()
    }

    pub(super) fn source(&self) -> &dyn TraceBytes {
        self.source.as_ref()
    }

    /// Returns the replayed records of each thread; threads beyond the end have none.
    pub(crate) fn thread_use(&self) -> &[ThreadUse] {
        &self.index.usage.threads
    }

    /// Returns whether the trace reads through this open file.
    pub(crate) fn is_read(&self, open_file: u32) -> bool {
        self.index.usage.open_files.get(open_file as usize).is_some_and(|reads| *reads > 0)
    }

    /// Returns the length of the largest read.
    pub(crate) fn largest_read(&self) -> Bytes {
        self.index.usage.largest
    }

    /// Reads every block and checks its checksum, without decoding it.
    ///
    /// # Errors
    ///
    /// The first damage.
    pub fn check(&self) -> Result<(), TraceDamage> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        for (at, entry) in self.index.blocks.iter().enumerate() {
            let bytes = bytes_of(self.source.as_ref(), entry.offset, entry.bytes as usize);
            let checked = bytes.and_then(|bytes| check_block(&bytes, entry.offset));
            checked.map_err(|error| self.damage_at(at, error.problem))?;
        }
        Ok(())
    }

    /// Returns the number of blocks, of records and of tables.
    pub fn blocks(&self) -> usize {
        self.index.blocks.len()
    }

    /// Returns the records of a block, numbered from 0; none for a block of tables.
    ///
    /// # Errors
    ///
    /// If the block cannot be read or is damaged.
    pub fn block(&self, at: usize) -> Result<Vec<TraceRecord>, TraceDamage> {
        self.block_with(at, &mut LastTransfers::default())
    }

    fn block_with(
        &self,
        at: usize,
        last: &mut LastTransfers,
    ) -> Result<Vec<TraceRecord>, TraceDamage> {
        let Some(entry) = self.index.blocks.get(at) else { return Ok(Vec::new()) };
        if entry.kind != TraceBlockKind::Records {
            return Ok(Vec::new());
        }
        let records = self.decode_entry(*entry, last).map(|(records, _)| records);
        records.map_err(|error| self.damage_at(at, error.problem))
    }

    /// Returns the records of a block with its payload.
    pub(super) fn decode_entry(
        &self,
        entry: BlockEntry,
        last: &mut LastTransfers,
    ) -> Result<(Vec<TraceRecord>, Vec<u8>), TraceError> {
        let bytes = bytes_of(self.source.as_ref(), entry.offset, entry.bytes as usize)?;
        let wrong = |problem| TraceError::at(TraceLocation::Byte(entry.offset), problem);
        let (kind, payload) = decode_block(&bytes, entry.offset)?;
        if kind != entry.kind {
            return Err(wrong("the block is of another sort than the index says"));
        }
        if kind != TraceBlockKind::Records {
            return Ok((Vec::new(), payload));
        }
        let records = decode(&payload, entry.offset, self.table_sizes(), last)?;
        match records.len() == entry.records as usize {
            true => Ok((records, payload)),
            false => Err(wrong("the block has another number of requests than the index says")),
        }
    }

    pub(super) fn damage_at(&self, at: usize, problem: String) -> TraceDamage {
        let before = &self.index.blocks[..at];
        let records_before = before.iter().map(|entry| u64::from(entry.records)).sum();
        let offset = self.index.blocks[at].offset;
        TraceDamage { block: at + 1, offset, problem, records_before }
    }

    /// Returns all records in order. If the trace is damaged, the damage is the last element.
    pub fn records(&self) -> impl Iterator<Item = Result<TraceRecord, TraceDamage>> + '_ {
        let mut last = LastTransfers::default();
        let mut broken = false;
        let blocks = (0..self.blocks()).map_while(move |at| {
            let block = (!broken).then(|| self.block_with(at, &mut last))?;
            broken = block.is_err();
            Some(block)
        });
        blocks.flat_map(|block| {
            let (records, damage) = match block {
                Ok(records) => (records, None),
                Err(damage) => (Vec::new(), Some(Err(damage))),
            };
            records.into_iter().map(Ok).chain(damage)
        })
    }
}
