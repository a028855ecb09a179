//! The memory that windows may fill.

use std::collections::BTreeMap;

use units::{Bytes, Nanos, Pages};

use super::inputs::{Bounds, FileState, Inputs};
use super::sizes;
use crate::tuning::Tuning;

#[derive(Clone, Copy, Debug)]
struct ShareTrial {
    squeeze: f64,
    rate: f64,
    begun: (Nanos, u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryDomain {
    /// The part of its share that windows may fill, 1/64 to 1; less than 1 after thrashing.
    squeeze: f64,
    /// Active streams in the domain that read forward.
    pub active: u64,
    /// Misses of pages that were read ahead and evicted before use, over the interval.
    pub thrashed: u64,
    /// Places where readers of its streams were seen over the interval.
    pub places: u64,
    /// Pages that readers have reached so far, and the recent rate in pages per second.
    pub progress: u64,
    rate: f64,
    intervals: u32,
    /// The sums of `thrashed` and of `places` since thrashing was last judged.
    lately: (u64, u64),
    judged: Nanos,
    before: u64,
    trial: Option<ShareTrial>,
    /// The time of the first interval, and the time before which the share is not reduced again.
    since: Option<Nanos>,
    not_before: Nanos,
}

impl Default for MemoryDomain {
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
            not_before: Nanos::ZERO,
        }
    }
}

impl MemoryDomain {
    /// Ends an interval.
    pub fn interval(&mut self, now: Nanos, elapsed: Nanos, tuning: &Tuning) {
        let seconds = elapsed.as_secs_f64();
        let rate = self.progress.saturating_sub(self.before) as f64 / seconds.max(1e-6);
        self.before = self.progress;
        let since = *self.since.get_or_insert(now);
        if let Some(trial) = self.trial {
            let (since, before) = trial.begun;
            let span = now.saturating_sub(since);
            if span < tuning.trial_time() {
                return;
            }
            self.trial = None;
            let rate = self.progress.saturating_sub(before) as f64 / span.as_secs_f64();
            if rate < tuning.revert_below_ratio() * trial.rate {
                (self.squeeze, self.not_before) = (trial.squeeze, now + tuning.forget_timeout);
            }
            self.rate = rate;
            return;
        }
        if now < since + tuning.observation_time {
            return;
        }
        let known = self.rate;
        self.intervals = self.intervals.saturating_add(1);
        // The mean of all intervals at first, later of about the last second.
        let weight = seconds.max(1.0 / f64::from(self.intervals)).min(1.0);
        self.rate += weight * (rate - known);
        if self.thrashes(now, tuning)
            && now >= self.not_before.max(since + tuning.observation_time + tuning.trial_time())
        {
            let (squeeze, rate) = (self.squeeze, known);
            self.trial = Some(ShareTrial { squeeze, rate, begun: (now, self.progress) });
            self.squeeze = (self.squeeze * 0.5).max(1.0 / 64.0);
        } else {
            self.squeeze =
                (self.squeeze * 2_f64.powf(seconds / tuning.fade_time.as_secs_f64())).min(1.0);
        }
    }
}

impl MemoryDomain {
    /// Returns whether too many pages were evicted before use, if there is enough evidence.
    fn thrashes(&mut self, now: Nanos, tuning: &Tuning) -> bool {
        let (gone, places) = (self.lately.0 + self.thrashed, self.lately.1 + self.places);
        self.lately = (gone, places);
        if places < tuning.min_places() && now.saturating_sub(self.judged) < tuning.trial_time() {
            return false;
        }
        (self.lately, self.judged) = ((0, 0), now);
        // Fewer may be chance.
        gone > places / tuning.few_samples
    }
}

/// The limits of a window by its share of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowShare {
    pub most: Pages,
    /// The memory that prefetched pages may fill.
    pub memory: Pages,
    /// True if memory limits `most`.
    pub is_tight: bool,
    /// True after thrashing or under memory pressure.
    pub is_squeezed: bool,
}

