//! Classifies failures to write to stdout.

use std::io;

use rustix::fs::FileType;
use rustix::io::Errno;

/// The reader of the results has exited, as `head` does; this is not an error.
#[derive(Debug, thiserror::Error)]
#[error("no process reads the results any more")]
pub struct StdoutClosed;

/// The terminal is gone: treated like SIGHUP.
#[derive(Debug, thiserror::Error)]
#[error("the terminal was closed")]
pub struct TerminalGone;

/// Classifies an error of stdout.
pub fn lost(error: io::Error) -> anyhow::Error {
    // After a hang-up it is no longer a terminal, but still a character device.
    let device =
        rustix::fs::fstat(io::stdout()).map(|status| FileType::from_raw_mode(status.st_mode));
    let terminal = device == Ok(FileType::CharacterDevice);
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PIPE) => StdoutClosed.into(),
        Some(Errno::IO | Errno::NXIO) if terminal => TerminalGone.into(),
        _ => error.into(),
    }
}
