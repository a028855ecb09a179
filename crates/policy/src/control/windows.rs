//! Which window each open file is to have.

use std::collections::BTreeSet;

use units::{Nanos, Pages};

use super::answer::Answer;
use super::climb::{News, Streams};
use super::controller::{Controller, RESTS, WAITS};
use super::prime::Priming;
use super::runs::Change;
use super::shrink::Shrink;
use super::stream::{Reading, Stream};
use super::{Act, Facts, FileKey, OpenKey, Order, Situation, sizes};

/// The same order is not given again before this.
const AGAIN: Nanos = Nanos::from_secs(5);
/// So long after the first read was seen, others may be under way of which nothing was seen yet.
const YOUNG: Nanos = Nanos::from_millis(600);
/// A window passes quickly if it takes no more than this part of the device's latency.
const BRIEF: f64 = 0.5;
/// The window for random faults, and for those that come in pairs.
const MAPPED: (Pages, Pages) = (Pages::new(1), Pages::new(4));

impl Controller {
    pub(super) fn windows(&mut self, situation: &Situation, elapsed: Nanos) -> Vec<Order> {
        let now = situation.now;
        let (wanted, news) = self.climb_on(situation, elapsed);
        let shared = self.shared();
        let (mut orders, mut others_changed) = (Vec::new(), false);
        let keys: Vec<OpenKey> = self.streams.keys().copied().collect();
        for key in keys {
            self.trim(key, now, &shared);
            let answers = self.answer(key, now, &shared);
            others_changed |= !answers.is_empty();
            orders.extend(answers);
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            // Also if its program has given advice meanwhile: it must not stay without a window.
            if let Some(shrink) = &stream.shrink {
                if let Some((window, why)) = shrink.over(now) {
                    stream.shrink = None;
                    orders.push(Order { key, act: Act::Window(window), why, primes: false });
                }
                continue;
            }
            let Some(stream) = self.streams.get(&key) else { continue };
            let Some(facts) = stream.facts.filter(|facts| !facts.hands_off) else { continue };
            let rests = now.saturating_sub(stream.seen) > RESTS || stream.is_done();
            if rests || stream.answer.is_some() {
                continue;
            }
            let decision = match stream.reading() {
                Reading::MappedRandom { paired } => {
                    let priming = self.primings.get(&stream.file);
                    let primed = priming.is_some_and(Priming::is_at_work)
                        && !situation.tight
                        && stream.own.is_some_and(|own| self.passes_quickly(own, &facts));
                    let least = if paired { MAPPED.1 } else { MAPPED.0 };
                    at_random(stream, &facts, least, primed)
                }
                _ if stream.trim.limit().is_some() => short_runs(stream, &facts),
                Reading::Forward => self.forward(situation, stream, &facts, wanted, &news),
                Reading::Other => taken_back(stream, &facts, wanted, &news),
            };
            let Some((window, why)) = decision else { continue };
            let given = stream.ordered;
            let again = given
                .is_some_and(|(ordered, at)| ordered == window && now.saturating_sub(at) < AGAIN);
            if !again && let Some(stream) = self.streams.get_mut(&key) {
                stream.ordered = Some((window, now));
                let runs = matches!(stream.reading(), Reading::Forward);
                others_changed |= !runs;
                // In short runs it begins anew soon enough.
                let smaller = runs && window < facts.window && stream.trim.limit().is_none();
                let (window, why) = if smaller {
                    stream.shrink = Some(Shrink::begin(window, why, now));
                    (Pages::ZERO, String::new())
                } else {
                    (window, why)
                };
                orders.push(Order { key, act: Act::Window(window), why, primes: false });
            }
        }
        if others_changed {
            self.climb.disturb();
        }
        orders
    }

