//! Runs of requests, each of which begins where the one before it ended.

/// The runs seen last.
#[derive(Debug)]
pub(super) struct Streams {
    runs: Vec<Run>,
    limit: usize,
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    end: u64,
    used: u64,
}

impl Streams {
    /// A table of this many runs.
    pub(super) fn new(limit: usize) -> Self {
        Self { runs: Vec::with_capacity(limit), limit, clock: 0 }
    }

    /// Whether a request goes on with a run that is known; it is from now on, if it was not.
    pub(super) fn follow(&mut self, offset: u64, end: u64) -> bool {
        self.clock += 1;
        let fresh = Run { end, used: self.clock };
        if let Some(run) = self.runs.iter_mut().find(|run| run.end == offset) {
            *run = fresh;
            return true;
        }
        if self.runs.len() < self.limit {
            self.runs.push(fresh);
        } else if let Some(oldest) = self.runs.iter_mut().min_by_key(|run| run.used) {
            *oldest = fresh;
        }
        false
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
