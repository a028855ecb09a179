//! The controller of `policy::control` above a live kernel: records in, decisions out.

use std::collections::{BTreeMap, BTreeSet};

use host::{BdiId, DevNo};
use observe::{Event, EventKind, OpenFile};
use policy::control::{
    Act, Bounds, Completions, Controller, Facts, FileKey, OpenKey, Order, ReadEnd, Seen, Situation,
};
use policy::{Extent, Page};
use units::{Bytes, PageSize, Pages};

use crate::{MemoryState, Snapshot};

/// What to do with an open file, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The open file as it was last seen.
    pub file: OpenFile,
    /// Its path, where it is known.
    pub path: Option<String>,
    /// What to do.
    pub act: Act,
    /// One line for people; empty if it only goes on with what was said before.
    pub why: String,
}

/// Controls the open files of one bdi.
#[derive(Debug)]
pub struct Pilot {
    controller: Controller,
    bdi: BdiId,
    /// The devices that count its I/O.
    counted: Vec<DevNo>,
    page: PageSize,
    /// The file systems that are on it.
    on_it: BTreeSet<DevNo>,
    /// The open file by which a directory was found, of which files are read ahead, and its path.
    beside: Option<(OpenFile, Option<String>)>,
}

impl Pilot {
    /// One that knows nothing yet; `counted` are the devices whose counters are its I/O.
    pub fn new(bdi: BdiId, counted: Vec<DevNo>, bounds: Bounds, page: PageSize) -> Self {
        let controller = Controller::new(bounds);
        Self { controller, bdi, counted, page, on_it: BTreeSet::new(), beside: None }
    }

    /// Open files of which it will want to know how they are.
    pub fn followed(&self) -> impl Iterator<Item = u64> {
        self.controller.keys().map(|key| key.0)
    }

    /// Learns from open files which file systems are on its bdi: what happens on others is not
    /// its business.
    pub fn meet(&mut self, files: &[OpenFile]) {
        let mine = files.iter().filter(|file| file.bdi.as_ref() == Some(&self.bdi));
        self.on_it.extend(mine.map(|file| file.device));
    }

    /// What decides.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The window that files should have which are opened from now on; none for the bdi's own.
    pub fn for_new(&self) -> Option<Bytes> {
        self.controller.for_new().map(|pages| pages.to_bytes(self.page))
    }

    /// Has it look on without deciding anything, or go on.
    pub fn rest(&mut self, rests: bool) {
        self.controller.rest(rests);
    }

    /// Takes in something that happened.
    pub fn see(&mut self, event: &Event) {
        let Some(id) = event.file.filter(|_| self.on_it.contains(&event.device)) else { return };
        if let Some(seen) = seen(event, self.page) {
            let file = FileKey(number(event.device), event.inode);
            self.controller.see(OpenKey(id.number()), file, event.at, seen);
        }
    }

    /// An open file of which it wants to know the directory, if any, and its path.
    pub fn wants_directory<'a>(&mut self, now: &'a Snapshot) -> Option<(&'a OpenFile, &'a str)> {
        // Of files that are as quickly closed as opened, one is perhaps open at the moment.
        self.controller.wants_directory(now.at).into_iter().find_map(|key| {
            let file = now.files.iter().find(|file| file.id.number() == key.0)?;
            Some((file, now.paths.get(&file.id)?.as_str()))
        })
    }

    /// Takes in the inodes of that directory, in the orders in which its files may be read; `file`
    /// is the open file by which it was found, and its path if that is known.
    pub fn directory(
        &mut self,
        file: (OpenFile, Option<String>),
        orders: Vec<Vec<u64>>,
        snapshot: &Snapshot,
        memory: &MemoryState,
    ) -> Option<Decision> {
        let (device, key) = (number(file.0.device), OpenKey(file.0.id.number()));
        let keys = |order: Vec<u64>| order.into_iter().map(|it| FileKey(device, it)).collect();
        let orders = orders.into_iter().map(keys).collect();
        self.beside = Some(file);
        let situation = self.situation(snapshot, memory);
        let order = self.controller.directory(key, orders, &situation)?;
        self.decision(order, &BTreeMap::new(), snapshot)
    }

    /// Decides after an interval. Pure: the same records give the same decisions.
    pub fn decide(&mut self, snapshot: &Snapshot, memory: &MemoryState) -> Vec<Decision> {
        let mine = snapshot.files.iter().filter(|file| file.bdi.as_ref() == Some(&self.bdi));
        let files: BTreeMap<u64, &OpenFile> = mine.map(|file| (file.id.number(), file)).collect();
        let situation = self.situation(snapshot, memory);
        let page = self.page;
        let orders = self
            .controller
            .decide(&situation, |key| files.get(&key.0).map(|file| facts(file, page, memory)));
        orders.into_iter().filter_map(|order| self.decision(order, &files, snapshot)).collect()
    }

    /// An order, of the open file that it is about.
    fn decision(
        &self,
        order: Order,
        files: &BTreeMap<u64, &OpenFile>,
        snapshot: &Snapshot,
    ) -> Option<Decision> {
        let (file, path) = match &order.act {
            Act::Files(_) => self.beside.clone()?,
            Act::Window(_) | Act::Prefetch(_) | Act::Answer(_) => {
                let file = (*files.get(&order.key.0)?).clone();
                let path = snapshot.paths.get(&file.id).cloned();
                (file, path)
            }
        };
        Some(Decision { file, path, act: order.act, why: order.why })
    }

    fn situation(&self, snapshot: &Snapshot, memory: &MemoryState) -> Situation {
        let mut completions = Completions::default();
        for stat in self.counted.iter().filter_map(|device| snapshot.devices.get(device)) {
            completions.reads += stat.reads;
            completions.bytes += stat.read_bytes;
            completions.time += stat.read_time;
        }
        Situation {
            now: snapshot.at,
            completions,
            memory: memory.caches.clone(),
            asked: memory.own,
            limited: memory.limited.clone(),
            tight: memory.tight,
        }
    }
}

/// The number of a device, as one.
fn number(device: DevNo) -> u64 {
    u64::from(device.major) << 32 | u64::from(device.minor)
}

fn facts(file: &OpenFile, page: PageSize, memory: &MemoryState) -> Facts {
    Facts {
        file_pages: file.size.to_pages_ceil(page),
        window: file.window.to_pages_floor(page),
        position: file.previous,
        hands_off: file.random || file.direct,
        domain: memory.domain(file),
        page: page.bytes(),
    }
}

fn seen(event: &Event, page: PageSize) -> Option<Seen> {
    let (index, pages) = (Page::new(event.index), event.request);
    Some(match event.kind {
        EventKind::Miss { .. } => {
            let previous = event.previous.map(|next| ReadEnd::of(next, page.bytes()));
            Seen::Miss { index, pages, previous }
        }
        EventKind::Mark { .. } => Seen::Mark { index, pages },
        EventKind::Window { window, mapped } => {
            let window = Extent::new(Page::new(window.start), window.size);
            Seen::Window { window, index, mapped }
        }
        EventKind::Plain => Seen::Plain { pages },
        EventKind::Stall { wait } => Seen::Stall { wait },
    })
}

/// The pages of an extent as bytes: where they begin, and how many.
pub fn bytes_of(extent: Extent, page: PageSize) -> (Bytes, Bytes) {
    let start = Pages::new(extent.start.get()).to_bytes(page);
    (start, extent.pages.to_bytes(page))
}
