//! Watching read-ahead: what the probes tell, put together by open file.
//!
//! [`Tracker`] is pure: it takes [`Record`]s, live or from a file, and has the same to say of both.
//! [`Pilot`] leads the same records to the controller of `policy`, and its orders back.

mod memory;
mod pilot;
mod positions;
mod record;
mod service;
mod source;
mod status;
mod told;
mod tracker;
mod trial;

pub use memory::MemoryState;
pub use pilot::{Decision, Pilot, bytes_of};
pub use policy::control::{Act, Bounds, Pattern};
pub use positions::Positions;
pub use record::{Begin, Record, Snapshot, read_records, write_record};

pub use service::{ServiceManager, quoted, unit, watchdog};
pub use source::{Source, SourceError};
pub use status::{DeviceStatus, Status, StatusEffect};
pub use told::{Became, Told};
pub use tracker::{DeviceRates, StreamView, Tracker, View};
pub use trial::{Effect, Slots};
