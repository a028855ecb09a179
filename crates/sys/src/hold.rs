//! Holds in the page cache what has come there, against reclaim of idle cache.

use std::io;
use std::os::fd::BorrowedFd;

use units::{Bytes, Pages};

use crate::mapping::{FileMapping, MappingAdvice};

/// Keeps what is cached of a file mapped: who reclaims cache that rests, with memory to spare,
/// takes pages that nobody has mapped (DAMON's filter `unmapped`). It reads nothing.
#[derive(Debug)]
pub struct Hold {
    mapping: FileMapping,
    held: Vec<bool>,
}

impl Hold {
    /// Of the first `length` bytes of a file. Nothing is held until [`Hold::renew`].
    pub fn of(file: BorrowedFd<'_>, length: Bytes) -> io::Result<Self> {
        let mapping = FileMapping::new(file, Bytes::ZERO, length)?;
        mapping.advise(MappingAdvice::Random)?;
        Ok(Self { mapping, held: Vec::new() })
    }

    /// Holds what has come into the cache since the last time; how much is held now. `EINVAL`
    /// before Linux 5.14.
    pub fn renew(&mut self) -> io::Result<Pages> {
        let cached = self.mapping.residency()?;
        self.held.resize(cached.len(), false);
        let mut at = 0;
        while at < cached.len() {
            let is_new = |page: usize| cached[page] && !self.held[page];
            let end = (at..cached.len()).find(|page| !is_new(*page)).unwrap_or(cached.len());
            if end > at {
                self.mapping.populate(at..end)?;
            }
            at = end + 1;
        }
        self.held = cached;
        Ok(Pages::new(self.held.iter().filter(|held| **held).count() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;
    use crate::cachestat::page_size;

    #[test]
    fn what_is_cached_is_held_and_nothing_is_read() {
        let mut file = tempfile::tempfile().unwrap();
        let page = page_size().bytes();
        file.write_all(&vec![1; 64 * page.get() as usize]).unwrap();
        file.set_len(96 * page.get()).unwrap();
        let mut hold = Hold::of(file.as_fd(), page * 96).unwrap();
        assert_eq!(hold.renew().unwrap(), Pages::new(64));
        // What is mapped cannot be dropped.
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        assert_eq!(hold.renew().unwrap(), Pages::new(64));
    }
}
