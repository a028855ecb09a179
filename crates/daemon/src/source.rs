//! Live records: the probes, the census of open files and the counters of block devices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use host::{BlockStat, DevNo, HostError, Root, block_stats, page_size};
use observe::{
    Census, KernelTypes, Misses, ObserveError, OpenFile, OpenFileFilter, OpenFileId, ProbeEvent,
    Probes, SelfTest, self_test,
};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;
use units::Nanos;

use crate::mapped::MappedFiles;
use crate::record::VERSION;
use crate::{Begin, Record, Snapshot};

#[derive(Debug, Error)]
pub enum SourceError {
    /// The kernel cannot be looked into.
    #[error("cannot observe the kernel")]
    Observe(#[from] ObserveError),
    /// The devices cannot be looked at.
    #[error("cannot read the devices")]
    Host(#[from] HostError),
}

/// Where the records of `watch` come from.
pub trait WatchSource {
    /// The first record of a recording.
    fn beginning(&self) -> Record;

    /// Passes on what has happened since the last call, then a snapshot.
    ///
    /// # Errors
    ///
    /// If no snapshot can be taken.
    fn collect(&mut self, take: &mut dyn FnMut(Record)) -> Result<(), SourceError>;
}

/// Where records come from while things happen.
#[derive(Debug)]
pub struct LiveSource {
    root: Root,
    /// `None` where the kernel refuses them: then there are counters only.
    probes: Option<(Probes, Census)>,
    /// Why there are none, or what could not be tried.
    note: Option<String>,
    mapped: MappedFiles,
    /// Paths that are known. The kernel uses an address again, so the inode must be the same, too.
    paths: BTreeMap<(OpenFileId, u64), String>,
}

impl LiveSource {
    /// Begins to look. The probes are tried on a file in `dir`, which should not be on tmpfs; if
    /// they do not tell the truth, that is an error. Where they may not be used, counters remain.
    pub fn new(root: &Root, dir: &Path) -> Result<Self, SourceError> {
        let (probes, note) = match open_probes(dir) {
            Ok((probes, note)) => (Some(probes), note),
            Err(error @ (ObserveError::Untrue { .. } | ObserveError::Mechanism { .. })) => {
                return Err(error.into());
            }
            Err(error) => (None, Some(error.to_string())),
        };
        Ok(Self {
            root: root.clone(),
            probes,
            note,
            mapped: MappedFiles::default(),
            paths: BTreeMap::new(),
        })
    }

    /// What to tell the user of how things are seen.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Whether readers are seen at all.
    pub fn sees_readers(&self) -> bool {
        self.probes.is_some()
    }

    /// Lists open files, for whoever acts on them; `None` where the kernel may not be looked into.
    pub fn census(&self) -> Option<&Census> {
        self.probes.as_ref().map(|(_, census)| census)
    }

    /// Misses of chosen open files, for whoever answers them; `None` where the kernel may not be
    /// looked into.
    pub fn take_misses(&mut self) -> Result<Option<Misses>, SourceError> {
        let Some((probes, _)) = &mut self.probes else { return Ok(None) };
        Ok(Some(probes.take_misses()?))
    }

    /// Hands over what has happened since the last time, but for what this process did.
    pub fn events(&mut self, mut take: impl FnMut(ProbeEvent)) {
        let Self { probes: Some((probes, _)), mapped, .. } = self else { return };
        let own = std::process::id();
        probes.drain(|event| {
            if event.pid != own {
                mapped.event(&event);
                take(event);
            }
        });
    }

    /// Whether accesses can be sampled.
    pub fn samples_accesses(&self) -> bool {
        self.probes.as_ref().is_some_and(|(probes, _)| probes.samples_accesses())
    }

    /// Samples accesses to these files from now on, as [`Probes::sample`] does. If that fails, only
    /// misses are seen.
    pub fn sample_accesses(&mut self, files: &BTreeSet<(DevNo, u64)>) {
        let Some((probes, _)) = &mut self.probes else { return };
        if let Err(error) = probes.sample(files) {
            tracing::info!("accesses are not sampled: {error:#}");
        }
    }

    /// How things are now; of open files those that `filter` lets pass.
    pub fn snapshot(&mut self, filter: &OpenFileFilter) -> Result<Snapshot, SourceError> {
        let mut snapshot = Snapshot::default();
        if let Some((probes, census)) = &mut self.probes {
            snapshot.files = census.open_files(filter)?;
            let mapped = self.mapped.find(census, filter.ids.as_ref(), &snapshot.files);
            snapshot.files.extend(mapped);
            // Who acts on a file has a hand on it for an instant.
            let own = std::process::id();
            snapshot.files.iter_mut().for_each(|one| one.holders.retain(|it| it.pid != own));
            snapshot.files.retain(|one| !one.holders.is_empty());
            snapshot.lost = probes.lost();
        }
        snapshot.at = now();
        self.name(&mut snapshot);
        let is_used = |stat: &BlockStat| (stat.reads, stat.writes) != (0, 0);
        let disks: BTreeSet<String> = self.root.names("/sys/block").into_iter().collect();
        for (device, name, stat) in block_stats(&self.root).unwrap_or_default() {
            // As a directory has it: `cciss!c0d0`.
            let name = name.replace('/', "!");
            // Partitions are not among the disks.
            if is_used(&stat) && disks.contains(&name) {
                snapshot.devices.insert(device, stat);
                snapshot.names.insert(device, name);
            }
        }
        Ok(snapshot)
    }

    /// Finds the paths of files, once for each.
    fn name(&mut self, snapshot: &mut Snapshot) {
        let mut paths = BTreeMap::new();
        for file in &snapshot.files {
            let key = (file.id, file.inode);
            let known = self.paths.remove(&key);
            if let Some(path) = known.or_else(|| path_of(&self.root, file)) {
                snapshot.paths.insert(file.id, path.clone());
                paths.insert(key, path);
            }
        }
        self.paths = paths;
    }
}

impl WatchSource for LiveSource {
    fn beginning(&self) -> Record {
        let signals = self.probes.as_ref().map(|(probes, _)| probes.signals().to_vec());
        Record::Begin(Begin {
            version: VERSION,
            page_bytes: page_size().bytes().get(),
            signals: signals.unwrap_or_default(),
        })
    }

    fn collect(&mut self, take: &mut dyn FnMut(Record)) -> Result<(), SourceError> {
        self.events(|event| take(Record::Event(event)));
        take(Record::Snapshot(self.snapshot(&OpenFileFilter::default())?));
        Ok(())
    }
}

fn open_probes(dir: &Path) -> Result<((Probes, Census), Option<String>), ObserveError> {
    let types = KernelTypes::read()?;
    let census = Census::fitted(&types)?;
    let mut probes = Probes::fitted(&types)?;
    drop(types);
    let note = match self_test(&mut probes, &census, dir)? {
        SelfTest::Passed => None,
        SelfTest::NotHere { reason } => Some(format!("the probes were not tried: {reason}")),
    };
    Ok(((probes, census), note))
}

/// The path of an open file, as its holder has it: of that file, whatever its descriptor is used
/// for by now. No path is walked and no server is asked, as one might not answer.
fn path_of(root: &Root, file: &OpenFile) -> Option<String> {
    let holder = file.holders.first()?;
    let link = root.path(holder.link());
    let is_it = || {
        let asked = statx(CWD, &link, AtFlags::STATX_DONT_SYNC, StatxFlags::INO);
        asked.is_ok_and(|open| open.stx_ino == file.inode)
    };
    // Between two looks it was that file all the time.
    let name = is_it().then(|| std::fs::read_link(&link).ok()).flatten()?;
    is_it().then(|| name.to_string_lossy().into_owned())
}

pub(crate) fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
    Nanos::new(nanos)
}
