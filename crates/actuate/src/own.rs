//! Acts on the open files of the user's own processes, without BPF.
//!
//! Without BPF, a duplicate is identified by its device and inode, not by its open file. If the
//! process has opened the same file again under the same descriptor, the new open file gets the
//! advice. Prefetched data belong to the file, so prefetch is not affected.

use std::os::fd::AsFd;

use host::{DevNo, Root};
use observe::OpenFile;
use rustix::fs::fstat;
use units::Bytes;

use crate::actuator::{apply_advice, largest_piece, read_places};
use crate::reach::{DupFd, HolderProcess};
use crate::{ActuateFailure, FileAdvice};

/// Acts on the open files of processes that this user may trace.
#[derive(Clone, Debug)]
pub struct OwnFiles {
    root: Root,
}

impl OwnFiles {
    /// Reads `/sys` below `root`.
    pub fn new(root: &Root) -> Self {
        Self { root: root.clone() }
    }

    /// Starts reading these ranges (offset, length) of a file. Returns the number of bytes
    /// requested.
    ///
    /// # Errors
    ///
    /// If the file was closed, or the kernel refuses.
    pub fn prefetch(
        &self,
        file: &OpenFile,
        wanted: &[(Bytes, Bytes)],
    ) -> Result<Bytes, ActuateFailure> {
        let (duplicate, size) = duplicate(&self.root, file)?;
        let piece = largest_piece(&self.root, file.device, file.window);
        read_places(duplicate.as_fd(), wanted, size, piece)
    }

    /// Gives advice on an open file, as its own process could.
    ///
    /// # Errors
    ///
    /// If the file was closed, or the kernel refuses.
    pub fn advise(&self, file: &OpenFile, advice: FileAdvice) -> Result<(), ActuateFailure> {
        let (duplicate, _) = duplicate(&self.root, file)?;
        apply_advice(&duplicate, advice)
    }
}

/// Duplicates a descriptor of this file; also returns the current size of the file.
fn duplicate(root: &Root, file: &OpenFile) -> Result<(DupFd, Bytes), ActuateFailure> {
    let mut failure = ActuateFailure::Gone;
    for holder in &file.holders {
        let duplicate = HolderProcess::open(holder).and_then(|process| process.duplicate(root));
        let duplicate = match duplicate {
            Ok(duplicate) => duplicate,
            Err(why) => {
                failure = why;
                continue;
            }
        };
        let now = fstat(duplicate.as_fd())
            .map_err(|errno| ActuateFailure::from_errno("fstat", holder.pid, errno))?;
        let device = DevNo::from_raw(now.st_dev);
        if (device, now.st_ino) == (file.device, file.inode) {
            return Ok((duplicate, Bytes::new(u64::try_from(now.st_size).unwrap_or(0))));
        }
    }
    Err(failure)
}
