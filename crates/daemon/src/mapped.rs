//! Open files that are mapped and have no descriptor any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use observe::{Census, ObserveError, OpenFile, OpenFileFilter, OpenFileId, ProbeEvent};

/// A pause is this many times as long as the look before it, as that of the control loop.
const PAUSE_LOOKS: u32 = 30;
/// How long an open file that was not found is not looked for again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// An open file and its inode: the kernel uses an address again.
type MappedKey = (OpenFileId, u64);

/// Finds them among the mappings of the processes that read them. A process may have tens of
/// thousands of mappings, so the time that this takes is limited.
#[derive(Debug)]
pub(crate) struct MappedFiles {
    /// The open files that were read since the last look, each with its last reader.
    met: HashMap<MappedKey, u32>,
    found: BTreeMap<MappedKey, OpenFile>,
    /// Open files that are closed, or programs and libraries; for a while.
    others: BTreeSet<MappedKey>,
    others_since: Instant,
    /// No look before this.
    next: Instant,
}

impl Default for MappedFiles {
    fn default() -> Self {
        let (others_since, next) = (Instant::now(), Instant::now());
        let (met, found, others) = Default::default();
        Self { met, found, others, others_since, next }
    }
}

impl MappedFiles {
    /// Somebody read a file.
    pub fn event(&mut self, event: &ProbeEvent) {
        if let Some(file) = event.access.file {
            self.met.insert((file, event.inode), event.pid);
        }
    }

    /// The open files that were read of late, or are among the wanted ones, and are mapped.
    /// `listed` has those with a descriptor.
    ///
    /// # Errors
    ///
    /// If the mappings of a process cannot be listed.
    pub fn find(
        &mut self,
        census: &Census,
        wanted: Option<&BTreeSet<OpenFileId>>,
        listed: &[OpenFile],
    ) -> Result<Vec<OpenFile>, ObserveError> {
        let listed: BTreeSet<MappedKey> = listed.iter().map(|file| (file.id, file.inode)).collect();
        let is_wanted = |key: &MappedKey| {
            wanted.is_none_or(|ids| ids.contains(&key.0)) && !listed.contains(key)
        };
        self.found.retain(|key, _| is_wanted(key));
        if self.others_since.elapsed() > RETRY_INTERVAL {
            self.others.clear();
            self.others_since = Instant::now();
        }
        let (found, others) = (&self.found, &self.others);
        self.met
            .retain(|key, _| is_wanted(key) && !found.contains_key(key) && !others.contains(key));
        let begun = Instant::now();
        if begun >= self.next {
            self.look(census)?;
            self.next = begun + begun.elapsed() * PAUSE_LOOKS;
        }
        Ok(self.found.values().cloned().collect())
    }

    /// Looks through the mappings of the processes that read a file that may be mapped.
    fn look(&mut self, census: &Census) -> Result<(), ObserveError> {
        let known = std::mem::take(&mut self.found);
        let known =
            known.into_iter().filter_map(|(key, file)| Some((key, file.holders.first()?.pid)));
        let mut processes: BTreeMap<u32, BTreeSet<MappedKey>> = BTreeMap::new();
        for (key, pid) in self.met.drain().chain(known) {
            processes.entry(pid).or_default().insert(key);
        }
        for (pid, mut keys) in processes {
            let ids = Some(keys.iter().map(|(id, _)| *id).collect());
            let filter = OpenFileFilter { ids, ..OpenFileFilter::default() };
            for file in census.mapped_files(pid, &filter)? {
                let key = (file.id, file.inode);
                if keys.remove(&key) {
                    self.found.insert(key, file);
                }
            }
            self.others.extend(keys);
        }
        Ok(())
    }
}
