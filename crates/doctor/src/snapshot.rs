//! All that a diagnosis needs to know of a machine, read once.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use host::owners::Owners;
use host::{
    BdiId, Dirs, HostError, KernelRelease, ProcessMapping, Root, Storage, Subject, Survey,
    large_mappings, parse_meminfo,
};
use serde::Serialize;
use tunables::{PublishedJournal, Replay, published};
use units::{Bytes, Kib, PageSize};

use crate::Windows;
use crate::presets::Applies;

/// A machine, looked at.
#[derive(Debug)]
pub struct HostSnapshot {
    /// The tree that it was read from.
    pub root: Root,
    /// The kernel's release; the newest known rules hold where it is unknown.
    pub kernel: KernelRelease,
    pub page: PageSize,
    /// Memory that could be had without swapping.
    pub memory_available: Option<Bytes>,
    /// The bdis, and what stands on them.
    pub survey: Survey,
    pub owners: Owners,
    /// What foreread itself has changed and not put back.
    pub own_changes: Vec<OwnChange>,
    pub windows: Windows,
    /// Large files that processes have mapped, of the processes that may be looked at.
    pub mappings: Vec<ProcessMapping>,
    /// Whether any process could not be looked at.
    pub some_processes_hidden: bool,
    /// What could not be looked at.
    pub missing: Vec<Missing>,
    /// Advice that is about something here, once it was asked for.
    pub(crate) applying: OnceCell<Vec<Applies>>,
}

/// Something that could not be looked at, and what it would add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The information that it would have given.
    pub what: &'static str,
    /// Why it could not be looked at.
    pub reason: String,
    pub root_would: bool,
}

/// A change of read-ahead that foreread's journal knows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnChange {
    pub bdi: BdiId,
    /// The values that foreread gave it.
    pub values: Vec<Kib>,
    pub original: Option<Kib>,
    pub journal: PathBuf,
    /// The process that is measuring there, so that the value may be any.
    pub measured_by: Option<u32>,
}

/// Windows below this amplify too little for anybody to look at who maps files under them.
const LARGE_WINDOW: Kib = Kib::new(512);

impl HostSnapshot {
    /// Looks at the whole machine, or at one storage of it.
    pub fn look(
        root: &Root,
        dirs: &Dirs,
        storage: Option<&Storage>,
        windows: Windows,
    ) -> Result<Self, HostError> {
        let survey = match storage {
            Some(storage) => Survey::of_storage(root, storage)?,
            None => Survey::of_machine(root)?,
        };
        let release = root.read_if_present("/proc/sys/kernel/osrelease")?;
        let kernel = release.and_then(|text| text.parse().ok()).unwrap_or(NEWEST);
        let memory = root.read_if_present("/proc/meminfo")?.unwrap_or_default();
        let owners = Owners::read(root);
        let mut snapshot = Self {
            root: root.clone(),
            kernel,
            page: host::page_size_of(root),
            memory_available: parse_meminfo(&memory).get("MemAvailable").copied(),
            survey,
            owners,
            own_changes: own_changes(root, dirs),
            windows,
            mappings: Vec::new(),
            some_processes_hidden: false,
            missing: Vec::new(),
            applying: OnceCell::new(),
        };
        snapshot.look_at_mappings();
        snapshot.note_missing();
        Ok(snapshot)
    }

    /// Only where a window is large, as this reads a file of every process.
    fn look_at_mappings(&mut self) {
        if self.survey.subjects.iter().any(|subject| subject.read_ahead >= LARGE_WINDOW) {
            let (mappings, hidden) = large_mappings(&self.root);
            self.mappings = mappings;
            self.some_processes_hidden = hidden;
        }
    }

    fn note_missing(&mut self) {
        // What root cannot see either, because a container does not let him, he would not add.
        let others = !rustix::process::geteuid().is_root();
        for (path, error) in &self.owners.unreadable {
            self.missing.push(Missing {
                what: "read-ahead in LVM's metadata",
                reason: format!("{}: {error}", path.display()),
                root_would: others,
            });
        }
        if let Some(why) = &self.windows.unseen {
            self.missing.push(Missing {
                what: "which open files still have an older window",
                reason: why.clone(),
                root_would: others && why.contains("not permitted"),
            });
        }
        if self.some_processes_hidden {
            self.missing.push(Missing {
                what: "which other processes map large files",
                reason: "the maps of some may not be read".to_owned(),
                root_would: others,
            });
        }
    }

    /// What foreread has changed of a bdi, the latest first.
    pub fn own_changes_of(&self, bdi: &BdiId) -> impl Iterator<Item = &OwnChange> {
        self.own_changes.iter().rev().filter(move |change| change.bdi == *bdi)
    }

    pub fn subject(&self, bdi: &BdiId) -> Option<&Subject> {
        self.survey.subjects.iter().find(|subject| subject.bdi == *bdi)
    }

    /// A read-ahead as the kernel keeps it: whole pages.
    pub fn floored(&self, kib: Kib) -> Kib {
        let bytes = kib.get().checked_mul(1024).map_or(Bytes::new(0), Bytes::new);
        bytes.to_pages_floor(self.page).to_bytes(self.page).to_kib_floor()
    }
}

/// Rules of the newest kernel that foreread knows.
const NEWEST: KernelRelease = KernelRelease { major: 6, minor: 18 };

/// Where root's foreread keeps what it has set.
const SYSTEM_STATE: &str = "/var/lib/foreread";

/// Journals that are open, and what foreread has published of those that may not be read; what
/// cannot be read or is invalid is ignored.
fn own_changes(root: &Root, dirs: &Dirs) -> Vec<OwnChange> {
    let mut changes = of_journals(dirs);
    for state in [dirs.state.clone(), root.path(SYSTEM_STATE)] {
        for known in published(&state).iter().flat_map(of_published) {
            if !changes.iter().any(|change| change.journal == known.journal) {
                changes.push(known);
            }
        }
    }
    changes
}

fn of_published(one: &PublishedJournal) -> Vec<OwnChange> {
    let measured_by = one.measured_by();
    let change = |values, original| OwnChange {
        bdi: one.bdi.clone(),
        values,
        original,
        journal: one.journal.clone(),
        measured_by,
    };
    if measured_by.is_some() {
        return vec![change(Vec::new(), None)];
    }
    let ours = one.settings.iter().filter(|setting| setting.tunable == "read_ahead");
    ours.map(|setting| change(kib(&setting.value).into_iter().collect(), kib(&setting.original)))
        .collect()
}

fn of_journals(dirs: &Dirs) -> Vec<OwnChange> {
    let folder = dirs.state.join("journal");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    paths.iter().flat_map(|path| changes_of(path)).collect()
}

fn changes_of(path: &Path) -> Vec<OwnChange> {
    let Ok(replay) = Replay::load(path) else { return Vec::new() };
    let Some(header) = &replay.header else { return Vec::new() };
    let ours = replay.open.iter().filter(|open| open.tunable.name() == "read_ahead");
    ours.map(|open| OwnChange {
        bdi: header.site.bdi.clone(),
        values: open.ours.iter().filter_map(kib).collect(),
        original: kib(&open.original),
        journal: path.to_owned(),
        measured_by: None,
    })
    .collect()
}

fn kib(value: &tunables::Value) -> Option<Kib> {
    value.bytes().map(units::Bytes::to_kib_floor)
}
