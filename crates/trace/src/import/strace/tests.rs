use super::*;
use crate::error::TraceLocation;
use crate::model::TraceRecordKind;
use workload::RangeAdvice;

fn read(text: &str) -> Result<Trace, TraceError> {
    parse(text.as_bytes(), ImportOptions::default())
}

/// Returns open file, offset and length of each request.
fn places(trace: &Trace) -> Vec<(u32, u64, u64)> {
    let place = |r: &crate::model::TraceRecord| (r.open_file, r.offset.get(), r.length.get());
    trace.records().iter().map(place).collect()
}

const BASIC: &str = "\
24425 1795193645.583534 openat(AT_FDCWD</tmp>, \"/tmp/x\", O_RDONLY) = 3</tmp/x>
24425 1795193645.583628 fadvise64(3</tmp/x>, 0, 0, POSIX_FADV_SEQUENTIAL) = 0
24425 1795193645.583719 read(3</tmp/x>, \"5\\340(\\314, 8\\\"\"..., 131072) = 131072
24425 1795193645.590000 read(3</tmp/x>, \"\"..., 131072) = 100
24425 1795193645.591000 lseek(3</tmp/x>, 4096, SEEK_SET) = 4096
24425 1795193645.592000 pread64(3</tmp/x>, \"\"..., 10, 77) = 10
24425 1795193645.593000 read(3</tmp/x>, \"\", 131072) = 0
24425 1795193645.594000 read(3</tmp/x>, 0x7f, 5) = -1 EIO (Input/output error)
24425 1795193645.595000 read(0</dev/pts/0>, \"q\", 1) = 1
24425 1795193645.596000 close(3</tmp/x>) = 0
24425 1795193645.597000 +++ exited with 0 +++
";

#[test]
fn positions_follow_from_the_calls_before() {
    let trace = read(BASIC).unwrap();
    assert_eq!(places(&trace), [(0, 0, 0), (0, 0, 131_072), (0, 131_072, 100), (0, 77, 10)]);
    let sequential = TraceRecordKind::Advise(RangeAdvice::Sequential);
    assert_eq!(trace.records()[0].kind, sequential);
    assert_eq!(trace.threads(), [24425.into()]);
    assert!(trace.is_timed() && detects(BASIC.as_bytes()));
    assert_eq!(trace.records()[1].kind, TraceRecordKind::Read);
}

#[test]
fn duplicates_and_children_share_open_files_and_copies_do_not() {
    let text = "\
1 1.0 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3
1 1.1 dup2(3, 0) = 0
1 1.2 close(3) = 0
1 1.3 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
2 1.4 read(0, \"\"..., 10) = 10
1 1.5 <... clone resumed>, child_tidptr=0x7f) = 2
1 1.6 read(0, \"\"..., 10) = 10
2 1.7 close(0) = 0
1 1.8 read(0, \"\"..., 10) = 10
2 1.9 openat(AT_FDCWD, \"/a\", O_RDONLY) = 0
2 2.0 read(0, \"\"..., 10) = 10
";
    // The child's first read precedes the return of its parent's clone and has no path, so its file
    // is unknown.
    let trace = read(text).unwrap();
    assert_eq!(places(&trace), [(0, 0, 10), (0, 10, 10), (1, 0, 10)]);
}

#[test]
fn a_call_that_was_interrupted_by_another_line_has_the_time_when_it_began() {
    let text = "\
1 1.000001 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3</a>
1 1.000002 read(3</a>, <unfinished ...>
2 1.000003 openat(AT_FDCWD, \"/b(1), x\", O_RDONLY) = 4</b(1), x>
2 1.000004 read(4</b(1), x>, \"\"..., 5) = 5
1 1.000009 <... read resumed>\"\"..., 7) = 7
";
    let trace = read(text).unwrap();
    assert_eq!(places(&trace), [(0, 0, 7), (1, 0, 5)]);
    assert_eq!(trace.span().get(), 2000);
}

#[test]
fn threads_flags_durations_advice_truncation_and_deletion_are_kept() {
    let text = "\
7 1.0 openat(AT_FDCWD, \"/a\", O_RDWR|O_CLOEXEC|O_DIRECT) = 3</a> <0.000020>
7 1.1 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack_size=0x7ff}, 88) = 8 <0.000100>
8 1.2 fadvise64(3</a>, 4096, 8192, POSIX_FADV_WILLNEED) = 0 <0.000003>
8 1.3 pread64(3</a>, \"\"..., 3809, 50) = 3809 <0.001500>
7 1.4 readahead(3</a>, 0, 65536) = 0 <0.000004>
7 1.5 ftruncate(3</a>, 100) = 0 <0.000004>
7 1.6 unlink(\"/a\") = 0 <0.000004>
7 1.7 unlink(\"/never-opened\") = 0 <0.000004>
7 1.8 fadvise64(3</a>, 0, 0, POSIX_FADV_DONTNEED) = -1 EBADF (Bad file descriptor) <0.000004>
";
    let trace = read(text).unwrap();
    let willneed = TraceRecordKind::Advise(RangeAdvice::WillNeed);
    let kinds: Vec<_> = trace.records().iter().map(|record| record.kind).collect();
    use TraceRecordKind::{Delete, Read, Truncate};
    assert_eq!(kinds, [willneed, Read, willneed, Truncate, Delete]);
    assert_eq!(places(&trace)[..2], [(0, 4096, 8192), (0, 50, 3809)]);
    assert_eq!(trace.records()[1].took, Nanos::from_micros(1500));
    assert_eq!(trace.open_flags(0), 0o40_002);
    let threads: Vec<(u64, u64)> =
        trace.threads().iter().map(|it| (it.thread, it.process)).collect();
    assert_eq!(threads, [(8, 7), (7, 7)]);
    assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
}

#[test]
fn broken_lines_are_named() {
    for (text, line) in [
        ("1 1.0 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n1 1.1 read(3, \"abc", 2),
        ("1 1.0 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n1 1.1 read(3, \"\", 5)", 2),
        ("1 1.0 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\nnonsense\n", 2),
        ("1 1.5 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n1 1.1 read(3, \"\", 5) = 5\n", 2),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(line), "{text}: {error}");
    }
    assert!(read("1 1.0 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n").is_err(), "nothing is read");
}

#[test]
fn times_of_day_and_no_times_are_understood() {
    let text = "12:00:01.500000 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n\
                12:00:02.000000 read(3, \"\"..., 5) = 5\n\
                12:00:02.250000 read(3, \"\"..., 5) = 5\n";
    let trace = read(text).unwrap();
    assert_eq!(trace.span(), Nanos::from_millis(250));
    let untimed = read("open(\"/a\", O_RDONLY) = 3\nread(3, \"\"..., 5) = 5\n").unwrap();
    assert!(!untimed.is_timed());
}
