//! Encoding of records: a byte of flags, and the numbers that the flags do not imply.

use units::{Bytes, Nanos};
use workload::RangeAdvice;

use super::BLOCK_RECORDS;
use crate::builder::END_MAX;
use crate::error::TraceError;
use crate::model::{TraceRecord, TraceRecordKind};
use crate::varint::{ByteReader, put, unzigzag, width, zigzag};

const IS_WRITE: u8 = 1;
const SAME_THREAD: u8 = 2;
const SAME_OPEN_FILE: u8 = 4;
/// The request starts where the last one on the same open file ended.
const IS_SEQUENTIAL: u8 = 8;
/// The request is as long as the last one on the same open file.
const SAME_LENGTH: u8 = 16;
/// A byte with the kind follows: the record is neither a read nor a write.
const HAS_KIND: u8 = 32;
const HAS_DURATION: u8 = 64;
/// The offset is stored as a signed distance from the end of the last request.
const IS_RELATIVE: u8 = 128;

/// Kinds that are stored as a byte, in the order of that byte.
const KINDS: [TraceRecordKind; 8] = [
    TraceRecordKind::Advise(RangeAdvice::Normal),
    TraceRecordKind::Advise(RangeAdvice::Sequential),
    TraceRecordKind::Advise(RangeAdvice::Random),
    TraceRecordKind::Advise(RangeAdvice::WillNeed),
    TraceRecordKind::Advise(RangeAdvice::DontNeed),
    TraceRecordKind::Truncate,
    TraceRecordKind::Delete,
    TraceRecordKind::FaultAround,
];

/// End and length of the last transfer on each open file in the current block.
#[derive(Debug, Default)]
pub(crate) struct LastTransfers {
    block: u32,
    slots: Vec<(u32, u64, u64)>,
}

impl LastTransfers {
    /// Clears all entries in constant time.
    fn reset(&mut self) {
        self.block = self.block.wrapping_add(1);
        if self.block == 0 {
            self.slots.clear();
            self.block = 1;
        }
    }

    #[inline]
    fn get(&self, open_file: u32) -> (u64, u64) {
        match self.slots.get(open_file as usize) {
            Some(&(block, end, length)) if block == self.block => (end, length),
            _ => (0, 0),
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, open_file: u32, end: u64, length: u64) {
        let at = open_file as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, (0, 0, 0));
        }
        self.slots[at] = (self.block, end, length);
    }
}

/// Numbers of known open files and threads, for checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableSizes {
    pub(super) open_files: usize,
    pub(super) threads: usize,
}

/// Encodes the records of one block, which must be in order of time.
pub(super) fn encode(records: &[TraceRecord], last: &mut LastTransfers) -> Vec<u8> {
    last.reset();
    let mut out = Vec::with_capacity(records.len() * 5 + 16);
    let (mut time, mut thread, mut open_file) = (0, 0, 0);
    put(&mut out, records.len() as u64);
    for record in records {
        let (end, length) = last.get(record.open_file);
        let (at, long) = (record.offset.get(), record.length.get());
        let difference = zigzag(at.wrapping_sub(end).cast_signed());
        let is_relative = at != end && width(difference) < width(at);
        let kind = KINDS.iter().position(|kind| *kind == record.kind);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(record.kind == TraceRecordKind::Write, IS_WRITE)
            | flag(record.process == thread, SAME_THREAD)
            | flag(record.open_file == open_file, SAME_OPEN_FILE)
            | flag(at == end, IS_SEQUENTIAL)
            | flag(long == length, SAME_LENGTH)
            | flag(kind.is_some(), HAS_KIND)
            | flag(record.took > Nanos::ZERO, HAS_DURATION)
            | flag(is_relative, IS_RELATIVE);
        out.push(flags);
        put(&mut out, record.time.get().wrapping_sub(time));
        if let Some(kind) = kind {
            out.push(kind as u8);
        }
        if flags & SAME_THREAD == 0 {
            put(&mut out, u64::from(record.process));
        }
        if flags & SAME_OPEN_FILE == 0 {
            put(&mut out, u64::from(record.open_file));
        }
        if flags & IS_SEQUENTIAL == 0 {
            put(&mut out, if is_relative { difference } else { at });
        }
        if flags & SAME_LENGTH == 0 {
            put(&mut out, long);
        }
        if flags & HAS_DURATION != 0 {
            put(&mut out, record.took.get());
        }
        (time, thread, open_file) = (record.time.get(), record.process, record.open_file);
        if record.kind.transfers() {
            last.set(open_file, at + long, long);
        }
    }
    out
}

