//! How much memory windows may fill.

use std::collections::BTreeMap;

use units::{Bytes, Nanos, Pages};

use super::controller::Controller;
use super::{Facts, Situation, sizes};

/// Of what the machine's cache can hold, the part that windows may fill, twice each: one is read
/// while the next one comes. A cache with a limit of its own they may fill, as its limit is there
/// for that; if that is too much, thrashing tells.
const SHARE: u64 = 4;
/// The part of its share by which a window may be larger.
const SLACK: u64 = 8;
/// Of what a cache can hold, the part that files may fill that are to stay in it.
const KEPT: u64 = 2;
/// How long it takes until a domain in which pages were evicted unused may have windows twice as
/// large again.
const RECOVERY: f64 = 10.0;
/// One of so many places missed what had been read ahead for it: that is too much.
const MUCH: u64 = 8;
/// So many places tell, or those of so long.
const KNOWN: u64 = 32;
const LONG: Nanos = Nanos::from_secs(1);
/// How long smaller windows are tried.
const TRIAL: Nanos = Nanos::from_secs(1);
/// Readers that have just begun get less than they will.
const BEGINNING: Nanos = Nanos::from_millis(500);
/// Below this part of what readers got, smaller windows did more harm than eviction.
const HARM: f64 = 0.95;
/// How long that is remembered.
const HOLDS: Nanos = Nanos::from_secs(60);

/// Smaller windows on trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    squeeze: f64,
    rate: f64,
    begun: (Nanos, u64),
}

/// A cache that windows share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Domain {
    /// The part of its share that windows may fill: less after thrashing.
    squeeze: f64,
    /// Streams in it that read forward.
    pub active: u64,
    /// Pages read ahead that were gone when they were wanted, over the interval.
    pub thrashed: u64,
    /// Places where its streams were seen over the interval.
    pub places: u64,
    /// Pages that readers came by so far, and how many a second of late.
    pub progress: u64,
    rate: f64,
    intervals: u32,
    /// Pages that were gone, and places, since that was last judged.
    lately: (u64, u64),
    judged: Nanos,
    before: u64,
    trial: Option<Trial>,
    /// When somebody first read, and not squeezed before this.
    since: Option<Nanos>,
    rests: Nanos,
}

impl Default for Domain {
    fn default() -> Self {
        Self {
            squeeze: 1.0,
            active: 0,
            thrashed: 0,
            places: 0,
            progress: 0,
            rate: 0.0,
            intervals: 0,
            lately: (0, 0),
            judged: Nanos::ZERO,
            before: 0,
            trial: None,
            since: None,
            rests: Nanos::ZERO,
        }
    }
}

impl Domain {
    /// An interval is over.
    pub fn interval(&mut self, now: Nanos, elapsed: Nanos) {
        let seconds = elapsed.as_secs_f64();
        let rate = self.progress.saturating_sub(self.before) as f64 / seconds.max(1e-6);
        self.before = self.progress;
        let since = *self.since.get_or_insert(now);
        if let Some(trial) = self.trial {
            let (since, before) = trial.begun;
            let span = now.saturating_sub(since);
            if span < TRIAL {
                return;
            }
            self.trial = None;
            let rate = self.progress.saturating_sub(before) as f64 / span.as_secs_f64();
            if rate < HARM * trial.rate {
                (self.squeeze, self.rests) = (trial.squeeze, now + HOLDS);
            }
            self.rate = rate;
            return;
        }
        if now < since + BEGINNING {
            return;
        }
        let known = self.rate;
        self.intervals = self.intervals.saturating_add(1);
        // A mean of all at first, and of about a second later.
        let weight = seconds.max(1.0 / f64::from(self.intervals)).min(1.0);
        self.rate += weight * (rate - known);
        if self.thrashes(now) && now >= self.rests.max(since + BEGINNING + TRIAL) {
            let (squeeze, rate) = (self.squeeze, known);
            self.trial = Some(Trial { squeeze, rate, begun: (now, self.progress) });
            self.squeeze = (self.squeeze * 0.5).max(1.0 / 64.0);
        } else {
            self.squeeze = (self.squeeze * 2_f64.powf(seconds / RECOVERY)).min(1.0);
        }
    }
}

