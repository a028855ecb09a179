//! A device that takes no time, to measure what everything around it costs.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::drive::size_text;
use crate::spec::{SpecError, check_size};
use crate::{Completion, Counters, Device, Request};

/// A device that takes no time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZeroSpec {
    /// Usable size.
    #[serde(with = "size_text")]
    pub capacity: Bytes,
}

impl ZeroSpec {
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        check_size("capacity", self.capacity, 1 << 20, 1 << 60)
    }
}

/// Completes each request at the moment of its arrival.
#[derive(Debug)]
pub struct Zero {
    capacity: Bytes,
    done: VecDeque<Completion>,
    counters: Counters,
}

impl Zero {
    /// The device of this description.
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
