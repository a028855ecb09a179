//! What is read ahead by other means than a window: steps, and the rest of what random reads want.

use std::collections::BTreeMap;

use units::{Nanos, Pages};

use super::controller::{Controller, RESTS, WAITS};
use super::memory::{kept, room};
use super::plan::Plan;
use super::prime::{Priming, lately};
use super::stream::{Reading, Stream};
use super::{Act, Facts, FileKey, OpenKey, Order, Situation};

impl Controller {
    pub(super) fn plans(&mut self, situation: &Situation) -> Vec<Order> {
        let now = situation.now;
        let mut orders = Vec::new();
        let keys: Vec<OpenKey> = self.streams.keys().copied().collect();
        let shared = self.shared();
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
            // Readers that share a file out among them seem to leave out what others read.
            let deals = shared.contains(&stream.file);
            let steps = steps.filter(|steps| !deals || steps.step < 0);
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

    /// The next ones of many files.
    pub(super) fn next_files(&mut self, situation: &Situation) -> Option<Order> {
        let facts = self.sequences.facts()?;
        let share = self.share(situation, &facts);
        let (key, due, why) = self.sequences.due(&share)?;
        Some(Order { key, act: Act::Files(due), why, primes: false })
    }

    pub(super) fn prime(&mut self, situation: &Situation, elapsed: Nanos) -> Vec<Order> {
        let waits = self.waits(situation.now, elapsed);
        let mut orders: Vec<Order> = Vec::new();
        let mut files = BTreeMap::new();
        // One order for a file that many have open.
        for (key, stream) in &self.streams {
            if let Some(facts) = stream.facts.filter(|facts| !facts.hands_off) {
                files.entry(stream.file).or_insert((*key, facts));
            }
        }
        for (file, (key, facts)) in &files {
            let random = waits.random.get(file).copied().unwrap_or_default();
            let Some(priming) = self.primings.get_mut(file) else { continue };
            let stalled = Nanos::new(random.stalled);
            priming.waited(random.stalls, stalled, elapsed);
            if !waits.primed {
                priming.waited_alone(random.stalls, stalled);
            }
            if priming.is_at_work() || random.stalls == 0 || situation.tight {
                continue;
            }
            let room = room(situation, facts);
            let asked = situation.asked.map(|asked| kept(asked, facts));
            let room = asked.map_or(room, |asked| room.min(asked));
            // All that is read at random must fit, or one file pushes the other out.
            let others = waits.pages.saturating_sub(facts.file_pages.get());
            let room = Pages::new(room.get().saturating_sub(others));
            let rate = self.device.rate();
            if let Some(why) = priming.begin(facts.file_pages, facts.page, rate, room) {
                let act = Act::Prefetch(Vec::new());
                orders.push(Order { key: *key, act, why, primes: true });
            }
        }
        let worth =
            |file: &FileKey, facts: &Facts| self.primings.get(file)?.worth(facts.file_pages);
        let mut work: Vec<(f64, FileKey, OpenKey, Facts)> = files
            .iter()
            .filter_map(|(file, (key, facts))| Some((worth(file, facts)?, *file, *key, *facts)))
            .collect();
        // First where a page saves most.
        work.sort_by(|a, b| b.0.total_cmp(&a.0));
        let Some((_, file, _, first)) = work.first().filter(|_| !situation.tight) else {
            return orders;
        };
        let alone = self.primings.get(file).and_then(Priming::alone);
        self.pace.primes(*file, alone);
        let missing = self.missing(&files);
        self.pace.completed(self.device.now(), first.page, elapsed);
        let owed = self.pace.allows(missing, self.device.rate(), first.page, elapsed);
        let before = *owed;
        for (_, file, key, facts) in work {
            let Some(priming) = self.primings.get_mut(&file) else { continue };
            let due = priming.due(facts.file_pages, owed);
            if due.is_empty() {
                continue;
            }
            match orders.iter_mut().find(|order| order.key == key) {
                Some(order) => order.act = Act::Prefetch(due),
                None => {
                    let why = String::new();
                    orders.push(Order { key, act: Act::Prefetch(due), why, primes: true });
                }
            }
        }
        let taken = before - *owed;
        self.pace.took(taken as u64);
        orders
    }

    /// Of the time for which readers of the device waited before anything was primed, the share for
    /// which they still have to wait: what is cached of a file saves as much of the waits for it.
    fn missing(&self, files: &BTreeMap<FileKey, (OpenKey, Facts)>) -> f64 {
        let (mut all, mut still) = (self.waits_elsewhere, self.waits_elsewhere);
        for (file, (_, facts)) in files {
            let Some(priming) = self.primings.get(file) else { continue };
            let (waits, missing) = priming.waits(facts.file_pages);
            all += waits;
            still += waits * missing;
        }
        if all > 0.0 { still / all } else { 1.0 }
    }

    /// How often, and how long, readers waited over the interval.
    fn waits(&mut self, now: Nanos, elapsed: Nanos) -> Waits {
        let mut waits = Waits::default();
        let mut elsewhere = Sum::default();
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            let rests = now.saturating_sub(stream.seen) > RESTS;
            if rests || stream.reading() == Reading::Forward || stream.plan.is_some() {
                elsewhere.add(stream);
                continue;
            }
            let sum = waits.random.entry(stream.file).or_insert_with(|| {
                waits.pages = waits.pages.saturating_add(facts.file_pages.get());
                Sum::default()
            });
            sum.add(stream);
        }
        let works = self.primings.values().any(Priming::is_at_work);
        if !works {
            self.waits_elsewhere =
                lately(self.waits_elsewhere, Nanos::new(elsewhere.stalled), elapsed);
            self.pace.is_over();
        }
        // Streams wait otherwise, and their windows change meanwhile.
        let counts = |file: &FileKey| self.pace.file().is_none_or(|primed| primed == *file);
        let counted = waits.random.iter().filter(|(file, _)| counts(file));
        let (stalls, stalled) = counted.fold((0, 0), |(stalls, stalled), (_, one)| {
            (stalls + one.stalls, one.stalled.saturating_add(stalled))
        });
        self.pace.waited(stalls, Nanos::new(stalled), elapsed);
        waits.primed = works;
        waits
    }
}

/// How often, and how long, in nanoseconds, readers waited.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    stalls: u64,
    stalled: u64,
}

impl Sum {
    fn add(&mut self, stream: &Stream) {
        self.stalls += stream.stalls;
        self.stalled = self.stalled.saturating_add(stream.stalled);
    }
}

/// Waits of random reads by file, and how many pages those files have together.
#[derive(Debug, Default)]
struct Waits {
    random: BTreeMap<FileKey, Sum>,
    pages: u64,
    /// Whether anything is being primed.
    primed: bool,
}
