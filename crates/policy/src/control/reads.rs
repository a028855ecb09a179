//! What is read ahead by other means than a window: steps, and the rest of what random reads want.

use std::collections::{BTreeMap, BTreeSet};

use units::{Bytes, Nanos, Pages};

use super::controller::{Controller, RESTS, WAITS};
use super::plan::Plan;
use super::stream::Reading;
use super::{Act, FileKey, OpenKey, Order, Situation};

/// Of what a cache can hold, the part that a file may fill that is primed.
const PRIME_SHARE: u64 = 2;

impl Controller {
    pub(super) fn plans(&mut self, situation: &Situation) -> Vec<Order> {
        let now = situation.now;
        let mut orders = Vec::new();
        let keys: Vec<OpenKey> = self.streams.keys().copied().collect();
        for key in keys {
            let Some(facts) = self.streams.get(&key).and_then(|stream| stream.facts) else {
                continue;
            };
            if facts.hands_off {
                continue;
            }
            let share = self.share(situation, &facts);
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            let steps = stream.classifier.steps().or_else(|| stream.classifier.through_holes());
            let mut why = String::new();
            if let Some(plan) = &mut stream.plan {
                plan.interval();
            }
            match (&mut stream.plan, steps) {
                (Some(plan), _) if plan.is_over(now) => stream.plan = None,
                (Some(plan), _) if stream.waiting > WAITS && stream.stalls > 0 => plan.late(&share),
                (Some(_), _) | (None, None) => {}
                (None, Some(steps)) => {
                    let plan = Plan::new(steps, stream.seen, stream.came());
                    why = plan.why();
                    stream.plan = Some(plan);
                }
            }
            let Some(plan) = &mut stream.plan else { continue };
            let due = plan.due(facts.file_pages, &share);
            for piece in &due {
                let (start, end) = (piece.start.get(), piece.end().get());
                stream.ahead.submit(start, end, end, 0, now);
            }
            if !due.is_empty() {
                orders.push(Order { key, act: Act::Prefetch(due), why, primes: false });
            }
        }
        orders
    }

    pub(super) fn prime(&mut self, situation: &Situation, elapsed: Nanos) -> Vec<Order> {
        let mut orders = Vec::new();
        let mut met = BTreeSet::new();
        let keys: Vec<OpenKey> = self.streams.keys().copied().collect();
        let (waits, wanted) = self.random_reads(situation.now);
        for key in keys {
            let Some(stream) = self.streams.get(&key) else { continue };
            let Some(facts) = stream.facts.filter(|facts| !facts.hands_off) else { continue };
            // One order for a file that many have open.
            if !met.insert(stream.file) {
                continue;
            }
            let Some(priming) = self.primings.get_mut(&stream.file) else { continue };
            let (stalls, stalled) = waits.get(&stream.file).copied().unwrap_or_default();
            priming.waited(stalls, Nanos::new(stalled));
            let mut why = String::new();
            if !priming.is_at_work() && stalls > 0 && !situation.tight {
                let cache = situation.memory.get(&facts.domain).or(situation.memory.get(&0));
                let cache = cache.copied().unwrap_or(Bytes::ZERO).get();
                let room = cache / PRIME_SHARE / facts.page.get().max(1);
                // All that is read at random must fit, or one file pushes the other out.
                let others = wanted.saturating_sub(facts.file_pages.get());
                let room = Pages::new(room.saturating_sub(others));
                let rate = self.device.rate();
                if let Some(reason) = priming.begin(facts.file_pages, facts.page, rate, room) {
                    why = reason;
                }
            }
            let due = priming.due(facts.file_pages, elapsed, situation.tight);
            if !due.is_empty() || !why.is_empty() {
                orders.push(Order { key, act: Act::Prefetch(due), why, primes: true });
            }
        }
        orders
    }

    /// How often, and how long, readers of each file waited for random reads over the interval, and
    /// how many pages the files have together.
    fn random_reads(&self, now: Nanos) -> (BTreeMap<FileKey, (u64, u64)>, u64) {
        let mut waits: BTreeMap<FileKey, (u64, u64)> = BTreeMap::new();
        let mut pages = 0_u64;
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            let rests = now.saturating_sub(stream.seen) > RESTS;
            if rests || stream.reading() == Reading::Forward || stream.plan.is_some() {
                continue;
            }
            let sum = waits.entry(stream.file).or_insert_with(|| {
                pages = pages.saturating_add(facts.file_pages.get());
                (0, 0)
            });
            *sum = (sum.0 + stream.stalls, sum.1 + stream.stalled);
        }
        (waits, pages)
    }
}
