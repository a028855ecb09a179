//! Checks that no importer panics on any input, and that imported traces survive encoding.
#![allow(clippy::unwrap_used)] // a test may panic

use std::path::Path;

use foreread_trace::{FORMATS, ImportOptions, Trace, TraceStream, detect};
use testkit::fuzz;
use workload::ReplayPace;

fn corpus() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/trace");
    let mut corpus = fuzz::seeds(&dir);
    assert!(corpus.len() >= FORMATS.len() - 1, "{} seeds", corpus.len());
    let options = ImportOptions::default();
    let encoded: Vec<Vec<u8>> = corpus
        .iter()
        .filter_map(|seed| detect(seed)?.parse(seed, options).ok())
        .map(|trace| trace.encode())
        .collect();
    corpus.extend(encoded);
    corpus
}

/// Checks that an imported trace survives encoding, and can be summarised and replayed.
fn keeps(trace: &Trace) {
    assert_eq!(Trace::decode(&trace.encode()).as_ref(), Ok(trace));
    let summary = trace.summary();
    let transfers = trace.records().iter().filter(|record| record.kind.transfers()).count();
    assert_eq!(summary.reads + summary.writes, transfers as u64);
    let compact = trace.compacted(1 << 20);
    assert_eq!(compact.reads().count() as u64, summary.reads);
    for pace in [ReplayPace::Asap, ReplayPace::Recorded] {
        if let Ok(workload) = trace.to_workload("t", "t", pace, true) {
            let sizes: Vec<_> = (0..workload.files_per_reader)
                .map(|file| {
                    let data = workload.data_files(units::Bytes::ZERO);
                    data[workload.data_file_of(file) as usize]
                })
                .collect();
            let reads: usize = (0..workload.readers)
                .map(|reader| workload.accesses(reader, &sizes, 1).unwrap())
                .map(|all| all.filter(|access| access.advice.is_none()).count())
                .sum();
            assert_eq!(reads as u64, summary.reads);
        }
    }
}

#[test]
fn every_seed_is_a_trace() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/trace");
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap();
        let name = entry.file_name().into_string().unwrap();
        let form = detect(&bytes).unwrap_or_else(|| panic!("{name} is not recognised"));
        assert!(name.starts_with(form.name), "{name} is taken for {}", form.name);
        keeps(&form.parse(&bytes, ImportOptions::default()).unwrap());
    }
}

#[test]
fn no_importer_panics() {
    let corpus = corpus();
    let mut turn = 0;
    let inputs = fuzz::run(fuzz::budget(), &corpus, |input| {
        turn += 1;
        let options = ImportOptions { sort: turn % 2 == 0, ..ImportOptions::default() };
        // The detected format and another one.
        let other = &FORMATS[turn % FORMATS.len()];
        for form in detect(input).into_iter().chain([other]) {
            if let Ok(trace) = form.parse(input, options) {
                keeps(&trace);
            }
        }
    });
    assert!(inputs > corpus.len() as u64);
}

#[test]
fn damaged_traces_of_the_old_form_are_refused_beyond_the_check_sum() {
    // With a corrected checksum, so that the input reaches the rest of the reader.
    let sum = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let old: Vec<Vec<u8>> =
        corpus().into_iter().filter(|seed| seed.starts_with(b"FRTRACE1")).collect();
    assert!(old.len() >= 3);
    fuzz::run(fuzz::budget(), &old, |input| {
        let mut input = input.to_vec();
        let body = input.len().saturating_sub(8);
        let right = sum(&input[..body]).to_le_bytes();
        input.truncate(body);
        input.extend(right);
        if let Ok(trace) = Trace::decode(&input) {
            keeps(&trace);
        }
    });
}

/// Sets the correct checksum in every block of a trace and in its index.
fn with_right_checksums(bytes: &mut [u8]) {
    let (header, mut at) = (14, 9);
    while let Some(stored) = bytes.get(at + 2..at + 6) {
        let stored = stored.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let Some(end) = at.checked_add(header + stored).filter(|end| *end <= bytes.len()) else {
            return;
        };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[at..at + 10]);
        hasher.update(&bytes[at + header..end]);
        bytes[at + 10..at + header].copy_from_slice(&hasher.finalize().to_le_bytes());
        at = end;
    }
}

#[test]
fn no_damaged_block_panics_and_what_is_read_of_it_can_be_kept() {
    let blocks: Vec<Vec<u8>> =
        corpus().into_iter().filter(|seed| seed.starts_with(b"FRTRACE2")).collect();
    assert!(blocks.len() >= FORMATS.len() - 1);
    let mut turn = 0;
    fuzz::run(fuzz::budget(), &blocks, |input| {
        let mut input = input.to_vec();
        turn += 1;
        if turn % 4 > 0 {
            with_right_checksums(&mut input);
        }
        let source = std::sync::Arc::new(input.clone());
        if let Ok(found) = foreread_trace::verify(source.clone()) {
            let whole = Trace::decode(&input);
            assert!(!found.damages.is_empty() || whole.is_ok() || found.records == 0);
        }
        let Ok(stream) = TraceStream::open(source) else { return };
        if let Ok((trace, _)) = Trace::from_stream(&stream) {
            keeps(&trace);
        }
    });
}
