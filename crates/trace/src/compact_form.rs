//! foreread's own compact form (docs/trace-format.md).
//!
//! Numbers are unsigned LEB128. A record is a byte of flags and the numbers that the flags do not
//! make superfluous; most take three or four bytes.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use workload::{AccessMethod, Hint};

/// How a file in this form begins.
pub const MAGIC: &[u8; 8] = b"FRTRACE1";

const IS_WRITE: u8 = 1;
const SAME_PROCESS: u8 = 2;
const SAME_OPEN_FILE: u8 = 4;
/// It begins where the last request on the same open file ended.
const IS_SEQUENTIAL: u8 = 8;
/// It is as long as the last request on the same open file.
const SAME_LENGTH: u8 = 16;
const KNOWN_FLAGS: u8 = 31;

/// FNV-1a of 64 bits: enough against accidents, which is all that is to be found out here.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Where the last request on each open file ended, and how long it was.
type Last = HashMap<u32, (u64, u64)>;

impl Trace {
    /// The trace in the compact form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(u8::from(self.timed));
        put(&mut out, self.files.len() as u64);
        for file in &self.files {
            put(&mut out, file.name.len() as u64);
            out.extend_from_slice(file.name.as_bytes());
        }
        put(&mut out, self.open_files.len() as u64);
        for open in &self.open_files {
            put(&mut out, u64::from(open.file));
            let hint = match open.hint {
                Hint::None => 0,
                Hint::Sequential => 2,
                Hint::Random => 4,
            };
            out.push(u8::from(open.access == AccessMethod::Mmap) | hint);
        }
        put(&mut out, self.processes.len() as u64);
        self.processes.iter().for_each(|process| put(&mut out, *process));
        put(&mut out, self.records.len() as u64);
        self.encode_records(&mut out);
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    fn encode_records(&self, out: &mut Vec<u8>) {
        let mut last = Last::new();
        let (mut time, mut process, mut open_file) = (0, 0, 0);
        for record in &self.records {
            let (end, length) = last.get(&record.open_file).copied().unwrap_or_default();
            let (at, long) = (record.offset.get(), record.length.get());
            let flag = |is: bool, flag: u8| if is { flag } else { 0 };
            let flags = flag(record.kind == TraceRecordKind::Write, IS_WRITE)
                | flag(record.process == process, SAME_PROCESS)
                | flag(record.open_file == open_file, SAME_OPEN_FILE)
                | flag(at == end, IS_SEQUENTIAL)
                | flag(long == length, SAME_LENGTH);
            out.push(flags);
            put(out, record.time.get().wrapping_sub(time));
            if flags & SAME_PROCESS == 0 {
                put(out, u64::from(record.process));
            }
            if flags & SAME_OPEN_FILE == 0 {
                put(out, u64::from(record.open_file));
            }
            if flags & IS_SEQUENTIAL == 0 {
                put(out, at);
            }
            if flags & SAME_LENGTH == 0 {
                put(out, long);
            }
            (time, process, open_file) = (record.time.get(), record.process, record.open_file);
            last.insert(record.open_file, (at + long, long));
        }
    }

    /// Tells this trace from others.
    pub fn digest(&self) -> u64 {
        checksum(&self.encode())
    }

    /// Reads the compact form. A file that was cut short or damaged is refused.
    pub fn decode(bytes: &[u8]) -> Result<Self, TraceError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(TraceError::at(TraceLocation::Byte(0), "this is no foreread trace"));
        };
        let truncated = || TraceError::whole("it is cut short or damaged: its check sum is wrong");
        let (body, sum) = rest.split_last_chunk::<8>().ok_or_else(truncated)?;
        let end = bytes.len() - sum.len();
        if checksum(&bytes[..end]) != u64::from_le_bytes(*sum) {
            return Err(truncated());
        }
        let mut reader = Reader { bytes: body, at: 0, offset: MAGIC.len() };
        let builder = reader.tables()?;
        let trace = reader.records(builder)?;
        if reader.at != body.len() {
            return Err(reader.wrong("there is something after the last record"));
        }
        Ok(trace)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// What was before `bytes`.
    offset: usize,
}

