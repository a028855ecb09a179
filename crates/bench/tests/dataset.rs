//! Creates data files, finds them again, and leaves nothing behind.

#![allow(clippy::unwrap_used)] // A test may panic.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use foreread_bench::{BenchError, Cancel, Dataset, LayOutOptions, LayOutProgress};
use units::Bytes;
use workload::{Layout, Workload};

fn options(file_size: Bytes) -> LayOutOptions {
    LayOutOptions { file_size, seed: 1, cancel: Cancel::new() }
}

fn seq_8() -> [Workload; 1] {
    [Workload::named("seq-8").unwrap()]
}

/// Lays out the files; also returns the amount of data that was written.
fn lay_out(dir: &Path, workloads: &[Workload], file_size: Bytes) -> (Dataset, Bytes) {
    let mut last = LayOutProgress { written: Bytes::ZERO, total: Bytes::ZERO };
    let dataset = Dataset::lay_out(dir, workloads, &options(file_size), &mut |now| last = now);
    let dataset = dataset.unwrap();
    assert_eq!(last.written, last.total, "progress ends with all of it");
    (dataset, last.total)
}

fn try_lay_out(dir: &Path, file_size: Bytes) -> Result<Dataset, BenchError> {
    Dataset::lay_out(dir, &seq_8(), &options(file_size), &mut |_| {})
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

/// Returns the inode numbers of the data files; a recreated file has another number.
fn inodes(home: &Path) -> HashSet<u64> {
    let data = fs::read_dir(home).unwrap().map(|entry| entry.unwrap());
    let data = data.filter(|entry| entry.path().extension() == Some("data".as_ref()));
    data.map(|entry| entry.metadata().unwrap().ino()).collect()
}

#[test]
fn files_are_made_used_again_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let size = Bytes::from_mib(1);
    let (dataset, written) = lay_out(dir.path(), &seq_8(), size);
    assert_eq!(written, Bytes::from_mib(8));
    assert_eq!(written, Dataset::room_needed(&seq_8(), size));
    let home = dataset.directory().unwrap().to_owned();
    assert!(home.starts_with(dir.path()) && home != dir.path());
    let before = inodes(&home);
    assert_eq!(before.len(), 8);
    drop(dataset);

    // A resumed study writes nothing, and neither does one that needs fewer of the same files.
    let (dataset, written) = lay_out(dir.path(), &[Workload::named("seq-1").unwrap()], size);
    assert_eq!((written, inodes(&home)), (Bytes::ZERO, before));
    drop(dataset);

    // Other files replace them; none of the old files remain.
    let apart = [Workload { layout: Layout::Interleaved, ..seq_8()[0].clone() }];
    let (dataset, written) = lay_out(dir.path(), &apart, size);
    assert_eq!((written, inodes(&home).len()), (Bytes::from_mib(8), 8));
    dataset.remove().unwrap();
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn content_cannot_be_compressed_and_no_file_is_like_another() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, _) = lay_out(dir.path(), &seq_8(), Bytes::from_kib(256));
    let mut pages = HashSet::new();
    let mut counts = [0u32; 256];
    for entry in fs::read_dir(dataset.directory().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension() == Some("data".as_ref()) {
            let content = fs::read(&path).unwrap();
            content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
            for page in content.chunks(4096) {
                assert!(pages.insert(page.to_vec()), "a page occurs twice");
            }
        }
    }
    assert_eq!(pages.len(), 8 * 64);
    let bytes = f64::from(counts.iter().sum::<u32>());
    let shares = counts.iter().map(|count| f64::from(*count) / bytes);
    let entropy: f64 = shares.map(|share| -share * share.log2()).sum();
    assert!(entropy > 7.99, "{entropy} bits a byte");
}

