use std::sync::Arc;

use proptest::prelude::*;
use units::{Bytes, Nanos};
use workload::{AccessMethod, Hint, RangeAdvice, TraceOpenFile};

use super::*;
use crate::builder::TraceBuilder;
use crate::model::{Trace, TraceRecord, TraceRecordKind, TraceThread};

fn kind(number: u8) -> TraceRecordKind {
    use TraceRecordKind::{Advise, Delete, FaultAround, Read, Truncate, Write};
    match number {
        0..=5 => Read,
        6 => Write,
        7 => Advise(RangeAdvice::Random),
        8 => Advise(RangeAdvice::WillNeed),
        9 => Truncate,
        10 => Delete,
        _ => FaultAround,
    }
}

/// A record as time step, thread, open file, kind, offset, length and duration.
type Row = (u64, u32, u32, u8, u64, u64, u64);

fn trace(rows: &[Row]) -> Trace {
    let mut builder = TraceBuilder::new(true);
    for name in ["one", "two", "three"] {
        let file = builder.file(name);
        let (access, hint) = (AccessMethod::Mmap, Hint::Random);
        builder.open_with(TraceOpenFile { file, access, hint }, 0o40_000);
    }
    let mut time = 0;
    for &(step, thread, open_file, number, offset, length, took) in rows {
        time += step;
        let thread = u64::from(thread);
        let process = builder.thread(TraceThread { thread, process: 1 });
        let (time, took) = (Nanos::new(time), Nanos::new(took));
        let (kind, offset, length) = (kind(number), Bytes::new(offset), Bytes::new(length));
        let record = TraceRecord { time, open_file, process, kind, offset, length, took };
        builder.push(TraceLocation::Whole, record).unwrap();
    }
    builder.finish().unwrap()
}

/// Builds a trace of `records` sequential 4 KiB reads; every 50th is of a second file.
fn stream_of(records: usize) -> Trace {
    let row =
        |at: u64| (100_000 + at % 977, 1, u32::from(at.is_multiple_of(50)), 0, at * 4096, 4096, 0);
    trace(&(0..records as u64).map(row).collect::<Vec<_>>())
}

fn open(bytes: &[u8]) -> Result<TraceStream, TraceError> {
    TraceStream::open(Arc::new(bytes.to_vec()))
}

#[test]
fn a_stream_takes_less_than_four_bytes_a_request() {
    let trace = stream_of(50_000);
    let encoded = trace.encode();
    assert!(encoded.len() < 50_000 * 4, "{} bytes", encoded.len());
    assert_eq!(Trace::decode(&encoded).unwrap(), trace);
    let stream = open(&encoded).unwrap();
    assert_eq!((stream.len(), stream.digest()), (50_000, trace.digest()));
    assert_eq!((stream.span(), stream.damage()), (trace.span(), None));
    assert_eq!(stream.records().map(Result::unwrap).collect::<Vec<_>>(), trace.records());
}

#[test]
fn a_trace_that_is_cut_is_read_up_to_there() {
    let trace = stream_of(40_000);
    let encoded = trace.encode();
    let whole = open(&encoded).unwrap();
    let entries = whole.entries().to_vec();
    assert_eq!(entries.len(), 4, "a block of tables and three of records");
    for cut in [encoded.len() - 1, entries[3].offset as usize + 7, entries[2].offset as usize] {
        let stream = open(&encoded[..cut]).unwrap();
        let complete = entries.iter().filter(|it| it.offset + u64::from(it.bytes) <= cut as u64);
        let kept: u64 = complete.map(|entry| u64::from(entry.records)).sum();
        let damage = stream.damage().expect("it is cut");
        assert_eq!((stream.len(), damage.records_before), (kept, kept), "cut at {cut}");
        let (read, found) = Trace::from_stream(&stream).unwrap();
        assert_eq!(read.records(), &trace.records()[..kept as usize]);
        assert_eq!(read.files()[0].name, "two");
        assert!(found.is_some() && Trace::decode(&encoded[..cut]).is_err());
        assert_eq!(verify(Arc::new(encoded[..cut].to_vec())).unwrap().damages.len(), 1);
    }
    assert!(open(&encoded[..8]).is_err());
    assert!(open(b"FRTRACE1 and more").is_err());
}

#[test]
fn each_damaged_block_is_named_and_the_others_can_be_read() {
    let trace = stream_of(60_000);
    let encoded = trace.encode();
    let entries = open(&encoded).unwrap().entries().to_vec();
    let mut damaged = encoded.clone();
    for at in [1, 3] {
        damaged[entries[at].offset as usize + 100] ^= 1;
    }
    let found = verify(Arc::new(damaged.clone())).unwrap();
    let blocks: Vec<usize> = found.damages.iter().map(|damage| damage.block).collect();
    assert_eq!((blocks, found.blocks), (vec![2, 4], entries.len()));
    let stream = open(&damaged).unwrap();
    assert!(stream.block(1).is_err());
    let third = &trace.records()[BLOCK_RECORDS..2 * BLOCK_RECORDS];
    assert_eq!(stream.block(2).unwrap(), third);
    assert!(verify(Arc::new(encoded)).unwrap().damages.is_empty());
}

#[test]
fn every_changed_byte_is_found() {
    let encoded = trace(&[(0, 1, 0, 0, 0, 10, 3), (5, 1, 0, 7, 10, 0, 0)]).encode();
    for at in 0..encoded.len() {
        let mut damaged = encoded.clone();
        damaged[at] ^= 0x20;
        let found = verify(Arc::new(damaged.clone()));
        assert!(found.map_or(true, |found| !found.damages.is_empty()), "byte {at}");
    }
}

#[test]
fn the_writer_refuses_what_no_reader_takes() {
    let mut writer = TraceWriter::new(Vec::new(), true).unwrap();
    let (access, hint) = (AccessMethod::Read, Hint::None);
    assert!(writer.open_file(TraceOpenFile { file: 0, access, hint }, 0).is_err());
    let file = writer.file("a", Bytes::from_kib(8));
    let open_file = writer.open_file(TraceOpenFile { file, access, hint }, 0).unwrap();
    let process = writer.thread(TraceThread { thread: 7, process: 7 });
    let record = TraceRecord {
        time: Nanos::new(10),
        open_file,
        process,
        kind: TraceRecordKind::Read,
        offset: Bytes::ZERO,
        length: Bytes::new(1),
        took: Nanos::ZERO,
    };
    writer.push(record).unwrap();
    assert!(writer.push(TraceRecord { time: Nanos::new(9), ..record }).is_err());
    assert!(writer.push(TraceRecord { length: Bytes::ZERO, ..record }).is_err());
    assert!(writer.push(TraceRecord { open_file: 1, ..record }).is_err());
    assert!(writer.push(TraceRecord { process: 1, ..record }).is_err());
    let (bytes, digest) = writer.finish().unwrap();
    let stream = open(&bytes).unwrap();
    assert_eq!(
        (stream.len(), stream.digest(), stream.files()[0].size),
        (1, digest, Bytes::from_kib(8))
    );
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(
        rows in proptest::collection::vec(
            (0u64..1 << 40, 0u32..5, 0u32..3, 0u8..12, 0u64..1 << 50, 1u64..1 << 30, 0u64..99),
            1..50,
        )
    ) {
        prop_assume!(rows.iter().any(|row| row.3 <= 6));
        let trace = trace(&rows);
        prop_assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
    }
}
