//! The back end of the loop for a live kernel, which is observed through BPF.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use actuate::{Actuator, Finder, MissPrefetcher};
use control::{
    ActionKind, ActionSink, BdiKey, BdiSample, Bounds, DirectoryQuery, EventSource, ExternalChange,
    FileAction, FileKey, FileState, Listing, LoopNote, LoopSample, Released, SampledFiles,
};
use host::{BdiId, DevNo, Root, Storage, block_stat, device_facts, page_size};
use observe::{EventKind, MAX_SAMPLED_FILES, OpenFile, OpenFileFilter, OpenFileId, ProbeEvent};
use policy::DeviceCompletions;
use units::text::plain;
use units::{Nanos, Pages};

use crate::bdi_actuator::BdiActuator;
use crate::config::LiveConfig;
use crate::daemon::{DaemonBackend, describe};
use crate::decision::{DecisionLog, FileDecision};
use crate::source::now;
use crate::{DaemonError, LiveSource, MemoryState};

/// Interval at which the open files of all processes are listed; in between, only those of readers.
/// It is shorter than the usual interval of `auto`, but longer than the one at the start of reads.
const LIST_ALL_INTERVAL: Nanos = Nanos::from_millis(200);
/// If there are more readers, all processes are listed at once.
const MAX_LISTED_PROCESSES: usize = 8;

struct LiveBdi {
    storage: Storage,
    /// Whether one of its devices is a rotating disk.
    rotates: bool,
    /// The largest request to its device, in pages.
    max_request: Pages,
    /// `None` in a dry run, and when the bdi is no longer managed.
    actuator: Option<BdiActuator>,
    finder: Finder,
    /// The open file through which the directory of prefetched files was found, and its path.
    directory_file: Option<(OpenFile, String)>,
}

/// A live kernel, observed through BPF.
pub struct LiveBackend {
    config: LiveConfig,
    source: LiveSource,
    bdis: Vec<LiveBdi>,
    /// Prefetches on misses, for all bdis; `None` in a dry run.
    miss_prefetcher: Option<Arc<MissPrefetcher>>,
    /// If set, only readers among these processes count; otherwise all readers on the bdis that
    /// were added.
    pids: Option<BTreeSet<u32>>,
    /// The file systems on managed bdis, and the other ones.
    filesystems: BTreeMap<DevNo, BdiKey>,
    other_filesystems: BTreeSet<DevNo>,
    /// The files of each bdi whose accesses are sampled.
    sampled: BTreeMap<BdiKey, BTreeSet<(DevNo, u64)>>,
    /// The events since the last sample.
    events: Vec<ProbeEvent>,
    /// The open files of the last sample.
    files: Vec<OpenFile>,
    /// The time of the last list of the open files of all processes.
    listed_all: Nanos,
    /// The index of each of these open files.
    places: HashMap<OpenFileId, usize>,
    memory: MemoryState,
    log: DecisionLog,
}

/// Returns the key of a file for the controller, made of its device and inode.
fn file_key(device: DevNo, inode: u64) -> FileKey {
    FileKey(u64::from(device.major) << 32 | u64::from(device.minor), inode)
}

/// Returns whether a device is a rotating disk. Disks of virtual machines and networks do not
/// count: they report that they rotate whatever is behind them.
fn rotates(root: &Root, device: DevNo) -> bool {
    device_facts(root, device).is_ok_and(|facts| {
        let is_elsewhere =
            ["vd", "xvd", "nbd", "rbd"].iter().any(|start| facts.name.starts_with(start));
        facts.rotational == Some(true) && !is_elsewhere
    })
}

fn device_and_inode(file: &FileKey) -> (DevNo, u64) {
    (DevNo { major: (file.0 >> 32) as u32, minor: file.0 as u32 }, file.1)
}

/// Returns the state of an open file for the controller.
pub(crate) fn file_state(file: &OpenFile, memory: &MemoryState, respect_advice: bool) -> FileState {
    let page = page_size();
    FileState {
        file_pages: file.size.to_pages_ceil(page),
        window: file.window.to_pages_floor(page),
        position: file.previous,
        unmanaged: file.direct || (file.random && respect_advice),
        random: file.random,
        only_mapped: file.is_only_mapped(),
        prime: false,
        domain: memory.domain(file),
        page: page.bytes(),
    }
}

/// Sums the completed reads of the devices of a bdi. A device that is gone has none.
pub(crate) fn completions(root: &Root, devices: &[DevNo]) -> DeviceCompletions {
    let mut completions = DeviceCompletions::default();
    for stat in devices.iter().filter_map(|device| block_stat(root, *device).ok()) {
        completions.reads += stat.reads;
        completions.bytes += stat.read_bytes;
        completions.time += stat.read_time;
    }
    completions
}