    fn trim(&mut self, key: OpenKey, now: Nanos, shared: &BTreeSet<FileKey>) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        // What is read ahead for one reader of a file another may use.
        let alone = !stream.mapped && !shared.contains(&stream.file);
        if let Some(own) = stream.own.filter(|_| alone) {
            let tally = stream.tally();
            stream.trim.step(now, tally, own);
        }
    }

    /// Begins to answer the misses of an open file that is read in short runs, or ends it.
    fn answer(&mut self, key: OpenKey, now: Nanos, shared: &BTreeSet<FileKey>) -> Vec<Order> {
        let Some(stream) = self.streams.get_mut(&key) else { return Vec::new() };
        let Some((facts, own)) = stream.facts.zip(stream.own) else { return Vec::new() };
        let alone = !stream.mapped && !shared.contains(&stream.file) && stream.plan.is_none();
        let short = alone && stream.trim.limit().is_some() && stream.shrink.is_none();
        let rests = now.saturating_sub(stream.seen) > RESTS;
        let may = self.bounds.prefetch && !facts.hands_off && !rests;
        let Some(change) = stream.runs.step(now, short && may) else { return Vec::new() };
        let (run, window, why) = match change {
            Change::Begin(run) => (Some(run), MAPPED.0, short_runs_of(run)),
            Change::Harm => {
                (None, own, "its reader gets less by that than by the kernel".to_owned())
            }
            Change::Late => (None, own, "answers come too late, or not at all".to_owned()),
            Change::Over => (None, own, "it rests, or is not read in short runs alone".to_owned()),
        };
        stream.answer = run.map(Answer::new);
        let mut acts = vec![(Act::Answer(run), why)];
        if !facts.hands_off && facts.window != window {
            stream.ordered = Some((window, now));
            let why = match run {
                Some(_) => "what its reader misses is answered",
                None => "its own window serves it again",
            };
            acts.push((Act::Window(window), why.to_owned()));
        }
        let order = |(act, why)| Order { key, act, why, primes: false };
        acts.into_iter().map(order).collect()
    }

    /// Whether a window takes little time beside that of the read that brings it.
    fn passes_quickly(&self, window: Pages, facts: &Facts) -> bool {
        let rate = self.device.rate().get().max(1) as f64;
        let bytes = window.get().saturating_mul(facts.page.get()) as f64;
        bytes / rate <= BRIEF * self.device.latency().as_secs_f64()
    }

    /// Files that are read through several open files.
    pub(super) fn shared(&self) -> BTreeSet<FileKey> {
        let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
        for stream in self.streams.values() {
            if !once.insert(stream.file) {
                twice.insert(stream.file);
            }
        }
        twice
    }

    fn climb_on(&mut self, situation: &Situation, elapsed: Nanos) -> (Option<Pages>, News) {
        let now = situation.now;
        let (mut windows, mut active, mut unknown) = (Vec::new(), 0_u64, 0_u64);
        let (mut mapped, mut beside, mut several) = (false, false, false);
        let mut beside_seen = Nanos::ZERO;
        let shared = self.shared();
        let (mut stalled, mut waiting, mut most, mut page) = (0.0, false, 0, 4096);
        for stream in self.streams.values() {
            let Some(facts) = stream.facts else { continue };
            let rests = now.saturating_sub(stream.seen) > RESTS;
            if rests || facts.hands_off {
                continue;
            }
            let reading = stream.reading();
            unknown += u64::from(!stream.is_known());
            mapped |= matches!(reading, Reading::MappedRandom { .. });
            if reading != Reading::Forward {
                if stream.classifier.places().elsewhere > 1 && stream.plan.is_none() {
                    (beside, beside_seen) = (true, beside_seen.max(stream.seen));
                }
                continue;
            }
            if stream.trim.limit().is_some() {
                continue;
            }
            several |= shared.contains(&stream.file);
            stalled += stream.stalled as f64;
            if stream.shrink.is_none() {
                windows.push(facts.window);
            }
            most = most.max(self.share(situation, &facts).most.get());
            page = facts.page.get().max(1);
            if !stream.is_done() {
                active += 1;
                waiting |= stream.waiting > WAITS;
            }
        }
        windows.sort_unstable();
        let active = active.max(u64::from(stalled > 0.0));
        // Many short files, each with a little of it.
        waiting |= stalled / active.max(1) as f64 > WAITS * elapsed.get() as f64;
        // Who looks at readers that are at work already sees one of them first.
        let young = self.begun.is_some_and(|begun| now.saturating_sub(begun) < YOUNG);
        waiting &= !(young && 4 * unknown > active);
        let typical = windows.get(windows.len() / 2).copied().unwrap_or_default();
        let result = self.climb.step(
            now,
            &Streams {
                active,
                waiting,
                counts: self.counts,
                typical,
                most: Pages::new(most),
                in_flight: Pages::new(self.device.in_flight().get() / page),
                beside,
                beside_seen,
                mapped,
                shared: several,
            },
        );
        // A mapping that is read at random would suffer until it is known as such.
        self.opens = result.0.filter(|_| !mapped && !situation.tight);
        result
    }

    fn forward(
        &self,
        situation: &Situation,
        stream: &Stream,
        facts: &Facts,
        wanted: Option<Pages>,
        news: &News,
    ) -> Option<(Pages, String)> {
        let share = self.share(situation, facts);
        let too_large = facts.window.get() > share.most.get() + share.most.get() / 4;
        if share.is_tight && too_large && (share.is_squeezed || stream.ordered.is_some()) {
            let active = self.domains.get(&facts.domain).map_or(1, |domain| domain.active);
            let why = format!(
                "{active} streams share the memory, and larger windows would push each other out"
            );
            return Some((share.most, why));
        }
        if stream.trim.limit().is_some() {
            return None;
        }
        if matches!(news, News::TakenBack(_)) && stream.ordered.is_some() {
            return taken_back(stream, facts, wanted, news);
        }
        if *news == News::Tried && wanted.is_some_and(|wanted| wanted < facts.window) {
            let why = "half of it may be as good for those who read the file together";
            return wanted.map(|wanted| (wanted, why.to_owned()));
        }
        let file = sizes::at_least(facts.file_pages.max(self.bounds.least));
        // What was taken for want of memory comes back.
        let less = stream.ordered.zip(stream.own).filter(|(ordered, own)| ordered.0 < *own);
        let before = less.filter(|_| !share.is_squeezed).map(|(_, own)| own);
        let wanted = wanted.max(before)?.min(share.most).min(file);
        let larger = wanted.get() > facts.window.get() + facts.window.get() / 8;
        if !larger || stream.waiting <= WAITS {
            return None;
        }
        let mut why =
            format!("its readers wait {:.0} % of the time", (stream.waiting * 100.0).min(100.0));
        let device = &self.device;
        if device.latency() > Nanos::ZERO {
            let (latency, rate) = (device.latency().as_millis_f64(), device.rate().as_mib());
            why += &format!("; the device answers in {latency:.1} ms and reads {rate:.0} MiB/s");
        }
        Some((wanted, why))
    }
}

