//! All open files of one device.

use std::collections::{BTreeMap, BTreeSet};

use units::{Bytes, Nanos, Pages};

use super::climb::{Climb, Streams};
use super::device::Device;
use super::plan::Plan;
use super::prime::Priming;
use super::stream::{Reading, Stream};
use super::{Act, Bounds, Facts, FileKey, OpenKey, Order, Seen, Situation, sizes};

/// Readers that wait more than this share of the time may be helped.
const WAITS: f64 = 0.05;
/// Of what the machine's cache can hold, the part that windows may fill, twice each: one is read
/// while the next one comes. A cache with a limit of its own they may fill, as its limit is there
/// for that; if that is too much, thrashing tells.
const SHARE: u64 = 4;
/// Of what a cache can hold, the part that a file may fill that is primed.
const PRIME_SHARE: u64 = 2;
/// Open files that are followed at once; of more, those that rested longest are forgotten.
const FOLLOWED: usize = 16_384;
/// Files whose priming is considered at once.
const PRIMED: usize = 256;
/// Nothing is decided about what has rested for so long.
const RESTS: Nanos = Nanos::from_secs(3);
/// It is forgotten after this.
const FORGOTTEN: Nanos = Nanos::from_secs(60);
/// The same order is not given again before this.
const AGAIN: Nanos = Nanos::from_secs(5);
/// How long it takes until a domain in which pages were evicted unused may have windows twice as
/// large again.
const RECOVERY: f64 = 10.0;

/// The window for random faults, and for those that come in pairs.
const MAPPED: (Pages, Pages) = (Pages::new(1), Pages::new(4));

/// A cache that windows share.
#[derive(Clone, Copy, Debug)]
struct Domain {
    /// The part of its share that windows may fill: less after thrashing.
    squeeze: f64,
    /// Streams in it that read forward.
    active: u64,
    thrashed: u64,
}

impl Default for Domain {
    fn default() -> Self {
        Self { squeeze: 1.0, active: 0, thrashed: 0 }
    }
}

/// Decides for all open files of one device. It does no I/O and reads no clock.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    bounds: Bounds,
    device: Device,
    climb: Climb,
    streams: BTreeMap<OpenKey, Stream>,
    primings: BTreeMap<FileKey, Priming>,
    domains: BTreeMap<u64, Domain>,
    /// Pages that readers of open files which are gone came by.
    gone: u64,
    last: Option<Nanos>,
}

impl Controller {
    /// One that knows nothing yet.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// What it has learnt of the device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Pages from the disk that readers came by so far, as far as is known.
    pub fn progress(&self) -> u64 {
        self.streams.values().map(|stream| stream.ahead.progress()).sum::<u64>() + self.gone
    }

    /// The open files that it follows, of which it will want the facts.
    pub fn keys(&self) -> impl Iterator<Item = OpenKey> {
        self.streams.keys().copied()
    }

    /// How many open files it follows.
    pub fn followed(&self) -> usize {
        self.streams.len()
    }

