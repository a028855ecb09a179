//! A thread that prefetches on misses, while their readers wait: the rest of a run, a large call,
//! or a whole file of a directory on its next miss.
//!
//! A reader of short runs at random offsets misses the first page of each run, and waits for about
//! one service time of the device. The rest of the run must be requested within that time, or the
//! reader misses the next page, too. Confirming a duplicate takes too long for that, so a confirmed
//! duplicate is kept for [`DUPLICATE_LIFETIME`].
//!
//! The thread has the default scheduling policy. With `SCHED_FIFO` fewer prefetches were late on a
//! busy machine, but the thread preempted the readers, and their throughput was lower.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use host::{DevNo, page_size};
use observe::{FileKind, Miss, Misses, OpenFile, OpenFileId};
use policy::MissPrefetch;
use policy::{Extent, Page};
use units::{Bytes, Pages};

use crate::actuator::{largest_piece, read_ahead};
use crate::reach::DupFd;
use crate::{ActuateError, ActuateFailure, Actuator, Directory};

/// How long a confirmed duplicate is kept. The next miss after that makes a new one.
const DUPLICATE_LIFETIME: Duration = Duration::from_millis(100);
/// How long the thread sleeps without duplicates. Any change wakes it earlier.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

/// Counters since the last report.
#[derive(Debug, Default)]
pub struct MissPrefetched {
    /// Misses for which the rest of the run, or of the file, was requested.
    pub runs: u64,
    /// Bytes that the kernel was requested to read.
    pub asked: Bytes,
    /// Misses that were lost because the ring buffer was full.
    pub dropped: u64,
    /// Open files that are no longer watched because of a failure.
    pub missed: Vec<(OpenFile, ActuateFailure)>,
    pub failed: Option<ActuateError>,
}

/// An open file whose misses are watched.
#[derive(Debug)]
struct WatchedFile {
    file: Arc<OpenFile>,
    rule: MissPrefetch,
}

/// A file of a directory, of which a range is requested on its next miss.
#[derive(Debug)]
struct AwaitedFile {
    directory: Arc<Directory>,
    /// Offset and length.
    range: (Bytes, Bytes),
}

#[derive(Debug, Default)]
struct State {
    watched: HashMap<OpenFileId, WatchedFile>,
    awaited: HashMap<(DevNo, u64), AwaitedFile>,
    done: MissPrefetched,
    stopping: bool,
}

#[derive(Debug)]
struct Shared {
    misses: Arc<Misses>,
    state: Mutex<State>,
}

impl Shared {
    /// Ignores poisoning: no thread panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops watching the files for which `is_stopped` holds. The thread closes their duplicates.
    fn stop(&self, is_stopped: impl Fn(&OpenFileId) -> bool) {
        let mut state = self.lock();
        state.watched.retain(|id, _| {
            let stops = is_stopped(id);
            if stops {
                self.misses.unwatch(*id);
            }
            !stops
        });
        drop(state);
        self.misses.wake();
    }

    /// Stops watching an open file because of a failure.
    fn give_up(&self, file: &OpenFile, why: ActuateFailure) {
        let mut state = self.lock();
        self.misses.unwatch(file.id);
        state.watched.remove(&file.id);
        state.done.missed.push((file.clone(), why));
    }

    /// Stops awaiting the files for which `is_stopped` holds.
    fn ignore(&self, is_stopped: impl Fn(DevNo) -> bool) {
        self.lock().awaited.retain(|(device, inode), _| {
            let stops = is_stopped(*device);
            if stops {
                self.misses.ignore_file(*device, *inode);
            }
            !stops
        });
    }

    /// Adds a prefetch to the counters.
    fn count(&self, asked: Bytes) {
        let mut state = self.lock();
        state.done.runs += 1;
        state.done.asked += asked;
    }

    /// Returns the watched file of a miss, or `None` if it is no longer watched.
    fn watched_file(&self, miss: &Miss) -> Option<Arc<OpenFile>> {
        let file = self.lock().watched.get(&miss.file).map(|it| Arc::clone(&it.file))?;
        // For a block device, the miss reports another inode than the one that was opened.
        let is_disk = file.kind == FileKind::BlockDevice;
        if file.device == miss.device && (is_disk || file.inode == miss.inode) {
            return Some(file);
        }
        // The file was closed, and its address belongs to another open file.
        self.give_up(&file, ActuateFailure::Gone);
        None
    }

    /// Returns the pages to read for a miss, if the file is still watched.
    fn extent(&self, miss: &Miss, size: Bytes) -> Option<Extent> {
        let pages = size.to_pages_ceil(page_size());
        let mut state = self.lock();
        let watched = state.watched.get_mut(&miss.file)?;
        watched.rule.miss(Page::new(miss.index), miss.request, pages)
    }
}

