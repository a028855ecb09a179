//! No read-ahead: reads the uncached pages of a call, in one request for each gap.

use crate::cache::{Cache, Submission};
use crate::entry::Entry;
use crate::policy::{FileId, Policy, StreamId, Touch};

pub const ENTRY: Entry = Entry {
    name: "none",
    summary: "no read-ahead: each call reads only the requested pages",
    source: "the floor of every comparison",
    parameters: &[],
    build: |_| Ok(Box::new(NoReadAhead)),
};

#[derive(Clone, Copy, Debug, Default)]
pub struct NoReadAhead;

impl Policy for NoReadAhead {
    fn open(&mut self, _cache: &mut dyn Cache, _stream: StreamId, _file: FileId) {}

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        cache.submit(Submission::plain(touch.page, touch.request));
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
    fn a_call_reads_its_own_pages_once() {
        let mut bench = Bench::new(NoReadAhead, 100);
        assert_eq!(bench.read(3, 4), [(3, 4)]);
        assert_eq!(bench.read(3, 4), []);
        assert_eq!(bench.read(1, 9), [(1, 2), (7, 3)]);
        assert_eq!(bench.read(98, 9), [(98, 2)]);
    }
}
