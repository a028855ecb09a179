//! The loop of `auto` and `run`: see, decide, act, tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::auto::{
    Became, Bounds, Decision, DeviceStatus, Effect, MemoryState, Pilot, Slots, Snapshot, Source,
    Status,
};
use actuate::{Actuator, Answerer, Finder, Limits};
use anyhow::Context as _;
use host::{BdiId, DevNo, Storage, page_size};
use observe::{Event, OpenFile, OpenFileFilter, OpenFileId};
use report::clean::plain;
use units::{Bytes, Nanos};

use super::Context;
use super::bulletin::{Bulletin, status_path};
use super::hands::Hands;
use super::told::Manner;
use crate::destination::Destination;

/// Memory must be tight for so long before everything is given back, and be well for as long.
const TIGHT: Duration = Duration::from_secs(10);

/// Nothing was read from a disk for so long: no reader rests on what is foreseen any more.
const RESTS: Duration = Duration::from_secs(4);
/// How often to look at all then.
const SELDOM: Duration = Duration::from_secs(1);
/// A look is followed by a rest of so many times what it took.
const RARELY: u32 = 30;

/// How to fly.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    pub advise: bool,
    pub max: Bytes,
    pub prefetch: bool,
    /// Whether the window of files may be set that are opened from now on, whoever opens them.
    pub new_files: bool,
    pub leave: bool,
    /// Whether decisions are told as lines of JSON.
    pub json: bool,
    pub limits: Limits,
    /// The length of slots, where control and treatment alternate.
    pub slots: Option<Nanos>,
    pub metrics: Option<Destination>,
}

/// One bdi.
struct Craft {
    storage: Storage,
    pilot: Pilot,
    hands: Option<Hands>,
    finder: Finder,
}

impl Craft {
    /// Looks for the directory whose files are read one after another, and tells what to read of it
    /// as soon as it is found.
    fn look_beside(&mut self, snapshot: &Snapshot, memory: &MemoryState) -> Option<Decision> {
        if let Some(hands) = &mut self.hands {
            if self.pilot.controller().follows_files() {
                hands.beside(&snapshot.files);
            } else {
                hands.look_beside(None);
            }
        }
        if let Some((file, path)) = self.pilot.wants_directory(snapshot) {
            self.finder.ask(file, path);
        }
        let (directory, path) = self.finder.found()?;
        let file = (directory.file().clone(), Some(path));
        let decision = self.pilot.directory(file, directory.orders(), snapshot, memory);
        if self.pilot.controller().follows_files()
            && let Some(hands) = &mut self.hands
        {
            hands.look_beside(Some(directory));
        }
        decision
    }
}

/// All that is under control.
pub(super) struct Flight<'a> {
    context: &'a Context,
    orders: Orders,
    source: Source,
    crafts: BTreeMap<BdiId, Craft>,
    status: Status,
    /// What answers misses on all bdis; none where nothing is done.
    answerer: Option<Arc<Answerer>>,
    slots: Option<Slots>,
    treated: bool,
    /// Since when memory is tight, or well again while nothing is done.
    tight: Option<Instant>,
    bulletin: Bulletin,
    /// When something was last read from a disk, and when all was last looked at.
    active: Instant,
    looked: Instant,
    /// How long the last step took.
    took: Duration,
    /// File systems that are none of its business, where it does not follow a command.
    elsewhere: BTreeSet<DevNo>,
}

impl<'a> Flight<'a> {
    pub fn begin(context: &'a Context, orders: Orders) -> anyhow::Result<Self> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_secs());
        let pid = std::process::id();
        // Before the probes are loaded, which takes a moment.
        let bulletin = Bulletin::begin(status_path(context));
        bulletin.announce(&Status::new(pid, since, "starting"));
        let mut source = super::watch::begin(context)?;
        if !source.sees_readers() {
            // The reason was said as a note; as an error it has its exit code.
            observe::Census::begin()?;
        }
        let answerer = if orders.advise { None } else { answerer(&mut source, &orders.limits)? };
        let state = if orders.advise { "advising" } else { "acting" };
        let slots = orders.slots.map(|length| Slots::new(length, since ^ u64::from(pid)));
        let treated = slots.as_ref().is_none_or(Slots::treated);
        Ok(Self {
            context,
            orders,
            source,
            crafts: BTreeMap::new(),
            status: Status::new(pid, since, state),
            answerer,
            slots,
            treated,
            tight: None,
            bulletin,
            active: Instant::now(),
            looked: Instant::now(),
            took: Duration::ZERO,
            elsewhere: BTreeSet::new(),
        })
    }