/// Prefetches on the misses of open files, in a thread. Dropping it stops the thread after the
/// current prefetch.
#[derive(Debug)]
pub struct MissPrefetcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl MissPrefetcher {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(actuator: Actuator, misses: Arc<Misses>) -> io::Result<Self> {
        let shared = Arc::new(Shared { misses, state: Mutex::default() });
        let worker = Worker {
            actuator,
            shared: Arc::clone(&shared),
            duplicates: HashMap::new(),
            pieces: HashMap::new(),
            next_expiry: None,
            lost: 0,
        };
        let thread =
            std::thread::Builder::new().name("miss-prefetch".to_owned()).spawn(|| worker.work())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Watches an open file and prefetches on its misses by `rule`.
    pub fn watch(&self, file: OpenFile, rule: MissPrefetch) {
        let mut state = self.shared.lock();
        if let Err(error) = self.shared.misses.watch(file.id) {
            let why = ActuateFailure::kernel("watching its cache misses", error);
            state.done.missed.push((file, why));
            return;
        }
        state.watched.insert(file.id, WatchedFile { file: Arc::new(file), rule });
    }

    /// Requests a range of each of these files on its next miss. A file is given by its inode, the
    /// range by its offset and length. They replace the awaited files of the same file system.
    pub fn await_files(&self, directory: &Arc<Directory>, wanted: &[(u64, (Bytes, Bytes))]) {
        let device = directory.file().device;
        self.ignore_files(device);
        let mut state = self.shared.lock();
        for &(inode, range) in wanted {
            if let Err(error) = self.shared.misses.await_file(device, inode) {
                let why = ActuateFailure::kernel("awaiting its next miss", error);
                state.done.missed.push((directory.file().clone(), why));
                return;
            }
            let file = AwaitedFile { directory: Arc::clone(directory), range };
            state.awaited.insert((device, inode), file);
        }
    }

    /// Stops awaiting files of this file system.
    pub fn ignore_files(&self, device: DevNo) {
        self.shared.ignore(|awaited| awaited == device);
    }

    /// Updates the holders of the watched files from a new list of open files, because the access
    /// rules may exclude a new holder. Files that are not in the list are no longer watched.
    pub fn seen(&self, files: &[OpenFile]) {
        let mut state = self.shared.lock();
        if state.watched.is_empty() {
            return;
        }
        let files: HashMap<OpenFileId, &OpenFile> =
            files.iter().map(|file| (file.id, file)).collect();
        let mut gone = false;
        state.watched.retain(|id, watched| {
            let is_same = |file: &&&OpenFile| {
                (file.device, file.inode) == (watched.file.device, watched.file.inode)
            };
            let Some(file) = files.get(id).filter(is_same) else {
                self.shared.misses.unwatch(*id);
                gone = true;
                return false;
            };
            if file.holders != watched.file.holders {
                watched.file = Arc::new((*file).clone());
            }
            true
        });
        drop(state);
        if gone {
            self.shared.misses.wake();
        }
    }

    /// Stops watching these open files. A prefetch that has started is completed.
    pub fn stop(&self, files: &[OpenFileId]) {
        if !files.is_empty() {
            self.shared.stop(|id| files.contains(id));
        }
    }

    /// Stops watching all open files, and awaiting others.
    pub fn clear(&self) {
        self.shared.ignore(|_| true);
        self.shared.stop(|_| true);
    }

    /// Returns the watched open files.
    pub fn files(&self) -> Vec<OpenFileId> {
        self.shared.lock().watched.keys().copied().collect()
    }

    /// Returns the counters since the last call and resets them.
    pub fn report(&self) -> MissPrefetched {
        std::mem::take(&mut self.shared.lock().done)
    }
}

impl Drop for MissPrefetcher {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.clear();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread could not be handled here.
            let _ = thread.join();
        }
    }
}

/// A confirmed duplicate of a watched file.
struct OpenDuplicate {
    duplicate: DupFd,
    /// The file for which it was confirmed.
    file: Arc<OpenFile>,
    size: Bytes,
    /// The largest amount that one call reads.
    piece: Bytes,
    opened_at: Instant,
}

struct Worker {
    actuator: Actuator,
    shared: Arc<Shared>,
    duplicates: HashMap<OpenFileId, OpenDuplicate>,
    /// The largest amount that one call reads from each device, whatever the window. To find it
    /// takes too long for a miss.
    pieces: HashMap<DevNo, Bytes>,
    /// When the oldest duplicate expires.
    next_expiry: Option<Instant>,
    /// Lost misses that were already counted.
    lost: u64,
}

