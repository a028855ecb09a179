//! Traces: what programs asked for, in one model however it was recorded.
//!
//! A [`Trace`] is a list of [`TraceRecord`]s in order of time, each a request of one process
//! through one open file; the first is at time 0. [`FORMATS`] lists every form that can be read;
//! [`Trace::encode`] and [`Trace::decode`] are foreread's own form; [`Trace::summary`]
//! characterises a trace; [`Trace::to_workload`] makes a workload of its reads.
//!
//! [`read`] reads a file, unpacks it (zstd, gzip) and names the file and line of an error.
//! [`record()`] records a command or a process with the best method that this machine permits.
//! [`workload()`] makes a workload from `FILE[,pace=…][,compact]`.

mod blocks;
mod builder;
mod compact_form;
mod error;
mod file;
mod import;
mod model;
mod record;
mod replay;
mod spec;
mod summary;
mod unpack;
mod varint;

pub use blocks::{
    TraceBytes, TraceCopy, TraceDamage, TraceStream, TraceVerification, TraceWriter, verify,
};
pub use builder::{RECORDS_MAX, TraceBuilder};
pub use error::{TraceError, TraceFileError, TraceLocation};
pub use file::{
    ReadOptions, TraceSource, open_long, open_stream, read, read_with_stacks, verify_file,
};
pub use import::{FORMATS, HEAD_BYTES, ImportOptions, StackedTrace, TraceFormat, detect, format};
pub use model::{Trace, TraceFile, TraceRecord, TraceRecordKind, TraceThread};
pub use record::{Means, RecordSubject, Recording, Tried, record};
pub use spec::workload;
pub use summary::{HotFile, SizeCount, TraceSummary};
