//! VSCSI version 1, the format of the CloudPhysics traces (Waldspurger et al., FAST 2015). Records
//! of 32 bytes, little-endian: `u32` serial number, `u32` length in bytes, `u32` segments, `u16`
//! SCSI operation, `u16` version, `u64` first 512-byte block, `u64` time in microseconds.

use units::{Nanos, SECTOR_BYTES};

use crate::builder::OneProcess;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecordKind};

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "vscsi",
    summary: "VSCSI version 1 (CloudPhysics): binary records of 32 bytes",
    detects,
    parse,
};

const RECORD_BYTES: usize = 32;
const VERSION: u16 = 0x0100;

/// Returns the kind of the SCSI commands READ and WRITE with 6, 10, 12 and 16 bytes.
fn kind(operation: u16) -> Option<TraceRecordKind> {
    match operation {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(TraceRecordKind::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(TraceRecordKind::Write),
        _ => None,
    }
}

fn field<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&record[at..at + N]);
    field
}

fn version(record: &[u8]) -> u16 {
    u16::from_le_bytes(field(record, 14))
}

fn detects(bytes: &[u8]) -> bool {
    bytes.len() >= RECORD_BYTES
        && bytes.chunks_exact(RECORD_BYTES).take(8).all(|record| {
            let operation = u16::from_le_bytes(field(record, 12));
            version(record) == VERSION && operation <= 0xff
        })
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut trace = OneProcess::new(true, options.sort);
    let records = bytes.chunks_exact(RECORD_BYTES);
    let rest = records.remainder().len();
    for (number, record) in (1..).zip(records) {
        let place = TraceLocation::TraceRecord(number);
        if version(record) != VERSION {
            let problem = format!("version {:#06x} is not 0x0100", version(record));
            return Err(TraceError::at(place, problem));
        }
        // Commands that transfer no data, such as TEST UNIT READY, are no requests.
        let Some(kind) = kind(u16::from_le_bytes(field(record, 12))) else { continue };
        let length = u64::from(u32::from_le_bytes(field(record, 4)));
        let block = u64::from_le_bytes(field(record, 16));
        let micros = u64::from_le_bytes(field(record, 24));
        let (offset, time) = (block.checked_mul(SECTOR_BYTES), micros.checked_mul(1000));
        let (Some(offset), Some(time)) = (offset, time) else {
            let problem = format!("block {block} or time {micros} is beyond any disk");
            return Err(TraceError::at(place, problem));
        };
        trace.push(place, "disk", (Nanos::new(time), kind), (offset, length))?;
    }
    if rest > 0 {
        let place = TraceLocation::TraceRecord((bytes.len() / RECORD_BYTES) as u64 + 1);
        let problem = format!("it is cut short: {rest} of its {RECORD_BYTES} bytes are there");
        return Err(TraceError::at(place, problem));
    }
    trace.builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operation: u16, length: u32, block: u64, micros: u64) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(length.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(operation.to_le_bytes());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(block.to_le_bytes());
        bytes.extend(micros.to_le_bytes());
        bytes
    }

    #[test]
    fn reads_and_writes_are_taken_other_commands_left() {
        let bytes =
            [record(0x28, 4096, 8, 5), record(0, 0, 0, 6), record(0x2a, 512, 1, 7)].concat();
        let trace = parse(&bytes, ImportOptions::default()).unwrap();
        let [read, write] = trace.records() else { panic!("{trace:?}") };
        assert_eq!(
            (read.offset.get(), read.length.get(), read.kind),
            (4096, 4096, TraceRecordKind::Read)
        );
        assert_eq!((write.time.get(), write.kind), (2000, TraceRecordKind::Write));
        assert!(detects(&bytes));
    }

    #[test]
    fn a_cut_record_and_a_wrong_version_are_named() {
        let bytes = [record(0x28, 4096, 8, 5), record(0x28, 4096, 8, 6)].concat();
        let error = parse(&bytes[..50], ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::TraceRecord(2));
        let mut wrong = bytes.clone();
        wrong[32 + 15] = 7;
        let error = parse(&wrong, ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::TraceRecord(2));
        let backward = [record(0x28, 1, 0, 6), record(0x28, 1, 0, 5)].concat();
        let error = parse(&backward, ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::TraceRecord(2));
    }
}
