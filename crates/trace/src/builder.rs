//! Builds a trace from the records of any recorder.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use crate::error::{TraceError, TraceLocation};
use crate::model::{Trace, TraceFile, TraceRecord, TraceRecordKind, TraceThread};
use workload::TraceOpenFile;
use workload::{AccessMethod, Hint};

/// Maximum number of records in a trace: they are in memory, in at most 1.5 GiB.
pub const RECORDS_MAX: usize = 1 << 25;
/// Maximum number of files and of open files.
pub(crate) const FILES_MAX: usize = 1 << 20;
/// Maximum end of a request: larger numbers are invalid, and the sum of two cannot overflow.
pub(crate) const END_MAX: u64 = 1 << 62;

/// Collects and checks the records of a trace.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    trace: Trace,
    sort: bool,
    origin: Option<Nanos>,
    last: Nanos,
    files: HashMap<String, u32>,
    threads: HashMap<u64, u32>,
}

impl TraceBuilder {
    /// Creates an empty builder. `timed` says whether the records have times.
    pub fn new(timed: bool) -> Self {
        Self { trace: Trace { timed, ..Trace::default() }, ..Self::default() }
    }

    /// If `sort` is set, accepts records in any order of time and sorts them in the end. Otherwise
    /// a time that runs backward is an error.
    #[must_use]
    pub fn sorting(mut self, sort: bool) -> Self {
        self.sort = sort;
        self
    }

    /// Returns the number of records so far.
    pub fn len(&self) -> usize {
        self.trace.records.len()
    }

    /// Returns whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.trace.records.is_empty()
    }

    pub fn file(&mut self, name: &str) -> u32 {
        if let Some(file) = self.files.get(name) {
            return *file;
        }
        let file = self.another_file(name);
        self.files.insert(name.to_owned(), file);
        file
    }

    /// Adds a file even if one with this name exists: it has replaced that one.
    pub fn another_file(&mut self, name: &str) -> u32 {
        self.trace.files.push(TraceFile { name: name.to_owned(), size: Bytes::ZERO });
        self.trace.files.len() as u32 - 1
    }

    pub fn open(&mut self, file: u32, access: AccessMethod) -> u32 {
        self.open_with(TraceOpenFile { file, access, hint: Hint::None }, 0)
    }

    /// Adds an open file with the flags of `open(2)`, which are 0 if unknown.
    pub fn open_with(&mut self, open: TraceOpenFile, flags: u32) -> u32 {
        self.trace.open_files.push(open);
        self.trace.open_flags.push(flags);
        self.trace.open_files.len() as u32 - 1
    }

    /// Sets the advice that the program gave for an open file.
    pub fn advise(&mut self, open_file: u32, hint: Hint) {
        if let Some(open) = self.trace.open_files.get_mut(open_file as usize) {
            open.hint = hint;
        }
    }

    pub fn process(&mut self, number: u64) -> u32 {
        self.thread(number.into())
    }

    /// Adds a thread or finds it by its number. Its process is the one of the first call.
    pub fn thread(&mut self, thread: TraceThread) -> u32 {
        let next = self.trace.threads.len() as u32;
        let index = *self.threads.entry(thread.thread).or_insert(next);
        if index == next {
            self.trace.threads.push(thread);
        }
        index
    }

    /// Adds a record. A read or write of no bytes is ignored. Errors refer to `place`, the record's
    /// location in its source.
    pub fn push(&mut self, place: TraceLocation, record: TraceRecord) -> Result<(), TraceError> {
        let wrong = |problem: String| Err(TraceError::at(place, problem));
        if record.length.is_zero() && record.kind.transfers() {
            return Ok(());
        }
        let end = record.offset.get().checked_add(record.length.get());
        let Some(end) = end.filter(|end| *end <= END_MAX) else {
            let (offset, length) = (record.offset.get(), record.length.get());
            return wrong(format!("{length} bytes at {offset} are beyond any file"));
        };
        if self.trace.records.len() >= RECORDS_MAX || self.trace.open_files.len() > FILES_MAX {
            return wrong(format!(
                "more than {RECORDS_MAX} requests or {FILES_MAX} open files: cut the trace"
            ));
        }
        let origin = *self.origin.get_or_insert(record.time);
        if record.time < self.last && !self.sort {
            // The recorder's epoch is arbitrary, so report only the difference.
            let back = self.last.saturating_sub(record.time).as_secs_f64();
            return wrong(format!(
                "time runs backward by {back:.9} s: `foreread trace import --sort` puts records in \
                 order"
            ));
        }
        self.origin = Some(origin.min(record.time));
        self.last = record.time;
        let open = self.trace.open_files.get(record.open_file as usize);
        let file = open.and_then(|open| self.trace.files.get_mut(open.file as usize));
        let (Some(file), true) = (file, (record.process as usize) < self.trace.threads.len())
        else {
            let (open, process) = (record.open_file, record.process);
            return wrong(format!("there is no open file {open} or no process {process}"));
        };
        if record.kind.transfers() {
            file.size = file.size.max(Bytes::new(end));
        }
        let records = &mut self.trace.records;
        if records.len() == records.capacity() && records.try_reserve(records.len().max(1)).is_err()
        {
            let (many, problem) = (records.len(), "there is no memory for more requests");
            return wrong(format!("{problem} than {many}: cut the trace"));
        }
        self.trace.records.push(record);
        Ok(())
    }

    /// Adds time to the wait of a record, which may have waited before.
    pub(crate) fn waited(&mut self, place: usize, time: Nanos) {
        if let Some(record) = self.trace.records.get_mut(place) {
            record.took += time;
        }
    }

    /// Returns the time of the first record by the recorder's clock.
    pub(crate) fn origin(&self) -> Nanos {
        self.origin.unwrap_or_default()
    }

    /// Returns the trace with its first record at time 0. Drops open files and processes without a
    /// request, and files without an open file.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        if !self.trace.records.iter().any(|record| record.kind.transfers()) {
            return Err(TraceError::whole("no request is in it"));
        }
        let origin = self.origin.unwrap_or_default();
        for record in &mut self.trace.records {
            record.time = record.time.saturating_sub(origin);
        }
        if self.sort {
            self.trace.records.sort_by_key(|record| record.time);
        }
        self.forget_unused();
        Ok(self.trace)
    }

    fn forget_unused(&mut self) {
        let trace = &mut self.trace;
        let mut opens = Renumber::new(trace.open_files.len());
        let mut threads = Renumber::new(trace.threads.len());
        for record in &mut trace.records {
            record.open_file = opens.of(record.open_file);
            record.process = threads.of(record.process);
        }
        trace.open_files = opens.apply(&trace.open_files);
        trace.open_flags = opens.apply(&trace.open_flags);
        trace.threads = threads.apply(&trace.threads);
        let mut files = Renumber::new(trace.files.len());
        for open in &mut trace.open_files {
            open.file = files.of(open.file);
        }
        trace.files = files.apply(&trace.files);
    }
}

