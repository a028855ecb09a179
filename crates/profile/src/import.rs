//! Imports recordings of other programs: traces with the duration of each call, and with stacks if
//! available.
//!
//! Such a recording has no windows, device requests or evictions, so fewer rules apply. All time
//! outside of waits counts as CPU time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use blazesym::symbolize::Symbolizer;
use host::DevNo;
use observe::{AdviceCallKind, InodeId};
use trace::{ReadOptions, StackedTrace, Trace, TraceRecord, TraceRecordKind};
use units::{Bytes, Nanos};
use workload::{AccessMethod, RangeAdvice};

use crate::advice_values::{DONTNEED_VALUE, RANDOM_VALUE, SEQUENTIAL_VALUE, WILLNEED_VALUE};
use crate::error::ProfileError;
use crate::recording::{
    AccessKind, AdviceRecord, FileAccess, Frame, ProfileRecording, ProfiledFile, StackTrace,
    StorageWait, ThreadAccount, WaitClass,
};
use crate::symbols::{frames, symbolizer};

/// A call without a wait takes at most this long, plus the time to copy its data: strace alone
/// extends a call of 1 µs to 15 µs or more.
const MAX_CALL_TIME: Nanos = Nanos::from_micros(50);
/// Minimum rate at which cached data is copied.
const COPY_BYTES_PER_SECOND: f64 = 2e9;
/// `open(2)` flag for reads that bypass the page cache.
const O_DIRECT: u32 = 0o40_000;

/// Imports the output of `strace -f -ttt -T -y -k` or `perf script`, or any trace with call
/// durations. `form` names the format if it cannot be detected.
///
/// # Errors
///
/// If the format is unknown, or the trace has no call durations.
pub fn imported(path: &Path, form: Option<String>) -> Result<ProfileRecording, ProfileError> {
    let options = ReadOptions { format: form, ..ReadOptions::default() };
    let found = trace::read_with_stacks(path, &options)?;
    if found.trace.reads().all(|record| record.took == Nanos::ZERO) {
        return Err(ProfileError::NoTimes { path: path.to_owned() });
    }
    let mut recording = recording_of(&found);
    recording.target = units::text::plain(&path.display().to_string());
    Ok(recording)
}

fn recording_of(found: &StackedTrace) -> ProfileRecording {
    let trace = &found.trace;
    let threads = trace.threads();
    let mut stacks = Stacks::default();
    let mut recording = ProfileRecording {
        files: files(trace),
        missing: ["windows", "device requests", "evictions"].map(str::to_owned).to_vec(),
        wall: trace.records().iter().map(|it| it.time + it.took).max().unwrap_or_default(),
        taken: trace.records().len() as u64,
        ..ProfileRecording::default()
    };
    let mut spans: BTreeMap<u32, (Nanos, Nanos, Nanos)> = BTreeMap::new();
    let mut random: BTreeSet<u32> = BTreeSet::new();
    for record in trace.records() {
        let thread = threads[record.process as usize];
        let tid = u32::try_from(thread.thread).unwrap_or(u32::MAX);
        let pid = u32::try_from(thread.process).unwrap_or(u32::MAX);
        let frames = found.stacks.get(&(thread.thread, record.time));
        let stack = stacks.place(frames.map_or(&[], Vec::as_slice));
        let inode = trace.open_files()[record.open_file as usize].file;
        let end = record.time + record.took;
        let span = spans.entry(record.process).or_insert((record.time, end, Nanos::ZERO));
        span.1 = span.1.max(end);
        match record.kind {
            TraceRecordKind::Read => {
                let is_random = random.contains(&record.open_file);
                let access = FileAccess { is_random, ..access(trace, record, tid) };
                if access.blocked > Nanos::ZERO {
                    span.2 += access.blocked;
                    recording.waits.push(wait(&access, pid, stack));
                }
                recording.accesses.push(access);
            }
            TraceRecordKind::Advise(advice) => {
                match advice {
                    RangeAdvice::Random => drop(random.insert(record.open_file)),
                    RangeAdvice::Normal | RangeAdvice::Sequential => {
                        random.remove(&record.open_file);
                    }
                    RangeAdvice::WillNeed | RangeAdvice::DontNeed => {}
                }
                recording.advice.push(advised(record, advice, (tid, inode, stack)));
            }
            _ => {}
        }
    }
    recording.threads = spans
        .iter()
        .map(|(process, (first, last, blocked))| {
            let thread = threads[*process as usize];
            let span = last.saturating_sub(*first);
            ThreadAccount {
                pid: u32::try_from(thread.process).unwrap_or(u32::MAX),
                tid: u32::try_from(thread.thread).unwrap_or(u32::MAX),
                comm: String::new(),
                span,
                cpu: span.saturating_sub(*blocked),
                runnable: Nanos::ZERO,
                blocked: *blocked,
            }
        })
        .collect();
    recording.stacks = stacks.stacks;
    recording
}

