//! Tracks the open file and file position behind each descriptor of each process.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use super::call::StraceCall;
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::model::{Trace, TraceRecord, TraceRecordKind, TraceThread};
use workload::{AccessMethod, Hint, RangeAdvice, TraceOpenFile};

/// An open file, which all duplicates of a descriptor share.
#[derive(Clone, Copy, Debug)]
struct Open {
    open_file: u32,
    position: u64,
}

/// Flags of `open(2)` that affect reads, by the names that strace prints.
const OPEN_FLAGS: &[(&str, u32)] = &[
    ("O_WRONLY", 0o1),
    ("O_RDWR", 0o2),
    ("O_CREAT", 0o100),
    ("O_TRUNC", 0o1000),
    ("O_APPEND", 0o2000),
    ("O_DIRECT", 0o40_000),
    ("O_NOATIME", 0o1_000_000),
];

fn open_flags(words: &str) -> u32 {
    let flag = |word: &str| OPEN_FLAGS.iter().find(|(name, _)| *name == word).map(|it| it.1);
    words.split('|').filter_map(flag).fold(0, |all, flag| all | flag)
}

fn advice(word: &str) -> Option<RangeAdvice> {
    Some(match word {
        "POSIX_FADV_NORMAL" => RangeAdvice::Normal,
        "POSIX_FADV_SEQUENTIAL" => RangeAdvice::Sequential,
        "POSIX_FADV_RANDOM" => RangeAdvice::Random,
        "POSIX_FADV_WILLNEED" => RangeAdvice::WillNeed,
        "POSIX_FADV_DONTNEED" => RangeAdvice::DontNeed,
        _ => return None,
    })
}

pub(super) struct Descriptors {
    builder: TraceBuilder,
    opens: Vec<Open>,
    /// For each table, descriptors with their index in `opens`. Threads share a table.
    tables: Vec<HashMap<i64, usize>>,
    processes: HashMap<u64, usize>,
    /// The process of each thread except the first thread of a process.
    leaders: HashMap<u64, u64>,
    /// The last open file of each path, as an index in `opens`.
    paths: HashMap<String, usize>,
}

/// Returns whether a path that strace prints is a file to which read-ahead may apply.
fn is_file(path: &str) -> bool {
    let apart = ["/proc/", "/sys/", "/dev/pts/", "/dev/shm/"];
    let devices =
        ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom"];
    path.starts_with('/')
        && !apart.iter().any(|prefix| path.starts_with(prefix))
        && !devices.contains(&path)
}

impl Descriptors {
    pub(super) fn new(timed: bool) -> Self {
        // Calls are added when they return, but with the time of their start.
        let builder = TraceBuilder::new(timed).sorting(true);
        Self {
            builder,
            opens: Vec::new(),
            tables: Vec::new(),
            processes: HashMap::new(),
            leaders: HashMap::new(),
            paths: HashMap::new(),
        }
    }

    pub(super) fn origin(&self) -> Nanos {
        self.builder.origin()
    }

    pub(super) fn finish(self) -> Result<Trace, TraceError> {
        self.builder.finish()
    }

    fn table(&mut self, process: u64) -> &mut HashMap<i64, usize> {
        let next = self.tables.len();
        let table = *self.processes.entry(process).or_insert(next);
        if table == next {
            self.tables.push(HashMap::new());
        }
        &mut self.tables[table]
    }

    fn open(&mut self, process: u64, descriptor: i64, path: &str, flags: u32) {
        let place = if is_file(path) {
            let file = self.builder.file(path);
            let open = TraceOpenFile { file, access: AccessMethod::Read, hint: Hint::None };
            let open_file = self.builder.open_with(open, flags);
            self.opens.push(Open { open_file, position: 0 });
            self.paths.insert(path.to_owned(), self.opens.len() - 1);
            Some(self.opens.len() - 1)
        } else {
            None
        };
        let table = self.table(process);
        match place {
            Some(place) => table.insert(descriptor, place),
            None => table.remove(&descriptor),
        };
    }