impl Reader<'_> {
    fn wrong(&self, problem: &str) -> TraceError {
        TraceError::at(TraceLocation::Byte((self.offset + self.at) as u64), problem)
    }

    fn byte(&mut self) -> Result<u8, TraceError> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| self.wrong("it ends in the middle of a record"))
    }

    fn number(&mut self) -> Result<u64, TraceError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.wrong("a number has more than 64 bits"))
    }

    fn small(&mut self) -> Result<u32, TraceError> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.wrong("a number has more than 32 bits"))
    }

    /// How many things follow, of which each takes a byte at least.
    fn count(&mut self) -> Result<usize, TraceError> {
        let count = self.number()?;
        let left = (self.bytes.len() - self.at.min(self.bytes.len())) as u64;
        if count > left {
            return Err(self.wrong("it says that it has more than it has"));
        }
        Ok(count as usize)
    }

    fn tables(&mut self) -> Result<TraceBuilder, TraceError> {
        let mut builder = TraceBuilder::new(self.byte()? & 1 == 1);
        let files = self.count()?;
        for _ in 0..files {
            let length = self.count()?;
            let name = String::from_utf8_lossy(&self.bytes[self.at..self.at + length]).into_owned();
            self.at += length;
            builder.another_file(&name);
        }
        for _ in 0..self.count()? {
            let file = self.small()?;
            if file as usize >= files {
                return Err(self.wrong("an open file is of a file that is not there"));
            }
            let flags = self.byte()?;
            let access = if flags & 1 == 1 { AccessMethod::Mmap } else { AccessMethod::Read };
            let open = builder.open(file, access);
            match flags & 6 {
                2 => builder.advise(open, Hint::Sequential),
                4 => builder.advise(open, Hint::Random),
                _ => {}
            }
        }
        for process in 0..self.count()? {
            let number = self.number()?;
            if builder.process(number) as usize != process {
                return Err(self.wrong("two processes have the same number"));
            }
        }
        Ok(builder)
    }

    fn records(&mut self, mut builder: TraceBuilder) -> Result<Trace, TraceError> {
        let mut last = Last::new();
        let (mut time, mut process, mut open_file) = (0u64, 0, 0);
        for _ in 0..self.count()? {
            let at = TraceLocation::Byte((self.offset + self.at) as u64);
            let flags = self.byte()?;
            if flags & !KNOWN_FLAGS != 0 {
                return Err(self.wrong("a record has flags that this version does not know"));
            }
            let step = self.number()?;
            time =
                time.checked_add(step).ok_or_else(|| self.wrong("time has more than 64 bits"))?;
            if flags & SAME_PROCESS == 0 {
                process = self.small()?;
            }
            if flags & SAME_OPEN_FILE == 0 {
                open_file = self.small()?;
            }
            let (end, length) = last.get(&open_file).copied().unwrap_or_default();
            let offset = if flags & IS_SEQUENTIAL == 0 { self.number()? } else { end };
            let length = if flags & SAME_LENGTH == 0 { self.number()? } else { length };
            let record = TraceRecord {
                time: Nanos::new(time),
                open_file,
                process,
                kind: if flags & IS_WRITE == 0 {
                    TraceRecordKind::Read
                } else {
                    TraceRecordKind::Write
                },
                offset: Bytes::new(offset),
                length: Bytes::new(length),
            };
            if length == 0 {
                return Err(TraceError::at(at, "a request asks for nothing"));
            }
            builder.push(at, record)?;
            last.insert(open_file, (offset + length, length));
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace(records: &[(u64, u32, u32, bool, u64, u64)]) -> Trace {
        let mut builder = TraceBuilder::new(true);
        for name in ["one", "two", "three"] {
            let file = builder.file(name);
            let open = builder.open(file, AccessMethod::Mmap);
            builder.advise(open, Hint::Random);
        }
        let mut time = 0;
        for &(step, process, open_file, write, offset, length) in records {
            time += step;
            let process = builder.process(u64::from(process));
            let kind = if write { TraceRecordKind::Write } else { TraceRecordKind::Read };
            let (offset, length) = (Bytes::new(offset), Bytes::new(length));
            let time = Nanos::new(time);
            let record = TraceRecord { time, open_file, process, kind, offset, length };
            builder.push(TraceLocation::Whole, record).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn a_stream_takes_four_bytes_a_request() {
        let reads: Vec<_> = (0..1000).map(|at| (100_000, 0, 0, false, at * 4096, 4096)).collect();
        let trace = trace(&reads);
        let encoded = trace.encode();
        assert!(encoded.len() < 1000 * 4 + 100, "{} bytes", encoded.len());
        assert_eq!(Trace::decode(&encoded).unwrap(), trace);
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused() {
        let encoded = trace(&[(0, 1, 0, false, 0, 10), (5, 1, 0, false, 10, 10)]).encode();
        for end in 0..encoded.len() {
            assert!(Trace::decode(&encoded[..end]).is_err(), "{end}");
        }
        for at in 0..encoded.len() {
            let mut damaged = encoded.clone();
            damaged[at] ^= 0x20;
            assert!(Trace::decode(&damaged).is_err(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(
            records in proptest::collection::vec(
                (0u64..1 << 40, 0u32..5, 0u32..3, any::<bool>(), 0u64..1 << 50, 1u64..1 << 30),
                1..50,
            )
        ) {
            let trace = trace(&records);
            prop_assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
        }
    }
}
