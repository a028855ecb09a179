//! Misses of selected files, reported while their readers still wait.
//!
//! Events are drained in intervals, which is too late to act on a single read. Each miss of an open
//! file that is watched here, and the next miss of each file that is awaited, is reported
//! immediately. A miss of another file costs two map lookups, and reads that find their pages in
//! the cache do not reach this probe.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, MapError, RingBuf};
use host::DevNo;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use units::{Nanos, Pages};

use crate::object::of_chain;
use crate::open_files::device;
use crate::record::{InodeKey, MissRecord, Plain};
use crate::{ObserveError, OpenFileId};

const PROGRAM: &str = "misses";

/// A reader accessed a missing page, and waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    pub at: Nanos,
    /// The open file, or another one that has its address now, so the inode must be compared, too.
    pub file: OpenFileId,
    /// The device of its file system, or the disk itself.
    pub device: DevNo,
    pub inode: u64,
    pub index: u64,
    /// Number of pages requested from `index` on.
    pub request: Pages,
    pub pid: u32,
    pub tid: u32,
}

/// Misses of selected files. Can be shared: one thread waits, others select the files.
pub struct Misses {
    watched: Mutex<HashMap<MapData, u64, u32>>,
    awaited: Mutex<HashMap<MapData, InodeKey, u32>>,
    ring: Mutex<RingBuf<MapData>>,
    lost: Array<MapData, u64>,
    waker: OwnedFd,
}

impl std::fmt::Debug for Misses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Misses").finish_non_exhaustive()
    }
}

/// Ignores poisoning: no thread panics while it holds one of the locks.
fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Misses {
    /// Takes the maps for misses from the loaded programs.
    pub(crate) fn from_ebpf(ebpf: &mut Ebpf) -> Result<Self, ObserveError> {
        let missing = || ObserveError::Refused {
            program: PROGRAM,
            problem: "its maps are not there".to_owned(),
        };
        let mut take = |name: &str| ebpf.take_map(name).ok_or_else(missing);
        let (watched, awaited) = (take("watched")?, take("awaited")?);
        let (ring, lost) = (take(PROGRAM)?, take("untold")?);
        let fail = |error: MapError| of_chain(PROGRAM, &error);
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(failed)?;
        Ok(Self {
            watched: Mutex::new(HashMap::try_from(watched).map_err(fail)?),
            awaited: Mutex::new(HashMap::try_from(awaited).map_err(fail)?),
            ring: Mutex::new(RingBuf::<MapData>::try_from(ring).map_err(fail)?),
            lost: Array::<_, u64>::try_from(lost as Map).map_err(fail)?,
            waker,
        })
    }

    /// Reports the misses of this open file from now on. Fails if 256 files are already watched.
    pub fn watch(&self, file: OpenFileId) -> Result<(), ObserveError> {
        let added = lock(&self.watched).insert(file.get(), 0, 0);
        added.map_err(|error| of_chain(PROGRAM, &error))
    }

    /// Stops reporting the misses of this open file. Earlier ones may still be reported.
    pub fn unwatch(&self, file: OpenFileId) {
        // This fails only if the file is not watched.
        let _ = lock(&self.watched).remove(&file.get());
    }

    /// Returns the watched open files.
    pub fn watched(&self) -> Vec<OpenFileId> {
        lock(&self.watched).keys().filter_map(Result::ok).map(OpenFileId::new).collect()
    }

    /// Reports the next miss of this file, which need not be open. Fails if `AWAITED_FILES` of
    /// `bpf/records.h` are already awaited.
    pub fn await_file(&self, device: DevNo, inode: u64) -> Result<(), ObserveError> {
        let added = lock(&self.awaited).insert(InodeKey::new((device, inode)), 0, 0);
        added.map_err(|error| of_chain(PROGRAM, &error))
    }

    /// Stops awaiting this file. Its next miss may still be reported.
    pub fn ignore_file(&self, device: DevNo, inode: u64) {
        // This fails only if the file is not awaited.
        let _ = lock(&self.awaited).remove(&InodeKey::new((device, inode)));
    }

    /// Waits for misses, until `most` has elapsed or [`Misses::wake`] is called, and passes them to
    /// `take`, oldest first.
    pub fn wait(&self, most: Duration, mut take: impl FnMut(Miss)) -> Result<(), ObserveError> {
        let mut ring = lock(&self.ring);
        let most = Timespec::try_from(most).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let mut ready = [
            PollFd::from_borrowed_fd(std::os::fd::AsFd::as_fd(&*ring), PollFlags::IN),
            PollFd::new(&self.waker, PollFlags::IN),
        ];
        match poll(&mut ready, Some(&most)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
        if !ready[1].revents().is_empty() {
            // Another thread may have read it first, and was woken, too.
            let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        }
        while let Some(item) = ring.next() {
            if let Some(record) = MissRecord::read(&item) {
                take(miss(&record));
            }
        }
        Ok(())
    }

    /// Wakes the waiting thread; if no thread waits, the next wait returns immediately.
    pub fn wake(&self) {
        // This fails only if the counter of the eventfd overflows.
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    /// Returns the number of misses that were lost so far because the ring buffer was full.
    pub fn lost(&self) -> u64 {
        self.lost.get(&0, 0).unwrap_or(0)
    }
}

fn failed(errno: Errno) -> ObserveError {
    ObserveError::Read { program: PROGRAM, source: errno.into() }
}

fn miss(record: &MissRecord) -> Miss {
    Miss {
        at: Nanos::new(record.time_ns),
        file: OpenFileId::new(record.file),
        device: device(record.device),
        inode: record.inode,
        index: record.index,
        request: Pages::new(record.count),
        pid: record.pid,
        tid: record.tid,
    }
}
