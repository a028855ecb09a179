//! FRTRACE1, foreread's own format before FRTRACE2 (docs/trace-format.md). It can be read, but no
//! longer written.
//!
//! Its records have the encoding of those of FRTRACE2, which has more flags.

use units::Nanos;

use crate::blocks::{EMPTY_DIGEST, LastTransfers, decode_record, fold, open_file};
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::model::Trace;
use crate::varint::ByteReader;

/// First bytes of a file in this format.
pub(crate) const MAGIC: &[u8; 8] = b"FRTRACE1";

/// Decodes the format. Rejects a file that is cut short or damaged.
pub(crate) fn decode(bytes: &[u8]) -> Result<Trace, TraceError> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(TraceError::at(TraceLocation::Byte(0), "this is no foreread trace"));
    };
    let truncated = || TraceError::whole("it is cut short or damaged: its check sum is wrong");
    let (body, sum) = rest.split_last_chunk::<8>().ok_or_else(truncated)?;
    let end = bytes.len() - sum.len();
    if fold(EMPTY_DIGEST, &bytes[..end]) != u64::from_le_bytes(*sum) {
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
            builder.open_with(open_file(file, self.0.byte()?), 0);
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
        let mut last = LastTransfers::default();
        let mut before = (Nanos::ZERO, 0, 0);
        for _ in 0..self.0.count()? {
            let place = self.0.place();
            let record = decode_record(&mut self.0, before, &last)?;
            builder.push(place, record)?;
            before = (record.time, record.process, record.open_file);
            last.set(record.open_file, record.end().get(), record.length.get());
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
        assert_eq!((trace.records().len(), trace.threads().len()), (5, 2));
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
