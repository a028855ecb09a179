//! `foreread run` without the right to look into the kernel: readers are followed by `/proc`, and
//! what can be done for them is reading ahead and twice the device's own window.

use std::collections::{BTreeMap, BTreeSet};

use ::auto::{
    Act, Became, Bounds, Decision, MemoryState, Pilot, Positions, Snapshot, Status, bytes_of,
};
use actuate::{Advice, Missed, OwnFiles, Prefetcher};
use anyhow::Context as _;
use host::{BdiId, page_size};
use observe::{OpenFile, OpenFileId};
use units::{Bytes, Pages};

use super::Context;
use super::flight::{Orders, ended};
use super::told::Manner;

/// What `POSIX_FADV_SEQUENTIAL` makes of a window.
const SEQUENTIAL: u64 = 2;

/// What it does, and does not.
const NOTE: &str = "note: without the right to load kernel probes, the command is followed by \
                    /proc: no window goes above twice the device's own, and mapped reads are not \
                    seen";

/// All that is under control.
pub(super) struct Unprivileged<'a> {
    context: &'a Context,
    orders: Orders,
    positions: Positions,
    pilots: BTreeMap<BdiId, Pilot>,
    files: OwnFiles,
    prefetcher: Prefetcher,
    /// Open files that were told to expect a sequence, as they were before.
    told: BTreeMap<OpenFileId, OpenFile>,
    /// How many were told that are closed by now.
    closed: usize,
    said: BTreeSet<OpenFileId>,
    status: Status,
}

impl<'a> Unprivileged<'a> {
    pub fn begin(context: &'a Context, orders: Orders) -> anyhow::Result<Self> {
        context.note(NOTE);
        let files = OwnFiles::of(&context.root);
        let prefetcher = Prefetcher::begin_own(files.clone());
        Ok(Self {
            context,
            orders,
            positions: Positions::of(&context.root),
            pilots: BTreeMap::new(),
            files,
            prefetcher: prefetcher.context("cannot start a thread to read ahead")?,
            told: BTreeMap::new(),
            closed: 0,
            said: BTreeSet::new(),
            status: Status::new(std::process::id(), 0, "acting"),
        })
    }

    /// One interval.
    pub fn step(&mut self, pids: &BTreeSet<u32>) -> anyhow::Result<()> {
        let (events, snapshot) = self.positions.look(pids);
        self.forget(&snapshot);
        for storage in self.positions.storages() {
            if !self.pilots.contains_key(&storage.bdi) {
                let pilot = Pilot::new(
                    storage.bdi.clone(),
                    storage.devices.clone(),
                    self.bounds(&snapshot, &storage.bdi),
                    page_size(),
                );
                self.pilots.insert(storage.bdi.clone(), pilot);
            }
        }
        let memory = MemoryState::look(&self.context.root, &snapshot.files);
        let mut decisions = Vec::new();
        for pilot in self.pilots.values_mut() {
            pilot.meet(&snapshot.files);
            events.iter().for_each(|event| pilot.see(event));
            decisions.extend(pilot.decide(&snapshot, &memory));
        }
        decisions.into_iter().try_for_each(|decision| self.act(decision))?;
        self.look_after();
        Ok(())
    }

    /// Forgets open files that are closed.
    fn forget(&mut self, snapshot: &Snapshot) {
        let open: BTreeSet<OpenFileId> = snapshot.files.iter().map(|file| file.id).collect();
        let before = self.told.len();
        self.told.retain(|id, _| open.contains(id));
        self.closed += before - self.told.len();
        self.said.retain(|id| open.contains(id));
    }

    /// No more than advice can give.
    fn bounds(&self, snapshot: &Snapshot, bdi: &BdiId) -> Bounds {
        let own = snapshot.files.iter().find(|file| file.bdi.as_ref() == Some(bdi));
        let most = own.map_or(Bytes::ZERO, |file| file.bdi_window * SEQUENTIAL);
        let least = most.to_pages_floor(page_size());
        let most = most.min(self.orders.max).to_pages_floor(page_size());
        Bounds { most, least: least.min(most), prefetch: self.orders.prefetch }
    }

    fn act(&mut self, decision: Decision) -> anyhow::Result<()> {
        if self.orders.advise {
            let news = !decision.why.is_empty();
            return if news { self.tell(&decision, Became::Advised) } else { Ok(()) };
        }
        match &decision.act {
            Act::Prefetch(extents) => {
                let wanted: Vec<_> =
                    extents.iter().map(|one| bytes_of(*one, page_size())).collect();
                if !wanted.is_empty() {
                    self.prefetcher.order(decision.file.clone(), wanted);
                }
                if decision.why.is_empty() {
                    return Ok(());
                }
                self.tell(&decision, Became::Read)
            }
            // It is an order for a directory, which nobody here has open.
            Act::Files(_) => Ok(()),
            // Nobody here sees misses.
            Act::Answer(_) => Ok(()),
            // That takes the right to set the bdi.
            Act::Window(Pages::ZERO) => Ok(()),
            Act::Window(pages) => {
                let more = pages.to_bytes(page_size()) > decision.file.bdi_window;
                self.set(&decision, if more { Advice::Sequential } else { Advice::Normal })
            }
        }
    }

    fn set(&mut self, decision: &Decision, advice: Advice) -> anyhow::Result<()> {
        let file = &decision.file;
        match self.files.advise(file, advice) {
            Ok(()) => {
                let more = advice == Advice::Sequential;
                let window = file.bdi_window * if more { SEQUENTIAL } else { 1 };
                self.positions.has_window(file.id, window);
                self.told.entry(file.id).or_insert_with(|| file.clone());
                self.status.windows_set += 1;
                self.tell(decision, Became::Set { back: file.bdi_window })
            }
            Err(missed) => self.missed(decision, &missed),
        }
    }

    fn missed(&mut self, decision: &Decision, missed: &Missed) -> anyhow::Result<()> {
        if *missed == Missed::Gone || !self.said.insert(decision.file.id) {
            return Ok(());
        }
        self.tell(decision, Became::Missed(missed.to_string()))
    }

    /// Takes in what came of reading ahead.
    fn look_after(&mut self) {
        let done = self.prefetcher.report();
        self.status.prefetched_bytes += done.asked.get();
        for (file, missed) in done.missed {
            if missed != Missed::Gone && self.said.insert(file.id) {
                self.context.note(&format!("not read ahead: {missed}"));
            }
        }
    }

    fn tell(&mut self, decision: &Decision, became: Became) -> anyhow::Result<()> {
        let quiet = self.context.global.quiet && !self.orders.advise;
        let manner = Manner { json: self.orders.json, quiet, leave: self.orders.leave };
        manner.tell(decision, became, &mut self.status)
    }

    /// Ends: what is still open has the window again that it had.
    pub fn end(mut self) {
        self.prefetcher.clear();
        self.look_after();
        let again = |file: &&OpenFile| self.files.advise(file, Advice::Normal).is_ok();
        let back = if self.orders.leave { 0 } else { self.told.values().filter(again).count() };
        if !self.orders.advise {
            let read = Bytes::new(self.status.prefetched_bytes);
            let (all, leave) = (self.told.len() + self.closed, self.orders.leave);
            self.context.note(&ended(all, back, leave, 0, read));
        }
    }
}