impl Domain {
    /// Whether too much was gone of late, if enough was seen to tell.
    fn thrashes(&mut self, now: Nanos) -> bool {
        let (gone, places) = (self.lately.0 + self.thrashed, self.lately.1 + self.places);
        self.lately = (gone, places);
        if places < KNOWN && now.saturating_sub(self.judged) < LONG {
            return false;
        }
        (self.lately, self.judged) = ((0, 0), now);
        gone > places / MUCH
    }
}

/// The most that a window may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub most: Pages,
    /// The memory that what is read by request may fill.
    pub memory: Pages,
    /// Whether that is for want of memory.
    pub is_tight: bool,
    /// Whether pages are evicted before they are used.
    pub is_squeezed: bool,
}

/// What files may fill together that are to stay in memory.
pub(super) fn room(situation: &Situation, facts: &Facts) -> Pages {
    let cache = situation.memory.get(&facts.domain).or(situation.memory.get(&0));
    cache.map_or(Pages::ZERO, |cache| kept(*cache, facts))
}

/// What files may fill together that are to stay in a cache of that size.
pub(super) fn kept(cache: Bytes, facts: &Facts) -> Pages {
    Pages::new(cache.get() / KEPT / facts.page.get().max(1))
}

/// All caches.
pub(super) type Domains = BTreeMap<u64, Domain>;

impl Controller {
    /// The most that a window may be in a domain.
    pub(super) fn share(&self, situation: &Situation, facts: &Facts) -> Share {
        let of = |number: u64| {
            let cache = situation.memory.get(&number)?.get() / facts.page.get().max(1);
            let limited = situation.limited.contains(&number);
            let domain = self.domains.get(&number).copied().unwrap_or_default();
            let part = if limited { 1 } else { SHARE };
            let share = cache as f64 / part as f64 * domain.squeeze;
            let share = if situation.tight { share / 4.0 } else { share };
            let squeezed = domain.squeeze < 0.99 || situation.tight;
            let each = (share / (2 * domain.active.max(1)) as f64) as u64;
            Some((each, cache as f64 / SHARE as f64 * domain.squeeze, squeezed))
        };
        let known = of(facts.domain).or_else(|| of(0));
        let (each, memory, is_squeezed) = known.unwrap_or((u64::MAX, f64::MAX, false));
        let asked = |asked: Bytes| (asked.get() / facts.page.get().max(1) / SHARE) as f64;
        let memory = situation.asked.map_or(memory, |bytes| asked(bytes).min(memory));
        let each = each.max(self.bounds.least.get());
        let is_tight = each < self.bounds.most.get();
        let within = |pages: u64| Pages::new(pages).min(self.bounds.most);
        // A power of two that is a little more than its share is better than half of that.
        let rounded = sizes::even_at_most(within(each.saturating_add(each / SLACK)));
        let most = sizes::at_most(within(each)).max(rounded);
        Share { most, memory: Pages::new(memory as u64), is_tight, is_squeezed }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::control::Completions;

    #[test]
    fn what_is_asked_for_fills_the_memory_of_who_asks() {
        let facts = Facts {
            file_pages: Pages::new(1 << 20),
            window: Pages::new(32),
            position: None,
            hands_off: false,
            domain: 7,
            page: Bytes::from_kib(4),
        };
        let share = |asked| {
            let situation = Situation {
                now: Nanos::ZERO,
                completions: Completions::default(),
                memory: BTreeMap::from([(0, Bytes::from_gib(1)), (7, Bytes::from_mib(64))]),
                asked,
                limited: BTreeSet::from([7]),
                tight: false,
            };
            let share = Controller::default().share(&situation, &facts);
            (share.memory.get(), share.most.get())
        };
        let (of_reader, window) = share(None);
        assert_eq!(of_reader, 4096, "a quarter of what the reader's cache can hold");
        assert_eq!(share(Some(Bytes::from_gib(1))), (of_reader, window));
        assert_eq!(share(Some(Bytes::from_mib(16))), (1024, window), "windows are the reader's");
    }
}