    /// Returns the open file of a descriptor. If the descriptor was open before the recording, the
    /// path that `-y` prints identifies the file, and its unknown position is assumed to be 0.
    fn known(&mut self, process: u64, call: &StraceCall<'_>, at: usize) -> Option<usize> {
        let (descriptor, path) = call.descriptor(at)?;
        if let Some(place) = self.table(process).get(&descriptor) {
            return Some(*place);
        }
        self.open(process, descriptor, path.filter(|path| is_file(path))?, 0);
        self.table(process).get(&descriptor).copied()
    }

    pub(super) fn follow(
        &mut self,
        line: u64,
        time: Nanos,
        process: u64,
        call: &StraceCall<'_>,
    ) -> Result<(), TraceError> {
        let Some(returned) = call.returned.filter(|returned| *returned >= 0) else {
            return Ok(());
        };
        match call.name {
            "open" | "openat" | "openat2" | "creat" => {
                let at = usize::from(call.name.starts_with("openat"));
                let quoted = call.arguments.get(at).map_or("", |word| word.trim_matches('"'));
                let path = call.returned_path.unwrap_or(quoted);
                let flags = call.arguments.get(at + 1).map_or(0, |words| open_flags(words));
                self.open(process, returned, path, flags);
            }
            "close" => {
                let descriptor = call.descriptor(0);
                descriptor.and_then(|(descriptor, _)| self.table(process).remove(&descriptor));
            }
            "close_range" => {
                let range = call.number(0).unwrap_or(0)..=call.number(1).unwrap_or(i64::MAX);
                self.table(process).retain(|descriptor, _| !range.contains(descriptor));
            }
            "dup" | "dup2" | "dup3" => self.duplicate(process, call, returned),
            "fcntl" | "fcntl64" => {
                if call.arguments.get(1).is_some_and(|word| word.starts_with("F_DUPFD")) {
                    self.duplicate(process, call, returned);
                }
            }
            "clone" | "clone3" | "fork" | "vfork" => self.fork(process, call, returned),
            "lseek" | "_llseek" => self.seek(process, call, returned),
            "fadvise64" | "fadvise64_64" => {
                let Some(advice) = call.arguments.last().and_then(|it| advice(it)) else {
                    return Ok(());
                };
                let place = self.known(process, call, 0);
                let range = (call.number(1), call.number(2));
                return self.note(line, (time, process, call), place, advice.into(), range);
            }
            "readahead" => {
                let place = self.known(process, call, 0);
                let range = (call.number(1), call.number(2));
                let kind = RangeAdvice::WillNeed.into();
                return self.note(line, (time, process, call), place, kind, range);
            }
            "ftruncate" => {
                let place = self.known(process, call, 0);
                let range = (call.number(1), Some(0));
                let kind = TraceRecordKind::Truncate;
                return self.note(line, (time, process, call), place, kind, range);
            }
            "truncate" | "unlink" | "unlinkat" => {
                let is_truncate = call.name == "truncate";
                let at = usize::from(call.name == "unlinkat");
                let path = call.arguments.get(at).map_or("", |word| word.trim_matches('"'));
                let place = self.paths.get(path).copied();
                let range = (if is_truncate { call.number(1) } else { Some(0) }, Some(0));
                let kind = match is_truncate {
                    true => TraceRecordKind::Truncate,
                    false => TraceRecordKind::Delete,
                };
                return self.note(line, (time, process, call), place, kind, range);
            }
            _ => return self.transfer(line, time, process, call, returned),
        }
        Ok(())
    }

    fn duplicate(&mut self, process: u64, call: &StraceCall<'_>, descriptor: i64) {
        let known = self.known(process, call, 0);
        let table = self.table(process);
        match known {
            Some(place) => table.insert(descriptor, place),
            None => table.remove(&descriptor),
        };
    }

