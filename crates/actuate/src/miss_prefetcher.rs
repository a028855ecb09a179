//! Answering misses while their readers wait, on a thread of its own.
//!
//! A reader that goes from place to place and reads a short run at each misses its first page, and
//! waits for it about as long as the device takes for one read. Within that time the rest of the
//! run must be asked for, or the reader misses the next page, too. Making sure of an open file
//! takes too long for that, so a hand that was sure of one is kept on it for a moment.
//!
//! The thread has the priority of any other. If it went before them all (`SCHED_FIFO`), fewer
//! answers would be late on a busy machine, but readers would have to make way for it and lose
//! their turns to others, and get less in all.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use host::page_size;
use observe::{FileKind, Miss, Misses, OpenFile, OpenFileId};
use policy::MissPrefetch;
use policy::{Extent, Page};
use units::{Bytes, Pages};

use crate::actuator::{SMALLEST_PIECE, read_ahead};
use crate::reach::DupFd;
use crate::{ActuateError, ActuateFailure, Actuator};

/// For how long a grip is kept: after that it is let go of, and taken anew if a miss asks for it.
const DUP_FD_LIFETIME: Duration = Duration::from_millis(100);
/// How long to wait where nothing is held: for ever, as whoever has news wakes the thread.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

/// What came of answers since the last time.
#[derive(Debug, Default)]
pub struct MissPrefetched {
    /// Misses of which the rest of their run was asked for.
    pub runs: u64,
    /// What the kernel was asked to read.
    pub asked: Bytes,
    /// Misses that came faster than they could be told.
    pub dropped: u64,
    /// Open files that are answered no more, as they could not be reached, and why.
    pub missed: Vec<(OpenFile, ActuateFailure)>,
    pub failed: Option<ActuateError>,
}

/// An open file that is answered.
#[derive(Debug)]
struct Wanted {
    file: Arc<OpenFile>,
    answer: MissPrefetch,
}

#[derive(Debug, Default)]
struct State {
    wanted: HashMap<OpenFileId, Wanted>,
    done: MissPrefetched,
    ends: bool,
}

#[derive(Debug)]
struct Shared {
    misses: Arc<Misses>,
    state: Mutex<State>,
}

impl Shared {
    /// No thread panics while it holds the lock, so what it guards is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers these no more; the thread lets go of them.
    fn stop(&self, stopped: impl Fn(&OpenFileId) -> bool) {
        let mut state = self.lock();
        state.wanted.retain(|id, _| {
            let stops = stopped(id);
            if stops {
                self.misses.unwatch(*id);
            }
            !stops
        });
        drop(state);
        self.misses.wake();
    }

    /// Answers an open file no more, as it could not be reached.
    fn give_up(&self, file: &OpenFile, why: ActuateFailure) {
        let mut state = self.lock();
        self.misses.unwatch(file.id);
        state.wanted.remove(&file.id);
        state.done.missed.push((file.clone(), why));
    }

    /// What is answered, of the file that was missed.
    fn wanted(&self, miss: &Miss) -> Option<Arc<OpenFile>> {
        let file = self.lock().wanted.get(&miss.file).map(|it| Arc::clone(&it.file))?;
        // A disk has one inode by which it is opened and another that is read.
        let is_disk = file.kind == FileKind::BlockDevice;
        if file.device == miss.device && (is_disk || file.inode == miss.inode) {
            return Some(file);
        }
        // That was closed, and another has its address.
        self.give_up(&file, ActuateFailure::Gone);
        None
    }

    /// What to read for a miss, if it is still wanted.
    fn answer(&self, miss: &Miss, size: Bytes) -> Option<Extent> {
        let pages = size.to_pages_ceil(page_size());
        let mut state = self.lock();
        let wanted = state.wanted.get_mut(&miss.file)?;
        wanted.answer.miss(Page::new(miss.index), miss.request, pages)
    }
}

/// Answers misses of open files. Dropped, it ends with the answer that it is at.
#[derive(Debug)]
pub struct MissPrefetcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl MissPrefetcher {
    /// Starts the thread, which answers `misses` by `actuator`.
    pub fn begin(actuator: Actuator, misses: Arc<Misses>) -> io::Result<Self> {
        let shared = Arc::new(Shared { misses, state: Mutex::default() });
        let hand = Worker {
            actuator,
            shared: Arc::clone(&shared),
            held: HashMap::new(),
            until: None,
            untold: 0,
        };
        let thread = std::thread::Builder::new().name("answer".to_owned()).spawn(|| hand.work())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Answers the misses of an open file from now on.
    pub fn answer(&self, file: OpenFile, answer: MissPrefetch) {
        let mut state = self.shared.lock();
        if let Err(error) = self.shared.misses.watch(file.id) {
            let why =
                ActuateFailure::Kernel { doing: "watching its misses", reason: error.to_string() };
            state.done.missed.push((file, why));
            return;
        }
        state.wanted.insert(file.id, Wanted { file: Arc::new(file), answer });
    }

    /// Takes in the open files as they are now: who else has one of them may be somebody who must
    /// not be touched. Those that are not among them are answered no more.
    pub fn seen(&self, files: &[OpenFile]) {
        let mut state = self.shared.lock();
        if state.wanted.is_empty() {
            return;
        }
        let files: HashMap<OpenFileId, &OpenFile> =
            files.iter().map(|file| (file.id, file)).collect();
        let mut gone = false;
        state.wanted.retain(|id, wanted| {
            let is_it = |file: &&&OpenFile| {
                (file.device, file.inode) == (wanted.file.device, wanted.file.inode)
            };
            let Some(file) = files.get(id).filter(is_it) else {
                self.shared.misses.unwatch(*id);
                gone = true;
                return false;
            };
            if file.holders != wanted.file.holders {
                wanted.file = Arc::new((*file).clone());
            }
            true
        });
        drop(state);
        if gone {
            self.shared.misses.wake();
        }
    }

    /// Answers these open files no more. An answer that is being given is given to its end.
    pub fn stop(&self, files: &[OpenFileId]) {
        if !files.is_empty() {
            self.shared.stop(|id| files.contains(id));
        }
    }

    pub fn clear(&self) {
        self.shared.stop(|_| true);
    }

    /// The open files that are answered.
    pub fn files(&self) -> Vec<OpenFileId> {
        self.shared.lock().wanted.keys().copied().collect()
    }

    /// What came of answers since the last time.
    pub fn report(&self) -> MissPrefetched {
        std::mem::take(&mut self.shared.lock().done)
    }
}

impl Drop for MissPrefetcher {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.clear();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there is nothing to be done about it here.
            let _ = thread.join();
        }
    }
}