fn files(trace: &Trace) -> Vec<ProfiledFile> {
    let file = |(number, file): (u64, &trace::TraceFile)| ProfiledFile {
        id: InodeId { device: DevNo { major: 0, minor: 0 }, inode: number },
        path: units::text::plain(&file.name),
        size: file.size,
        start: None,
        jumps: Vec::new(),
    };
    (1..).zip(trace.files()).map(file).collect()
}

/// Returns a unique key in place of the address of an open file; 0 only for mappings.
fn open_file_key(trace: &Trace, open_file: u32) -> u64 {
    match trace.open_files()[open_file as usize].access {
        AccessMethod::Mmap => 0,
        _ => u64::from(open_file) + 1,
    }
}

fn access(trace: &Trace, record: &TraceRecord, tid: u32) -> FileAccess {
    let open = trace.open_files()[record.open_file as usize];
    let file = open_file_key(trace, record.open_file);
    let copying = Nanos::from_secs_f64(record.length.get() as f64 / COPY_BYTES_PER_SECOND);
    let blocked = record.took.saturating_sub(copying);
    let blocked = if blocked > MAX_CALL_TIME { blocked } else { Nanos::ZERO };
    FileAccess {
        start: record.time,
        end: record.time + record.took,
        tid,
        file,
        inode: open.file,
        offset: record.offset,
        length: record.length,
        blocked,
        kind: if file == 0 { AccessKind::Fault } else { AccessKind::Read },
        misses: u32::from(blocked > Nanos::ZERO),
        is_direct: trace.open_flags(record.open_file) & O_DIRECT != 0,
        calls: 1,
        ..FileAccess::default()
    }
}

fn wait(access: &FileAccess, pid: u32, stack: u32) -> StorageWait {
    StorageWait {
        end: access.end,
        blocked: access.blocked,
        tid: access.tid,
        pid,
        stack,
        class: if access.is_direct { WaitClass::Direct } else { WaitClass::Miss },
        inode: Some(access.inode),
        file: access.file,
        offset: access.offset,
    }
}

fn advised(
    record: &TraceRecord,
    advice: RangeAdvice,
    (tid, inode, stack): (u32, u32, u32),
) -> AdviceRecord {
    let value = match advice {
        RangeAdvice::Normal => 0,
        RangeAdvice::Random => RANDOM_VALUE,
        RangeAdvice::Sequential => SEQUENTIAL_VALUE,
        RangeAdvice::WillNeed => WILLNEED_VALUE,
        RangeAdvice::DontNeed => DONTNEED_VALUE,
    };
    AdviceRecord {
        at: record.time,
        tid,
        call: AdviceCallKind::Fadvise,
        advice: value,
        file: u64::from(record.open_file) + 1,
        inode: Some(inode),
        offset: record.offset.get(),
        length: record.length,
        result: 0,
        blocked: if record.took > MAX_CALL_TIME { record.took } else { Nanos::ZERO },
        stack,
        is_direct: false,
        submitted: Bytes::ZERO,
    }
}

/// The distinct stacks of a recording; the first is empty.
#[derive(Debug)]
struct Stacks {
    stacks: Vec<StackTrace>,
    places: HashMap<Vec<String>, u32>,
    frames: HashMap<String, (bool, Vec<Frame>)>,
    symbolizer: Symbolizer,
}

impl Default for Stacks {
    fn default() -> Self {
        let places = HashMap::from([(Vec::new(), 0)]);
        let stacks = vec![StackTrace::default()];
        Self { stacks, places, frames: HashMap::new(), symbolizer: symbolizer() }
    }
}

impl Stacks {
    fn place(&mut self, printed: &[String]) -> u32 {
        if let Some(place) = self.places.get(printed) {
            return *place;
        }
        let mut stack = StackTrace::default();
        for line in printed {
            let Self { frames, symbolizer, .. } = self;
            let found = frames.entry(line.clone());
            let (in_kernel, frames) = found.or_insert_with(|| printed_frame(line, symbolizer));
            let part = if *in_kernel { &mut stack.kernel } else { &mut stack.user };
            part.extend_from_slice(frames);
        }
        let place = self.stacks.len() as u32;
        self.stacks.push(stack);
        self.places.insert(printed.to_vec(), place);
        place
    }
}

