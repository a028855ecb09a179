//! Protects cached pages from reclaim of idle cache.

use std::io;
use std::os::fd::BorrowedFd;

use units::{Bytes, Pages};

use crate::mapping::{FileMapping, MappingAdvice};

/// Keeps the cached pages of a file mapped, because reclaim of idle cache takes only unmapped pages
/// (DAMON's filter `unmapped`). Reads no data.
#[derive(Debug)]
pub struct Hold {
    mapping: FileMapping,
    held: Vec<bool>,
}

impl Hold {
    /// Covers the first `length` bytes of a file. Protects no page until [`Hold::renew`] is called.
    pub fn new(file: BorrowedFd<'_>, length: Bytes) -> io::Result<Self> {
        let mapping = FileMapping::new(file, Bytes::ZERO, length)?;
        mapping.advise(MappingAdvice::Random)?;
        Ok(Self { mapping, held: Vec::new() })
    }

    /// Maps the pages that were cached since the last call and returns the number of protected
    /// pages. Fails with [`Unsupported`](io::ErrorKind::Unsupported) before Linux 5.14.
    pub fn renew(&mut self) -> io::Result<Pages> {
        let cached = self.mapping.residency()?;
        self.held.resize(cached.len(), false);
        let mut at = 0;
        while at < cached.len() {
            let is_new = |page: usize| cached[page] && !self.held[page];
            let end = (at..cached.len()).find(|page| !is_new(*page)).unwrap_or(cached.len());
            if end > at {
                self.mapping.populate(at..end).map_err(unless_unknown)?;
            }
            at = end + 1;
        }
        self.held = cached;
        Ok(Pages::new(self.held.iter().filter(|held| **held).count() as u64))
    }
}

/// Explains `EINVAL`, which a kernel returns for unknown advice.
fn unless_unknown(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EINVAL) {
        return error;
    }
    let why = "this kernel lacks MADV_POPULATE_READ, which needs Linux 5.14";
    io::Error::new(io::ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;
    use crate::page_size;

    #[test]
    fn an_old_kernel_is_told_as_one() {
        let old = unless_unknown(io::Error::from_raw_os_error(libc::EINVAL));
        assert!(old.to_string().contains("Linux 5.14"), "{old}");
        let other = unless_unknown(io::Error::from_raw_os_error(libc::ENOMEM));
        assert_eq!(other.raw_os_error(), Some(libc::ENOMEM));
    }

    #[test]
    fn what_is_cached_is_held_and_nothing_is_read() {
        let mut file = tempfile::tempfile().unwrap();
        let page = page_size().bytes();
        file.write_all(&vec![1; 64 * page.get() as usize]).unwrap();
        file.set_len(96 * page.get()).unwrap();
        let mut hold = Hold::new(file.as_fd(), page * 96).unwrap();
        assert_eq!(hold.renew().unwrap(), Pages::new(64));
        // Mapped pages cannot be dropped.
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        assert_eq!(hold.renew().unwrap(), Pages::new(64));
    }
}
