//! The text of the kernel's own tracing (`trace_pipe`, `trace-cmd report`) with the tracepoints
//! `mm_filemap_get_pages`, a read through the page cache, and `mm_filemap_fault`, a fault of a
//! mapped file (`include/trace/events/filemap.h`). Places are known in whole pages, files by
//! device and inode, and an open file cannot be told from another of the same process and file.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use super::lines::{exact_seconds, head, lines};
use crate::builder::TraceBuilder;
use crate::error::{TraceError, TraceLocation};
use crate::import::form::{ImportOptions, TraceFormat};
use crate::model::{Trace, TraceRecord, TraceRecordKind};
use workload::AccessMethod;

pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "ftrace",
    summary: "the kernel's trace_pipe with filemap:mm_filemap_get_pages and mm_filemap_fault",
    detects,
    parse,
};

const GET_PAGES: &str = " mm_filemap_get_pages: ";
const FAULT: &str = " mm_filemap_fault: ";
/// The page whose fault is told.
const PAGE_BYTES: u64 = 4096;

fn detects(bytes: &[u8]) -> bool {
    head(bytes, 50).iter().any(|line| line.contains(GET_PAGES) || line.contains(FAULT))
}

struct Event {
    thread: u64,
    /// The process of the thread, if it was recorded.
    process: u64,
    time: Nanos,
    file: String,
    start: u64,
    /// The byte after the last, of a read; none of a fault.
    end: Option<u64>,
}

/// `NAME-THREAD (PROCESS) [CPU] FLAGS SECONDS:` and `dev=8:1 ino=ff ofs=0-4095`.
fn event(text: &str) -> Option<Event> {
    let read = text.contains(GET_PAGES);
    let (before, after) = text.split_once(if read { GET_PAGES } else { FAULT })?;
    let time = exact_seconds(before.split_whitespace().next_back()?.strip_suffix(':')?)?;
    let task = before.split(" [").next()?.trim();
    let (task, process) = match task.rsplit_once('(') {
        Some((task, process)) => (task.trim(), process.trim_end_matches(')').trim().parse().ok()),
        None => (task, None),
    };
    let thread = task.rsplit_once('-')?.1.trim().parse().ok()?;
    let mut fields = after.split_whitespace();
    let device = fields.next()?.strip_prefix("dev=")?;
    let inode = u64::from_str_radix(fields.next()?.strip_prefix("ino=")?, 16).ok()?;
    let place = fields.next()?.strip_prefix("ofs=")?;
    let (start, end) = match place.split_once('-') {
        Some((start, end)) => (start, end.parse::<u64>().ok()?.checked_add(1)),
        None => (place, None),
    };
    let (start, process) = (start.parse().ok()?, process.unwrap_or(thread));
    Some(Event { thread, process, time, file: format!("{device}/{inode}"), start, end })
}

fn parse(bytes: &[u8], options: ImportOptions) -> Result<Trace, TraceError> {
    let mut builder = TraceBuilder::new(true).sorting(options.sort);
    let mut opens: HashMap<(u64, u32, bool), u32> = HashMap::new();
    // The kernel tells a long read again for each batch of pages: with the same end, further on.
    let mut last: HashMap<(u64, u32), (u64, u64)> = HashMap::new();
    for (line, text) in lines(bytes) {
        if !(text.contains(GET_PAGES) || text.contains(FAULT)) {
            continue;
        }
        let broken = || TraceError::line(line, "the line is cut short or not the kernel's");
        let event = event(&text).ok_or_else(broken)?;
        let file = builder.file(&event.file);
        let fault = event.end.is_none();
        let end = event.end.unwrap_or(event.start.saturating_add(PAGE_BYTES));
        if end <= event.start {
            return Err(TraceError::line(line, "the read ends before it begins"));
        }
        let before = last.insert((event.thread, file), (event.start, end));
        if !fault && before.is_some_and(|(start, of)| of == end && start < event.start) {
            continue;
        }
        let access = if fault { AccessMethod::Mmap } else { AccessMethod::Read };
        let open_file = *opens
            .entry((event.process, file, fault))
            .or_insert_with(|| builder.open(file, access));
        let record = TraceRecord {
            took: Nanos::ZERO,
            time: event.time,
            open_file,
            process: builder.process(event.thread),
            kind: TraceRecordKind::Read,
            offset: Bytes::new(event.start),
            length: Bytes::new(end - event.start),
        };
        builder.push(TraceLocation::Line(line), record)?;
    }
    builder.finish()
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
        assert_eq!(trace.processes(), [1234, 1235]);
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
