//! A fixed number of blocks in each request, regardless of the read call. The experiment of 2002
//! (`reproduce`) reads 1 to n blocks per request in one and in four processes.

use units::Pages;

use crate::cache::{Cache, Submission};
use crate::entry::{Entry, Parameter};
use crate::policy::{FileId, Policy, StreamId, Touch};

pub const ENTRY: Entry = Entry {
    name: "fixed",
    summary: "a fixed number of blocks in every request, without looking ahead",
    source: "the blocks-per-request experiment of 2002",
    parameters: &[
        Parameter { name: "blocks", summary: "blocks of each request", default: "8" },
        Parameter { name: "block", summary: "the size of a block", default: "4K" },
    ],
    build: |args| {
        let blocks = args.count("blocks", 1, 1 << 20)?;
        Ok(Box::new(Fixed::new(Pages::new(blocks * args.pages("block")?))))
    },
};

#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    pages: Pages,
}

impl Fixed {
    /// Creates a policy with requests of `pages` pages; a larger read call is not split.
    pub const fn new(pages: Pages) -> Self {
        Self { pages }
    }
}

impl Policy for Fixed {
    fn open(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _file: FileId) {}

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        cache.submit(Submission::plain(touch.page, touch.request.max(self.pages)));
    }

    fn own_window(&self) -> Pages {
        self.pages
    }

    fn wants_call_events(&self) -> bool {
        false
    }

    fn close(&mut self, _cache: &mut dyn Cache, _stream: StreamId) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;

    #[test]
    fn a_scan_makes_one_request_per_fixed_size() {
        let mut bench = Bench::new(Fixed::new(Pages::new(8)), 20);
        let all: Vec<_> = (0..20).flat_map(|page| bench.read(page, 1)).collect();
        assert_eq!(all, [(0, 8), (8, 8), (16, 4)]);
    }

    #[test]
    fn a_larger_call_is_not_split() {
        assert_eq!(Bench::new(Fixed::new(Pages::new(8)), 100).read(0, 30), [(0, 30)]);
    }
}
