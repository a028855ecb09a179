//! The model of a trace.

use units::{Bytes, Nanos};
use workload::TraceOpenFile;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceRecordKind {
    /// Got data, by a call or, if its open file is mapped, by touching a page.
    Read,
    Write,
}

/// A file or device that a trace speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Its name, as the recorder had it.
    pub name: String,
    /// How large it is at least: the end of the last request to it.
    pub size: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it was made, after the first of the trace.
    pub time: Nanos,
    /// Through which open file, counted in [`Trace::open_files`].
    pub open_file: u32,
    /// By which process, counted in [`Trace::processes`].
    pub process: u32,
    pub kind: TraceRecordKind,
    pub offset: Bytes,
    /// How much; never nothing.
    pub length: Bytes,
}

impl TraceRecord {
    pub fn end(&self) -> Bytes {
        self.offset + self.length
    }
}

/// What programs asked for. Made by a [`TraceBuilder`], which checks every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub(crate) timed: bool,
    pub(crate) files: Vec<TraceFile>,
    pub(crate) open_files: Vec<TraceOpenFile>,
    pub(crate) processes: Vec<u64>,
    pub(crate) records: Vec<TraceRecord>,
}

impl Trace {
    /// Whether its times mean something; a list of page numbers has none.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    pub fn files(&self) -> &[TraceFile] {
        &self.files
    }

    pub fn open_files(&self) -> &[TraceOpenFile] {
        &self.open_files
    }

    /// The numbers that the processes had when it was recorded.
    pub fn processes(&self) -> &[u64] {
        &self.processes
    }

    /// The requests in order of time.
    pub fn records(&self) -> &[TraceRecord] {
        &self.records
    }

    /// The time of the last request, counted from the first.
    pub fn span(&self) -> Nanos {
        self.records.last().map_or(Nanos::ZERO, |record| record.time)
    }

    /// The same trace with what `describe` knows of its files by their names: another name, and
    /// the size, behind which there was nothing to be got.
    #[must_use]
    pub fn described(mut self, describe: impl Fn(&str) -> Option<(String, Option<Bytes>)>) -> Self {
        let mut sizes = vec![None; self.files.len()];
        for (file, size) in self.files.iter_mut().zip(&mut sizes) {
            if let Some((name, known)) = describe(&file.name) {
                file.name = name;
                *size = known;
                file.size = known.unwrap_or(file.size);
            }
        }
        let open_files = &self.open_files;
        self.records.retain_mut(|record| {
            let size = sizes[open_files[record.open_file as usize].file as usize];
            let end = size.map_or(record.end(), |size| record.end().min(size));
            record.length = end.saturating_sub(record.offset);
            !record.length.is_zero()
        });
        self
    }

    pub fn reads(&self) -> impl Iterator<Item = &TraceRecord> {
        self.records.iter().filter(|record| record.kind == TraceRecordKind::Read)
    }
}
