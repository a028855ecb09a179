//! Runs of requests, each of which begins where the one before it ended.

/// The runs seen last.
#[derive(Debug)]
pub(super) struct Streams {
    /// Where each of them ends, and when it was last gone on with: apart, so that the ends, which
    /// all requests are compared with, are compared several at once.
    ends: Vec<u64>,
    used: Vec<u64>,
    limit: usize,
    clock: u64,
}

impl Streams {
    /// A table of this many runs.
    pub(super) fn new(limit: usize) -> Self {
        let (ends, used) = (Vec::with_capacity(limit), Vec::with_capacity(limit));
        Self { ends, used, limit, clock: 0 }
    }

    /// Whether a request goes on with a run that is known; it is from now on, if it was not.
    pub(super) fn follow(&mut self, offset: u64, end: u64) -> bool {
        self.clock += 1;
        // Without a branch for each: most requests are of no run.
        let known = self.ends.iter().fold(false, |known, &run| known | (run == offset));
        let run = if known { self.ends.iter().position(|&run| run == offset) } else { None };
        let place = match run {
            Some(place) => place,
            None if self.ends.len() < self.limit => {
                self.ends.push(end);
                self.used.push(self.clock);
                return false;
            }
            None => self.oldest(),
        };
        (self.ends[place], self.used[place]) = (end, self.clock);
        known
    }

    /// The run that nothing has gone on with for longest; no two were at the same time.
    fn oldest(&self) -> usize {
        let mut oldest = (0, u64::MAX);
        for (place, &used) in self.used.iter().enumerate() {
            oldest = if used < oldest.1 { (place, used) } else { oldest };
        }
        oldest.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_from_its_second_request_until_others_push_it_out() {
        let mut streams = Streams::new(2);
        assert!(!streams.follow(0, 10));
        assert!(streams.follow(10, 20));
        assert!(!streams.follow(100, 110));
        assert!(!streams.follow(200, 210));
        assert!(!streams.follow(20, 30), "two others came since");
        assert!(streams.follow(210, 220));
    }
}
