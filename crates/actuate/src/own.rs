//! Acting on the open files of one's own processes, where the kernel may not be asked which open
//! file a descriptor is.
//!
//! A duplicate is known by the file that it is of, not by the open file: if its process has opened
//! the same file again meanwhile, that one gets the advice. Reading ahead is of the file anyhow.

use std::os::fd::AsFd;

use host::{DevNo, Root};
use observe::OpenFile;
use rustix::fs::fstat;
use units::Bytes;

use crate::actuator::{largest_piece, read_places, tell};
use crate::reach::{DupFd, HolderProcess};
use crate::{ActuateFailure, FileAdvice};

/// Acts on open files of processes that this user may trace.
#[derive(Clone, Debug)]
pub struct OwnFiles {
    root: Root,
}

impl OwnFiles {
    /// For the machine under this root.
    pub fn of(root: &Root) -> Self {
        Self { root: root.clone() }
    }

    /// Has these places and lengths of a file read; how much of that the kernel was asked for.
    pub fn prefetch(
        &self,
        file: &OpenFile,
        wanted: &[(Bytes, Bytes)],
    ) -> Result<Bytes, ActuateFailure> {
        let (grip, size) = take(file)?;
        let piece = largest_piece(&self.root, file.device, file.window);
        read_places(grip.as_fd(), wanted, size, piece)
    }

    /// Gives advice on an open file as if its process did.
    pub fn advise(&self, file: &OpenFile, advice: FileAdvice) -> Result<(), ActuateFailure> {
        let (grip, _) = take(file)?;
        tell(&grip, advice)
    }
}

/// A duplicate of a descriptor of this very file, and the file's size now.
fn take(file: &OpenFile) -> Result<(DupFd, Bytes), ActuateFailure> {
    let mut missed = ActuateFailure::Gone;
    for holder in &file.holders {
        let grip = match HolderProcess::of(holder).and_then(|process| process.duplicate()) {
            Ok(grip) => grip,
            Err(why) => {
                missed = why;
                continue;
            }
        };
        let now =
            fstat(grip.as_fd()).map_err(|errno| ActuateFailure::of("fstat", holder.pid, errno))?;
        let device = DevNo::from_raw(now.st_dev);
        if (device, now.st_ino) == (file.device, file.inode) {
            return Ok((grip, Bytes::new(u64::try_from(now.st_size).unwrap_or(0))));
        }
    }
    Err(missed)
}
