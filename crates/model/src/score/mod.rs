//! The drive model against recorded service times of real drives.
mod demerit;
mod replay;
mod trace;
pub use demerit::demerit;
pub use replay::replay;
pub use trace::{TraceRequest, parse_seek, parse_trace, unpack};

/// Err
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScoreError {
    #[error("the trace is not text")]
    NotText,
    #[error("packed trace: {why}")]
    Packed { why: String },
    #[error("trace line {line}: {why}")]
    TraceLine { line: usize, why: String },
    #[error("seek curve line {line}: expected `cylinders, milliseconds`")]
    SeekLine { line: usize },
    #[error("the seek curve has no points")]
    NoSeekPoints,
}
