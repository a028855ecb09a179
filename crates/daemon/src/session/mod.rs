//! Recordings of `auto`: all inputs of the loop, and all its decisions.
//!
//! A [`RecordingBackend`] wraps the back end of the loop and records both. A replay gives the
//! recorded inputs to the same loop and compares its decisions with the recorded ones. With it, the
//! behaviour on a machine in the field can be analysed, and kept as a test.

mod entry;
mod file;
mod recorder;
mod replay;

pub use entry::{ListingOnBdi, LoopDecision, SessionEntry, SessionHeader};
pub use file::{SessionWriter, read_session};
pub use recorder::RecordingBackend;
pub use replay::{
    SessionDifference, SessionError, SessionReport, decide_session_again, replay_session,
};