/// Assigns events to their bdis. Drops events of other file systems, and those without an open file
/// unless they are access samples.
pub(crate) fn events_of_bdis(
    events: impl Iterator<Item = ProbeEvent>,
    bdi_of: impl Fn(DevNo) -> Option<BdiKey>,
    bdis: &mut BTreeMap<BdiKey, BdiSample>,
) {
    let is_sample = |event: &ProbeEvent| matches!(event.access.kind, EventKind::Access { .. });
    for event in events.filter(|event| event.access.file.is_some() || is_sample(event)) {
        if let Some(bdi) = bdi_of(event.device).and_then(|key| bdis.get_mut(&key)) {
            bdi.events.push((file_key(event.device, event.inode), event.access));
        }
    }
}

/// Finds the open files of access samples, which name only the file and the process. If a process
/// has opened a file more than once, its samples are ambiguous and get no open file.
pub(crate) fn attribute_samples(events: &mut [ProbeEvent], files: &[OpenFile]) {
    let is_sample = |event: &ProbeEvent| matches!(event.access.kind, EventKind::Access { .. });
    if !events.iter().any(is_sample) {
        return;
    }
    let mut open = HashMap::new();
    for file in files {
        for holder in &file.holders {
            let of_process = open.entry((file.device, file.inode, holder.pid));
            of_process
                .and_modify(|id: &mut Option<OpenFileId>| *id = id.filter(|id| *id == file.id))
                .or_insert(Some(file.id));
        }
    }
    for event in events.iter_mut().filter(|event| is_sample(event)) {
        event.access.file = open.get(&(event.device, event.inode, event.pid)).copied().flatten();
    }
}

impl LiveBackend {
    /// Creates a back end that observes through `source`, which must see readers.
    ///
    /// # Errors
    ///
    /// If misses cannot be observed, or no thread can be started.
    pub fn new(
        config: LiveConfig,
        mut source: LiveSource,
        log: DecisionLog,
    ) -> Result<Self, DaemonError> {
        let mut miss_prefetcher = None;
        if !config.dry_run
            && let (Some(misses), Some(census)) = (source.take_misses()?, source.census())
        {
            let actuator = Actuator::new(census.clone(), config.limits.clone());
            let prefetcher = MissPrefetcher::start(actuator, Arc::new(misses))
                .map_err(|source| DaemonError::Thread { purpose: "prefetch on misses", source })?;
            miss_prefetcher = Some(Arc::new(prefetcher));
        }
        Ok(Self {
            config,
            source,
            bdis: Vec::new(),
            miss_prefetcher,
            pids: None,
            filesystems: BTreeMap::new(),
            other_filesystems: BTreeSet::new(),
            sampled: BTreeMap::new(),
            events: Vec::new(),
            files: Vec::new(),
            listed_all: Nanos::ZERO,
            places: HashMap::new(),
            memory: MemoryState::default(),
            log,
        })
    }

    /// Adds a storage to the controlled ones, unless its bdi is already controlled.
    ///
    /// # Errors
    ///
    /// If the bdi is locked by another process or may not be changed.
    pub fn add(&mut self, storage: Storage) -> Result<(), DaemonError> {
        let Some(census) = self.source.census() else { return Ok(()) };
        if self.key(&storage.bdi).is_some() {
            return Ok(());
        }
        let finder = Finder::start(&self.config.root, &self.config.limits)
            .map_err(|source| DaemonError::Thread { purpose: "find directories", source })?;
        let prefetcher = self.miss_prefetcher.as_ref();
        let actuator = prefetcher.map(|prefetcher| {
            BdiActuator::new(&self.config, &storage, census, Arc::clone(prefetcher))
        });
        let actuator = actuator.transpose()?;
        let rotates = storage.leaves.iter().any(|leaf| rotates(&self.config.root, *leaf));
        let facts = storage.devices.first().map(|device| device_facts(&self.config.root, *device));
        let max_request = facts
            .and_then(|facts| facts.ok()?.max_sectors)
            .map_or(Bounds::default().max_request, |most| most.to_pages_floor(page_size()));
        let directory_file = None;
        let bdi = LiveBdi { storage, rotates, max_request, actuator, finder, directory_file };
        self.bdis.push(bdi);
        Ok(())
    }

