//! Records the reads of a running process with each method that works on this machine.

#![allow(clippy::print_stdout)] // skipped tests print the reason

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use foreread_trace::TraceRecordKind;
use foreread_trace::{RecordMethod, RecordSubject, Recording, record};
use sys::lock::Lock;
use tempfile::TempDir;
use testkit::HOST_LOCK;
use units::Bytes;

/// Size of a read in bytes. The process makes 32 reads of 64 KiB.
const BLOCK: u64 = 64 << 10;
const BLOCKS: u64 = 32;

/// Returns the lock and a directory with a file to read; prints the reason if it returns `None`.
fn stage(name: &str) -> Option<(Lock, TempDir)> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP {name}: not root");
        return None;
    }
    let lock = Lock::acquire(Path::new(HOST_LOCK)).expect("the lock of the host tier");
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("data"), vec![7; (BLOCK * BLOCKS) as usize]).expect("a file");
    Some((lock, dir))
}

/// Starts a process that waits, reads the file, and waits again. It holds the file open throughout:
/// the tracepoints report no names, and a child that lives 1 ms is too short-lived to be inspected.
fn reader(dir: &Path, after: &str) -> Child {
    let script =
        format!("exec 3<data; sleep 1; dd if=data of=/dev/null bs=64k 2>/dev/null; sleep {after}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(dir);
    command.stdin(Stdio::null()).spawn().expect("a process")
}

/// Records a running reader. Prints the reason and returns `None` if the method is unavailable.
fn recorded(
    name: &str,
    dir: &Path,
    means: RecordMethod,
    after: &str,
    most: Duration,
) -> Option<Recording> {
    let mut reader = reader(dir, after);
    let begun = Instant::now();
    let stop = || begun.elapsed() > most;
    let recording = record(&RecordSubject::Process(reader.id()), Some(means), &stop);
    let _ = reader.kill();
    reader.wait().expect("its end");
    match recording {
        Ok(recording) => Some(recording),
        Err(why) => {
            println!("SKIP {name}: {why}");
            None
        }
    }
}

/// Asserts that the file was read once from start to end.
fn assert_whole(recording: &Recording) {
    let trace = &recording.trace;
    let of_data = |file: &foreread_trace::TraceFile| file.name.ends_with("/data");
    let file = trace.files().iter().position(of_data).expect("the file, by its name");
    let reads: Vec<(u64, u64)> = trace
        .records()
        .iter()
        .filter(|it| it.kind == TraceRecordKind::Read)
        .filter(|it| trace.open_files()[it.open_file as usize].file as usize == file)
        .map(|it| (it.offset.get(), it.length.get()))
        .filter(|(offset, _)| *offset < BLOCK * BLOCKS)
        .collect();
    let all: Vec<(u64, u64)> = (0..BLOCKS).map(|at| (at * BLOCK, BLOCK)).collect();
    assert_eq!(reads, all);
    assert!(trace.span().as_secs_f64() < 10.0);
    assert_eq!(Bytes::new(BLOCK * BLOCKS), Bytes::from_mib(2));
}

#[test]
fn host_a_running_process_is_recorded_by_tracepoints_until_it_ends() {
    let name = "host_a_running_process_is_recorded_by_tracepoints_until_it_ends";
    let Some((_lock, dir)) = stage(name) else { return };
    let most = Duration::from_secs(60);
    let Some(recording) = recorded(name, dir.path(), RecordMethod::Tracepoints, "0", most) else {
        return;
    };
    assert_eq!(recording.means, RecordMethod::Tracepoints);
    assert_whole(&recording);
}

#[test]
fn host_a_running_process_is_recorded_by_strace_until_it_ends() {
    let name = "host_a_running_process_is_recorded_by_strace_until_it_ends";
    let Some((_lock, dir)) = stage(name) else { return };
    let most = Duration::from_secs(60);
    let Some(recording) = recorded(name, dir.path(), RecordMethod::Strace, "0", most) else {
        return;
    };
    assert_whole(&recording);
}

#[test]
fn host_recording_ends_when_it_is_told_and_the_process_goes_on() {
    let name = "host_recording_ends_when_it_is_told_and_the_process_goes_on";
    let Some((_lock, dir)) = stage(name) else { return };
    for means in [RecordMethod::Tracepoints, RecordMethod::Strace] {
        let mut reader = reader(dir.path(), "60");
        let begun = Instant::now();
        let stop = || begun.elapsed() > Duration::from_secs(3);
        let recording = record(&RecordSubject::Process(reader.id()), Some(means), &stop);
        let goes_on = reader.try_wait().expect("its state").is_none();
        let _ = reader.kill();
        reader.wait().expect("its end");
        match recording {
            Err(why) => println!("SKIP {name}: {why}"),
            Ok(recording) => {
                assert!(goes_on, "{means} ended the process");
                assert_whole(&recording);
            }
        }
    }
}
