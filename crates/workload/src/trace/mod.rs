//! Traces: what programs really asked for, in one canonical form whatever it was recorded with.
//!
//! A [`Trace`] is a list of [`Record`]s in order of time, each a request of one process through
//! one open file; the first of them is at time 0. The tables beside it say which file each open
//! file is of. [`FORMATS`] has every form that can be read; [`Trace::encode`] and
//! [`Trace::decode`] are foreread's own compact form; [`Trace::summary`] says what a trace is
//! like; [`crate::Workload::of_trace`] makes a workload of it.

mod binary;
mod builder;
mod error;
mod import;
mod replay;
mod summary;

use units::{Bytes, Nanos};

pub use binary::MAGIC;
pub use builder::{RECORDS_MAX, TraceBuilder};
pub use error::{Place, TraceError};
pub use import::{FORMATS, Format, HEAD_BYTES, ImportOptions, detect, format};
pub use replay::{Pace, Replay};
pub use summary::{HotFile, SizeCount, Summary};

use crate::{AccessMethod, Hint};

/// What a request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Got data, by a call or, if its open file is mapped, by touching a page.
    Read,
    /// Put data.
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

/// An open file (open file description): what a read-ahead window belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Which file, counted in [`Trace::files`].
    pub file: u32,
    /// By calls or through a mapping.
    pub access: AccessMethod,
    /// What the program told the kernel before it began.
    pub hint: Hint,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was made, after the first of the trace.
    pub time: Nanos,
    /// Through which open file, counted in [`Trace::open_files`].
    pub open_file: u32,
    /// By which process, counted in [`Trace::processes`].
    pub process: u32,
    /// What it did.
    pub kind: Kind,
    /// Where in the file.
    pub offset: Bytes,
    /// How much; never nothing.
    pub length: Bytes,
}

impl Record {
    /// The byte after its last.
    pub fn end(&self) -> Bytes {
        self.offset + self.length
    }
}

/// What programs asked for. Made by a [`TraceBuilder`], which checks every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub(crate) timed: bool,
    pub(crate) files: Vec<TraceFile>,
    pub(crate) open_files: Vec<OpenFile>,
    pub(crate) processes: Vec<u64>,
    pub(crate) records: Vec<Record>,
}

impl Trace {
    /// Whether its times mean something; a list of page numbers has none.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// The files.
    pub fn files(&self) -> &[TraceFile] {
        &self.files
    }

    /// The open files.
    pub fn open_files(&self) -> &[OpenFile] {
        &self.open_files
    }

    /// The numbers that the processes had when it was recorded.
    pub fn processes(&self) -> &[u64] {
        &self.processes
    }

    /// The requests in order of time.
    pub fn records(&self) -> &[Record] {
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

    /// The requests that read.
    pub fn reads(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.kind == Kind::Read)
    }
}