    /// Takes a storage under control, unless its bdi is already.
    pub fn take(&mut self, storage: Storage) -> anyhow::Result<()> {
        if self.crafts.contains_key(&storage.bdi) {
            return Ok(());
        }
        let Some(census) = self.source.census() else { return Ok(()) };
        let page = page_size();
        let bounds = Bounds {
            most: self.orders.max.to_pages_floor(page),
            prefetch: self.orders.prefetch,
            ..Bounds::default()
        };
        let pilot = Pilot::new(storage.bdi.clone(), storage.devices.clone(), bounds, page);
        let limits = self.orders.limits.clone();
        let finder = Finder::begin(&self.context.root, &limits)
            .context("cannot start a thread to look for directories")?;
        let manner = self.manner();
        let begin = |answerer: &Arc<Answerer>| {
            let eyes = (census, Arc::clone(answerer));
            Hands::begin(self.context, &storage, limits, eyes, manner)
        };
        let hands = self.answerer.as_ref().map(begin).transpose()?;
        self.crafts.insert(storage.bdi.clone(), Craft { storage, pilot, hands, finder });
        Ok(())
    }

    /// Tells the service manager that it may rely on this.
    pub fn ready(&self) {
        self.bulletin.ready(&self.status);
    }

    /// How long to rest after a step, where that is usually this: less while readers begin, as long
    /// as looking then takes next to no processor time.
    pub fn nap(&self, interval: Duration) -> Duration {
        let usual = Nanos::from(interval);
        let wanted = self.crafts.values().map(|craft| craft.pilot.controller().patience(usual));
        let wanted = wanted.min().unwrap_or(usual);
        Duration::from_nanos(wanted.get()).max(self.took * RARELY).min(interval)
    }

    /// One interval. Only readers among `pids` count, if it is given.
    pub fn step(&mut self, pids: Option<&BTreeSet<u32>>) -> anyhow::Result<()> {
        let begun = Instant::now();
        let result = self.look_and_act(pids);
        self.took = begun.elapsed();
        result
    }

    fn look_and_act(&mut self, pids: Option<&BTreeSet<u32>>) -> anyhow::Result<()> {
        let mut events = Vec::new();
        let elsewhere = &self.elsewhere;
        self.source.events(|event| {
            let ours =
                pids.map_or(!elsewhere.contains(&event.device), |pids| pids.contains(&event.pid));
            if ours {
                events.push(event);
            }
        });
        if !events.is_empty() {
            self.active = Instant::now();
        }
        // While nothing is read from disks, there is nothing to look at but now and then.
        let rests = self.rests();
        if rests {
            self.let_open_as_ever()?;
        }
        if rests && self.looked.elapsed() < SELDOM {
            return Ok(());
        }
        self.looked = Instant::now();
        let snapshot = self.snapshot(&events, pids)?;
        for craft in self.crafts.values_mut() {
            craft.pilot.meet(&snapshot.files);
            events.iter().for_each(|event| craft.pilot.see(event));
        }
        self.status.lost_events = snapshot.lost;
        self.look_after_answers(&snapshot)?;
        self.alternate(&snapshot)?;
        let memory = MemoryState::look(&self.context.root, &snapshot.files);
        self.mind(memory.tight)?;
        for bdi in self.crafts.keys().cloned().collect::<Vec<_>>() {
            self.steer(&bdi, &snapshot, &memory)?;
        }
        self.bulletin.tell(&self.status, self.orders.metrics.as_mut());
        Ok(())
    }

    /// How things are, of open files those that something happened to or that are followed: there
    /// may be hundreds of thousands of others.
    fn snapshot(
        &mut self,
        events: &[Event],
        pids: Option<&BTreeSet<u32>>,
    ) -> anyhow::Result<Snapshot> {
        let followed = self.crafts.values().flat_map(|craft| craft.pilot.followed());
        let followed = followed.map(OpenFileId::numbered);
        let answered = self.answerer.iter().flat_map(|answerer| answerer.files());
        let ids =
            followed.chain(answered).chain(events.iter().filter_map(|event| event.file)).collect();
        let filter = OpenFileFilter { ids: Some(ids), ..Default::default() };
        let mut snapshot = self.source.snapshot(&filter)?;
        if let Some(pids) = pids {
            let ours =
                |file: &OpenFile| file.holders.iter().any(|holder| pids.contains(&holder.pid));
            snapshot.files.retain(ours);
            self.take_new(&snapshot);
        } else {
            let known = |file: &&OpenFile| {
                file.bdi.as_ref().is_some_and(|bdi| self.crafts.contains_key(bdi))
            };
            let others = snapshot.files.iter().filter(|file| !known(file));
            self.elsewhere.extend(others.map(|file| file.device));
        }
        Ok(snapshot)
    }

