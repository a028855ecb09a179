//! A snapshot of all facts about a machine that a diagnosis needs.

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

#[derive(Debug)]
pub struct HostSnapshot {
    /// The file tree that the snapshot was read from.
    pub root: Root,
    /// The kernel's release; the newest known one if it cannot be read.
    pub kernel: KernelRelease,
    pub page: PageSize,
    /// Memory available without swapping; `None` if unknown.
    pub memory_available: Option<Bytes>,
    /// The bdis and the storage that uses each of them.
    pub survey: Survey,
    pub owners: Owners,
    /// Changes that foreread made and has not restored.
    pub own_changes: Vec<OwnChange>,
    pub windows: Windows,
    /// Large files that processes have mapped, as far as their maps are readable.
    pub mappings: Vec<ProcessMapping>,
    /// True if the maps of some processes could not be read.
    pub some_processes_hidden: bool,
    /// Information that could not be read.
    pub missing: Vec<Missing>,
    /// The recommendations that apply to this machine, computed on demand.
    pub(crate) applying: OnceCell<Vec<Applies>>,
}

/// Information that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// A description of the missing information.
    pub what: &'static str,
    pub reason: String,
    pub root_would: bool,
}

/// A change of read-ahead, from foreread's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnChange {
    pub bdi: BdiId,
    /// The values that foreread set.
    pub values: Vec<Kib>,
    pub original: Option<Kib>,
    pub journal: PathBuf,
    /// The process that measures on the bdi and may set any value meanwhile.
    pub measured_by: Option<u32>,
}

/// With smaller windows, the amplification of mapped files is small.
const LARGE_WINDOW: Kib = Kib::new(512);

impl HostSnapshot {
    /// Reads the facts about the whole machine, or about one storage.
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

    /// Reads the mappings of all processes. Skipped without a large window, because it is slow.
    fn look_at_mappings(&mut self) {
        if self.survey.subjects.iter().any(|subject| subject.read_ahead >= LARGE_WINDOW) {
            let (mappings, hidden) = large_mappings(&self.root);
            self.mappings = mappings;
            self.some_processes_hidden = hidden;
        }
    }

    fn note_missing(&mut self) {
        // In a container, even root may not be able to see it.
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

    /// Returns foreread's changes on a bdi, latest first.
    pub fn own_changes_of(&self, bdi: &BdiId) -> impl Iterator<Item = &OwnChange> {
        self.own_changes.iter().rev().filter(move |change| change.bdi == *bdi)
    }

    pub fn subject(&self, bdi: &BdiId) -> Option<&Subject> {
        self.survey.subjects.iter().find(|subject| subject.bdi == *bdi)
    }

    /// Rounds a read-ahead down to whole pages, as the kernel does.
    pub fn floored(&self, kib: Kib) -> Kib {
        let bytes = kib.get().checked_mul(1024).map_or(Bytes::new(0), Bytes::new);
        bytes.to_pages_floor(self.page).to_bytes(self.page).to_kib_floor()
    }
}

/// The newest kernel release whose rules foreread knows.
const NEWEST: KernelRelease = KernelRelease { major: 6, minor: 18 };

/// The state directory of root's foreread.
const SYSTEM_STATE: &str = "/var/lib/foreread";

/// Returns the changes from the open journals, and from the published summary of those that are not
/// readable. Ignores invalid journals.
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