/// A hand on an open file.
struct Held {
    grip: DupFd,
    /// The file as it was meant, when that was made sure of.
    file: Arc<OpenFile>,
    size: Bytes,
    since: Instant,
}

struct Worker {
    actuator: Actuator,
    shared: Arc<Shared>,
    held: HashMap<OpenFileId, Held>,
    /// When the first of them is to be let go of.
    until: Option<Instant>,
    /// Misses that could not be told, the last time.
    untold: u64,
}

impl Worker {
    fn work(mut self) {
        let mut missed = Vec::new();
        while !self.shared.lock().ends {
            let most =
                self.until.map_or(IDLE_WAIT, |at| at.saturating_duration_since(Instant::now()));
            let result = self.shared.misses.wait(most, |miss| missed.push(miss));
            let result = result.map_err(ActuateError::from).and_then(|()| {
                missed.drain(..).try_for_each(|miss| {
                    self.let_go();
                    self.answer(&miss)
                })
            });
            if let Err(error) = result {
                self.shared.stop(|_| true);
                self.shared.lock().done.failed = Some(error);
            }
            self.let_go();
            self.count_untold();
        }
    }

    /// Has the rest of a run read of which a page was missed.
    fn answer(&mut self, miss: &Miss) -> Result<(), ActuateError> {
        let Some(file) = self.shared.wanted(miss) else { return Ok(()) };
        if let Err(why) = self.take(&file)? {
            self.shared.give_up(&file, why);
            return Ok(());
        }
        let Some(held) = self.held.get(&file.id) else { return Ok(()) };
        let Some(extent) = self.shared.answer(miss, held.size) else { return Ok(()) };
        let bytes = |page: Page| Pages::new(page.get()).to_bytes(page_size());
        let end = bytes(extent.end()).min(held.size);
        match read_ahead(held.grip.as_fd(), (bytes(extent.start), end), SMALLEST_PIECE) {
            Ok(asked) => {
                let mut state = self.shared.lock();
                state.done.runs += 1;
                state.done.asked += asked;
            }
            Err(why) => self.shared.give_up(&file, why),
        }
        Ok(())
    }

    /// Makes sure of an open file, unless it was just done.
    fn take(&mut self, file: &Arc<OpenFile>) -> Result<Result<(), ActuateFailure>, ActuateError> {
        if self.held.get(&file.id).is_some_and(|held| Arc::ptr_eq(&held.file, file)) {
            return Ok(Ok(()));
        }
        self.held.remove(&file.id);
        let since = Instant::now();
        let (grip, now) = match self.actuator.take(file)? {
            Ok(taken) => taken,
            Err(why) => return Ok(Err(why)),
        };
        let held = Held { grip, file: Arc::clone(file), size: now.size, since };
        self.held.insert(file.id, held);
        self.until = Some(
            self.until.map_or(since + DUP_FD_LIFETIME, |until| until.min(since + DUP_FD_LIFETIME)),
        );
        Ok(Ok(()))
    }

    /// Lets go of what was held for long enough, and of what is answered no more.
    fn let_go(&mut self) {
        if self.held.is_empty() {
            self.until = None;
            return;
        }
        let state = self.shared.lock();
        let is_wanted = |id, held: &Held| {
            state.wanted.get(id).is_some_and(|it| Arc::ptr_eq(&it.file, &held.file))
        };
        let stays = |id, held: &Held| held.since.elapsed() < DUP_FD_LIFETIME && is_wanted(id, held);
        let over = self.held.iter().filter(|(id, held)| !stays(*id, held)).map(|(id, _)| *id);
        let over: Vec<OpenFileId> = over.collect();
        drop(state);
        // Whoever closes a file last may have to wait for its file system.
        for id in over {
            self.held.remove(&id);
        }
        self.until = self.held.values().map(|held| held.since + DUP_FD_LIFETIME).min();
    }

    fn count_untold(&mut self) {
        let untold = self.shared.misses.untold();
        if untold > self.untold {
            self.shared.lock().done.dropped += untold - self.untold;
            self.untold = untold;
        }
    }
}
