//! The queue in front of a mechanism that processes a limited number of requests.

use std::collections::VecDeque;

use units::{Bytes, Nanos};

use crate::{Completion, Counters, Device, Request, RequestId};

/// The requests that wait for a mechanism, the number in it, and its completions.
#[derive(Debug)]
pub(crate) struct Front {
    /// Maximum number of requests in the mechanism.
    depth: usize,
    active: usize,
    outside: VecDeque<Request>,
    finished: VecDeque<Completion>,
    pub(crate) counters: Counters,
}

impl Front {
    /// Creates a queue for a mechanism that processes `depth` requests.
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            depth,
            active: 0,
            outside: VecDeque::new(),
            finished: VecDeque::new(),
            counters: Counters::default(),
        }
    }
}

/// A mechanism with a [`Front`], which together are a [`Device`].
pub(crate) trait Fronted: Send {
    fn front(&self) -> &Front;
    fn front_mut(&mut self) -> &mut Front;
    fn size(&self) -> Bytes;
    /// Starts to process a request.
    fn start(&mut self, at: Nanos, request: Request);
    /// Performs the next step if it is due by `until`; returns its time.
    fn step(&mut self, until: Nanos) -> Option<Nanos>;
    fn next_event(&self) -> Option<Nanos>;

    /// Performs all steps due by `now`.
    #[inline]
    fn run(&mut self, now: Nanos) {
        while self.step(now).is_some() {}
    }

    /// Reports a completion and admits the next request; implementations must call it.
    fn finish(&mut self, at: Nanos, id: Option<RequestId>) {
        let front = self.front_mut();
        if let Some(id) = id {
            front.finished.push_back(Completion { id, at });
            front.active -= 1;
        }
        if let Some(request) = front.outside.pop_front() {
            front.active += 1;
            self.start(at, request);
        }
    }
}

/// Moves completions to `done`. Usually there is one, so a loop is faster than moving a range.
#[inline]
pub(crate) fn drain_completions(finished: &mut VecDeque<Completion>, done: &mut Vec<Completion>) {
    while let Some(completion) = finished.pop_front() {
        done.push(completion);
    }
}

/// Advances a device to its first completion by `until`, as [`Device::advance_to_completion`].
/// `step` performs the next step if it is due by a time, and returns its time; `finished` returns
/// the completions.
#[inline]
pub(crate) fn run_to_completion<T>(
    device: &mut T,
    until: Nanos,
    done: &mut Vec<Completion>,
    step: impl Fn(&mut T, Nanos) -> Option<Nanos>,
    finished: impl Fn(&mut T) -> &mut VecDeque<Completion>,
) -> Option<Nanos> {
    let mut first = finished(device).front().map(|completion| completion.at);
    if first.is_some_and(|first| first > until) {
        return None;
    }
    // Return all completions with the same time together.
    let mut until = first.unwrap_or(until);
    while let Some(at) = step(device, until) {
        if first.is_none() && !finished(device).is_empty() {
            first = Some(at);
            until = at;
        }
    }
    drain_completions(finished(device), done);
    first
}

impl<T: Fronted> Device for T {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.run(now);
        let length = request.extent(self.size()).1;
        let front = self.front_mut();
        front.counters.count(length);
        if front.active < front.depth {
            front.active += 1;
            self.start(now, request);
        } else {
            front.outside.push_back(request);
        }
    }

    fn next_wake(&self) -> Option<Nanos> {
        let finished = self.front().finished.front();
        finished.map(|completion| completion.at).or_else(|| self.next_event())
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now);
        drain_completions(&mut self.front_mut().finished, done);
    }

    fn advance_to_completion(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Option<Nanos> {
        run_to_completion(self, until, done, Self::step, |it| &mut it.front_mut().finished)
    }

    fn in_flight(&self) -> usize {
        let front = self.front();
        front.active + front.outside.len() + front.finished.len()
    }

    fn capacity(&self) -> Bytes {
        self.size()
    }

    fn counters(&self) -> Counters {
        self.front().counters
    }
}