#[test]
fn a_damaged_file_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, _) = lay_out(dir.path(), &seq_8(), Bytes::from_mib(1));
    let file = dataset.directory().unwrap().join("contiguous-1048576-00003.data");
    drop(dataset);
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(1000).unwrap();
    let (dataset, written) = lay_out(dir.path(), &seq_8(), Bytes::from_mib(1));
    assert_eq!(written, Bytes::from_mib(8));
    dataset.remove().unwrap();
}

#[test]
fn interruption_leaves_nothing() {
    let apart = Workload { layout: Layout::Interleaved, ..seq_8()[0].clone() };
    let workloads = [seq_8()[0].clone(), apart];
    // During the first set of eight files, and during the second.
    for mib in [10, 40] {
        let dir = tempfile::tempdir().unwrap();
        let options = options(Bytes::from_mib(4));
        let result = Dataset::lay_out(dir.path(), &workloads, &options, &mut |progress| {
            if progress.written >= Bytes::from_mib(mib) {
                options.cancel.cancel();
            }
        });
        assert!(matches!(result, Err(BenchError::Cancelled)));
        assert_eq!(entries(dir.path()), 0, "interrupted after {mib} MiB");
    }
}

#[test]
fn what_is_left_by_a_crash_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    assert!(!Dataset::remove_from(dir.path()).unwrap());
    let (dataset, _) = lay_out(dir.path(), &seq_8(), Bytes::from_mib(1));
    let home = dataset.directory().unwrap().to_owned();
    drop(dataset);
    fs::write(home.join("foreread.json"), "torn").unwrap();
    fs::write(home.join("foreread.json.new"), "to").unwrap();
    assert!(Dataset::remove_from(dir.path()).unwrap());
    assert_eq!(entries(dir.path()), 0);
    // A process killed right after it created the directory.
    fs::create_dir(&home).unwrap();
    assert!(Dataset::remove_from(dir.path()).unwrap());
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(".foreread-data");
    let refused = || {
        let result = Dataset::remove_from(dir.path());
        assert!(matches!(result, Err(BenchError::Foreign { .. })), "{result:?}");
        let result = try_lay_out(dir.path(), Bytes::from_mib(1));
        assert!(matches!(result, Err(BenchError::Foreign { .. })), "{result:?}");
    };
    fs::write(&home, "a file").unwrap();
    refused();
    fs::remove_file(&home).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &home).unwrap();
    refused();
    fs::remove_file(&home).unwrap();
    fs::create_dir(&home).unwrap();
    let precious = home.join("thesis.tex");
    fs::write(&precious, "important").unwrap();
    refused();
    assert_eq!(fs::read(&precious).unwrap(), b"important");
    // Also if the file is among foreread's own files.
    fs::remove_file(&precious).unwrap();
    let (dataset, _) = lay_out(dir.path(), &seq_8(), Bytes::from_mib(1));
    fs::write(&precious, "important").unwrap();
    assert!(matches!(dataset.remove(), Err(BenchError::Foreign { .. })));
    assert_eq!(fs::read(&precious).unwrap(), b"important");
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (_dataset, _) = lay_out(dir.path(), &seq_8(), Bytes::from_mib(1));
    let result = try_lay_out(dir.path(), Bytes::from_mib(1));
    assert!(matches!(result, Err(BenchError::Busy { .. })), "{result:?}");
    assert!(matches!(Dataset::remove_from(dir.path()), Err(BenchError::Busy { .. })));
}

#[test]
fn too_little_room_is_told_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let message = try_lay_out(dir.path(), Bytes::from_gib(1 << 20)).unwrap_err();
    assert!(message.to_string().contains("--size"), "{message}");
    let BenchError::NoSpace { needed, available, .. } = message else { panic!("{message}") };
    assert!(needed > Bytes::from_gib(8 << 20) && available < needed);
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn files_smaller_than_a_block_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let result = try_lay_out(dir.path(), Bytes::from_kib(2));
    assert!(matches!(result, Err(BenchError::BadOption { .. })), "{result:?}");
}