    fn key(&self, bdi: &BdiId) -> Option<BdiKey> {
        let place = self.bdis.iter().position(|known| known.storage.bdi == *bdi)?;
        u32::try_from(place).ok().map(BdiKey)
    }

    fn bdi(&mut self, key: BdiKey) -> Option<&mut LiveBdi> {
        self.bdis.get_mut(key.0 as usize)
    }

    fn keys(&self) -> impl Iterator<Item = (BdiKey, &LiveBdi)> {
        (0..).map(BdiKey).zip(&self.bdis)
    }

    /// Adds the storages on which the processes have opened files. Skips those that cannot be
    /// added, for example because another foreread controls them.
    fn add_new(&mut self) {
        let is_new = |file: &&OpenFile| file.bdi.as_ref().is_some_and(|b| self.key(b).is_none());
        let new = self.files.iter().filter(is_new);
        let paths: BTreeSet<String> = new.filter_map(|file| self.source.path(file)).collect();
        for path in paths {
            if let Ok(storage) = host::resolve(&self.config.root, Path::new(&path))
                && let Err(error) = self.add(storage)
            {
                tracing::info!("{}: {error:#}", plain(&path));
            }
        }
    }

    /// Returns the processes whose open files are listed in this sample: those that have read or
    /// held these open files since the last sample. `None` for all processes, which is often ten
    /// times slower. Other holders of an open file are found by the next list of all processes.
    fn processes_to_list(&self, ids: &BTreeSet<OpenFileId>) -> Option<BTreeSet<u32>> {
        // The rules must be checked against all holders of an open file.
        let is_due = now().saturating_sub(self.listed_all) > LIST_ALL_INTERVAL;
        if is_due || self.config.limits.select_processes() {
            return None;
        }
        let held = self.files.iter().filter(|file| ids.contains(&file.id));
        let holders = held.flat_map(|file| &file.holders).map(|holder| holder.pid);
        let readers = self.events.iter().map(|event| event.pid);
        let pids: BTreeSet<u32> = holders.chain(readers).collect();
        (pids.len() <= MAX_LISTED_PROCESSES).then_some(pids)
    }

    /// Returns an open file as it was last sampled; `None` if it was closed.
    fn listed(&self, id: OpenFileId) -> Option<&OpenFile> {
        self.files.get(*self.places.get(&id)?)
    }

    /// Returns an open file of a bdi, as it was last sampled.
    fn open_file(&self, bdi: &BdiId, id: OpenFileId) -> Option<&OpenFile> {
        let file = self.listed(id)?;
        (file.bdi.as_ref() == Some(bdi)).then_some(file)
    }

    /// Combines actions with the open files that they concern.
    fn decisions(&self, key: BdiKey, actions: Vec<FileAction>) -> Vec<FileDecision> {
        let Some(bdi) = self.bdis.get(key.0 as usize) else { return Vec::new() };
        let decision = |FileAction { file: id, kind, why, .. }: FileAction| {
            let of_directory =
                matches!(kind, ActionKind::PrefetchFiles(_) | ActionKind::AwaitFiles(_));
            let (file, path) = if of_directory {
                let (file, path) = bdi.directory_file.clone()?;
                (file, Some(path))
            } else {
                let file = self.open_file(&bdi.storage.bdi, id)?;
                (file.clone(), self.source.path(file))
            };
            Some(FileDecision { file, path, kind, why })
        };
        actions.into_iter().filter_map(decision).collect()
    }
}

impl EventSource for LiveBackend {
    type Error = DaemonError;

    fn now(&self) -> Nanos {
        now()
    }

    fn poll(&mut self) -> bool {
        let before = self.events.len();
        let Self { source, events, pids, other_filesystems, .. } = self;
        source.events(|event| {
            let counts = match pids {
                Some(pids) => pids.contains(&event.pid),
                None => !other_filesystems.contains(&event.device),
            };
            if counts {
                events.push(event);
            }
        });
        self.events.len() > before
    }