    /// Takes in what came of answers, and tells of open files that can be answered no more.
    fn look_after_answers(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        let Some(answerer) = &self.answerer else { return Ok(()) };
        answerer.seen(&snapshot.files);
        let done = answerer.report();
        for hands in self.crafts.values_mut().filter_map(|craft| craft.hands.as_mut()) {
            hands.yield_answered(&snapshot.files);
        }
        if let Some(error) = done.failed {
            return Err(error.into());
        }
        self.status.answered_runs += done.runs;
        self.status.prefetched_bytes += done.asked.get();
        self.status.dropped += done.dropped;
        for (file, missed) in done.missed {
            let craft = file.bdi.as_ref().and_then(|bdi| self.crafts.get_mut(bdi));
            if let Some(hands) = craft.and_then(|craft| craft.hands.as_mut()) {
                hands.not_answered(&file, missed, &mut self.status)?;
            }
        }
        Ok(())
    }

    /// Takes the storages of files that were opened on others.
    fn take_new(&mut self, snapshot: &Snapshot) {
        for file in &snapshot.files {
            let Some(path) = snapshot
                .paths
                .get(&file.id)
                .filter(|_| file.bdi.as_ref().is_some_and(|bdi| !self.crafts.contains_key(bdi)))
            else {
                continue;
            };
            // One that cannot be had, as another foreread has it, is left alone.
            if let Ok(storage) = host::resolve(&self.context.root, Path::new(path))
                && let Err(error) = self.take(storage)
            {
                tracing::info!("{}: {error:#}", plain(path));
            }
        }
    }

    fn steer(
        &mut self,
        bdi: &BdiId,
        snapshot: &Snapshot,
        memory: &MemoryState,
    ) -> anyhow::Result<()> {
        let rests = self.rests();
        let acts = self.status.state == "acting" && self.treated;
        let Some(craft) = self.crafts.get_mut(bdi) else { return Ok(()) };
        craft.pilot.rest(!acts && !self.orders.advise);
        let mut decisions = craft.pilot.decide(snapshot, memory);
        decisions.extend(craft.look_beside(snapshot, memory));
        let device = craft.pilot.controller().device();
        let known = DeviceStatus {
            latency_ms: device.latency().as_millis_f64(),
            rate_mib_s: device.rate().as_mib(),
            parallelism: device.parallelism(),
            followed: craft.pilot.controller().followed(),
        };
        self.status.devices.insert(bdi.to_string(), known);
        if let Some(priming) = craft.pilot.controller().priming() {
            tracing::debug!("{bdi}, {:.1} s: {priming:?}", snapshot.at.as_secs_f64());
        }
        let Some(hands) = &mut craft.hands else { return self.advise(&decisions) };
        hands.look_after(&mut self.status)?;
        if !acts {
            return Ok(());
        }
        let mut off = hands.are_to_be_off()?;
        if off.is_none() {
            off = hands.act(decisions, &mut self.status)?;
        }
        if off.is_none() && self.orders.new_files && !rests {
            off = hands.open_with(craft.pilot.for_new(), &mut self.status)?;
        }
        if let Some(why) = off {
            let what =
                format!("{why}: hands off {}, open files stay as they are", craft.storage.bdi);
            self.context.note(&what);
            self.status.decided(&what);
            if let Some(hands) = craft.hands.take() {
                hands.end(true)?;
            }
            if self.crafts.values().all(|craft| craft.hands.is_none()) {
                self.status.state = format!("hands off: {why}");
            }
        }
        Ok(())
    }

    /// Whether nothing was read from a disk for a while.
    fn rests(&self) -> bool {
        self.active.elapsed() > RESTS
    }

    /// Has files opened with the bdi's own window: what comes next may be of another kind.
    fn let_open_as_ever(&mut self) -> anyhow::Result<()> {
        for hands in self.crafts.values_mut().filter_map(|craft| craft.hands.as_mut()) {
            // If somebody else has set the bdi, that is found when there is something to do.
            hands.open_with(None, &mut self.status)?;
        }
        Ok(())
    }

    fn advise(&mut self, decisions: &[Decision]) -> anyhow::Result<()> {
        if !self.orders.advise {
            return Ok(());
        }
        let manner = self.manner();
        let news = decisions.iter().filter(|one| !one.why.is_empty());
        news.into_iter().try_for_each(|one| manner.tell(one, Became::Advised, &mut self.status))
    }

    fn manner(&self) -> Manner {
        // Advice that is not told is none.
        let quiet = self.context.global.quiet && !self.orders.advise;
        Manner { json: self.orders.json, quiet, leave: self.orders.leave }
    }

