//! Detects runs of requests, each of which starts where the previous one ended.

use crate::order::LruList;

const NO_END: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct StreamTable {
    /// The end of each run. A separate array, so that vector instructions can compare several.
    ends: Vec<u64>,
    /// The runs in order of use.
    order: LruList,
}

impl StreamTable {
    /// Creates a table of `limit` runs, at least one.
    pub(super) fn new(limit: usize) -> Self {
        Self { ends: vec![NO_END; limit.max(1)], order: LruList::new(limit) }
    }

    /// Returns whether a request continues a known run; otherwise starts a new run.
    pub(super) fn follow(&mut self, offset: u64, end: u64) -> bool {
        // Branchless, because most requests continue no run.
        let known = self.ends.iter().fold(false, |known, &run| known | (run == offset));
        let run = if known { self.ends.iter().position(|&run| run == offset) } else { None };
        let place = run.unwrap_or_else(|| self.order.oldest());
        self.ends[place] = end;
        self.order.use_again(place);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_from_its_second_request_until_others_push_it_out() {
        let mut streams = StreamTable::new(2);
        assert!(!streams.follow(0, 10));
        assert!(streams.follow(10, 20));
        assert!(!streams.follow(100, 110));
        assert!(!streams.follow(200, 210));
        assert!(!streams.follow(20, 30), "two others came since");
        assert!(streams.follow(210, 220));
    }
}
