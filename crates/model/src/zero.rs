//! A device with service time zero, to measure the overhead of all other components.

use std::collections::VecDeque;

use units::{Bytes, Nanos};

pub use crate::spec::ZeroSpec;
use crate::{Completion, Counters, Device, Request};

/// A device that completes each request at its arrival time.
#[derive(Debug)]
pub struct Zero {
    capacity: Bytes,
    done: VecDeque<Completion>,
    counters: Counters,
}

impl Zero {
    pub fn new(spec: &ZeroSpec) -> Self {
        Self { capacity: spec.capacity, done: VecDeque::new(), counters: Counters::default() }
    }
}

impl Device for Zero {
    fn submit(&mut self, now: Nanos, request: Request) {
        let (_, length) = request.extent(self.capacity);
        self.counters.count(length);
        self.done.push_back(Completion { id: request.id, at: now });
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.done.front().map(|completion| completion.at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.done.front().is_some_and(|completion| completion.at <= now) {
            done.extend(self.done.pop_front());
        }
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }

    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