    /// Control and treatment in turns, where that is wanted.
    fn alternate(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        let Some(slots) = &mut self.slots else { return Ok(()) };
        let got = self.crafts.values().map(|craft| craft.pilot.controller().progress()).sum();
        let treated = slots.tick(snapshot.at, got);
        let effect = slots.effect();
        if treated != self.treated {
            self.treated = treated;
            for hands in self.crafts.values_mut().filter_map(|craft| craft.hands.as_mut()) {
                if treated {
                    hands.take_again()?
                } else {
                    hands.give_back()?
                };
            }
            self.status.effect = effect.map(Into::into);
        }
        if effect.is_some_and(|effect| effect.is_harm()) {
            self.stop("it does not help here, see the effect")?;
            self.slots = None;
        }
        Ok(())
    }

    /// Gives everything back where memory is tight for long, and goes on when it is well again.
    fn mind(&mut self, tight: bool) -> anyhow::Result<()> {
        const WAITING: &str = "waiting: memory is tight";
        let acting = self.status.state == "acting";
        if tight == acting && (acting || self.status.state == WAITING) {
            let since = *self.tight.get_or_insert_with(Instant::now);
            if since.elapsed() > TIGHT {
                self.tight = None;
                if acting {
                    self.stop(WAITING)?;
                } else {
                    "acting".clone_into(&mut self.status.state);
                    self.context.note("memory is well again: acting");
                }
            }
        } else {
            self.tight = None;
        }
        Ok(())
    }

    /// Gives everything back and does nothing more.
    fn stop(&mut self, why: &str) -> anyhow::Result<()> {
        for hands in self.crafts.values_mut().filter_map(|craft| craft.hands.as_mut()) {
            hands.give_back()?;
        }
        why.clone_into(&mut self.status.state);
        self.status.decided(why);
        self.context.note(&format!("control is off: {why}"));
        Ok(())
    }

    /// What the slots have shown.
    pub fn effect(&self) -> Option<Effect> {
        self.slots.as_ref().and_then(Slots::effect)
    }

    /// Ends: everything is given back, unless it is to be left.
    pub fn end(self) -> anyhow::Result<Status> {
        drop(self.bulletin);
        let (mut changed, mut given, mut failed) = (0, 0, None);
        for hands in self.crafts.into_values().filter_map(|craft| craft.hands) {
            match hands.end(self.orders.leave) {
                Ok((all, back)) => (changed, given) = (changed + all, given + back),
                // The others are given back all the same.
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if !self.orders.advise {
            let (leave, mended) = (self.orders.leave, self.status.mended);
            let read = Bytes::new(self.status.prefetched_bytes);
            self.context.note(&ended(changed, given, leave, mended, read));
        }
        Ok(self.status)
    }
}

/// What answers misses within these limits; `None` where the kernel may not be looked into.
fn answerer(source: &mut Source, limits: &Limits) -> anyhow::Result<Option<Arc<Answerer>>> {
    let (Some(misses), Some(census)) = (source.take_misses()?, source.census()) else {
        return Ok(None);
    };
    let actuator = Actuator::with(census.clone(), limits.clone());
    let answerer = Answerer::begin(actuator, Arc::new(misses));
    Ok(Some(Arc::new(answerer.context("cannot start a thread to answer misses")?)))
}

/// What was done in all, and what became of it. Of nothing there is nothing to be said.
pub(super) fn ended(changed: usize, given: usize, leave: bool, mended: u64, read: Bytes) -> String {
    let mut said = Vec::new();
    if changed > 0 {
        let back = match (leave, given) {
            (true, _) => "left as they are".to_owned(),
            (false, all) if all == changed => "back as they were".to_owned(),
            (false, 0) => "closed by now".to_owned(),
            (false, some) => format!("{some} back as they were, the others closed by now"),
        };
        said.push(format!("windows of open files changed: {changed} ({back})"));
    }
    if mended > 0 {
        said.push(format!("opened in an instant of change, and mended: {mended}"));
    }
    if read > Bytes::ZERO {
        said.push(format!("read ahead: {read}"));
    }
    if said.is_empty() { "there was nothing to do".to_owned() } else { said.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_tells_what_was_done() {
        let none = Bytes::ZERO;
        assert_eq!(ended(0, 0, false, 0, none), "there was nothing to do");
        let closed = "windows of open files changed: 1 (closed by now)";
        assert_eq!(ended(1, 0, false, 0, none), closed);
        let some = ended(3, 2, false, 1, Bytes::from_mib(2));
        assert!(some.contains("2 back as they were") && some.ends_with("read ahead: 2 MiB"));
    }
}
