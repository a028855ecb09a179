//! Watching read-ahead: what the probes tell, put together by open file.
//!
//! [`Tracker`] is pure: it takes [`Record`]s, live or from a file, and has the same to say of both.
//! [`Regulators`] decide from its views which window each open file should have.

mod record;
mod regulate;
mod source;
mod tracker;

pub use policy::control::Pattern;
pub use record::{Begin, Record, Snapshot, read_records, write_record};
pub use regulate::{Bounds, Decision, Regulators};
pub use source::{Source, SourceError};
pub use tracker::{DeviceRates, StreamView, Tracker, View};