    fn fork(&mut self, process: u64, call: &StraceCall<'_>, child: i64) {
        let Ok(child) = u64::try_from(child) else { return };
        let shares = call.arguments.iter().any(|word| word.contains("CLONE_FILES"));
        if call.arguments.iter().any(|word| word.contains("CLONE_THREAD")) {
            let leader = self.leader(process);
            self.leaders.insert(child, leader);
        }
        let copy = self.table(process).clone();
        // Calls of the child may be recorded before its parent's call returns.
        if let Some(table) = self.processes.get(&child).copied() {
            for (descriptor, place) in copy {
                self.tables[table].entry(descriptor).or_insert(place);
            }
            return;
        }
        let table = if shares {
            self.processes.get(&process).copied().unwrap_or(0)
        } else {
            self.tables.push(copy);
            self.tables.len() - 1
        };
        self.processes.insert(child, table);
    }

    fn seek(&mut self, process: u64, call: &StraceCall<'_>, returned: i64) {
        // _llseek returns the position in an argument, as in [4096].
        let result = match call.name {
            "_llseek" => {
                let word = call.arguments.get(2).copied().unwrap_or_default();
                word.trim_matches(['[', ']']).parse().ok()
            }
            _ => u64::try_from(returned).ok(),
        };
        if let (Some(place), Some(position)) = (self.known(process, call, 0), result) {
            self.opens[place].position = position;
        }
    }

    /// Returns the process of a thread.
    fn leader(&self, thread: u64) -> u64 {
        self.leaders.get(&thread).copied().unwrap_or(thread)
    }

    fn thread(&mut self, thread: u64) -> u32 {
        let process = self.leader(thread);
        self.builder.thread(TraceThread { thread, process })
    }

    /// Records a call that transfers no data, if its file is known.
    fn note(
        &mut self,
        line: u64,
        (time, thread, call): (Nanos, u64, &StraceCall<'_>),
        place: Option<usize>,
        kind: TraceRecordKind,
        (offset, length): (Option<i64>, Option<i64>),
    ) -> Result<(), TraceError> {
        let bytes = |number: Option<i64>| {
            number.and_then(|number| u64::try_from(number).ok()).map(Bytes::new)
        };
        let (Some(place), Some(offset), Some(length)) = (place, bytes(offset), bytes(length))
        else {
            return Ok(());
        };
        let open_file = self.opens[place].open_file;
        let (process, took) = (self.thread(thread), call.took.unwrap_or_default());
        let record = TraceRecord { time, open_file, process, kind, offset, length, took };
        self.builder.push(TraceLocation::Line(line), record)
    }

    fn transfer(
        &mut self,
        line: u64,
        time: Nanos,
        process: u64,
        call: &StraceCall<'_>,
        moved: i64,
    ) -> Result<(), TraceError> {
        let (kind, at, offset) = match call.name {
            "read" | "readv" => (TraceRecordKind::Read, 0, None),
            "pread64" | "preadv" | "preadv2" => (TraceRecordKind::Read, 0, Some(3)),
            "write" | "writev" => (TraceRecordKind::Write, 0, None),
            "pwrite64" | "pwritev" | "pwritev2" => (TraceRecordKind::Write, 0, Some(3)),
            "sendfile" | "sendfile64" => (TraceRecordKind::Read, 1, None),
            "copy_file_range" => (TraceRecordKind::Read, 0, None),
            _ => return Ok(()),
        };
        let Some(place) = self.known(process, call, at) else { return Ok(()) };
        let length = u64::try_from(moved).unwrap_or(0);
        // preadv2 and pwritev2 use the file position if the offset is -1.
        let explicit = offset.and_then(|at| call.number(at)).and_then(|it| u64::try_from(it).ok());
        let start = match explicit {
            Some(start) => start,
            None => {
                let open = &mut self.opens[place];
                let start = open.position;
                open.position = start.saturating_add(length);
                start
            }
        };
        let record = TraceRecord {
            time,
            open_file: self.opens[place].open_file,
            process: self.thread(process),
            kind,
            offset: Bytes::new(start),
            length: Bytes::new(length),
            took: call.took.unwrap_or_default(),
        };
        self.builder.push(TraceLocation::Line(line), record)
    }
}
