//! Traces on disk: read in whatever form they have, and recorded.
//!
//! The forms themselves are in the room `workload`, which is pure. Here are the files:
//! [`read`] unpacks (zstd, gzip) and says the file and the line of what is wrong, [`record()`]
//! watches a command or a process with the best means that this machine permits, and [`workload()`]
//! makes a workload of the words `FILE[,pace=…][,compact]`.

mod error;
mod file;
mod record;
mod unpack;
mod words;

pub use error::TraceFileError;
pub use file::{ReadOptions, Source, read};
pub use record::{Means, Recording, Subject, Tried, obstacle, record};
pub use words::workload;
