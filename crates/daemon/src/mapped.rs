//! Finds open files that are mapped and no longer have a descriptor.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use observe::{Census, OpenFile, OpenFileFilter, OpenFileId, ProbeEvent};

/// The pause after a search as a multiple of its duration, as in the control loop.
const PAUSE_LOOKS: u32 = 30;
/// A search that takes longer is continued after the pause.
const MAX_LOOK_TIME: Duration = Duration::from_millis(10);
/// Interval after which open files that were not found are searched for again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Limits on open files whose readers are remembered, and on readers of each. They bound memory.
const MAX_FILES: usize = 65_536;
const MAX_READERS: usize = 8;

/// An open file and its inode, because the kernel reuses addresses.
type MappedKey = (OpenFileId, u64);

/// Finds mapped files among the mappings of the processes that read them. A process may have tens
/// of thousands of mappings, so the search time is limited.
#[derive(Debug)]
pub(crate) struct MappedFiles {
    /// The processes that read each open file.
    readers: HashMap<MappedKey, BTreeSet<u32>>,
    found: BTreeMap<MappedKey, OpenFile>,
    /// Not found: closed, or a program or library. Cleared every [`RETRY_INTERVAL`].
    others: BTreeSet<MappedKey>,
    others_since: Instant,
    /// The earliest time of the next search.
    next: Instant,
    /// The process at which the next search continues.
    next_pid: u32,
}

impl Default for MappedFiles {
    fn default() -> Self {
        let (others_since, next) = (Instant::now(), Instant::now());
        let (readers, found, others) = Default::default();
        Self { readers, found, others, others_since, next, next_pid: 0 }
    }
}

impl MappedFiles {
    /// Records which process read a file.
    pub fn event(&mut self, event: &ProbeEvent) {
        let Some(file) = event.access.file else { return };
        let key = (file, event.inode);
        if self.readers.len() >= MAX_FILES && !self.readers.contains_key(&key) {
            return;
        }
        let readers = self.readers.entry(key).or_default();
        if readers.len() < MAX_READERS {
            readers.insert(event.pid);
        }
    }

    /// Returns the mapped files among `wanted`, or all that were read if `wanted` is `None`.
    /// `listed` has the open files with a descriptor.
    pub fn find(
        &mut self,
        census: &Census,
        wanted: Option<&BTreeSet<OpenFileId>>,
        listed: &[OpenFile],
    ) -> Vec<OpenFile> {
        let listed: BTreeSet<OpenFileId> = listed.iter().map(|file| file.id).collect();
        if self.others_since.elapsed() > RETRY_INTERVAL {
            self.others.clear();
            self.others_since = Instant::now();
        }
        let Self { readers, found, others, .. } = self;
        let is_wanted =
            |(id, _): &MappedKey| wanted.is_none_or(|ids| ids.contains(id)) && !listed.contains(id);
        readers.retain(|key, _| is_wanted(key) && !others.contains(key));
        found.retain(|key, _| readers.contains_key(key));
        let begun = Instant::now();
        if begun >= self.next {
            self.look(census, begun);
            self.next = Instant::now() + begun.elapsed() * PAUSE_LOOKS;
        }
        self.found.values().cloned().collect()
    }

    /// Searches the mappings of all processes that read a file that may be mapped.
    fn look(&mut self, census: &Census, begun: Instant) {
        let mut processes: BTreeMap<u32, BTreeSet<MappedKey>> = BTreeMap::new();
        for (key, pids) in &self.readers {
            for pid in pids {
                processes.entry(*pid).or_default().insert(*key);
            }
        }
        let later = processes.split_off(&self.next_pid);
        self.next_pid = 0;
        for (pid, keys) in later.into_iter().chain(processes) {
            if begun.elapsed() > MAX_LOOK_TIME {
                self.next_pid = pid;
                return;
            }
            self.look_at(census, pid, &keys);
        }
    }

    /// Searches the mappings of one reader for these files.
    fn look_at(&mut self, census: &Census, pid: u32, keys: &BTreeSet<MappedKey>) {
        let ids = Some(keys.iter().map(|(id, _)| *id).collect());
        let filter = OpenFileFilter { ids, ..OpenFileFilter::default() };
        let mapped = match census.mapped_files(pid, &filter) {
            Ok(mapped) => mapped,
            Err(error) => {
                tracing::info!("the mappings of process {pid} are not listed: {error:#}");
                return;
            }
        };
        let mut mapped: BTreeMap<MappedKey, OpenFile> =
            mapped.into_iter().map(|file| ((file.id, file.inode), file)).collect();
        for key in keys {
            let elsewhere = self.found.remove(key).and_then(|mut file| {
                file.holders.retain(|holder| holder.pid != pid);
                (!file.holders.is_empty()).then_some(file)
            });
            let here = mapped.remove(key);
            if here.is_none() {
                self.drop_reader(key, pid);
            }
            let file = match (elsewhere, here) {
                (Some(elsewhere), Some(mut here)) => {
                    here.holders.extend(elsewhere.holders);
                    here.holders.sort();
                    Some(here)
                }
                (elsewhere, here) => elsewhere.or(here),
            };
            self.found.extend(file.map(|file| (*key, file)));
        }
    }

    /// Removes a reader that has not mapped the file.
    fn drop_reader(&mut self, key: &MappedKey, pid: u32) {
        let Some(readers) = self.readers.get_mut(key) else { return };
        readers.remove(&pid);
        if readers.is_empty() {
            self.readers.remove(key);
            self.others.insert(*key);
        }
    }
}
