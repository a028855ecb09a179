//! Text of the kernel's tracing (`trace_pipe`, `trace-cmd report`) with the tracepoints
//! `mm_filemap_get_pages`, a read through the page cache, and `mm_filemap_fault`, a fault on a
//! mapped file (`include/trace/events/filemap.h`). Offsets are whole pages, and files are device
//! and inode. Several open files of the same process and file are indistinguishable.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use super::lines::{exact_seconds, head, lines};
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecord, TraceRecordKind, TraceThread};
use workload::AccessMethod;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "ftrace",
    summary: "the kernel's trace_pipe with filemap:mm_filemap_get_pages and mm_filemap_fault",
    detects,
    parse,
};

const GET_PAGES: &str = " mm_filemap_get_pages: ";
const FAULT: &str = " mm_filemap_fault: ";
/// Size of a faulting page in bytes.
const PAGE_BYTES: u64 = 4096;

fn detects(bytes: &[u8]) -> bool {
    head(bytes, 50).iter().any(|line| line.contains(GET_PAGES) || line.contains(FAULT))
}

/// The range of a file that an event covers.
pub(super) struct FilePages {
    file: String,
    start: u64,
    /// End of a read, exclusive; `None` for a fault.
    end: Option<u64>,
}

impl FilePages {
    /// Parses `dev=8:1 ino=ff ofs=0-4095`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace();
        let device = fields.next()?.strip_prefix("dev=")?;
        let inode = u64::from_str_radix(fields.next()?.strip_prefix("ino=")?, 16).ok()?;
        let place = fields.next()?.strip_prefix("ofs=")?;
        let (start, end) = match place.split_once('-') {
            Some((start, end)) => (start, Some(end.parse::<u64>().ok()?.checked_add(1)?)),
            None => (place, None),
        };
        Some(Self { file: format!("{device}/{inode}"), start: start.parse().ok()?, end })
    }
}

/// Builds a trace of reads and faults from their pages.
pub(super) struct PageReads {
    builder: TraceBuilder,
    opens: HashMap<(u64, u32, bool), u32>,
    /// Last range by thread and file: the kernel repeats the rest of a long read for each batch.
    last: HashMap<(u64, u32), (u64, u64)>,
}

impl PageReads {
    pub(super) fn new(options: ImportOptions) -> Self {
        let builder = TraceBuilder::new(true).sorting(options.sort);
        Self { builder, opens: HashMap::new(), last: HashMap::new() }
    }

    /// Adds a read or fault of a thread. Returns the index of its record, or `None` if it continues
    /// the previous read.
    pub(super) fn push(
        &mut self,
        line: u64,
        (process, thread, time): (u64, u64, Nanos),
        pages: &FilePages,
    ) -> Result<Option<usize>, TraceError> {
        let Self { builder, opens, last } = self;
        let file = builder.file(&pages.file);
        let fault = pages.end.is_none();
        let end = pages.end.unwrap_or(pages.start.saturating_add(PAGE_BYTES));
        if end <= pages.start {
            return Err(TraceError::line(line, "the read ends before it begins"));
        }
        let before = last.insert((thread, file), (pages.start, end));
        if !fault && before.is_some_and(|(start, of)| of == end && start < pages.start) {
            return Ok(None);
        }
        let access = if fault { AccessMethod::Mmap } else { AccessMethod::Read };
        let open_file =
            *opens.entry((process, file, fault)).or_insert_with(|| builder.open(file, access));
        let record = TraceRecord {
            took: Nanos::ZERO,
            time,
            open_file,
            process: builder.thread(TraceThread { thread, process }),
            kind: TraceRecordKind::Read,
            offset: Bytes::new(pages.start),
            length: Bytes::new(end - pages.start),
        };
        builder.push(TraceLocation::Line(line), record)?;
        Ok(Some(builder.len() - 1))
    }

    /// Adds time to the wait of a record.
    pub(super) fn waited(&mut self, record: usize, time: Nanos) {
        self.builder.waited(record, time);
    }

    pub(super) fn origin(&self) -> Nanos {
        self.builder.origin()
    }

    pub(super) fn finish(self) -> Result<Trace, TraceError> {
        self.builder.finish()
    }
}

/// Parses `NAME-THREAD (PROCESS) [CPU] FLAGS SECONDS:` into process, thread and time.
fn stamp(before: &str) -> Option<(u64, u64, Nanos)> {
    let time = exact_seconds(before.split_whitespace().next_back()?.strip_suffix(':')?)?;
    let task = before.split(" [").next()?.trim();
    let (task, process) = match task.rsplit_once('(') {
        Some((task, process)) => (task.trim(), process.trim_end_matches(')').trim().parse().ok()),
        None => (task, None),
    };
    let thread = task.rsplit_once('-')?.1.trim().parse().ok()?;
    Some((process.unwrap_or(thread), thread, time))
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut reads = PageReads::new(options);
    for (line, text) in lines(bytes) {
        let Some(name) = [GET_PAGES, FAULT].into_iter().find(|name| text.contains(name)) else {
            continue;
        };
        let broken = || TraceError::line(line, "the line is cut short or not the kernel's");
        let (before, after) = text.split_once(name).ok_or_else(broken)?;
        let who = stamp(before).ok_or_else(broken)?;
        reads.push(line, who, &FilePages::of(after).ok_or_else(broken)?)?;
    }
    reads.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
 cat-1234 (1234) [001] .....  100.000001: mm_filemap_get_pages: dev=8:1 ino=ff ofs=0-131071
 cat-1234 (1234) [001] ...  100.000005: mm_filemap_get_pages: dev=8:1 ino=ff ofs=61440-131071
 a b (c)-d-1235    (   1234) [000] ..... 100.000009: mm_filemap_fault: dev=8:1 ino=ff ofs=8192
 cat-1234 [001] .....  100.000010: mm_filemap_get_pages: dev=8:1 ino=ff ofs=131072-262143
";

    #[test]
    fn batches_of_one_read_are_one_and_faults_are_mapped() {
        let trace = parse(TEXT, ImportOptions::default()).unwrap();
        let places: Vec<(u32, u64, u64)> = trace
            .records()
            .iter()
            .map(|record| (record.open_file, record.offset.get(), record.length.get()))
            .collect();
        assert_eq!(places, [(0, 0, 131_072), (1, 8192, 4096), (0, 131_072, 131_072)]);
        assert_eq!(trace.open_files()[1].access, AccessMethod::Mmap);
        assert_eq!(
            trace.threads(),
            [1234, 1235].map(|thread| TraceThread { thread, process: 1234 })
        );
        assert_eq!(trace.files()[0].name, "8:1/255");
        assert!(detects(TEXT));
    }

    #[test]
    fn broken_lines_are_named() {
        let cut = &TEXT[..TEXT.len() - 10];
        let error = parse(&cut[..165], ImportOptions::default()).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(2), "{error}");
    }
}