/// Returns the functions of a printed frame, and whether it is a kernel frame. strace prints
/// `/bin/cat(main+0x39) [0x11ea]` with the offset in the file, which yields source lines if this
/// host has the same file. perf prints `55d0c0de1192 main+0x39 (/bin/cat)`.
fn printed_frame(line: &str, symbolizer: &Symbolizer) -> (bool, Vec<Frame>) {
    let clean = |text: &str| units::text::plain(text);
    if let Some((module, rest)) = line.split_once('(').filter(|_| line.starts_with('/')) {
        let function = rest.split(['+', ')']).next().unwrap_or_default();
        let offset = line
            .rsplit_once("[0x")
            .and_then(|(_, hex)| u64::from_str_radix(hex.trim_end_matches(']'), 16).ok());
        let found = offset.map(|offset| frames(symbolizer, module, offset.saturating_sub(1)));
        let found = found.filter(|frames| frames.iter().any(|frame| frame.source.is_some()));
        let printed = Frame { function: clean(function), module: clean(module), source: None };
        return (false, found.unwrap_or_else(|| vec![printed]));
    }
    let module = line.rsplit_once('(').map_or("", |(_, module)| module.trim_end_matches(')'));
    let name = line.split_whitespace().nth(1).unwrap_or("[unknown]");
    let function = clean(name.rsplit_once("+0x").map_or(name, |(function, _)| function));
    let in_kernel = module.starts_with("[kernel") || module.starts_with("[guest.kernel");
    let module = if in_kernel { String::new() } else { clean(module) };
    (in_kernel, vec![Frame { function, module, source: None }])
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRACE: &[u8] = b"\
7  10.000000 openat(AT_FDCWD, \"/data/a\", O_RDONLY) = 3</data/a> <0.000020>
7  10.000100 fadvise64(3</data/a>, 0, 0, POSIX_FADV_RANDOM) = 0 <0.000010>
 > /nowhere/libc.so.6(posix_fadvise+0x13) [0xf63d3]
7  10.001000 pread64(3</data/a>, \"\"..., 4096, 8192) = 4096 <0.005000>
 > /nowhere/libc.so.6(pread64+0x13) [0xf63d3]
 > /nowhere/reader(backward+0x39) [0x1192]
7  10.008000 pread64(3</data/a>, \"\"..., 4096, 4096) = 4096 <0.000020>
";

    fn import(text: &[u8]) -> Result<ProfileRecording, ProfileError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        imported(file.path(), None)
    }

    #[test]
    fn calls_that_take_long_are_waits_with_their_stacks() {
        let recording = import(STRACE).unwrap();
        assert_eq!(recording.wall, Nanos::from_micros(7920));
        let blocked: Vec<bool> =
            recording.accesses.iter().map(|access| access.blocked > Nanos::ZERO).collect();
        assert_eq!(blocked, [true, false]);
        assert!(recording.accesses.iter().all(|access| access.is_random));
        let [wait] = recording.waits.as_slice() else { panic!("{:?}", recording.waits) };
        let stack = &recording.stacks[wait.stack as usize];
        // The frame of the C library is not the program's.
        assert_eq!(stack.code().map(|frame| frame.function.as_str()), Some("backward"));
        assert_eq!(recording.advice.len(), 1);
    }

    #[test]
    fn what_has_no_times_of_calls_is_refused() {
        let text = b"7  10.000000 read(3</data/a>, \"\"..., 4096) = 4096\n";
        let error = import(text).unwrap_err();
        assert!(error.to_string().contains("strace -T"), "{error}");
        assert!(import(b"nothing of the sort").is_err());
    }

    #[test]
    fn frames_of_perf_are_told_from_the_kernels() {
        let (in_kernel, frames) = printed_frame(
            "ffffffff81592c92 filemap_fault+0x172 ([kernel.kallsyms])",
            &symbolizer(),
        );
        assert_eq!((in_kernel, frames[0].function.as_str()), (true, "filemap_fault"));
        let (in_kernel, frames) = printed_frame("55d0c0de1192 main+0x39 (/bin/cat)", &symbolizer());
        let frame = &frames[0];
        assert_eq!(
            (in_kernel, frame.function.as_str(), frame.module.as_str()),
            (false, "main", "/bin/cat")
        );
    }
}