/// Decodes the records of one block and checks each against the table sizes.
pub(super) fn decode(
    payload: &[u8],
    origin: u64,
    tables: TableSizes,
    last: &mut LastTransfers,
) -> Result<Vec<TraceRecord>, TraceError> {
    last.reset();
    let mut bytes = ByteReader::new(payload, origin);
    let count = bytes.count()?;
    if count > BLOCK_RECORDS {
        return Err(bytes.wrong("the block has more records than a block may have"));
    }
    let mut records = Vec::with_capacity(count);
    let mut before = (Nanos::ZERO, 0, 0);
    for _ in 0..count {
        let record = decode_record(&mut bytes, before, last)?;
        let known = (record.open_file as usize) < tables.open_files
            && (record.process as usize) < tables.threads;
        if !known {
            return Err(bytes.wrong("a request is of an open file or a thread that is not there"));
        }
        before = (record.time, record.process, record.open_file);
        if record.kind.transfers() {
            last.set(record.open_file, record.end().get(), record.length.get());
        }
        records.push(record);
    }
    match bytes.is_at_end() {
        true => Ok(records),
        false => Err(bytes.wrong("there is something after the last record of the block")),
    }
}

#[inline]
pub(crate) fn decode_record(
    bytes: &mut ByteReader<'_>,
    (time, thread, open_file): (Nanos, u32, u32),
    last: &LastTransfers,
) -> Result<TraceRecord, TraceError> {
    let flags = bytes.byte()?;
    let time = time.get().checked_add(bytes.number()?);
    let time = time.ok_or_else(|| bytes.wrong("time has more than 64 bits"))?;
    let kind = match (flags & HAS_KIND != 0, flags & IS_WRITE != 0) {
        (false, false) => TraceRecordKind::Read,
        (false, true) => TraceRecordKind::Write,
        (true, _) => {
            let kind = KINDS.get(usize::from(bytes.byte()?)).copied();
            kind.ok_or_else(|| bytes.wrong("a record is of a sort that this version lacks"))?
        }
    };
    let process = if flags & SAME_THREAD != 0 { thread } else { bytes.small()? };
    let open_file = if flags & SAME_OPEN_FILE != 0 { open_file } else { bytes.small()? };
    let (end, length) = last.get(open_file);
    let offset = match (flags & IS_SEQUENTIAL != 0, flags & IS_RELATIVE != 0) {
        (true, _) => end,
        (false, true) => end.wrapping_add_signed(unzigzag(bytes.number()?)),
        (false, false) => bytes.number()?,
    };
    let length = if flags & SAME_LENGTH != 0 { length } else { bytes.number()? };
    let took = if flags & HAS_DURATION != 0 { bytes.number()? } else { 0 };
    if length == 0 && kind.transfers() {
        return Err(bytes.wrong("a request asks for nothing"));
    }
    if offset.checked_add(length).is_none_or(|end| end > END_MAX) {
        return Err(bytes.wrong("a request is beyond any file"));
    }
    let (time, took) = (Nanos::new(time), Nanos::new(took));
    let (offset, length) = (Bytes::new(offset), Bytes::new(length));
    Ok(TraceRecord { time, open_file, process, kind, offset, length, took })
}
