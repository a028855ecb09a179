//! Recordings of `auto`: everything that the loop was given, and everything that it decided.
//!
//! A [`RecordingBackend`] stands between the loop and its back end and writes down both. Replaying
//! hands the same answers to the same loop and compares its decisions with the recorded ones, so
//! that what happened on a machine in the field can be looked at, and kept as a test.

mod entry;
mod file;
mod recorder;
mod replay;

pub use entry::{LoopDecision, SessionEntry, SessionHeader};
pub use file::{SessionWriter, read_session};
pub use recorder::RecordingBackend;
pub use replay::{
    SessionDifference, SessionError, SessionReport, decide_session_again, replay_session,
};
