//! The commands `auto`, `run` and `watch`.
//!
//! [`Daemon`] runs the loop of crate `control` on one of two back ends: [`LiveBackend`] observes
//! the kernel through BPF, and [`UnprivilegedBackend`] follows processes through `/proc`. A
//! [`RecordingBackend`] records the inputs and the decisions of the loop. [`WatchLoop`] is the loop
//! of `watch`. Its [`Tracker`] is pure: it turns [`Record`]s, live or from a recording, into views.

mod bdi_actuator;
mod command;
mod config;
mod daemon;
mod decision;
mod error;
mod live;
mod mapped;
mod memory;
mod positions;
mod primed;
mod publisher;
mod record;
mod service;
mod session;
mod source;
mod status;
mod tracker;
mod unprivileged;
mod watch;

pub use config::LiveConfig;
pub use control::{
    AbTest, AccessPattern, ActionKind, Bounds, FileAction, LoopConfig, TreatmentEffect,
};
pub use daemon::{Daemon, DaemonBackend};
pub use decision::{
    ActionResult, DecisionLog, DecisionRecord, FileDecision, NewFileWindow, Reporter,
};
pub use error::DaemonError;
pub use live::LiveBackend;
pub use memory::MemoryState;
pub use positions::Positions;
pub use primed::{PrimedFiles, PrimedFilesError};
pub use publisher::StatusPublisher;
pub use record::{Begin, Record, Snapshot, read_records, write_record};
pub use service::{ServiceManager, quoted, unit};
pub use session::{
    ListingOnBdi, LoopDecision, RecordingBackend, SessionDifference, SessionEntry, SessionError,
    SessionHeader, SessionReport, SessionWriter, decide_session_again, read_session,
    replay_session,
};
pub use source::{LiveSource, SourceError, WatchSource};
pub use status::{DeviceStatus, Status, StatusEffect};
pub use tracker::{DeviceRates, StreamView, Tracker, WatchView};
pub use unprivileged::UnprivilegedBackend;
pub use watch::{ReplayEnd, ReplayOptions, WatchDisplay, WatchError, WatchLoop, replay};
