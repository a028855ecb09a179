//! Latency that a host adds to each request, on the way to the device and back.

use std::collections::VecDeque;

use model::{Completion, Counters, Device, Request};
use units::{Bytes, Nanos};

/// A device whose completions all arrive later by the same time.
pub(crate) struct DelayedDevice {
    device: Box<dyn Device>,
    delay: Nanos,
    completed: Vec<Completion>,
    /// Completions that have not arrived yet, in order.
    coming: VecDeque<Completion>,
}

impl DelayedDevice {
    pub(crate) fn new(device: Box<dyn Device>, delay: Nanos) -> Self {
        Self { device, delay, completed: Vec::new(), coming: VecDeque::new() }
    }
}

impl Device for DelayedDevice {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.device.submit(now, request);
    }

    fn next_wake(&self) -> Option<Nanos> {
        let coming = self.coming.front().map(|completion| completion.at);
        coming.into_iter().chain(self.device.next_wake()).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.device.advance(now, &mut self.completed);
        let delayed = |one: Completion| Completion { at: one.at + self.delay, ..one };
        self.coming.extend(self.completed.drain(..).map(delayed));
        let here = self.coming.iter().take_while(|one| one.at <= now).count();
        done.extend(self.coming.drain(..here));
    }

    fn in_flight(&self) -> usize {
        self.device.in_flight() + self.coming.len()
    }

    fn capacity(&self) -> Bytes {
        self.device.capacity()
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{RequestId, RequestKind, Spec};

    /// Returns the completion times of reads at these offsets in MiB, one after another.
    fn ends(device: &mut dyn Device) -> Vec<Nanos> {
        let (mut now, mut done) = (Nanos::ZERO, Vec::new());
        let mut ends = Vec::new();
        for place in [5, 900, 3] {
            let offset = Bytes::from_mib(place);
            let (id, length) = (RequestId(place), Bytes::from_kib(64));
            device.submit(now, Request { id, kind: RequestKind::Read, offset, length });
            now = device.advance_to_completion(Nanos::MAX, &mut done).unwrap();
            assert_eq!(device.in_flight(), 0);
            ends.push(now);
        }
        assert!(done.iter().map(|one| one.at).eq(ends.iter().copied()));
        ends
    }

    #[test]
    fn each_completion_comes_later() {
        let volume = || {
            let mut spec = Spec::preset("cloud-ssd").unwrap();
            spec.set("latency_spread", "0").unwrap();
            spec.build(1).unwrap()
        };
        let delay = Nanos::from_micros(130);
        let plain = ends(&mut *volume());
        let delayed = ends(&mut DelayedDevice::new(volume(), delay));
        for (nth, (plain, delayed)) in (1..).zip(plain.into_iter().zip(delayed)) {
            assert_eq!(delayed, plain + delay * nth);
        }
    }
}