    /// Samples only open files that had an event or are followed: there may be hundreds of
    /// thousands of others.
    fn sample(
        &mut self,
        followed: &mut dyn Iterator<Item = OpenFileId>,
    ) -> Result<LoopSample, DaemonError> {
        let on_miss = self.miss_prefetcher.iter().flat_map(|prefetcher| prefetcher.files());
        let met = self.events.iter().filter_map(|event| event.access.file);
        let ids: BTreeSet<OpenFileId> = followed.chain(on_miss).chain(met).collect();
        let pids = self.processes_to_list(&ids);
        let filter = OpenFileFilter { ids: Some(ids), ..Default::default() };
        self.files = self.source.open_files(&filter, pids.as_ref())?;
        let now = now();
        if pids.is_none() {
            self.listed_all = now;
        }
        if let Some(pids) = &self.pids {
            let held = |file: &OpenFile| file.holders.iter().any(|one| pids.contains(&one.pid));
            self.files.retain(held);
            self.add_new();
        }
        for file in &self.files {
            match file.bdi.as_ref().and_then(|bdi| self.key(bdi)) {
                Some(key) => drop(self.filesystems.insert(file.device, key)),
                None => drop(self.other_filesystems.insert(file.device)),
            }
        }
        let files = self.files.iter().zip(0..);
        self.places = files.map(|(file, place)| (file.id, place)).collect();
        self.memory.refresh(&self.config.root, now, &self.files);
        self.log.status.lost_events = self.source.lost();
        let bounds = Bounds {
            most: self.config.max_window.to_pages_floor(page_size()),
            prefetch: self.config.prefetch,
            samples: self.source.samples_accesses(),
            ..Bounds::default()
        };
        let sample = |bdi: &LiveBdi| BdiSample {
            bounds: Bounds { rotates: bdi.rotates, max_request: bdi.max_request, ..bounds },
            completions: completions(&self.config.root, &bdi.storage.devices),
            events: Vec::new(),
        };
        let mut bdis = self.keys().map(|(key, bdi)| (key, sample(bdi))).collect();
        attribute_samples(&mut self.events, &self.files);
        let filesystems = &self.filesystems;
        let bdi_of = |device| filesystems.get(&device).copied();
        events_of_bdis(self.events.drain(..), bdi_of, &mut bdis);
        Ok(LoopSample { now, bdis, memory: self.memory.inputs.clone() })
    }

    fn file_state(&mut self, bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        let bdi = &self.bdis.get(bdi.0 as usize)?.storage.bdi;
        let file = self.open_file(bdi, file)?;
        let state = file_state(file, &self.memory, self.config.respect_advice);
        Some(FileState { prime: self.config.primed.contains(file), ..state })
    }

    fn sample_accesses(&mut self, bdi: BdiKey, files: &SampledFiles) {
        let key = |id: &OpenFileId| {
            let file = self.listed(*id)?;
            Some((file.device, file.inode))
        };
        let room = MAX_SAMPLED_FILES.saturating_sub(files.next.len());
        let open = files.open.iter().filter_map(key).take(room);
        let files: BTreeSet<_> = open.chain(files.next.iter().map(device_and_inode)).collect();
        let before = self.sampled.insert(bdi, files);
        let all: BTreeSet<_> = self.sampled.values().flatten().copied().collect();
        if !all.is_empty() || before.is_some_and(|before| !before.is_empty()) {
            self.source.sample_accesses(&all);
        }
    }

    fn find_directory(&mut self, bdi: BdiKey, query: &DirectoryQuery) -> Option<Listing> {
        // A reader may close its files quickly: take the first one that is open now.
        let open = query.files.iter().find_map(|id| {
            let file = self.listed(*id)?;
            Some((file.clone(), self.source.path(file)?))
        });
        let bdi = self.bdi(bdi)?;
        if let Some((file, path)) = open {
            bdi.finder.ask(&file, &path, query.with_next);
        }
        let (directory, path) = bdi.finder.found()?;
        let file = directory.file().clone();
        let key = |inode| file_key(file.device, inode);
        let orders = directory.orders().into_iter();
        let orders = orders.map(|order| order.into_iter().map(key).collect()).collect();
        let listing = Listing { file: file.id, orders };
        bdi.directory_file = Some((file, path));
        if let Some(actuator) = &mut bdi.actuator {
            actuator.set_directory(Some(directory));
        }
        Some(listing)
    }

    fn path(&self, file: OpenFileId) -> Option<String> {
        self.source.path(self.listed(file)?)
    }
}

impl ActionSink for LiveBackend {
    fn maintain(&mut self) -> Result<(), DaemonError> {
        let Self { bdis, files, log, .. } = self;
        if let Some(prefetcher) = &self.miss_prefetcher {
            prefetcher.seen(files);
            let done = prefetcher.report();
            if let Some(error) = done.failed {
                return Err(error.into());
            }
            log.status.miss_prefetches += done.runs;
            log.status.prefetched_bytes += done.asked.get();
            log.status.dropped_prefetches += done.dropped;
            for bdi in bdis.iter_mut() {
                let Some(actuator) = &mut bdi.actuator else { continue };
                actuator.check_yielded(files);
                let missed = done.missed.iter();
                for (file, missed) in
                    missed.filter(|(file, _)| file.bdi.as_ref() == Some(&bdi.storage.bdi))
                {
                    actuator.on_miss_prefetch_failed(file, missed.clone(), log);
                }
            }
        }
        let mut actuators = bdis.iter_mut().filter_map(|bdi| bdi.actuator.as_mut());
        actuators.try_for_each(|actuator| actuator.maintain(files, log))
    }

