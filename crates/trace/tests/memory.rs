//! Checks that memory does not grow with the length of a streamed trace. The file has only one
//! test, because the test measures the peak of its process.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic and print

use std::fs::File;
use std::io::BufWriter;

use foreread_trace::{TraceRecord, TraceRecordKind, TraceThread, TraceWriter, workload};
use units::{Bytes, Nanos};
use workload::{AccessMethod, Hint, TraceOpenFile};

/// Number of records, which would take more than 100 MB if they were in memory.
const RECORDS: u64 = 1_100_000;
const THREADS: u64 = 2;

/// Returns the number of records; FOREREAD_TRACE_RECORDS may increase it.
fn records() -> u64 {
    let asked = std::env::var("FOREREAD_TRACE_RECORDS").ok();
    asked.and_then(|words| words.parse().ok()).unwrap_or(RECORDS).max(RECORDS)
}

/// Returns the peak resident memory of this process.
fn peak() -> Bytes {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    Bytes::from_kib(line.trim().trim_end_matches(" kB").parse().unwrap())
}

#[test]
fn a_long_trace_is_written_and_replayed_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.trace");
    let before = peak();
    let mut writer = TraceWriter::new(BufWriter::new(File::create(&path).unwrap()), true).unwrap();
    let file = writer.file("data", Bytes::from_gib(1));
    let open = TraceOpenFile { file, access: AccessMethod::Read, hint: Hint::None };
    let open_file = writer.open_file(open, 0).unwrap();
    for thread in 0..THREADS {
        writer.thread(TraceThread { thread, process: 0 });
    }
    let mut last = 1u64;
    let records = records();
    for at in 0..records {
        last = last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let record = TraceRecord {
            time: Nanos::new(at * 1000),
            open_file,
            process: (at % THREADS) as u32,
            kind: TraceRecordKind::Read,
            offset: Bytes::new((last >> 40) % 200_000 * 4096),
            length: Bytes::new(4096),
            took: Nanos::ZERO,
        };
        writer.push(record).unwrap();
    }
    writer.finish().unwrap();
    let replay = workload(path.to_str().unwrap()).unwrap();
    assert!(replay.replay.as_ref().unwrap().is_streamed());
    let sizes = replay.data_files(Bytes::ZERO);
    let mut readers: Vec<_> =
        (0..replay.readers).map(|reader| replay.accesses(reader, &sizes, 1).unwrap()).collect();
    assert_eq!(readers.len() as u64, THREADS);
    // One reader runs far ahead of the others, which follow.
    let mut count = readers[0].by_ref().take(200_000).count();
    for reader in readers {
        count += reader.count();
    }
    assert_eq!(count as u64, records);
    let grown = peak().saturating_sub(before);
    println!("{records} records in {grown}");
    assert!(grown < Bytes::from_mib(48), "{grown}");
}