impl Worker {
    fn work(mut self) {
        let mut missed = Vec::new();
        while !self.shared.lock().stopping {
            let most = self
                .next_expiry
                .map_or(IDLE_WAIT, |at| at.saturating_duration_since(Instant::now()));
            let result = self.shared.misses.wait(most, |miss| missed.push(miss));
            let result = result.map_err(ActuateError::from).and_then(|()| {
                missed.drain(..).try_for_each(|miss| {
                    self.close_unused();
                    self.prefetch_awaited(&miss);
                    self.prefetch(&miss)
                })
            });
            if let Err(error) = result {
                self.shared.ignore(|_| true);
                self.shared.stop(|_| true);
                self.shared.lock().done.failed = Some(error);
            }
            self.close_unused();
            self.count_lost();
        }
    }

    /// Requests the file of a miss, if it is awaited.
    fn prefetch_awaited(&self, miss: &Miss) {
        let awaited = self.shared.lock().awaited.remove(&(miss.device, miss.inode));
        let Some(AwaitedFile { directory, range }) = awaited else { return };
        match self.actuator.prefetch_files(&directory, &[(miss.inode, range)]) {
            Ok(asked) if asked > Bytes::ZERO => self.shared.count(asked),
            Ok(_) => {}
            Err(why) => self.shared.lock().done.missed.push((directory.file().clone(), why)),
        }
    }

    /// Requests the rest of the run or call of which a page was missed.
    fn prefetch(&mut self, miss: &Miss) -> Result<(), ActuateError> {
        let Some(file) = self.shared.watched_file(miss) else { return Ok(()) };
        if let Err(why) = self.ensure_duplicate(&file)? {
            self.shared.give_up(&file, why);
            return Ok(());
        }
        let Some(held) = self.duplicates.get(&file.id) else { return Ok(()) };
        let Some(extent) = self.shared.extent(miss, held.size) else { return Ok(()) };
        let bytes = |page: Page| Pages::new(page.get()).to_bytes(page_size());
        let end = bytes(extent.end()).min(held.size);
        match read_ahead(held.duplicate.as_fd(), (bytes(extent.start), end), held.piece) {
            Ok(asked) => self.shared.count(asked),
            Err(why) => self.shared.give_up(&file, why),
        }
        Ok(())
    }

    /// Makes and confirms a duplicate of an open file, unless one exists.
    fn ensure_duplicate(
        &mut self,
        file: &Arc<OpenFile>,
    ) -> Result<Result<(), ActuateFailure>, ActuateError> {
        if self.duplicates.get(&file.id).is_some_and(|held| Arc::ptr_eq(&held.file, file)) {
            return Ok(Ok(()));
        }
        self.duplicates.remove(&file.id);
        let opened_at = Instant::now();
        let (duplicate, now) = match self.actuator.duplicate(file)? {
            Ok(taken) => taken,
            Err(why) => return Ok(Err(why)),
        };
        let find = || largest_piece(&self.actuator.root, now.device, Bytes::ZERO);
        let piece = now.window.max(*self.pieces.entry(now.device).or_insert_with(find));
        let (file, size) = (Arc::clone(file), now.size);
        let held = OpenDuplicate { duplicate, file, size, piece, opened_at };
        self.duplicates.insert(held.file.id, held);
        let expiry = opened_at + DUPLICATE_LIFETIME;
        self.next_expiry = Some(self.next_expiry.map_or(expiry, |next| next.min(expiry)));
        Ok(Ok(()))
    }

    /// Closes duplicates that have expired or whose files are no longer watched.
    fn close_unused(&mut self) {
        if self.duplicates.is_empty() {
            self.next_expiry = None;
            return;
        }
        let state = self.shared.lock();
        let is_watched = |id, held: &OpenDuplicate| {
            state.watched.get(id).is_some_and(|it| Arc::ptr_eq(&it.file, &held.file))
        };
        let stays = |id, held: &OpenDuplicate| {
            held.opened_at.elapsed() < DUPLICATE_LIFETIME && is_watched(id, held)
        };
        let over = self.duplicates.iter().filter(|(id, held)| !stays(*id, held)).map(|(id, _)| *id);
        let over: Vec<OpenFileId> = over.collect();
        drop(state);
        // The last close of a file may block in its file system, so the lock is not held here.
        for id in over {
            self.duplicates.remove(&id);
        }
        self.next_expiry =
            self.duplicates.values().map(|held| held.opened_at + DUPLICATE_LIFETIME).min();
    }

    fn count_lost(&mut self) {
        let lost = self.shared.misses.lost();
        if lost > self.lost {
            self.shared.lock().done.dropped += lost - self.lost;
            self.lost = lost;
        }
    }
}
