//! Statistics on the depth of the model's queue.

use units::Nanos;

use crate::counters::DiskCounters;

/// The number of requests in the model over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueDepthStats {
    depth: u64,
    depth_max: u64,
    changed: Nanos,
    /// Integral of the depth over time, in requests × nanoseconds.
    area: u128,
    busy: Nanos,
}

impl QueueDepthStats {
    pub(crate) fn beginning_at(now: Nanos, depth: usize) -> Self {
        let depth = depth as u64;
        Self { depth, depth_max: depth, changed: now, area: 0, busy: Nanos::ZERO }
    }

    /// Sets the current depth.
    pub(crate) fn change(&mut self, now: Nanos, depth: usize) {
        let span = now.saturating_sub(self.changed);
        self.area += u128::from(self.depth) * u128::from(span.get());
        if self.depth > 0 {
            self.busy += span;
        }
        self.changed = now;
        self.depth = depth as u64;
        self.depth_max = self.depth_max.max(self.depth);
    }

    fn mean(&self) -> f64 {
        if self.busy == Nanos::ZERO { 0.0 } else { self.area as f64 / self.busy.get() as f64 }
    }

    /// Stores these values in the counters.
    pub(crate) fn read_into(&self, counters: &mut DiskCounters) {
        counters.queue = self.depth;
        counters.queue_max = self.depth_max;
        counters.queue_mean = self.mean();
        counters.busy = self.busy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_the_time_that_there_was_a_queue() {
        let at = Nanos::from_millis;
        let mut queue = QueueDepthStats::beginning_at(at(0), 0);
        assert_eq!(queue.mean(), 0.0);
        queue.change(at(10), 1);
        queue.change(at(20), 4);
        queue.change(at(30), 0);
        queue.change(at(90), 0);
        let mut counters = DiskCounters::default();
        queue.read_into(&mut counters);
        assert_eq!((counters.queue, counters.queue_max), (0, 4));
        assert_eq!((counters.queue_mean, counters.busy), (2.5, at(20)));
    }
}