    /// Takes in one thing seen of an open file.
    pub fn see(&mut self, key: OpenKey, file: FileKey, at: Nanos, seen: Seen) {
        if self.streams.len() >= FOLLOWED && !self.streams.contains_key(&key) {
            let oldest = self.streams.iter().min_by_key(|(_, stream)| stream.seen);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.forget(oldest);
            }
        }
        let stream = self.streams.entry(key).or_default();
        if stream.file != file {
            // New, or a number that was used before.
            *stream = Stream::of(file);
        }
        stream.see(at, seen);
        if let Some((start, pages)) = asked(seen) {
            if self.primings.len() >= PRIMED && !self.primings.contains_key(&file) {
                let idle = self.primings.iter().find(|(_, one)| !one.is_at_work());
                if let Some(idle) = idle.map(|(file, _)| *file) {
                    self.primings.remove(&idle);
                }
            }
            self.primings.entry(file).or_default().touch(start, pages);
        }
    }

    fn forget(&mut self, key: OpenKey) {
        if let Some(stream) = self.streams.remove(&key) {
            self.gone += stream.ahead.progress();
        }
    }

    /// What to do after an interval. `facts` tells of an open file; `None` if it is none any more.
    pub fn decide(
        &mut self,
        situation: &Situation,
        mut facts: impl FnMut(OpenKey) -> Option<Facts>,
    ) -> Vec<Order> {
        let now = situation.now;
        let elapsed = self.last.replace(now).map_or(Nanos::ZERO, |last| now.saturating_sub(last));
        self.device.learn(situation.completions, elapsed);
        if elapsed == Nanos::ZERO {
            return Vec::new();
        }
        let mut closed = Vec::new();
        for (key, stream) in &mut self.streams {
            if now.saturating_sub(stream.seen) > FORGOTTEN {
                closed.push(*key);
            } else if now.saturating_sub(stream.seen) <= RESTS || stream.plan.is_some() {
                match facts(*key) {
                    Some(facts) => stream.look(facts, now, elapsed),
                    None => closed.push(*key),
                }
            }
        }
        closed.into_iter().for_each(|key| self.forget(key));
        self.count(now, elapsed);
        let mut orders = self.windows(situation);
        if self.bounds.prefetch {
            orders.extend(self.plans(situation));
            orders.extend(self.prime(situation, elapsed));
        }
        self.streams.values_mut().for_each(Stream::begin);
        orders
    }

    /// Who is active in which domain, and where pages were evicted unused.
    fn count(&mut self, now: Nanos, elapsed: Nanos) {
        for domain in self.domains.values_mut() {
            (domain.active, domain.thrashed) = (0, 0);
        }
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            let domain = self.domains.entry(facts.domain).or_default();
            domain.thrashed += stream.thrashed;
            let active = now.saturating_sub(stream.seen) <= RESTS;
            domain.active += u64::from(active && stream.reading() == Reading::Forward);
        }
        let recovery = 2_f64.powf(elapsed.as_secs_f64() / RECOVERY);
        for domain in self.domains.values_mut() {
            if domain.thrashed > domain.active / 8 {
                domain.squeeze = (domain.squeeze * 0.5).max(1.0 / 64.0);
            } else {
                domain.squeeze = (domain.squeeze * recovery).min(1.0);
            }
        }
    }

    /// The most that a window may be in a domain, and whether that is for want of memory.
    fn most(&self, situation: &Situation, facts: &Facts) -> (Pages, bool) {
        let of = |domain: u64| {
            let cache = situation.memory.get(&domain)?.get() / facts.page.get().max(1);
            let limited = situation.limited.contains(&domain);
            let domain = self.domains.get(&domain).copied().unwrap_or_default();
            let part = if limited { 1 } else { SHARE };
            let share = cache as f64 / part as f64 * domain.squeeze;
            let share = if situation.tight { share / 4.0 } else { share };
            Some((share / (2 * domain.active.max(1)) as f64) as u64)
        };
        let memory = of(facts.domain).or_else(|| of(0)).unwrap_or(u64::MAX);
        let memory = memory.max(self.bounds.least.get());
        let is_tight = memory < self.bounds.most.get();
        (sizes::at_most(Pages::new(memory).min(self.bounds.most)), is_tight)
    }

    fn windows(&mut self, situation: &Situation) -> Vec<Order> {
        let now = situation.now;
        let (wanted, news) = self.climb_on(situation);
        let mut orders = Vec::new();
        let keys: Vec<OpenKey> = self.streams.keys().copied().collect();
        for key in keys {
            let Some(stream) = self.streams.get(&key) else { continue };
            let Some(facts) = stream.facts.filter(|facts| !facts.hands_off) else { continue };
            if now.saturating_sub(stream.seen) > RESTS {
                continue;
            }
            let decision = match stream.reading() {
                Reading::Forward => self.forward(situation, stream, &facts, wanted, news.as_ref()),
                Reading::MappedRandom { paired } => {
                    let window = if paired { MAPPED.1 } else { MAPPED.0 };
                    let why = "its mapping is read at random, and each fault reads as much as \
                               the window allows around itself";
                    (facts.window > window).then(|| (window, why.to_owned()))
                }
                Reading::Other => None,
            };
            let Some((window, why)) = decision else { continue };
            let given = stream.ordered;
            let again = given
                .is_some_and(|(ordered, at)| ordered == window && now.saturating_sub(at) < AGAIN);
            if !again && let Some(stream) = self.streams.get_mut(&key) {
                stream.ordered = Some((window, now));
                orders.push(Order { key, act: Act::Window(window), why, primes: false });
            }
        }
        orders
    }

    fn climb_on(&mut self, situation: &Situation) -> (Option<Pages>, Option<String>) {
        let now = situation.now;
        let mut windows = Vec::new();
        let (mut progress, mut waiting, mut most, mut page) = (self.gone, false, 0, 4096);
        for stream in self.streams.values() {
            progress += stream.ahead.progress();
            let Some(facts) = stream.facts else { continue };
            let rests = now.saturating_sub(stream.seen) > RESTS;
            if rests || facts.hands_off || stream.reading() != Reading::Forward {
                continue;
            }
            windows.push(facts.window);
            waiting |= stream.waiting > WAITS;
            page = facts.page.get().max(1);
            most = most.max(self.most(situation, &facts).0.get());
        }
        windows.sort_unstable();
        let typical = windows.get(windows.len() / 2).copied().unwrap_or_default();
        self.climb.step(
            now,
            &Streams {
                active: windows.len() as u64,
                waiting,
                progress,
                typical,
                most: Pages::new(most),
                in_flight: Pages::new(self.device.in_flight().get() / page),
            },
        )
    }

    fn forward(
        &self,
        situation: &Situation,
        stream: &Stream,
        facts: &Facts,
        wanted: Option<Pages>,
        news: Option<&String>,
    ) -> Option<(Pages, String)> {
        let (most, is_tight) = self.most(situation, facts);
        if is_tight && facts.window.get() > most.get() + most.get() / 4 {
            let active = self.domains.get(&facts.domain).map_or(1, |domain| domain.active);
            let why = format!(
                "{active} streams share the memory, and larger windows would push each other out"
            );
            return Some((most, why));
        }
        let wanted = wanted?.min(most);
        let file = sizes::at_least(facts.file_pages.max(self.bounds.least));
        let wanted = wanted.min(file);
        let larger = wanted.get() > facts.window.get() + facts.window.get() / 8;
        if larger && stream.waiting > WAITS {
            let device = &self.device;
            let why = format!(
                "its readers wait {:.0} % of the time; the device answers in {:.1} ms and reads \
                 {:.0} MiB/s",
                (stream.waiting * 100.0).min(100.0),
                device.latency().as_millis_f64(),
                device.rate().as_mib()
            );
            return Some((wanted, why));
        }
        // A step that did harm is taken back.
        let back = news.filter(|news| news.contains("times as fast"))?;
        (wanted < facts.window && stream.ordered.is_some()).then(|| (wanted, back.clone()))
    }

    fn plans(&mut self, situation: &Situation) -> Vec<Order> {
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
            let most = self.most(situation, &facts).0;
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            let steps = stream.classifier.steps().or_else(|| stream.classifier.through_holes());
            let mut why = String::new();
            match (&mut stream.plan, steps) {
                (Some(plan), _) if plan.is_over(now) => stream.plan = None,
                (Some(plan), _) if stream.waiting > WAITS && stream.stalls > 0 => plan.late(most),
                (Some(_), _) | (None, None) => {}
                (None, Some(steps)) => {
                    let plan = Plan::new(steps, stream.seen);
                    why = plan.why();
                    stream.plan = Some(plan);
                }
            }
            let Some(plan) = &mut stream.plan else { continue };
            let due = plan.due(facts.file_pages, most);
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

    fn prime(&mut self, situation: &Situation, elapsed: Nanos) -> Vec<Order> {
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
}

impl Controller {
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

/// The pages that were asked for.
fn asked(seen: Seen) -> Option<(u64, u64)> {
    match seen {
        Seen::Miss { index, pages, .. } => Some((index.get(), pages.get())),
        Seen::Window { window, mapped: true, .. } => Some((window.start.get(), window.pages.get())),
        _ => None,
    }
}
