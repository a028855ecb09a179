//! Traces: the recorded I/O of programs, in one model for all recorders.
//!
//! A [`Trace`] is a list of [`TraceRecord`]s in order of time. Each is a request of one process
//! through one open file; the first is at time 0. [`FORMATS`] lists all readable formats.
//! [`Trace::encode`] and [`Trace::decode`] convert foreread's own format. [`Trace::summary`]
//! characterises a trace. [`Trace::to_workload`] makes a workload of its reads.
//!
//! [`read`] reads and unpacks (zstd, gzip) a file; its errors name the file and line. [`record()`]
//! records a command or process with the best method that works on this machine. [`workload()`]
//! makes a workload from `FILE[,pace=…][,compact]`.

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
pub use record::{FailedMethod, RecordMethod, RecordSubject, Recording, record};
pub use spec::workload;
pub use summary::{HotFile, SizeCount, TraceSummary};