/// The window that an open file had before a trial that is over, if it took part in it.
fn taken_back(
    stream: &Stream,
    facts: &Facts,
    wanted: Option<Pages>,
    news: &News,
) -> Option<(Pages, String)> {
    let News::TakenBack(why) = news else { return None };
    let before = wanted.or(stream.own).filter(|before| *before < facts.window)?;
    stream.ordered.map(|_| (before, why.clone()))
}

/// The window of a mapping that is read at random; it needs no more than `least`.
fn at_random(
    stream: &Stream,
    facts: &Facts,
    least: Pages,
    primed: bool,
) -> Option<(Pages, String)> {
    if primed && stream.around.wants_own() {
        let own = stream.own.filter(|own| facts.window < *own)?;
        let why = "its file is read as a whole now, and what comes around a fault is part of that";
        return Some((own, why.to_owned()));
    }
    let why = "its mapping is read at random, and each fault reads as much as the window allows \
               around itself";
    (facts.window > least).then(|| (least, why.to_owned()))
}

/// Why misses are answered.
fn short_runs_of(run: Pages) -> String {
    format!("it is read in short runs from place to place, of {} pages mostly", run.get())
}

/// The window of an open file that is read in short runs.
fn short_runs(stream: &Stream, facts: &Facts) -> Option<(Pages, String)> {
    let limit = stream.trim.limit().filter(|limit| *limit < facts.window)?;
    let waste = 100.0 * stream.trim.waste();
    Some((limit, format!("{waste:.0} % of what is read ahead of it was not used")))
}
