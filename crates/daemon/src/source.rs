//! Live records, from the probes, the census of open files and the counters of block devices.

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
    #[error("cannot observe the kernel")]
    Observe(#[from] ObserveError),
    #[error("cannot read the devices")]
    Host(#[from] HostError),
}

/// The source of the records of `watch`.
pub trait WatchSource {
    /// Returns the first record of a recording.
    fn beginning(&self) -> Record;

    /// Passes the events since the last call to `take`, then a snapshot.
    ///
    /// # Errors
    ///
    /// If no snapshot can be taken.
    fn collect(&mut self, take: &mut dyn FnMut(Record)) -> Result<(), SourceError>;
}

/// The source of live records.
#[derive(Debug)]
pub struct LiveSource {
    root: Root,
    /// `None` if the kernel refuses them: then only counters are available.
    probes: Option<(Probes, Census)>,
    /// Why there are no probes, or why they were not tested.
    note: Option<String>,
    mapped: MappedFiles,
    /// The paths in the last snapshot. The kernel reuses addresses, so the key has the inode.
    paths: BTreeMap<(OpenFileId, u64), String>,
}

impl LiveSource {
    /// Loads the probes and tests them on a file in `dir`, which should not be on tmpfs. It is an
    /// error if they report wrong events. If they are not available, counters remain.
    pub fn new(root: &Root, dir: &Path) -> Result<Self, SourceError> {
        let (probes, note) = match open_probes(dir) {
            Ok((probes, note)) => (Some(probes), note),
            Err(error @ (ObserveError::SelfTestFailed { .. } | ObserveError::Mechanism { .. })) => {
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

    /// Returns a note for the user on missing or untested probes.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns whether readers can be observed.
    pub fn sees_readers(&self) -> bool {
        self.probes.is_some()
    }

    /// Returns the census, for listing open files; `None` without probes.
    pub fn census(&self) -> Option<&Census> {
        self.probes.as_ref().map(|(_, census)| census)
    }

    /// Takes the misses of chosen open files, for prefetching on them; `None` without probes.
    pub fn take_misses(&mut self) -> Result<Option<Misses>, SourceError> {
        let Some((probes, _)) = &mut self.probes else { return Ok(None) };
        Ok(Some(probes.take_misses()?))
    }

    /// Passes the events since the last call to `take`, except those of this process.
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

    /// Returns whether accesses can be sampled.
    pub fn samples_accesses(&self) -> bool {
        self.probes.as_ref().is_some_and(|(probes, _)| probes.samples_accesses())
    }

    /// Samples accesses to these files from now on, as [`Probes::sample`] does. If that fails, only
    /// misses are reported.
    pub fn sample_accesses(&mut self, files: &BTreeSet<(DevNo, u64)>) {
        let Some((probes, _)) = &mut self.probes else { return };
        if let Err(error) = probes.sample(files) {
            tracing::info!("accesses are not sampled: {error:#}");
        }
    }

    /// Lists the open files that `filter` selects; none without probes. With `pids`, lists only
    /// what these processes hold.
    ///
    /// # Errors
    ///
    /// If open files cannot be listed.
    pub fn open_files(
        &mut self,
        filter: &OpenFileFilter,
        pids: Option<&BTreeSet<u32>>,
    ) -> Result<Vec<OpenFile>, SourceError> {
        let Self { probes: Some((_, census)), mapped, .. } = self else { return Ok(Vec::new()) };
        let mut files = match pids {
            Some(pids) => census.of_processes(pids, filter)?,
            None => census.open_files(filter)?,
        };
        let mapped = mapped.find(census, filter.ids.as_ref(), &files);
        files.extend(mapped);
        // An action on a file holds a duplicate of its descriptor for a moment.
        let own = std::process::id();
        files.iter_mut().for_each(|one| one.holders.retain(|it| it.pid != own));
        files.retain(|one| !one.holders.is_empty());
        Ok(files)
    }

    /// Returns the number of events lost so far.
    pub fn lost(&self) -> u64 {
        self.probes.as_ref().map_or(0, |(probes, _)| probes.lost())
    }

    /// Returns the path of an open file as its holder sees it; `None` if it has been closed.
    pub fn path(&self, file: &OpenFile) -> Option<String> {
        path_of(&self.root, file)
    }

    /// Takes a snapshot of all open files and disks.
    fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let files = self.open_files(&OpenFileFilter::default(), None)?;
        let mut snapshot = Snapshot { files, lost: self.lost(), at: now(), ..Snapshot::default() };
        self.name(&mut snapshot);
        let is_used = |stat: &BlockStat| (stat.reads, stat.writes) != (0, 0);
        let disks: BTreeSet<String> = self.root.names("/sys/block").into_iter().collect();
        for (device, name, stat) in block_stats(&self.root).unwrap_or_default() {
            // Directories in sysfs have `!` for `/`: `cciss!c0d0`.
            let name = name.replace('/', "!");
            // `/sys/block` does not list partitions.
            if is_used(&stat) && disks.contains(&name) {
                snapshot.devices.insert(device, stat);
                snapshot.names.insert(device, name);
            }
        }
        Ok(snapshot)
    }

    /// Adds the paths of files, each of which is looked up only once.
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
        take(Record::Snapshot(self.snapshot()?));
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

/// Returns the path of an open file as its holder sees it, unless the descriptor now refers to
/// another file. Does not resolve the path or query a server, which may not respond.
fn path_of(root: &Root, file: &OpenFile) -> Option<String> {
    let holder = file.holders.first()?;
    let link = root.path(holder.link());
    let is_it = || {
        let asked = statx(CWD, &link, AtFlags::STATX_DONT_SYNC, StatxFlags::INO);
        asked.is_ok_and(|open| open.stx_ino == file.inode)
    };
    // If both checks succeed, the link was that of this file in between.
    let name = is_it().then(|| std::fs::read_link(&link).ok()).flatten()?;
    is_it().then(|| name.to_string_lossy().into_owned())
}

pub(crate) fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
    Nanos::new(nanos)
}