    fn act(
        &mut self,
        bdi: BdiKey,
        actions: Vec<FileAction>,
    ) -> Result<Result<(), ExternalChange>, DaemonError> {
        let decisions = self.decisions(bdi, actions);
        let Self { bdis, log, .. } = self;
        match bdis.get_mut(bdi.0 as usize).and_then(|bdi| bdi.actuator.as_mut()) {
            Some(actuator) => actuator.act(decisions, log),
            None => Ok(Ok(())),
        }
    }

    fn set_new_file_window(
        &mut self,
        bdi: BdiKey,
        window: Option<Pages>,
    ) -> Result<Result<(), ExternalChange>, DaemonError> {
        let window = window.map(|pages| pages.to_bytes(page_size()));
        let Self { bdis, log, .. } = self;
        match bdis.get_mut(bdi.0 as usize).and_then(|bdi| bdi.actuator.as_mut()) {
            Some(actuator) => actuator.set_new_file_window(window, log),
            None => Ok(Ok(())),
        }
    }

    fn advise(&mut self, bdi: BdiKey, actions: Vec<FileAction>) -> Result<(), DaemonError> {
        let decisions = self.decisions(bdi, actions);
        self.log.advice(&decisions);
        Ok(())
    }

    fn check_external_change(
        &mut self,
        bdi: BdiKey,
    ) -> Result<Result<(), ExternalChange>, DaemonError> {
        let actuator = self.bdi(bdi).and_then(|bdi| bdi.actuator.as_ref());
        actuator.map_or(Ok(Ok(())), BdiActuator::check_external_change)
    }

    fn keep_directory(&mut self, bdi: BdiKey, keep: bool) {
        let Self { bdis, files, .. } = self;
        let actuator = bdis.get_mut(bdi.0 as usize).and_then(|bdi| bdi.actuator.as_mut());
        let Some(actuator) = actuator else { return };
        match actuator.directory() {
            Some(directory) if keep => directory.seen(files.as_slice()),
            _ => actuator.set_directory(None),
        }
    }

    fn restore(&mut self, bdi: BdiKey) -> Result<(), DaemonError> {
        match self.bdi(bdi).and_then(|bdi| bdi.actuator.as_mut()) {
            Some(actuator) => actuator.restore().map(drop),
            None => Ok(()),
        }
    }

    fn reapply(&mut self, bdi: BdiKey) -> Result<(), DaemonError> {
        match self.bdi(bdi).and_then(|bdi| bdi.actuator.as_mut()) {
            Some(actuator) => actuator.reapply(),
            None => Ok(()),
        }
    }

    fn release(&mut self, bdi: BdiKey, leave: bool) -> Result<Released, DaemonError> {
        match self.bdi(bdi).and_then(|bdi| bdi.actuator.take()) {
            Some(actuator) => actuator.release(leave),
            None => Ok(Released::default()),
        }
    }

    fn note(&mut self, note: &LoopNote) {
        let text = describe(note, |bdi| self.bdi_name(bdi));
        self.log.note(&text);
    }
}

impl DaemonBackend for LiveBackend {
    fn log(&mut self) -> &mut DecisionLog {
        &mut self.log
    }

    fn bdi_name(&self, bdi: BdiKey) -> String {
        let bdi = self.bdis.get(bdi.0 as usize);
        bdi.map_or_else(String::new, |bdi| bdi.storage.bdi.to_string())
    }

    fn follow(&mut self, pids: BTreeSet<u32>) {
        self.pids = Some(pids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_of_a_partition_are_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let device = |name: &str, stat: &str| {
            let dir = dir.path().join("sys/dev/block").join(name);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("stat"), stat).unwrap();
        };
        device("8:0", "9 0 99 9 0 0 0 0 0 9 9\n");
        device("8:1", "2 0 16 5 0 0 0 0 0 5 5\n");
        let devices = [DevNo { major: 8, minor: 1 }, DevNo { major: 8, minor: 2 }];
        let completions = completions(&root, &devices);
        assert_eq!(completions.reads, 2);
        assert_eq!(completions.bytes, units::Bytes::from_kib(8));
        assert_eq!(completions.time, Nanos::from_millis(5));
    }
}