/// New indices in the order of first use.
struct Renumber {
    new: Vec<u32>,
    order: Vec<u32>,
}

impl Renumber {
    fn new(len: usize) -> Self {
        Self { new: vec![u32::MAX; len], order: Vec::new() }
    }

    fn of(&mut self, old: u32) -> u32 {
        let slot = &mut self.new[old as usize];
        if *slot == u32::MAX {
            *slot = self.order.len() as u32;
            self.order.push(old);
        }
        *slot
    }

    fn apply<T: Clone>(&self, table: &[T]) -> Vec<T> {
        self.order.iter().map(|old| table[*old as usize].clone()).collect()
    }
}

/// A builder for one process with one open file per device or file, as most device traces are.
#[derive(Debug)]
pub(crate) struct OneProcess {
    pub(crate) builder: TraceBuilder,
    opens: HashMap<String, u32>,
    process: u32,
}

impl OneProcess {
    pub(crate) fn new(timed: bool, sort: bool) -> Self {
        let mut builder = TraceBuilder::new(timed).sorting(sort);
        let process = builder.process(0);
        Self { builder, opens: HashMap::new(), process }
    }

    pub(crate) fn push(
        &mut self,
        place: TraceLocation,
        file: &str,
        (time, kind): (Nanos, TraceRecordKind),
        (offset, length): (u64, u64),
    ) -> Result<(), TraceError> {
        let open_file = match self.opens.get(file) {
            Some(open) => *open,
            None => {
                let number = self.builder.file(file);
                let open = self.builder.open(number, AccessMethod::Read);
                self.opens.insert(file.to_owned(), open);
                open
            }
        };
        let (offset, length) = (Bytes::new(offset), Bytes::new(length));
        let process = self.process;
        let took = Nanos::ZERO;
        let record = TraceRecord { time, open_file, process, kind, offset, length, took };
        self.builder.push(place, record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, open_file: u32, offset: u64, length: u64) -> TraceRecord {
        TraceRecord {
            time: Nanos::new(time),
            open_file,
            process: 0,
            kind: TraceRecordKind::Read,
            offset: Bytes::new(offset),
            length: Bytes::new(length),
            took: Nanos::ZERO,
        }
    }

    fn builder() -> TraceBuilder {
        let mut builder = TraceBuilder::new(true);
        let file = builder.file("a");
        builder.open(file, AccessMethod::Read);
        builder.process(17);
        builder
    }

    #[test]
    fn time_that_runs_backward_is_refused_with_its_place_or_sorted() {
        let mut strict = builder();
        strict.push(TraceLocation::Line(1), record(10, 0, 0, 1)).unwrap();
        let error = strict.push(TraceLocation::Line(2), record(9, 0, 0, 1)).unwrap_err();
        assert_eq!(error.place, TraceLocation::Line(2));
        assert!(error.to_string().contains("backward"), "{error}");
        let mut lenient = builder().sorting(true);
        lenient.push(TraceLocation::Line(1), record(10, 0, 0, 1)).unwrap();
        lenient.push(TraceLocation::Line(2), record(9, 0, 4, 1)).unwrap();
        let trace = lenient.finish().unwrap();
        let times: Vec<u64> = trace.records().iter().map(|record| record.time.get()).collect();
        assert_eq!(times, [0, 1]);
    }

    #[test]
    fn what_nobody_used_is_left_out() {
        let mut builder = builder();
        let file = builder.file("b");
        let open = builder.open(file, AccessMethod::Read);
        builder.push(TraceLocation::Whole, record(5, open, 0, 10)).unwrap();
        builder.push(TraceLocation::Whole, record(5, 0, 0, 0)).unwrap();
        let trace = builder.finish().unwrap();
        assert_eq!(trace.files(), [TraceFile { name: "b".into(), size: Bytes::new(10) }]);
        assert_eq!((trace.open_files().len(), trace.records()[0].open_file), (1, 0));
    }

    #[test]
    fn impossible_places_and_empty_traces_are_refused() {
        let mut builder = builder();
        assert!(builder.push(TraceLocation::Line(1), record(0, 0, u64::MAX, 2)).is_err());
        assert!(builder.push(TraceLocation::Line(1), record(0, 0, 1 << 62, 2)).is_err());
        assert!(builder.push(TraceLocation::Line(1), record(0, 9, 0, 2)).is_err());
        assert!(builder.finish().is_err());
    }
}