/// Returns the pages that files may fill together if they are to stay in memory.
pub(super) fn room(inputs: &Inputs, facts: &FileState, tuning: &Tuning) -> Pages {
    let cache = inputs.memory.caches.get(&facts.domain).or(inputs.memory.caches.get(&0));
    cache.map_or(Pages::ZERO, |cache| kept(*cache, facts, tuning))
}

/// Returns the pages that files may fill together if they are to stay in a cache of this size.
pub(super) fn kept(cache: Bytes, facts: &FileState, tuning: &Tuning) -> Pages {
    Pages::new(cache.get() / tuning.kept_files_divisor() / facts.page.get().max(1))
}

pub(super) type Domains = BTreeMap<u64, MemoryDomain>;

/// Returns the limits of a window in the domain of an open file.
pub(super) fn share_of(
    domains: &Domains,
    bounds: &Bounds,
    inputs: &Inputs,
    facts: &FileState,
) -> WindowShare {
    let of = |number: u64| {
        let cache = inputs.memory.caches.get(&number)?.get() / facts.page.get().max(1);
        let limited = inputs.memory.limited.contains(&number);
        let domain = domains.get(&number).copied().unwrap_or_default();
        let part = if limited { 1 } else { bounds.tuning.cache_share_divisor };
        let share = cache as f64 / part as f64 * domain.squeeze;
        let share = if inputs.memory.under_pressure { share / 4.0 } else { share };
        let squeezed = domain.squeeze < 0.99 || inputs.memory.under_pressure;
        let each = (share / (2 * domain.active.max(1)) as f64) as u64;
        Some((
            each,
            cache as f64 / bounds.tuning.cache_share_divisor as f64 * domain.squeeze,
            squeezed,
        ))
    };
    let known = of(facts.domain).or_else(|| of(0));
    let (each, memory, is_squeezed) = known.unwrap_or((u64::MAX, f64::MAX, false));
    let asked = |asked: Bytes| {
        (asked.get() / facts.page.get().max(1) / bounds.tuning.cache_share_divisor) as f64
    };
    let memory = inputs.memory.prefetched.map_or(memory, |bytes| asked(bytes).min(memory));
    let each = each.max(bounds.least.get());
    let is_tight = each < bounds.most.get();
    let within = |pages: u64| Pages::new(pages).min(bounds.most);
    // A power of two slightly above the share is better than half of it.
    let slack = (each as f64 * bounds.tuning.min_share) as u64;
    let rounded = sizes::even_at_most(within(each.saturating_add(slack)));
    let most = sizes::at_most(within(each)).max(rounded);
    WindowShare { most, memory: Pages::new(memory as u64), is_tight, is_squeezed }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::inputs::MemoryInputs;
    use policy::DeviceCompletions;

    #[test]
    fn what_is_asked_for_fills_the_memory_of_who_asks() {
        let facts = FileState {
            file_pages: Pages::new(1 << 20),
            window: Pages::new(32),
            position: None,
            unmanaged: false,
            random: false,
            only_mapped: false,
            prime: false,
            domain: 7,
            page: Bytes::from_kib(4),
        };
        let share = |asked| {
            let inputs = Inputs {
                now: Nanos::ZERO,
                completions: DeviceCompletions::default(),
                memory: MemoryInputs {
                    caches: BTreeMap::from([(0, Bytes::from_gib(1)), (7, Bytes::from_mib(64))]),
                    prefetched: asked,
                    limited: BTreeSet::from([7]),
                    under_pressure: false,
                },
            };
            let share = share_of(&Domains::new(), &Bounds::default(), &inputs, &facts);
            (share.memory.get(), share.most.get())
        };
        let (of_reader, window) = share(None);
        assert_eq!(of_reader, 4096, "a quarter of what the reader's cache can hold");
        assert_eq!(share(Some(Bytes::from_gib(1))), (of_reader, window));
        assert_eq!(share(Some(Bytes::from_mib(16))), (1024, window), "windows are the reader's");
    }
}
