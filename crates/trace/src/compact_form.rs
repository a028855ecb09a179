//! FRTRACE1, foreread's own format before FRTRACE2 (docs/trace-format.md). It can be read, but no
//! longer written.
//!
//! Numbers are unsigned LEB128. A record is a byte of flags, and the numbers that the flags do not
//! imply.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use crate::varint::ByteReader;
use workload::{AccessMethod, Hint};

/// First bytes of a file in this format.
pub(crate) const MAGIC: &[u8; 8] = b"FRTRACE1";

const IS_WRITE: u8 = 1;
const SAME_PROCESS: u8 = 2;
const SAME_OPEN_FILE: u8 = 4;
/// The request starts where the last one on the same open file ended.
const IS_SEQUENTIAL: u8 = 8;
/// The request is as long as the last one on the same open file.
const SAME_LENGTH: u8 = 16;
const KNOWN_FLAGS: u8 = 31;

/// Returns the 64-bit FNV-1a of `bytes`, which suffices against accidental damage.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// End and length of the last request on each open file.
type Last = HashMap<u32, (u64, u64)>;

/// Decodes the format. Rejects a file that is cut short or damaged.
pub(crate) fn decode(bytes: &[u8]) -> Result<Trace, TraceError> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(TraceError::at(TraceLocation::Byte(0), "this is no foreread trace"));
    };
    let truncated = || TraceError::whole("it is cut short or damaged: its check sum is wrong");
    let (body, sum) = rest.split_last_chunk::<8>().ok_or_else(truncated)?;
    let end = bytes.len() - sum.len();
    if checksum(&bytes[..end]) != u64::from_le_bytes(*sum) {
        return Err(truncated());
    }
    let mut reader = Reader(ByteReader::new(body, MAGIC.len() as u64));
    let builder = reader.tables()?;
    let trace = reader.records(builder)?;
    if !reader.0.is_at_end() {
        return Err(reader.0.wrong("there is something after the last record"));
    }
    Ok(trace)
}
struct Reader<'a>(ByteReader<'a>);

impl Reader<'_> {
    fn tables(&mut self) -> Result<TraceBuilder, TraceError> {
        let mut builder = TraceBuilder::new(self.0.byte()? & 1 == 1);
        let files = self.0.count()?;
        for _ in 0..files {
            let length = self.0.count()?;
            let name = String::from_utf8_lossy(self.0.take(length)?).into_owned();
            builder.another_file(&name);
        }
        for _ in 0..self.0.count()? {
            let file = self.0.small()?;
            if file as usize >= files {
                return Err(self.0.wrong("an open file is of a file that is not there"));
            }
            let flags = self.0.byte()?;
            let access = if flags & 1 == 1 { AccessMethod::Mmap } else { AccessMethod::Read };
            let open = builder.open(file, access);
            match flags & 6 {
                2 => builder.advise(open, Hint::Sequential),
                4 => builder.advise(open, Hint::Random),
                _ => {}
            }
        }
        for process in 0..self.0.count()? {
            let number = self.0.number()?;
            if builder.process(number) as usize != process {
                return Err(self.0.wrong("two processes have the same number"));
            }
        }
        Ok(builder)
    }

    fn records(&mut self, mut builder: TraceBuilder) -> Result<Trace, TraceError> {
        let mut last = Last::new();
        let (mut time, mut process, mut open_file) = (0u64, 0, 0);
        for _ in 0..self.0.count()? {
            let at = self.0.place();
            let flags = self.0.byte()?;
            if flags & !KNOWN_FLAGS != 0 {
                return Err(self.0.wrong("a record has flags that this version does not know"));
            }
            let step = self.0.number()?;
            time =
                time.checked_add(step).ok_or_else(|| self.0.wrong("time has more than 64 bits"))?;
            if flags & SAME_PROCESS == 0 {
                process = self.0.small()?;
            }
            if flags & SAME_OPEN_FILE == 0 {
                open_file = self.0.small()?;
            }
            let (end, length) = last.get(&open_file).copied().unwrap_or_default();
            let offset = if flags & IS_SEQUENTIAL == 0 { self.0.number()? } else { end };
            let length = if flags & SAME_LENGTH == 0 { self.0.number()? } else { length };
            let record = TraceRecord {
                took: Nanos::ZERO,
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
    use super::*;

    const OLD: &[u8] = include_bytes!("../tests/seeds/trace/foreread-1-strace.trace");

    #[test]
    fn old_traces_still_open() {
        let trace = decode(OLD).unwrap();
        assert_eq!((trace.records().len(), trace.processes().len()), (5, 2));
        assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused() {
        for end in 0..OLD.len() {
            assert!(decode(&OLD[..end]).is_err(), "{end}");
        }
        for at in 0..OLD.len() {
            let mut damaged = OLD.to_vec();
            damaged[at] ^= 0x20;
            assert!(decode(&damaged).is_err(), "{at}");
        }
    }
}
