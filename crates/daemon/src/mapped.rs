//! Finds open files that are mapped and no longer have a descriptor.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use observe::{Census, EventKind, OpenFile, OpenFileFilter, OpenFileId, ProbeEvent};

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

/// The processes that read an open file.
#[derive(Debug, Default)]
struct FileReaders {
    inode: u64,
    pids: BTreeSet<u32>,
    /// Whether it may be mapped: it was read by a fault, or after a list in which it had no
    /// descriptor. Most files without a descriptor were only closed.
    may_be_mapped: bool,
}

/// Finds mapped files among the mappings of the processes that read them. A process may have tens
/// of thousands of mappings, so the search time is limited.
#[derive(Debug)]
pub(crate) struct MappedFiles {
    readers: HashMap<OpenFileId, FileReaders>,
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
        if self.readers.len() >= MAX_FILES && !self.readers.contains_key(&file) {
            return;
        }
        let readers = self.readers.entry(file).or_default();
        // The kernel often gives the next file that is opened the address of the last one.
        if readers.inode != event.inode {
            *readers = FileReaders { inode: event.inode, ..FileReaders::default() };
        }
        readers.may_be_mapped |=
            matches!(event.access.kind, EventKind::Window { mapped: true, .. });
        if readers.pids.len() < MAX_READERS {
            readers.pids.insert(event.pid);
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
            |id: &OpenFileId| wanted.is_none_or(|ids| ids.contains(id)) && !listed.contains(id);
        readers.retain(|id, file| is_wanted(id) && !others.contains(&(*id, file.inode)));
        found.retain(|(id, inode), _| readers.get(id).is_some_and(|file| file.inode == *inode));
        let begun = Instant::now();
        if begun >= self.next {
            self.look(census, begun);
            self.next = Instant::now() + begun.elapsed() * PAUSE_LOOKS;
        }
        self.mark_unlisted();
        self.found.values().cloned().collect()
    }

    /// Records that the remaining files had no descriptor in a list.
    fn mark_unlisted(&mut self) {
        self.readers.values_mut().for_each(|readers| readers.may_be_mapped = true);
    }

    /// Searches the mappings of all processes that read a file that may be mapped.
    fn look(&mut self, census: &Census, begun: Instant) {
        let mut processes = self.processes();
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

    /// Returns the processes that read files that may be mapped, with these files.
    fn processes(&self) -> BTreeMap<u32, BTreeSet<MappedKey>> {
        let mut processes: BTreeMap<u32, BTreeSet<MappedKey>> = BTreeMap::new();
        for (id, readers) in self.readers.iter().filter(|(_, readers)| readers.may_be_mapped) {
            for pid in &readers.pids {
                processes.entry(*pid).or_default().insert((*id, readers.inode));
            }
        }
        processes
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
        let Some(readers) = self.readers.get_mut(&key.0) else { return };
        readers.pids.remove(&pid);
        if readers.pids.is_empty() {
            self.readers.remove(&key.0);
            self.others.insert(*key);
        }
    }
}

#[cfg(test)]
mod tests {
    use host::DevNo;
    use observe::{AccessEvent, Window};
    use units::{Nanos, Pages};

    use super::*;

    fn event(pid: u32, file: u64, kind: EventKind) -> ProbeEvent {
        ProbeEvent {
            access: AccessEvent {
                at: Nanos::ZERO,
                kind,
                file: Some(OpenFileId::new(file)),
                index: 0,
                request: Pages::new(1),
                previous: None,
            },
            device: DevNo { major: 8, minor: 0 },
            inode: file,
            limit: Pages::new(32),
            pid,
            tid: pid,
            comm: String::new(),
            cgroup: 0,
        }
    }

    #[test]
    fn only_processes_that_may_have_mapped_a_file_are_searched() {
        let mut mapped = MappedFiles::default();
        let window = |mapped| EventKind::Window { window: Window::default(), mapped };
        mapped.event(&event(7, 1, window(false)));
        assert!(mapped.processes().is_empty(), "it may have closed its file");
        mapped.event(&event(8, 2, window(true)));
        let key = |file| (OpenFileId::new(file), file);
        let by_fault = BTreeMap::from([(8, BTreeSet::from([key(2)]))]);
        assert_eq!(mapped.processes(), by_fault);
        mapped.mark_unlisted();
        assert!(mapped.processes().contains_key(&7), "it still reads a file without a descriptor");
        mapped.event(&ProbeEvent { inode: 3, ..event(7, 1, window(false)) });
        assert_eq!(mapped.processes(), by_fault, "another file has the address");
    }
}
